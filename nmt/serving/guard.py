"""Middleware that checks access and length of every request, and adds headers and metrics to every answer."""

import asyncio
import contextlib
import hashlib
import ipaddress
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.data.sources.text_file import find_text_file, read_lines
from nmt.errors import DataError, NmtError
from nmt.message import Argument
from nmt.serving.metrics import Metrics
from nmt.serving.protocol import RequestError, refusal

DRAIN_BYTES, DRAIN_SECONDS = 64 * 1024 * 1024, 5
"""Most bytes and seconds for which a refused body is still read, so that its client gets to read the answer."""
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


def digest(key: str) -> bytes:
    """Return the hash of an API key. Looking up a hash takes a time that reveals nothing about the key."""
    return hashlib.sha256(key.encode()).digest()


def read_api_keys(path: Path) -> frozenset[bytes]:
    """Return the hashes of the API keys in a file, one per line; empty lines and lines that begin with # are ignored.

    Raises:
        DataError: if the file has no key, or a key contains white space.
    """
    lines = map(str.strip, read_lines(find_text_file(str(path), [])))
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise DataError(
            f"{path} has no API key. The file needs one key per line. Add a key, or leave out ",
            Argument("api_keys"),
            ".",
        )
    if spaced := [number for number, key in enumerate(keys, start=1) if len(key.split()) > 1]:
        raise DataError(f"{path} has white space in key {spaced[0]}. It needs one key per line. Correct the line.")
    return frozenset(map(digest, keys))


def check_origin(origin: str) -> str:
    """Return the origin of a web page in the form that browsers send; "*" stays.

    Raises:
        NmtError: if it is not an origin.
    """
    text = origin.lower().removesuffix("/")
    if text != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", text):
        raise NmtError(
            Argument("allow_origin"),
            f" is {origin!r}. An origin is scheme://host or scheme://host:port, or * for all pages. Give for example ",
            Argument("allow_origin", "https://example.org"),
        )
    return text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback of this machine."""
    address = _address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class Access:
    """Access rules for requests."""

    host: str = "127.0.0.1"
    """Name or address that the service listens at."""
    api_keys: frozenset[bytes] | None = None
    """Hashes of the valid API keys; None if requests need no key."""
    hosts: frozenset[str] = frozenset()
    """Further host names that requests may be addressed to, in lower case."""
    origins: frozenset[str] = frozenset()
    """Origins of other sites whose pages may use the service; "*" allows all."""

    def check(self, headers: Headers, method: str) -> None:
        """Check the headers of a request.

        Raises:
            RequestError: for a body with two lengths, a foreign host name, or a page of another site.
        """
        if has_two_ends(headers):
            problem = "A request may not have both Content-Length and Transfer-Encoding"
            raise RequestError(400, problem, "Send one of them. Proxies and servers may disagree where the body ends.")
        host = headers.get("host") or ""
        if not self.allows_host(host):
            names = "Ask for localhost or 127.0.0.1. Whoever runs the service can allow other names."
            raise RequestError(403, f"The service has no name {host[:100]!r}", names)
        if method not in ("GET", "HEAD") and not self.allows_origin(headers.get("origin"), host):
            problem = "Pages of other sites may not use this service"
            raise RequestError(403, problem, "Whoever runs it can allow a site.")

    def allows_host(self, header: str) -> bool:
        """Return whether a request may have this Host header.

        A web page can make its own host name point at this machine (DNS rebinding), and would then count as a page of
        the service. The header still has that name, never an address. So if other machines can reach the service, all
        addresses are allowed, since behind a router they differ from the addresses of this machine.
        """
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name) or name in self.hosts:
            return True
        return not is_loopback(self.host) and (
            bool(_address(name)) or name in {self.host, socket.gethostname().lower()}
        )

    def allows_origin(self, origin: str | None, header: str) -> bool:
        """Return whether a page of this origin (None for programs) may use the service with this Host header."""
        if origin is None or "*" in self.origins or origin in self.origins:
            return True
        return origin.lower() in {f"http://{header}".lower(), f"https://{header}".lower()}


def has_two_ends(headers: Headers) -> bool:
    """Return whether a request specifies its end twice, which can smuggle a second request past a proxy.

    A server may refuse such a request, and must close its connection (RFC 9112, sections 6.1 and 6.3).
    """
    return "content-length" in headers and "transfer-encoding" in headers


class _Body:
    """Body of a request, with a limit on its length."""

    def __init__(self, receive: Receive, headers: Headers, max_bytes: int) -> None:
        self._receive, self._max_bytes, self._received = receive, max_bytes, 0
        self.has_ended = (headers.get("content-length") or "0") == "0" and "transfer-encoding" not in headers
        """Whether the whole body has been received."""

    async def receive(self) -> Message:
        """Return the next message.

        Raises:
            RequestError: if the body is too long.
        """
        message = await self._receive()
        self._received += len(message.get("body") or b"")
        self.has_ended = not message.get("more_body")
        if self._received > self._max_bytes:
            raise RequestError(413, f"The body has more than {self._max_bytes} bytes", "Send the text in parts.")
        return message

    async def drain(self) -> None:
        """Receive the rest, within limits: a client that is still sending when the connection closes gets no answer."""
        self._max_bytes, self._received = DRAIN_BYTES, 0
        with contextlib.suppress(TimeoutError, RequestError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.has_ended:
                    await self.receive()


class Guard:
    """ASGI middleware around the application of the service."""

    def __init__(
        self,
        application: ASGIApp,
        access: Access,
        max_body: int,
        metrics: Metrics,
        endpoints: frozenset[str],
        max_bodies: Mapping[str, int] = {},
    ) -> None:
        """Wrap an application.

        Args:
            application: the application.
            access: access rules.
            max_body: most bytes of a body.
            metrics: metrics to update.
            endpoints: paths that have metrics of their own.
            max_bodies: larger limits on the body, by path.
        """
        self._application, self._access, self._max_body = application, access, max_body
        self._metrics, self._endpoints, self._max_bodies = metrics, endpoints, max_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        start, status, headers = time.perf_counter(), 0, Headers(scope=scope)
        body = _Body(receive, headers, max(self._max_body, self._max_bodies.get(scope["path"]) or 0))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(ADDED_HEADERS)
                if not body.has_ended or has_two_ends(headers):
                    MutableHeaders(scope=message)["connection"] = "close"
            elif not message.get("more_body") and not body.has_ended:
                await send({**message, "more_body": True})
                await body.drain()
                message = {"type": "http.response.body"}
            await send(message)

        try:
            self._access.check(headers, scope["method"])
            # The server omits the body of an answer to HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await self._application({**scope, "method": method}, body.receive, answer)
        except RequestError as error:
            await refusal(error)(scope, receive, answer)
        finally:
            path = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)
