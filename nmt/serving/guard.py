"""Checks of every request before the application: access and length; headers and metrics of every answer."""

import asyncio
import contextlib
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serving.access import Access
from nmt.serving.metrics import Metrics
from nmt.serving.protocol import RequestError, refusal
from nmt.serving.settings import DRAIN_BYTES, DRAIN_SECONDS

ADDED_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


class _Body:
    """Body of a request, of bounded length."""

    def __init__(self, receive: Receive, headers: Headers, most: int) -> None:
        self._receive, self._most, self._read = receive, most, 0
        self.has_ended = (headers.get("content-length") or "0") == "0" and "transfer-encoding" not in headers
        """Whether there is no more of it."""

    async def receive(self) -> Message:
        """Return the next message.

        Raises:
            RequestError: if the body is too long.
        """
        message = await self._receive()
        self._read += len(message.get("body") or b"")
        self.has_ended = not message.get("more_body")
        if self._read > self._most:
            raise RequestError(413, f"The body has more than {self._most} bytes", "Send the text in parts.")
        return message

    async def drain(self) -> None:
        """Read on, within bounds: a client that still sends when the connection closes cannot read its answer."""
        self._most, self._read = DRAIN_BYTES, 0
        with contextlib.suppress(TimeoutError, RequestError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.has_ended:
                    await self.receive()


class Guard:
    """Application with checks around it."""

    def __init__(
        self, application: ASGIApp, access: Access, max_body: int, metrics: Metrics, endpoints: frozenset[str]
    ) -> None:
        """Take the application, the rules for requests, the most bytes of a body, and the paths for metrics."""
        self._application, self._access, self._max_body = application, access, max_body
        self._metrics, self._endpoints = metrics, endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        begun, status, headers = time.perf_counter(), 0, Headers(scope=scope)
        body = _Body(receive, headers, self._max_body)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(ADDED_HEADERS)
                if not body.has_ended:
                    MutableHeaders(scope=message)["connection"] = "close"
            elif not message.get("more_body") and not body.has_ended:
                await send({**message, "more_body": True})
                await body.drain()
                message = {"type": "http.response.body"}
            await send(message)

        try:
            self._check(headers, scope["method"])
            # The server leaves out the body of an answer to HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await self._application({**scope, "method": method}, body.receive, answer)
        except RequestError as error:
            await refusal(error)(scope, receive, answer)
        finally:
            path = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)

    def _check(self, headers: Headers, method: str) -> None:
        """Refuse a request by its head."""
        host = headers.get("host") or ""
        if not self._access.allows_host(host):
            names = "Ask for localhost or 127.0.0.1. Whoever runs the service can allow other names."
            raise RequestError(403, f"The service has no name {host[:100]!r}", names)
        if method not in ("GET", "HEAD") and not self._access.allows_origin(headers.get("origin"), host):
            raise RequestError(
                403, "Pages of other sites may not use this service", "Whoever runs it can allow a site."
            )
