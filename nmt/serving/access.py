"""Who may use the service: API keys, host names, origins of web pages."""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from nmt.errors import DataError, NmtError
from nmt.storage.text import read_lines


class ApiKeys:
    """API keys, compared in constant time."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Take the keys. Only their hashes are kept."""
        self._digests = [_digest(key) for key in keys]

    def accepts(self, key: str) -> bool:
        """Return whether a key is among these. The time does not depend on which, or on how much of it agrees."""
        digest, is_known = _digest(key), False
        for known in self._digests:  # no early end
            is_known |= hmac.compare_digest(digest, known)
        return is_known


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def read_api_keys(path: Path) -> ApiKeys:
    """Return the API keys in a file, one a line; empty lines and lines that begin with # are left out.

    Raises:
        DataError: if the file has no key, or a key with white space.
    """
    keys = [line.strip() for line in read_lines(path)]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys:
        raise DataError(f"{path} has no API key. It holds one key a line. Add a key, or leave out --api-keys.")
    for number, key in enumerate(keys, start=1):
        if len(key.split()) > 1:
            raise DataError(f"{path} has white space in key {number}. It holds one key a line. Correct the line.")
    return ApiKeys(keys)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address reaches this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def check_origin(origin: str) -> str:
    """Return the origin of a web page in the form that browsers send; "*" stays.

    Raises:
        NmtError: if it is no origin.
    """
    if origin == "*":
        return origin
    parts = urlsplit(origin)
    if not parts.scheme or not parts.netloc or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise NmtError(
            f"--allow-origin {origin!r} is no origin. An origin is scheme://host or scheme://host:port, or * for all. "
            "Give for example --allow-origin https://example.org"
        )
    return f"{parts.scheme}://{parts.netloc}".lower()


@dataclass(frozen=True)
class Access:
    """Rules for requests, by their headers."""

    loopback: bool = True
    """Whether the service listens on this machine alone."""
    api_keys: ApiKeys | None = None
    """Keys of which a request needs one; None: requests need no key."""
    hosts: frozenset[str] = field(default_factory=frozenset)
    """Host names, besides those of loopback, that requests may be addressed to."""
    origins: frozenset[str] = field(default_factory=frozenset)
    """Origins of foreign web pages that may use the service; "*": all."""

    def allows_host(self, host: str) -> bool:
        """Return whether a request may have this Host header.

        A web page can make its own host name point at 127.0.0.1 (DNS rebinding) and would then count as a page of the
        service. The header still has that name.
        """
        if not self.loopback and not self.hosts:
            return True
        name = _host_name(host)
        return name is not None and (is_loopback(name) or name in self.hosts)

    def allows_origin(self, origin: str | None, site: str | None, host: str) -> bool:
        """Return whether a web page may send a request.

        Args:
            origin: header Origin; None without it, as from programs that are no browsers.
            site: header Sec-Fetch-Site.
            host: header Host.
        """
        if origin is None:
            return site in (None, "same-origin", "none")
        return self.is_foreign_friend(origin) or _is_own(origin, host)

    def is_foreign_friend(self, origin: str) -> bool:
        """Return whether a page of this origin may read answers: it is among ``origins``."""
        return "*" in self.origins or origin.lower() in self.origins


def _is_own(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).scheme in ("http", "https") and urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _host_name(host: str) -> str | None:
    """Return the name or address in a Host header without its port; None for a malformed header."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
