"""Around the application: who may send a request, how long it may be, and what every answer has.

An ASGI middleware. It reads the body itself, within a size and a time, before the application sees the request.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from nmt.serving.access import Access
from nmt.serving.metrics import Metrics
from nmt.serving.protocol import RequestError
from nmt.serving.settings import BODY_SECONDS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = dict[bytes, bytes]

SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
     b"object-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]  # fmt: skip
SAFE_METHODS = ("GET", "HEAD")
CORS_METHODS = b"GET, POST"
CORS_SECONDS = b"600"
FAILED = "The service failed at this request. Its log has the reason."
logger = logging.getLogger(__name__)


def error_body(message: str) -> bytes:
    """Return an error as JSON."""
    return json.dumps({"error": message}).encode()


class Guard:
    """Application with checks around it."""

    def __init__(
        self, application: Application, access: Access, max_body: int, metrics: Metrics, endpoints: frozenset[str]
    ) -> None:
        """Take the application, the rules for requests, the most bytes of a body, and the paths for metrics."""
        self._application, self._access, self._max_body = application, access, max_body
        self._metrics, self._endpoints = metrics, endpoints

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        begun, status = time.perf_counter(), 0
        headers: Headers = dict(reversed(scope["headers"]))  # of repeated headers the first
        friend = self._friend(headers)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *SECURITY_HEADERS, *_cors(friend)]}
            await send(message)

        try:
            await self._answer(scope, headers, friend, receive, answer)
        except RequestError as error:
            if not status:
                await _refuse(answer, error)
        except asyncio.CancelledError:  # the service ends, and its time for requests is over
            if not status:
                await _refuse(answer, RequestError(503, "The service ends. Try again later."))
        except Exception:  # whatever a request does, the service goes on
            logger.exception("A request failed.")
            if not status:
                await _refuse(answer, RequestError(500, FAILED))
        finally:
            path = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)

    def _friend(self, headers: Headers) -> bytes | None:
        """Return the origin of a foreign page that may read the answer."""
        origin = headers.get(b"origin")
        return origin if origin and self._access.is_foreign_friend(origin.decode("latin-1")) else None

    async def _answer(
        self, scope: Message, headers: Headers, friend: bytes | None, receive: Receive, send: Send
    ) -> None:
        host = _text(headers.get(b"host")) or ""
        if not self._access.allows_host(host):
            raise RequestError(
                403, f"The service has no name {host[:100]!r}. Use localhost or 127.0.0.1, or start the service with "
                "--allow-host."
            )  # fmt: skip
        if scope["method"] not in SAFE_METHODS and not self._access.allows_origin(
            _text(headers.get(b"origin")), _text(headers.get(b"sec-fetch-site")), host
        ):
            raise RequestError(
                403, "Pages of other sites may not use this service. Start it with --allow-origin to allow a site."
            )
        if friend and scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        body = await self._read_body(headers, receive)
        is_given = False

        async def replay() -> Message:
            nonlocal is_given
            if is_given:
                return await receive()  # waits for the client to leave
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        # The server leaves out the body of an answer to HEAD.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._application({**scope, "method": method}, replay, send)

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        length = headers.get(b"content-length")
        too_long = RequestError(413, f"The body has more than {self._max_body} bytes. Send the text in parts.")
        if length and length.isdigit() and int(length[:20]) > self._max_body:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RequestError(400, "The client left before the body was complete.")
                    body += message["body"]
                    if len(body) > self._max_body:
                        raise too_long
                    if not message["more_body"]:
                        return bytes(body)
        except TimeoutError:
            raise RequestError(408, f"The body took more than {BODY_SECONDS:g} s. Send it faster.") from None


async def _refuse(send: Send, error: RequestError) -> None:
    body = error_body(error.message)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    if error.status == HTTPStatus.REQUEST_TIMEOUT:
        headers["connection"] = "close"
    await send({"type": "http.response.start", "status": error.status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})


def _cors(friend: bytes | None) -> list[tuple[bytes, bytes]]:
    if friend is None:
        return [(b"vary", b"origin")]
    return [
        (b"access-control-allow-origin", friend), (b"access-control-allow-methods", CORS_METHODS),
        (b"access-control-allow-headers", b"content-type"), (b"access-control-max-age", CORS_SECONDS),
        (b"vary", b"origin"),
    ]  # fmt: skip


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
