"""The service as a process: its socket, its signals, its end."""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from nmt.errors import ConflictError, NmtError
from nmt.serving.connections import Connection
from nmt.serving.guard import Application
from nmt.serving.metrics import Metrics
from nmt.serving.service import Service
from nmt.serving.settings import GRACE_SECONDS, IDLE_SECONDS, MAX_HEAD

BACKLOG = 128


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Clients that connect wait until the service answers.

    Args:
        host: name or address.
        port: number of the port; 0: any that is free.

    Raises:
        NmtError: if there is no such address, or it cannot be used.
        ConflictError: if the port is in use.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise NmtError(
            f"--host {host!r} is no address of this machine. Give 127.0.0.1, or 0.0.0.0 for all addresses."
        ) from None
    family, kind, protocol, _, place = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an earlier service may have left connections
        bound.bind(place)
        bound.listen(BACKLOG)  # two sockets can be bound to a port of which none listens
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise ConflictError(
                f"Port {port} of {host} is in use. A service listens at a port of its own. End the program that uses "
                "it, or give another --port; 0 takes any that is free."
            ) from None
        raise NmtError(
            f"The service cannot listen at port {port} of {host}: {error.strerror}. Give another --host or --port."
        ) from None
    return bound


def address(bound: socket.socket) -> str:
    """Return the address of a socket as the beginning of a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Server that says when it is ready, and ends with exit code 0 after SIGTERM or Ctrl-C."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and Ctrl-C. uvicorn would raise them again at its end, for another exit code."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(
    application: Application, service: Service, metrics: Metrics, bound: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish the requests under way, within ``GRACE_SECONDS``.

    Args:
        application: ASGI application of the service.
        service: the service, which is started and stopped.
        metrics: metrics, for refused connections.
        bound: socket that listens.
        on_ready: called when requests are answered.
    """
    limited = type("LimitedConnection", (Connection,), {"metrics": metrics})
    config = uvicorn.Config(
        application, http=limited, ws="none", lifespan="off", loop="asyncio", log_config=None, log_level="error",
        access_log=False, proxy_headers=False, server_header=False, timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS, h11_max_incomplete_event_size=MAX_HEAD, backlog=BACKLOG,
    )  # fmt: skip

    async def serve() -> None:
        service.start()
        try:
            await _Server(config, on_ready).serve([bound])
        finally:
            await service.stop()

    asyncio.run(serve())
