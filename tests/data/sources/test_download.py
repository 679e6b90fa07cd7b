"""Downloads from a local server: whole and verified, or absent; never in place of another file."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.data.sources import public
from nmt.data.sources.public import PublicFile, fetch
from nmt.errors import ConflictError, DataError
from nmt.storage import atomic

CONTENT = bytes(range(256)) * 800
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Server of one file. ``answers`` are bodies of the next requests, None for HTTP 503; then comes CONTENT."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[bytes | None] = []
        self.requests = 0

    @property
    def file(self) -> PublicFile:
        return PublicFile("corpus.pkl", f"http://127.0.0.1:{self.server_port}/corpus.pkl", "made for a test", SHA256)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        body = self.server.answers.pop(0) if self.server.answers else CONTENT
        if body is None:
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two attempts
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_download_is_whole_and_not_repeated(server: Server, tmp_path: Path) -> None:
    path = fetch(server.file, tmp_path / "new")
    assert path == tmp_path / "new" / "corpus.pkl"
    assert path.read_bytes() == CONTENT
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names(path.parent) == {"corpus.pkl"}
    assert fetch(server.file, path.parent) == path
    assert server.requests == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(CONTENT[::-1], "does not match the known hash"), (CONTENT[:1000], "1000 bytes read"), (None, "503")],
    ids=["other content", "broken off", "status"],
)
def test_what_fails_is_tried_again_and_leaves_nothing(
    server: Server, tmp_path: Path, answer: bytes | None, reason: str
) -> None:
    attempts = 1 + public.RETRIES
    server.answers = [answer] * attempts
    with pytest.raises(DataError, match=rf"corpus.pkl could not be downloaded from .*{reason}.*Run the same"):
        fetch(server.file, tmp_path)
    assert server.requests == attempts
    assert names(tmp_path) == set()
    server.answers = [answer] * (attempts - 1)
    assert fetch(server.file, tmp_path).read_bytes() == CONTENT


def test_interrupted_nothing_is_kept(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "sync_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(server.file, tmp_path)
    assert names(tmp_path) == set()


def test_a_file_that_another_process_has_downloaded_meanwhile_stays(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download = public._download

    def meanwhile(*arguments: Any) -> None:
        download(*arguments)
        (tmp_path / "corpus.pkl").write_text("mine")

    monkeypatch.setattr(public, "_download", meanwhile)
    with pytest.raises(ConflictError, match="was changed by another process meanwhile"):
        fetch(server.file, tmp_path)
    assert names(tmp_path) == {"corpus.pkl"} and (tmp_path / "corpus.pkl").read_text() == "mine"
