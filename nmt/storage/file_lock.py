"""One writer at a time: a lock on a file, which the system takes back however the process ends."""

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError

try:
    import fcntl
except ImportError:  # Windows has no such locks, and keeps nobody apart
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at ``path`` inside the block; ``what`` it protects is named to who comes second.

    Raises:
        ConflictError: if another process holds it; the message says which, on what machine, and since when.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.read(descriptor, 1000).decode(errors="replace").strip() or "another process"
                raise ConflictError(
                    f"{what} is written by one process at a time; {holder} is at it. Wait for its end, or stop it."
                ) from None
        since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        os.ftruncate(descriptor, 0)  # a process that was killed has left its name
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}, since {since}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
