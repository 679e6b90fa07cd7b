"""Around the application: who may send a request, how long it may be, what every answer has, metrics."""

import time

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serving.access import Access
from nmt.serving.metrics import Metrics
from nmt.serving.protocol import RequestError

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
        begun, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(ADDED_HEADERS)
            await send(message)

        try:
            self._check(Headers(scope=scope), scope["method"])
            # The server leaves out the body of an answer to HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await self._application({**scope, "method": method}, self._limited(receive), answer)
        except RequestError as error:
            await JSONResponse({"error": error.message}, error.status)(scope, receive, answer)
        finally:
            path = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)

    def _check(self, headers: Headers, method: str) -> None:
        """Refuse a request by its head."""
        host, length = headers.get("host") or "", headers.get("content-length") or ""
        if not self._access.allows_host(host):
            raise RequestError(
                403, f"The service has no name {host[:100]!r}. Use localhost or 127.0.0.1, or start the service with "
                "--allow-host."
            )  # fmt: skip
        if method not in ("GET", "HEAD") and not self._access.allows_origin(headers.get("origin"), host):
            raise RequestError(
                403, "Pages of other sites may not use this service. Start it with --allow-origin to allow a site."
            )
        if length.isdigit() and int(length[:20]) > self._max_body:
            raise self._too_long()

    def _limited(self, receive: Receive) -> Receive:
        """Return the same messages, with an end to bodies that are too long."""
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message["body"]) if message["type"] == "http.request" else 0
            if read > self._max_body:
                raise self._too_long()
            return message

        return limited

    def _too_long(self) -> RequestError:
        return RequestError(413, f"The body has more than {self._max_body} bytes. Send the text in parts.")
