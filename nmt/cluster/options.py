"""What a command line says of workers, and how long they wait for each other."""

from dataclasses import dataclass

MEETING_SECONDS, STALL_SECONDS = 300.0, 120.0


@dataclass(frozen=True)
class TeamOptions:
    """What a command line says of workers."""

    workers: int | None = None
    """``--workers``: number of processes on this machine."""
    hosts: str | None = None
    """``--hosts``: addresses of the workers of a cluster."""
    index: int | None = None
    """``--index``: number of this worker in them."""
