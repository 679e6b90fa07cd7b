"""The service as a process: its socket, its signals and its shutdown."""

import asyncio
import errno
import ipaddress
import os
import signal
import socket
from collections.abc import Sequence

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.errors import ConflictError, NmtError
from nmt.message import Argument

LOOPBACK = ("127.0.0.1", "::1")
MOST_READ = 4096
"""Most bytes that are read from a connection at a time."""
MAX_CONNECTIONS = 512
"""Most open connections; below the usual limit of 1,024 open files."""


class SmallReads(H11Protocol):
    """HTTP protocol that reads in small parts, so that other connections are served in between.

    A body in one-byte chunks can have 40,000 chunks in the 256 KiB that asyncio otherwise reads at a time.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Open a connection."""
        transport.max_size = MOST_READ  # type: ignore[attr-defined]
        super().connection_made(transport)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Clients that connect wait until the service answers.

    Args:
        host: host name or address.
        port: port number; 0 takes any free port.

    Raises:
        NmtError: if the address does not exist or cannot be used.
        ConflictError: if the port is in use.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise NmtError(
            Argument("host"),
            f" is {host!r}, which is not an address of this machine. Give 127.0.0.1, or 0.0.0.0 for all addresses.",
        ) from None
    family, _, _, _, socket_address = addresses[0]
    dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # "::" accepts IPv4 clients too
    try:
        return socket.create_server(socket_address, family=family, dualstack_ipv6=dual_stack)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConflictError(
                f"Port {port} of {host} is in use. A service needs a port of its own. End the program that uses it, or "
                "give another ",
                Argument("port"),
                "; 0 takes any free port.",
            ) from None
        raise NmtError(
            f"The service cannot listen at port {port} of {host}: {os.strerror(error.errno or 0)}. Give another ",
            Argument("host"),
            " or ",
            Argument("port"),
            ".",
        ) from None


def check_proxy(address: str) -> str:
    """Return the address or network of a proxy if it is valid.

    Raises:
        NmtError: if it is neither an address nor a network.
    """
    try:
        ipaddress.ip_network(address)
    except ValueError:
        raise NmtError(
            Argument("trust_proxy"),
            f" is {address!r}, which is not an address. Give the address of the proxy, such as 172.17.0.1, or its "
            "network, such as 172.17.0.0/16.",
        ) from None
    return address


def address(bound: socket.socket) -> str:
    """Return the address of a socket as the beginning of a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(application: ASGIApp, bound: socket.socket, proxies: Sequence[str] = LOOPBACK) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish the open requests within 25 seconds.

    Args:
        application: ASGI application that answers requests.
        bound: listening socket.
        proxies: addresses and networks of proxies whose X-Forwarded-Proto and X-Forwarded-For are trusted.
    """
    config = uvicorn.Config(
        application, http=SmallReads, ws="none", lifespan="on", loop="asyncio", log_config=None, log_level="error",
        access_log=False, forwarded_allow_ips=[*proxies], server_header=False, limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=5, timeout_graceful_shutdown=25,  # Kubernetes kills after 30 s
        h11_max_incomplete_event_size=16 * 1024,
    )  # fmt: skip
    # uvicorn handles both signals and raises them again when it ends; ignored, they leave the exit code at 0.
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        uvicorn.Server(config).run([bound])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
