"""Downloads from a local server: whole, resumed, broken off, wrong, and never half under the final name."""

import hashlib
import http.server
import socket
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nmt.data.sources import download as fetch_module
from nmt.data.sources.download import CORPORA, PublicFile, checksum_path, fetch, public_file, verification
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
    ranges: bool = True
    etag: str = '"one"'
    announce: int | None = len(CONTENT)  # the Content-Length of a whole answer
    content_range: str = ""  # instead of the right one
    cut: int | None = None  # the connection closes after so many bytes
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
        body, asked = site.content, self.headers.get("Range")
        if asked and site.ranges and self.headers.get("If-Range") in (None, site.etag):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            whole = len(body)
            self.send_response(206 if start < whole else 416)
            default = f"bytes {start}-{whole - 1}/{whole}" if start < whole else f"bytes */{whole}"
            self.send_header("Content-Range", site.content_range or default)
            body = body[start:]
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_response(200)
            self.send_header("ETag", site.etag)
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


def part(folder: Path, content: bytes, etag: str = "") -> Path:
    path = folder / "corpus.pkl.part"
    path.write_bytes(content)
    if etag:
        (folder / "corpus.pkl.part.etag").write_text(etag)
    return path


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


@pytest.mark.parametrize("etag", ["", '"one"'])
def test_a_partial_file_is_resumed(site: Site, tmp_path: Path, etag: str) -> None:
    part(tmp_path, CONTENT[:1000], etag)
    reported: list[tuple[int, int]] = []
    assert fetch(site.file(), tmp_path, lambda *counts: reported.append(counts)).read_bytes() == CONTENT
    (request,) = site.requests
    assert request["range"] == "bytes=1000-"
    assert request.get("if-range", "") == etag
    assert site.sent == len(CONTENT) - 1000
    assert reported[0] == (1000, len(CONTENT))
    assert names(tmp_path) == {"corpus.pkl"}


def test_a_server_without_ranges_sends_all(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    part(tmp_path, OTHER[:1000])
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert site.sent == len(CONTENT)


def test_the_right_file_is_not_downloaded_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").write_bytes(CONTENT)
    assert fetch(site.file(), tmp_path) == tmp_path / "corpus.pkl"
    assert site.requests == []


def test_a_whole_partial_file_is_not_downloaded_again(site: Site, tmp_path: Path) -> None:
    part(tmp_path, CONTENT)
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert site.requests == []


def test_a_whole_partial_file_of_unpublished_size(site: Site, tmp_path: Path) -> None:
    part(tmp_path, CONTENT)
    assert fetch(site.file(size=None), tmp_path).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [f"bytes={len(CONTENT)}-"]
    assert site.sent == 0


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_partial_file_that_is_too_long(site: Site, tmp_path: Path, size: int | None) -> None:
    part(tmp_path, CONTENT + b"more")
    assert fetch(site.file(size), tmp_path).read_bytes() == CONTENT
    assert "range" not in site.requests[-1]


def test_redirects_keep_the_range(site: Site, tmp_path: Path) -> None:
    site.location = "/moved"
    part(tmp_path, CONTENT[:1000])
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert [request["range"] for request in site.requests] == ["bytes=1000-"] * 2


# --- broken off, then resumed


@pytest.mark.parametrize("sha256", [SHA256, None], ids=["published", "unpublished"])
def test_dropped_in_the_middle_then_resumed(site: Site, tmp_path: Path, sha256: str | None) -> None:
    site.cut = 100_000
    file = site.file(sha256=sha256, size=len(CONTENT) if sha256 else None)
    with pytest.raises(DataError, match=r"Run the same command again; the 100000 bytes so far are kept\."):
        fetch(file, tmp_path)
    assert not (tmp_path / "corpus.pkl").exists()
    site.cut = None
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.requests[-1]["range"] == "bytes=100000-"
    assert site.requests[-1]["if-range"] == '"one"'
    assert site.sent == len(CONTENT)


def test_a_file_that_changed_meanwhile_is_not_joined(site: Site, tmp_path: Path) -> None:
    site.cut = 100_000
    with pytest.raises(DataError):
        fetch(site.file(size=None, sha256=None), tmp_path)
    site.cut, site.content, site.etag = None, OTHER, '"two"'
    assert fetch(site.file(size=None, sha256=None), tmp_path).read_bytes() == OTHER


@pytest.mark.parametrize("etag", ["", 'W/"weak"', '"with a space"'])
def test_without_checksum_and_etag_a_download_starts_over(site: Site, tmp_path: Path, etag: str) -> None:
    site.cut, site.etag = 100_000, etag
    with pytest.raises(DataError):
        fetch(site.file(size=None, sha256=None), tmp_path)
    site.cut = None
    assert fetch(site.file(size=None, sha256=None), tmp_path).read_bytes() == CONTENT
    assert "range" not in site.requests[-1]


def test_interrupted_then_resumed(site: Site, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.file(), tmp_path, interrupt)
    kept = (tmp_path / "corpus.pkl.part").stat().st_size
    assert kept > 0
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert site.requests[-1]["range"] == f"bytes={kept}-"


def test_a_connection_that_falls_silent(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "TIMEOUT", 0.1)
    site.cut, site.stalls = 1000, True
    with pytest.raises(DataError, match=r"timed out.*Run the same command again"):
        fetch(site.file(), tmp_path)


def test_a_refused_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    site = Site(address=f"http://127.0.0.1:{port}")
    part(tmp_path, CONTENT[:1000])
    with pytest.raises(DataError, match=r"Connection refused. Run the same command again; the 1000 bytes so far"):
        fetch(site.file(), tmp_path)


def test_an_unknown_host(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(DataError, match=r"Name or service not known. Run the same command again\."):
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
    with pytest.raises(DataError, match=rf"the one published, {SHA256}; .* gave {received}\. The download was removed"):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


def test_a_resumed_file_with_a_wrong_beginning(site: Site, tmp_path: Path) -> None:
    part(tmp_path, OTHER[:1000])
    with pytest.raises(DataError, match="The download was removed; run the same command again"):
        fetch(site.file(), tmp_path)
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 410])
def test_nothing_at_the_address(site: Site, tmp_path: Path, status: int) -> None:
    site.status = status
    with pytest.raises(NotFoundError, match=rf"HTTP {status}.*copy it to {tmp_path / 'corpus.pkl'}\."):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("status", [401, 416, 429, 500, 503])
def test_other_statuses(site: Site, tmp_path: Path, status: int) -> None:
    site.status = status
    part(tmp_path, CONTENT[:1000])
    with pytest.raises(DataError, match=f"the server answered HTTP {status}. Run the same command again"):
        fetch(site.file(), tmp_path)


@pytest.mark.parametrize("location", ["/corpus.pkl", "file:///etc/passwd", "ftp://127.0.0.1/corpus.pkl", "data:,abc"])
def test_redirects_that_lead_nowhere(site: Site, tmp_path: Path, location: str) -> None:
    site.location = location
    with pytest.raises(DataError, match=r"HTTP 302|over http or https; the address is ftp:"):
        fetch(site.file(), tmp_path)
    assert names(tmp_path) == set()


def test_redirects_from_https_stay_encrypted() -> None:
    redirects = fetch_module._SafeRedirects()
    request = urllib.request.Request("https://example.org/corpus.pkl")
    with pytest.raises(DataError, match=r"over https; the address is http://example.org/"):
        redirects.redirect_request(request, None, 302, "Found", {}, "http://example.org/corpus.pkl")
    allowed = redirects.redirect_request(request, None, 302, "Found", {}, "https://example.org/moved")
    assert allowed is not None
    assert allowed.full_url == "https://example.org/moved"


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/corpus.pkl", "corpus.pkl", "data:,abc"])
def test_other_schemes(tmp_path: Path, address: str) -> None:
    with pytest.raises(DataError, match="A file is fetched over http or https"):
        fetch(PublicFile("corpus.pkl", address, "", None, None), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("announce", [None, len(CONTENT) + 9])
def test_a_body_that_is_too_long(site: Site, tmp_path: Path, announce: int | None) -> None:
    site.content, site.announce = CONTENT + b"too  much", announce
    largest = 0

    def report(done: int, total: int) -> None:
        nonlocal largest
        largest = done

    with pytest.raises(DataError, match=rf"corpus.pkl has (at most )?{len(CONTENT)} bytes"):
        fetch(site.file(), tmp_path, report)
    assert largest <= len(CONTENT)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("content_range", ["bytes 7-9/10", "bytes 1000-1001/*", "none", "bytes 1000-1999/9999999999"])
def test_another_part_than_asked_for(site: Site, tmp_path: Path, content_range: str) -> None:
    site.content_range = content_range
    part(tmp_path, CONTENT[:1000])
    with pytest.raises(DataError, match=r"answered with another part|announces 9999999999"):
        fetch(site.file(), tmp_path)
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
    with pytest.raises(DataError, match=rf"the one of the first download, kept in {checksum_path(path)}, {SHA256}; "):
        fetch(file, tmp_path)
    assert names(tmp_path) == {"corpus.pkl.sha256"}


def test_a_crash_between_the_record_and_the_file(site: Site, tmp_path: Path) -> None:
    checksum_path(tmp_path / "corpus.pkl").write_text(f"{SHA256}  corpus.pkl\n")
    part(tmp_path, CONTENT, '"one"')
    assert fetch(site.file(size=None, sha256=None), tmp_path).read_bytes() == CONTENT
    assert site.sent == 0


def test_a_damaged_record(site: Site, tmp_path: Path) -> None:
    checksum_path(tmp_path / "corpus.pkl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"64 hexadecimal digits; .* does not. Remove it"):
        fetch(site.file(size=None, sha256=None), tmp_path)


@pytest.mark.parametrize("announce", [None, len(CONTENT)])
def test_an_unpublished_size_is_bounded(
    site: Site, tmp_path: Path, announce: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "UNKNOWN_SIZE_LIMIT", len(CONTENT) - 1)
    site.announce = announce
    with pytest.raises(DataError, match=f"at most {len(CONTENT) - 1} bytes"):
        fetch(site.file(size=None), tmp_path)
    assert names(tmp_path) == set()


def test_an_unannounced_size_without_a_checksum(site: Site, tmp_path: Path) -> None:
    site.announce = None
    with pytest.raises(DataError, match="announces none, so half a file could pass for the whole"):
        fetch(site.file(size=None, sha256=None), tmp_path)
    assert not (tmp_path / "corpus.pkl").exists()
    assert fetch(site.file(size=None), tmp_path).read_bytes() == CONTENT


# --- what is there already, and the disk


def test_another_file_is_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").write_bytes(b"mine")
    with pytest.raises(ConflictError, match=f"other content .* instead of {SHA256}.* Move it away"):
        fetch(site.file(), tmp_path)
    with pytest.raises(ConflictError, match="no published or recorded checksum"):
        fetch(site.file(size=None, sha256=None), tmp_path)
    assert (tmp_path / "corpus.pkl").read_bytes() == b"mine"
    assert site.requests == []


def test_a_folder_of_that_name(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").mkdir()
    with pytest.raises(ConflictError, match="is something else"):
        fetch(site.file(), tmp_path)


def test_a_file_instead_of_the_folder(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(NmtError, match=r"cannot be written: (File exists|Not a directory)"):
        fetch(site.file(), tmp_path / "data")


def test_a_full_disk(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(fetch_module, "sync_file", fail)
        with pytest.raises(NmtError, match=r"cannot be written: No space left on device.*what has arrived is kept"):
            fetch(site.file(), tmp_path)
    assert not (tmp_path / "corpus.pkl").exists()
    fetch(site.file(), tmp_path)
    assert site.sent == len(CONTENT)


# --- the table


def test_unknown_names() -> None:
    with pytest.raises(NotFoundError, match=r"did you mean 'english-german-both'.*Known: .*english-german-both"):
        public_file("english-german")
    with pytest.raises(NotFoundError, match=r"there is no 'xyz'\. Known: .*english-german-both"):
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
