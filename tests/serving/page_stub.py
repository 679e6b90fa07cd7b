"""Stub of the translation service for tests of its page: serves the files, and canned answers on demand."""

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

from conftest import ROOT

PAGE = ROOT / "nmt" / "serving" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LANGUAGES = [
    {"code": "en", "name": "English", "targets": ["de", "ar"]},
    {"code": "de", "name": "German", "targets": ["en"]},
    {"code": "ar", "name": "Arabic", "targets": []},
]


class Reply(NamedTuple):
    """Answer to a request for a translation: held back until ``released`` is set. None at all with status 0."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    released: threading.Event | None = None


def sentence(source: str, *texts: str, separator: str = "", **more: Any) -> dict[str, Any]:
    """Return a sentence of an answer whose word i attends to word i with 0.6 and to its right neighbour with 0.3.

    A word longer than five letters is two tokens on either side; the first of both has 0.2 more on its word.
    """
    texts = texts or (source.upper(),)
    source_tokens, source_words = tokens_of(source)
    target_tokens, target_words = tokens_of(texts[0])
    rows = []
    for token, word in zip(target_tokens, target_words, strict=True):
        row = [0.0] * len(source_tokens)
        for place, other in enumerate(source_words):
            pieces = source_words.count(other)
            if other >= 0 and other == word:
                row[place] = (0.8 if token.startswith(" ") else 0.6) / pieces
            elif other >= 0 and other == word + 1:
                row[place] = 0.1 / pieces
        row[-1] = 1 - sum(row)
        rows.append(row)
    translations = [
        {"text": text, "score": -0.25 - number, "unknown": [], "finished": True} for number, text in enumerate(texts)
    ]
    return {
        "source": source, "separator": separator, "translations": translations,
        "source_tokens": source_tokens, "target_tokens": target_tokens, "attention": rows, **more,
    }  # fmt: skip


def tokens_of(text: str) -> tuple[list[str], list[int]]:
    """Return the tokens of a text with eos, and the word of each token, -1 for eos."""
    tokens, words = [], []
    for number, word in enumerate(text.lower().split()):
        pieces = [word] if len(word) <= 5 else [word[:4], word[4:]]
        tokens += [f" {pieces[0]}", *pieces[1:]]
        words += [number] * len(pieces)
    return [*tokens, "</s>"], [*words, -1]


class Stub(ThreadingHTTPServer):
    """Service that answers with the replies of ``replies``, in order, then with the upper case of each sentence."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.languages: Any = LANGUAGES
        self.settings: dict[str, Any] = {}
        self.replies: deque[Reply] = deque()
        self.answers: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.answered: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def answer(self, text: str) -> dict[str, Any]:
        """Return the answer on a text: that of ``answers``, else a sentence for each line."""
        if text in self.answers:
            return self.answers[text]
        lines = text.split("\n")
        return {"sentences": [sentence(line, separator="\n") for line in lines[:-1]] + [sentence(lines[-1])]}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that has left: the page aborts requests."""


class Handler(BaseHTTPRequestHandler):
    """Requests of the page."""

    server: Stub

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        name = "index.html" if self.path == "/" else self.path.removeprefix("/static/")
        if self.path == "/languages":
            languages = self.server.languages
            self.send(*(languages if isinstance(languages, Reply) else Reply(body=languages))[:3])
        elif self.path == "/frontend/settings" and self.server.settings:
            self.send(200, self.server.settings, {})
        elif (PAGE / name).is_file() and "/" not in name:
            self.send(200, (PAGE / name).read_bytes(), {"Content-Type": TYPES[(PAGE / name).suffix]})
        else:
            self.send(404, {"error": f"no {self.path}"}, {})

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        reply = self.server.replies.popleft() if self.server.replies else Reply()
        if reply.released:
            reply.released.wait(20)
        if not reply.status:
            return
        try:
            self.send(reply.status, self.server.answer(asked["q"]) if reply.body is None else reply.body, reply.headers)
        finally:
            self.server.answered.append(asked["q"])

    def send(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json", "Content-Length": str(len(data)),
            "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; form-action 'self'",
            "X-Content-Type-Options": "nosniff", **headers,
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def running_stub() -> Iterator[Stub]:
    """Run the stub in a thread."""
    with Stub() as stub:
        threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield stub
        stub.shutdown()
