"""File lock: one writer at a time. The system releases the lock when the process ends, however it ends.

The library filelock uses the kind of lock that the operating system has. Other processes cannot read the lock file
itself, since Windows denies access to locked bytes. So a second file holds the name of the process with the lock.
"""

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import ConflictError
from nmt.storage.disk import disk_errors_in_words

if TYPE_CHECKING:
    from filelock import BaseFileLock


def try_lock(path: Path) -> "BaseFileLock | None":
    """Create the file at ``path`` if need be, and return its lock; None if another process holds the lock.

    This process holds the lock until its ``release`` is called.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - takes 50 ms, and most commands lock nothing

    lock = FileLock(path, thread_local=False)  # a run may be closed in another thread
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    return lock


@contextlib.contextmanager
def locked(path: Path, owner: str) -> Iterator[None]:
    """Hold the lock at ``path`` within the block.

    Args:
        path: lock file. A file beside it holds the name of the process with the lock.
        owner: name in messages of the run or file that the lock protects, such as "Run 'base'".

    Raises:
        ConflictError: if another process holds the lock; names the process, its machine, and since when.
        DiskError: if the lock file cannot be written.
    """
    with disk_errors_in_words(path):
        lock = try_lock(path)
    if lock is None:
        raise ConflictError(
            f"{owner} is in use by {_name(path) or 'another process'}. Only one process at a time may write to it. "
            "Wait until that process ends, or stop it."
        )
    try:
        since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        name = f"process {os.getpid()} on {socket.gethostname()}, since {since}\n"
        with disk_errors_in_words(path):
            _name_path(path).write_text(name, encoding="utf-8")  # replaces the name that a killed process has left
        yield
    finally:
        with contextlib.suppress(OSError):  # a name that stays does no harm: ``holder`` also tries the lock
            _name_path(path).unlink()
        lock.release()


def holder(path: Path) -> str | None:
    """Return a description of the process that holds the lock at ``path``; None if no process holds it.

    The lock is tried only if a file names a process. So a process that starts meanwhile finds it free.
    """
    with contextlib.suppress(OSError):
        name = _name(path)
        if name and _is_held(path):
            return name
    return None  # if there is a name, a killed process left it


def _is_held(path: Path) -> bool:
    """Return whether another process, or another part of this one, holds the lock at ``path``."""
    try:
        lock = try_lock(path)
    except PermissionError:  # the lock file of another user, which can only be read
        from filelock import lock_descriptor  # noqa: PLC0415

        with path.open("rb") as file:
            return not lock_descriptor(file.fileno(), blocking=False)
    if lock is None:
        return True
    lock.release()
    return False


def _name_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


def _name(path: Path) -> str:
    """Return the name of the last process that locked ``path``; "" if that process released the lock."""
    with contextlib.suppress(OSError):
        return _name_path(path).read_bytes()[:1000].decode(errors="replace").strip()
    return ""
