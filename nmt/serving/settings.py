"""Settings and fixed limits of the service."""

from dataclasses import dataclass

BYTES_PER_CHARACTER = 12
"""Longest form of a character in a body: an escaped surrogate pair in JSON, or four percent-encoded bytes in a form."""
BODY_EXTRA = 16 * 1024
"""Bytes of a body for all that is not text."""
MAX_CONNECTIONS = 512
"""Open connections; below the usual limit of 1,024 open files."""
DRAIN_BYTES, DRAIN_SECONDS = 64 * 1024 * 1024, 5
"""Most of a refused body that is read on, so that its client comes to read the answer."""
MAX_HEAD = 16 * 1024
"""Bytes of a request line with its headers."""
IDLE_SECONDS = 5
"""Time that a connection stays open between two requests."""
GRACE_SECONDS = 25
"""Time for requests under way when the service ends; Kubernetes kills after 30 s."""


@dataclass(frozen=True)
class ServiceSettings:
    """Settings that a user chooses."""

    batch_size: int = 32
    """Most sentences in a batch."""
    max_characters: int = 20_000
    """Most characters of text in a request."""
    max_alternatives: int = 3
    """Most alternatives that a request may ask for."""
    max_queue: int = 128
    """Most requests at a time, waiting or in work."""
    timeout: float = 60.0
    """Seconds until a request without a result is given up."""

    @property
    def max_body(self) -> int:
        """Most bytes of a body."""
        return BYTES_PER_CHARACTER * self.max_characters + BODY_EXTRA
