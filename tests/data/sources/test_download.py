"""Downloads from a local server: complete, broken off, wrong, and never half under the final name."""

import contextlib
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
from nmt.errors import ConflictError, DataError, NmtError

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

    site.location = "/moved"  # to which the server sends it on
    path = fetch(site.file(), folder, report)
    assert path == folder / "corpus.pkl"
    assert path.read_bytes() == CONTENT
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names(folder) == {"corpus.pkl"}
    assert (reported[0], reported[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))
    assert reported == sorted(reported)
    assert [request["user-agent"].split("/")[0] for request in site.requests] == ["nmt", "nmt"]
    assert SHA256 in verification(site.file(), path)
    assert fetch(site.file(), folder) == path
    assert len(site.requests) == 2  # none for what is there


# --- mishaps

UNSIZED, UNCHECKED, UNKNOWN = {"size": None}, {"sha256": None}, {"size": None, "sha256": None}
OWNERS = {"TIMEOUT": fetch_module, "UNKNOWN_SIZE_LIMIT": public_module, "fsync": os}


def no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


MISHAPS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "broken off": ({"cut": 100_000}, {}, "closed before byte 204800"),
    "broken off, nothing published": ({"cut": 100_000}, UNKNOWN, "closed before byte 204800"),
    "broken off, no size announced": ({"cut": 100_000, "announce": None}, UNCHECKED, "closed before byte 204800"),
    "silent": ({"cut": 1000, "stalls": True, "TIMEOUT": 0.1}, {}, "timed out"),
    "other content": ({"content": OTHER}, {}, "SHA-256"),
    "too long": ({"content": CONTENT + b"too  much", "announce": None}, {}, "sent more than the 204800 bytes"),
    "too long as announced": ({"announce": len(CONTENT) + 9}, {}, "corpus.pkl has 204800 bytes"),
    "beyond the limit": ({"UNKNOWN_SIZE_LIMIT": 204_799, "announce": None}, UNSIZED, "more than the 204799 bytes"),
    "beyond the limit as announced": ({"UNKNOWN_SIZE_LIMIT": 204_799}, UNSIZED, "at most 204799 bytes"),
    "neither size nor checksum": ({"announce": None}, UNKNOWN, "half of corpus.pkl could pass for the whole"),
    "gone": ({"status": 410}, {}, "HTTP 410"),
    **{f"status {status}": ({"status": status}, {}, f"HTTP {status}") for status in (203, 300, 304, 401, 416, 500)},
    "endless redirects": ({"location": "/corpus.pkl"}, {}, "Exceeded 30 redirects"),
    "redirect to a file": ({"location": "file:///etc/passwd"}, {}, "A download takes http or https"),
    "redirect to data": ({"location": "data:,abc"}, {}, "A download takes http or https"),
    "full disk": ({"fsync": no_space}, {}, "cannot be written: No space left on device"),
}


@pytest.mark.parametrize(("mishap", "published", "message"), MISHAPS.values(), ids=MISHAPS)
def test_after_a_mishap_nothing_is_kept_and_the_same_again_succeeds(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mishap: dict, published: dict, message: str
) -> None:
    file, largest = site.file(**published), 0

    def report(done: int, total: int) -> None:
        nonlocal largest
        largest = done

    with monkeypatch.context() as patch:
        for name, value in mishap.items():
            patch.setattr(OWNERS.get(name, site), name, value)
        with pytest.raises(NmtError, match=message):
            fetch(file, tmp_path, report)
    assert largest <= len(CONTENT)
    assert names(tmp_path) == set()
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_interrupted_nothing_is_kept(site: Site, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.file(), tmp_path, interrupt)
    assert names(tmp_path) == set()


def test_a_refused_connection_and_other_schemes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}", "file:///etc/passwd", "ftp://127.0.0.1/corpus.pkl", "corpus.pkl"):
        with pytest.raises(DataError, match=r"Connection refused\.|A download takes http or https"):
            fetch(Site(address=address).file(), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(("location", "allowed"), [("/moved", True), ("http://example.org/corpus.pkl", False)])
def test_redirects_from_https_stay_encrypted(tmp_path: Path, location: str, allowed: bool) -> None:
    file = PublicFile("corpus.pkl", "https://example.org/corpus.pkl", "", None, SHA256)
    download = fetch_module._Download(file, tmp_path / file.name, SHA256, lambda done, total: None)
    response = requests.Response()
    response.status_code, response.url, response.headers["location"] = 302, file.address, location
    with contextlib.nullcontext() if allowed else pytest.raises(DataError, match=r"A download takes https\."):
        download._check_response(response)


# --- without a published checksum, and where a file is already


def test_the_first_download_is_trusted_and_later_ones_must_agree(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, path = site.file(**UNKNOWN), tmp_path / "corpus.pkl"

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "move", die)
        with pytest.raises(KeyboardInterrupt):
            fetch(file, tmp_path)
    assert names(tmp_path) == {"corpus.pkl.sha256"}  # the record comes before the name
    for _ in range(2):
        assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert len(site.requests) == 2
    assert checksum_path(path).read_text() == f"{SHA256}  corpus.pkl\n"
    assert SHA256 in verification(file, path)
    path.unlink()
    site.content = OTHER
    with pytest.raises(DataError, match=rf"the one of the first download in {checksum_path(path)}, {SHA256}"):
        fetch(file, tmp_path)
    assert names(tmp_path) == {"corpus.pkl.sha256"}


def test_another_file_is_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.pkl").write_bytes(b"mine")
    for published in ({}, UNKNOWN):
        with pytest.raises(ConflictError):
            fetch(site.file(**published), tmp_path)
    assert (tmp_path / "corpus.pkl").read_bytes() == b"mine"
    assert site.requests == []


@pytest.mark.parametrize("name", CORPORA)
def test_public_corpora_are_fetched_encrypted_under_the_name_of_their_kind(name: str) -> None:
    file = public_file(name)
    assert file.address.startswith("https://")
    assert Path(file.address).suffix == Path(file.name).suffix
    assert Path(file.name).name == file.name
