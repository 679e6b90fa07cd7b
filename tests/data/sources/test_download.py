"""Downloads from a local server: complete, broken off, wrong, and never half under the final name."""

import hashlib
import http.server
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from nmt.data.sources import download as fetch_module
from nmt.data.sources import public as public_module
from nmt.data.sources.download import checksum_path, fetch, verification
from nmt.data.sources.public import CORPORA, PublicFile, public_file
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError

CONTENT = bytes(range(256)) * 800  # three blocks and a bit
OTHER = CONTENT[::-1]
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Site:
    """What the server sends, and what it was asked for."""

    content: bytes = CONTENT
    status: int = 200
    location: str = ""
    announce: int | None = len(CONTENT)  # the Content-Length of a whole answer
    cut: int | None = None  # number of bytes after which the connection closes
    stall: threading.Event = field(default_factory=threading.Event)
    stalls: bool = False
    requests: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0
    address: str = ""

    def file(self, size: int | None = len(CONTENT), sha256: str | None = SHA256) -> PublicFile:
        return PublicFile("corpus.pkl", f"{self.address}/corpus.pkl", "made for a test", size, sha256)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        site: Site = self.server.site
        site.requests.append({name.lower(): value for name, value in self.headers.items()})
        if site.location and self.path == "/corpus.pkl":
            self.send_response(302)
            self.send_header("Location", site.location)
            self.end_headers()
            return
        if site.status != 200:
            self.send_error(site.status)
            return
        body = site.content
        self.send_response(200)
        if site.announce is not None:
            self.send_header("Content-Length", str(site.announce))
        self.end_headers()
        self.wfile.write(body[: site.cut])
        site.sent += len(body[: site.cut])
        if site.stalls:
            site.stall.wait(5)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


class Server(http.server.ThreadingHTTPServer):
    site: Site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: the client may hang up."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    server = Server(("127.0.0.1", 0), Handler)
    server.site = Site(address=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    yield server.site
    server.site.stall.set()
    server.shutdown()
    thread.join()
    server.server_close()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- the right file


def test_a_fresh_download(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    reported: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        assert not (folder / "corpus.pkl").exists()
        reported.append((done, total))

    path = fetch(site.file(), folder, report)
    assert path == folder / "corpus.pkl"
    assert path.read_bytes() == CONTENT
    assert names(folder) == {"corpus.pkl"}
    assert reported[0] == (0, len(CONTENT))
    assert reported[-1] == (len(CONTENT), len(CONTENT))
    assert reported == sorted(reported)
    (request,) = site.requests
    assert request["user-agent"].split("/")[0] == "nmt"
    assert "range" not in request
    assert verification(site.file(), path) == f"The SHA-256 of {path} is the published one, {SHA256}."


def test_the_right_file_is_not_downloaded_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").write_bytes(CONTENT)
    assert fetch(site.file(), tmp_path) == tmp_path / "corpus.pkl"
    assert site.requests == []


def test_a_download_has_the_permissions_of_any_file(site: Site, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    assert fetch(site.file(), tmp_path).stat().st_mode == (tmp_path / "other").stat().st_mode


def test_redirects_are_followed(site: Site, tmp_path: Path) -> None:
    site.location = "/moved"
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert len(site.requests) == 2


# --- broken off, then begun again


@pytest.mark.parametrize("size", [len(CONTENT), None])
@pytest.mark.parametrize("sha256", [SHA256, None], ids=["published", "unpublished"])
def test_dropped_in_the_middle_nothing_is_kept(
    site: Site, tmp_path: Path, sha256: str | None, size: int | None
) -> None:
    site.cut = 100_000
    file = site.file(sha256=sha256, size=size)
    with pytest.raises(DataError, match=r"closed before byte 204800\. Nothing was kept\. Run the same"):
        fetch(file, tmp_path)
    assert names(tmp_path) == set()
    site.cut = None
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_half_a_file_whose_size_the_server_does_not_announce(site: Site, tmp_path: Path) -> None:
    site.cut, site.announce = 100_000, None
    with pytest.raises(DataError, match=r"closed before byte 204800"):
        fetch(site.file(sha256=None), tmp_path)
    assert names(tmp_path) == set()


def test_interrupted_nothing_is_kept(site: Site, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.file(), tmp_path, interrupt)
    assert names(tmp_path) == set()
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT


def test_a_connection_that_falls_silent(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "TIMEOUT", 0.1)
    site.cut, site.stalls = 1000, True
    with pytest.raises(DataError, match=r"timed out.*Run the same command again"):
        fetch(site.file(), tmp_path)


def test_a_refused_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    site = Site(address=f"http://127.0.0.1:{port}")
    with pytest.raises(DataError, match=r"Connection refused\. Nothing was kept\. Run the same command again\."):
        fetch(site.file(), tmp_path)


def test_an_unknown_host(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(DataError, match=r"Name or service not known\. Nothing was kept\. Run the same command again\."):
        fetch(site.file(), tmp_path)


def test_an_answer_that_is_not_http(tmp_path: Path) -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"220 mail server ready\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        with pytest.raises(DataError, match="could not be downloaded: 220 mail server ready"):
            fetch(Site(address=f"http://127.0.0.1:{listener.getsockname()[1]}").file(), tmp_path)
        thread.join()


# --- wrong answers


def test_a_wrong_checksum(site: Site, tmp_path: Path) -> None:
    site.content = OTHER
    received = hashlib.sha256(OTHER).hexdigest()
    with pytest.raises(DataError, match=rf"{received} instead of the published one, {SHA256}\. It was removed"):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("status", [404, 410])
def test_nothing_at_the_address(site: Site, tmp_path: Path, status: int) -> None:
    site.status = status
    with pytest.raises(NotFoundError, match=rf"HTTP {status}.*copy it to {tmp_path / 'corpus.pkl'}\."):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("status", [203, 300, 304, 401, 416, 429, 500, 503])
def test_other_statuses(site: Site, tmp_path: Path, status: int) -> None:
    site.status = status
    with pytest.raises(DataError, match=rf"the server answered HTTP {status}\. Nothing was kept\. Run the same"):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("location", ["/corpus.pkl", "file:///etc/passwd", "ftp://127.0.0.1/corpus.pkl", "data:,abc"])
def test_redirects_that_lead_nowhere(site: Site, tmp_path: Path, location: str) -> None:
    site.location = location
    with pytest.raises(DataError, match=r"Exceeded 30 redirects|^(file|ftp|data):.* A download takes http or https\."):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(("location", "allowed"), [("/moved", True), ("http://example.org/corpus.pkl", False)])
def test_redirects_from_https_stay_encrypted(tmp_path: Path, location: str, allowed: bool) -> None:
    file = PublicFile("corpus.pkl", "https://example.org/corpus.pkl", "", None, SHA256)
    download = fetch_module._Download(file, tmp_path / file.name, SHA256, lambda done, total: None)
    response = requests.Response()
    response.status_code, response.url, response.headers["location"] = 302, file.address, location
    if allowed:
        download._check_response(response)
    else:
        with pytest.raises(DataError, match=r"^http://example.org/corpus.pkl cannot .* A download takes https\."):
            download._check_response(response)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/corpus.pkl", "corpus.pkl", "data:,abc"])
def test_other_schemes(tmp_path: Path, address: str) -> None:
    with pytest.raises(DataError, match="A download takes http or https"):
        fetch(PublicFile("corpus.pkl", address, "", None, None), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("announce", [None, len(CONTENT) + 9])
def test_a_body_that_is_too_long(site: Site, tmp_path: Path, announce: int | None) -> None:
    site.content, site.announce = CONTENT + b"too  much", announce
    largest = 0

    def report(done: int, total: int) -> None:
        nonlocal largest
        largest = done

    with pytest.raises(DataError, match=rf"(corpus.pkl has|sent more than the) {len(CONTENT)} bytes"):
        fetch(site.file(), tmp_path, report)
    assert largest <= len(CONTENT)
    assert names(tmp_path) == set()


# --- without a published checksum


def test_the_first_download_is_trusted_and_recorded(site: Site, tmp_path: Path) -> None:
    file = site.file(size=None, sha256=None)
    path = fetch(file, tmp_path)
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == {"corpus.pkl", "corpus.pkl.sha256"}
    assert checksum_path(path).read_text() == f"{SHA256}  corpus.pkl\n"
    assert (
        f"No checksum of corpus.pkl has been published, so the first download was trusted: its SHA-256, {SHA256},"
        in (verification(file, path))
    )
    assert fetch(file, tmp_path) == path
    assert len(site.requests) == 1
    path.unlink()
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_later_downloads_must_agree_with_the_first(site: Site, tmp_path: Path) -> None:
    file = site.file(size=None, sha256=None)
    path = fetch(file, tmp_path)
    path.unlink()
    site.content = OTHER
    with pytest.raises(DataError, match=rf"the one of the first download in {checksum_path(path)}, {SHA256}\. It was"):
        fetch(file, tmp_path)
    assert names(tmp_path) == {"corpus.pkl.sha256"}


def test_a_crash_between_the_record_and_the_file(site: Site, tmp_path: Path) -> None:
    checksum_path(tmp_path / "corpus.pkl").write_text(f"{SHA256}  corpus.pkl\n")
    assert fetch(site.file(size=None, sha256=None), tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == {"corpus.pkl", "corpus.pkl.sha256"}


def test_the_record_is_written_before_the_file_has_its_name(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "move", die)
    with pytest.raises(KeyboardInterrupt):
        fetch(site.file(size=None, sha256=None), tmp_path)
    assert names(tmp_path) == {"corpus.pkl.sha256"}


def test_a_damaged_record(site: Site, tmp_path: Path) -> None:
    checksum_path(tmp_path / "corpus.pkl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"is damaged: .* 64 hexadecimal digits\. .* Remove it"):
        fetch(site.file(size=None, sha256=None), tmp_path)


@pytest.mark.parametrize("announce", [None, len(CONTENT)])
def test_an_unpublished_size_is_bounded(
    site: Site, tmp_path: Path, announce: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_module, "UNKNOWN_SIZE_LIMIT", len(CONTENT) - 1)
    site.announce = announce
    with pytest.raises(DataError, match=rf"(at most|more than the) {len(CONTENT) - 1} bytes"):
        fetch(site.file(size=None), tmp_path)
    assert names(tmp_path) == set()


def test_an_unannounced_size_without_a_checksum(site: Site, tmp_path: Path) -> None:
    site.announce = None
    with pytest.raises(DataError, match=r"announces no size.* half of corpus.pkl could pass for the whole"):
        fetch(site.file(size=None, sha256=None), tmp_path)
    assert not (tmp_path / "corpus.pkl").exists()
    assert fetch(site.file(size=None), tmp_path).read_bytes() == CONTENT


# --- what is there already, and the disk


def test_another_file_is_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").write_bytes(b"mine")
    with pytest.raises(ConflictError, match=f"other content: .* instead of {SHA256}.* Move it away"):
        fetch(site.file(), tmp_path)
    with pytest.raises(ConflictError, match="no published or recorded checksum"):
        fetch(site.file(size=None, sha256=None), tmp_path)
    assert (tmp_path / "corpus.pkl").read_bytes() == b"mine"
    assert site.requests == []


def test_a_folder_of_that_name(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").mkdir()
    with pytest.raises(ConflictError, match="exists and is not a file"):
        fetch(site.file(), tmp_path)


def test_a_file_instead_of_the_folder(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(NmtError, match=r"cannot be written: (File exists|Not a directory)"):
        fetch(site.file(), tmp_path / "data")


def test_a_full_disk(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(NmtError, match=r"cannot be written: No space left on device\. Nothing was kept"):
            fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT


# --- the table


def test_unknown_names() -> None:
    with pytest.raises(NotFoundError, match=r"did you mean 'english-german-both'.*Known: .*english-german-both"):
        public_file("english-german")
    with pytest.raises(NotFoundError, match=r"no public corpus 'xyz'\. Known: .*english-german-both"):
        public_file("xyz")


@pytest.mark.parametrize("name", CORPORA)
def test_the_table(name: str) -> None:
    file = public_file(name)
    assert file.address.startswith("https://")
    assert Path(file.address).suffix == Path(file.name).suffix
    assert Path(file.name).name == file.name
    assert file.credit
    assert file.size is None or file.size > 0
    assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
