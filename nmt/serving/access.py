"""Who may use the service: API keys, host names, origins of web pages."""

import hashlib
import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from nmt.data.sources.text_file import find_text_file, read_lines
from nmt.errors import DataError, NmtError


def digest(key: str) -> bytes:
    """Return the hash of an API key. The time to find it among others tells nothing of the key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def read_api_keys(path: Path) -> frozenset[bytes]:
    """Return the hashes of the API keys in a file, one a line; empty lines and lines that begin with # are left out.

    Raises:
        DataError: if the file has no key, or a key with white space.
    """
    keys = [line.strip() for line in read_lines(find_text_file(str(path), []))]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys:
        raise DataError(f"{path} has no API key. It holds one key a line. Add a key, or leave out --api-keys.")
    for number, key in enumerate(keys, start=1):
        if len(key.split()) > 1:
            raise DataError(f"{path} has white space in key {number}. It holds one key a line. Correct the line.")
    return frozenset(map(digest, keys))


def check_origin(origin: str) -> str:
    """Return the origin of a web page in the form that browsers send; "*" stays.

    Raises:
        NmtError: if it is no origin.
    """
    text = origin.lower().removesuffix("/")
    if text != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", text):
        raise NmtError(
            f"--allow-origin {origin!r} is no origin. An origin is scheme://host or scheme://host:port, or * for all. "
            "Give for example --allow-origin https://example.org"
        )
    return text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address reaches this machine alone."""
    address = _address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class Access:
    """Rules for requests."""

    host: str = "127.0.0.1"
    """Name or address that the service listens at."""
    api_keys: frozenset[bytes] | None = None
    """Hashes of keys of which a request needs one; None: requests need no key."""
    hosts: frozenset[str] = frozenset()
    """Host names, besides those of this machine, that requests may be addressed to, in lower case."""
    origins: frozenset[str] = frozenset()
    """Origins of foreign web pages that may use the service; "*": all."""

    def allows_host(self, header: str) -> bool:
        """Return whether a request may have this Host header.

        A web page can make its own host name point at this machine (DNS rebinding) and would then count as a page of
        the service. The header still has that name. It cannot be an address, so where other machines reach the service,
        all addresses are right: behind a router they are not those of this machine.
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
        """Return whether a page of this origin, None for programs, may use the service with this Host header."""
        if origin is None or "*" in self.origins or origin in self.origins:
            return True
        return origin.lower() in {f"http://{header}".lower(), f"https://{header}".lower()}
