"""A server for tests with LibreTranslate's interface and OpenAI's chat interface. It fails as often as a test wants.

The translation of a sentence is the sentence in brackets. Whether a request fails depends on its content and on how
often it came before, so that the order in which threads send requests changes nothing.
"""

import contextlib
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

NETWORK = ("500", "429", "stall", "reset", "half a body", "rubbish")
ANSWERS = ("refusal", "chatter", "wrong count", "repeated lines", "empty", "cut off")
MOST_CHARACTERS = 2000


def translation(sentence: str, rank: int = 0) -> str:
    """Return what the server answers for a sentence."""
    return f"⟦{sentence}⟧" + (f" {rank + 1}" if rank else "")


class StubServer(ThreadingHTTPServer):
    """Server that records what it is asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.failures: Sequence[str] = ()
        """Kinds of failures, of which each request has one at random."""
        self.rate = 0.1
        """Share of the requests that fail."""
        self.key: str | None = None
        self.most_requests: int | None = None
        """Number of requests after which the server refuses all others."""
        self.refused: set[str] = set()
        """Sentences that the model refuses to translate."""
        self.bodies: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        """How often each sentence was in a request."""
        self.failed: Counter[str] = Counter()
        """Number of failures of each kind."""
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that do not wait for an answer are no error."""


class Handler(BaseHTTPRequestHandler):
    server: StubServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.loads(content)
        is_chat = self.path == "/v1/chat/completions"
        sentences = json.loads(body["messages"][-1]["content"].rpartition("\n\n")[2]) if is_chat else body["q"]
        with server.lock:
            server.bodies.append(body)
            server.asked.update(sentences)
            server.seen[content] += 1
            dice = Random(f"{content} {server.seen[content]}")
            is_exhausted = server.most_requests is not None and len(server.bodies) > server.most_requests
        key = self.headers["Authorization"] if is_chat else body.get("api_key")
        if key != (f"Bearer {server.key}" if server.key and is_chat else server.key):
            self.answer(401, {"error": {"message": f"The key {key} is wrong."} if is_chat else f"wrong key {key}"})
        elif is_exhausted:
            self.answer(403, {"error": "Enough for today."})
        elif sum(map(len, sentences)) > MOST_CHARACTERS:
            self.answer(400, {"error": "Invalid request: request (9999) exceeds text limit (2000)"})
        else:
            kinds = [kind for kind in server.failures if kind != "repeated lines" or len(sentences) > 2]
            kind = dice.choice(kinds) if kinds and dice.random() < server.rate else ""
            if kind:
                with server.lock:
                    server.failed[kind] += 1
            (self.chat if is_chat else self.libretranslate)(kind, sentences, body)

    def libretranslate(self, kind: str, sentences: list[str], body: dict[str, Any]) -> None:
        texts = [translation(sentence) for sentence in sentences]
        if kind == "wrong count":
            texts = texts[1:]
        answer: dict[str, Any] = {"translatedText": "".join(texts) if kind == "chatter" else texts}
        ranks = range(1, body.get("alternatives", 0) + 1)
        if ranks:
            answer["alternatives"] = [[translation(sentence, rank) for rank in ranks] for sentence in sentences]
        self.answer_or_fail(kind, answer)

    def chat(self, kind: str, sentences: list[str], body: dict[str, Any]) -> None:
        choices = []
        for rank in range(body.get("n", 1)):
            texts = [translation(sentence, rank) for sentence in sentences]
            wrong = {"wrong count": texts[1:], "repeated lines": texts[:1] * len(texts), "empty": ["", *texts[1:]]}
            content = json.dumps(wrong.get(kind, texts), ensure_ascii=False)
            if kind == "refusal" or server_refuses(self.server, sentences):
                content = "I'm sorry, but I can't help with that."
            elif kind == "chatter":
                content = "Sure! Here are the translations: " + "; ".join(texts)
            elif kind == "cut off":
                content = content[: len(content) // 2]
            finish = "length" if kind == "cut off" else "stop"
            choices.append({"message": {"role": "assistant", "content": content}, "finish_reason": finish})
        usage = {"prompt_tokens": 50 + 10 * len(sentences), "completion_tokens": 10 * len(sentences)}
        self.answer_or_fail(kind, {"choices": choices, "usage": usage})

    def answer_or_fail(self, kind: str, value: Any) -> None:
        content = json.dumps(value).encode()
        if kind == "500":
            self.answer(500, {"error": "a failure"})
        elif kind == "429":
            self.answer(429, {"error": "too many requests"}, {"Retry-After": "0"})
        elif kind == "stall":
            self.server.ended.wait(5)
        elif kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif kind == "half a body":
            self.send_content(200, content[: len(content) // 2], len(content), {})
        elif kind == "rubbish":
            self.send_content(200, b"<html>Bad gateway</html>", 24, {})
        else:
            self.send_content(200, content, len(content), {})

    def answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self.send_content(status, content, len(content), headers or {})

    def send_content(self, status: int, content: bytes, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in {**headers, "Content-Type": "application/json", "Content-Length": str(length)}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)


def server_refuses(server: StubServer, sentences: Sequence[str]) -> bool:
    return not server.refused.isdisjoint(sentences)


@contextlib.contextmanager
def stub_server() -> Iterator[StubServer]:
    """Start a server, and stop it in the end."""
    with StubServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()
