"""Stub of the translation service for tests of its page: it serves the page's files and prepared answers."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from nmt.serving.app import PAGE
from nmt.serving.guard import ADDED_HEADERS

LANGUAGES = [
    {"code": "en", "name": "English", "direction": "ltr", "targets": ["de", "ar"]},
    {"code": "de", "name": "German", "direction": "ltr", "targets": ["en"]},
    {"code": "ar", "name": "Arabic", "direction": "rtl", "targets": []},
]


class Reply(NamedTuple):
    """Answer to a request, delayed until ``released`` is set. Status 0 sends no answer."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] | None = None
    released: threading.Event | None = None


def sentence(source: str, *texts: str, separator: str = "", **more: Any) -> dict[str, Any]:
    """Return a sentence of an answer; its word i attends to source word i with 0.8 and to word i + 1 with 0.1."""
    texts = texts or (source.upper(),)
    tokens, own = ([*(f" {word}" for word in text.lower().split()), "</s>"] for text in (source, texts[0]))
    shape = len(own), len(tokens)
    translations = [
        {"text": text, "score": -0.25 - number, "unknown": [], "finished": True} for number, text in enumerate(texts)
    ]
    return {
        "source": source, "separator": separator, "translations": translations, "source_tokens": tokens,
        "target_tokens": own, "attention": (0.8 * np.eye(*shape) + 0.1 * np.eye(*shape, 1)).tolist(), **more,
    }  # fmt: skip


class Stub(ThreadingHTTPServer):
    """Service that sends the replies in ``replies``, in order, and then the sentences in upper case."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.languages = Reply(body=LANGUAGES)
        self.settings = Reply(404, {"error": "no settings"})
        self.replies: deque[Reply] = deque()
        self.answers: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []
        self.answered: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def answer(self, text: str) -> dict[str, Any]:
        """Return the answer in ``answers`` to a text; by default, one sentence for each line."""
        if text in self.answers:
            return self.answers[text]
        lines = text.split("\n")
        return {"sentences": [sentence(line, separator="\n") for line in lines[:-1]] + [sentence(lines[-1])]}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected browsers, since the page aborts requests."""


class Handler(SimpleHTTPRequestHandler):
    """Handler for the requests of the page."""

    server: Stub

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(PAGE))

    def do_GET(self) -> None:
        replies = {"/languages": self.server.languages, "/frontend/settings": self.server.settings}
        if self.path in replies:
            self.send(replies[self.path])
        else:
            self.path = self.path.removeprefix("/static")
            super().do_GET()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request)
        reply = self.server.replies.popleft() if self.server.replies else Reply()
        if reply.released:
            reply.released.wait(20)
        try:
            if self.path != "/details":
                self.send(Reply(404, {"error": f"no {self.path}"}))
            elif reply.status:
                self.send(reply if reply.body is not None else reply._replace(body=self.server.answer(request["q"])))
        finally:
            self.server.answered.append(request["q"])

    def send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for header in {"Content-Type": "application/json", **(reply.headers or {})}.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode())

    def end_headers(self) -> None:
        for header in ADDED_HEADERS.items():
            self.send_header(*header)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""
