"""Connections of clients: limits of number and time, errors of HTTP itself as JSON.

uvicorn waits without limit for the head of a request, and for clients that do not read their answers.
"""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.guard import error_body
from nmt.serving.metrics import Metrics
from nmt.serving.settings import HEAD_SECONDS, MAX_CONNECTIONS, WRITE_SECONDS

RETRY_SECONDS = 1


class Connection(H11Protocol):
    """Connection of a client."""

    metrics: ClassVar[Metrics | None] = None
    """Metrics for refused connections."""
    head_seconds: ClassVar[float] = HEAD_SECONDS
    write_seconds: ClassVar[float] = WRITE_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS

    _refused = False
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse()
        else:
            self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._refused:
            return
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(self.write_seconds, self.transport.abort)
        else:
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._stop_write_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if the client has not read its last answer."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.write_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_response(b"400 Bad Request", "The bytes received are no HTTP request."))
        self.transport.close()
        self.loop.call_later(self.write_seconds, self.transport.abort)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _refuse(self) -> None:
        self._refused = True
        if self.metrics is not None:
            self.metrics.refused_connections.inc()
        extra = b"retry-after: %d\r\n" % RETRY_SECONDS
        message = f"There are {self.max_connections} connections. Try again later."
        self.transport.write(_response(b"503 Service Unavailable", message, extra))
        self.transport.close()
        self.loop.call_later(self.write_seconds, self.transport.abort)

    def _watch_head(self) -> None:
        """Bound the time between two requests that the client takes, whatever it sends."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)


def _response(status: bytes, message: str, extra: bytes = b"") -> bytes:
    body = error_body(message)
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (status, extra, len(body)) + body
