"""File lock: one writer at a time. The system releases the lock when the process ends, however it ends."""

import contextlib
import datetime
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError
from nmt.storage.disk import disk_errors_in_words


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder until it is closed. Return whether no other process holds it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_locked_elsewhere(descriptor: int) -> bool:
    """Lock an open folder until it is closed. Return whether another process holds it.

    In a file system without locks nothing is locked, and no process takes a folder for abandoned.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at ``path`` within the block.

    Args:
        path: Lock file. It holds the name of the process that holds the lock.
        what: Protected thing in messages, such as "Run 'base'".

    Raises:
        ConflictError: if another process holds the lock; names the process, its machine, and since when.
        DiskError: if the disk refuses the lock file.
    """
    with disk_errors_in_words(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not try_lock(descriptor):
            name = os.read(descriptor, 1000).decode(errors="replace").strip() or "another process"
            raise ConflictError(
                f"{what} is in use by {name}. Only one process at a time may write to it. Wait until that process "
                "ends, or stop it."
            )
        since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        with disk_errors_in_words(path):
            os.ftruncate(descriptor, 0)  # a killed process leaves its name
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}, since {since}\n".encode(), 0)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # a name of a process that holds nothing is passed over
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path) -> str | None:
    """Return the process that holds the lock at ``path``, in words; None if no process does.

    The lock is tried only if its file names a process, so that a process that starts meanwhile finds it free.
    """
    with contextlib.suppress(OSError), path.open("rb") as file:
        name = file.read(1000).decode(errors="replace").strip()
        if name and not try_lock(file.fileno(), fcntl.LOCK_SH):
            return name
    return None  # if there is a name, a killed process left it
