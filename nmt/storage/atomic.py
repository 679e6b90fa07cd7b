"""Atomic files and folders: written under a temporary name, synced, renamed. A reader never sees a partial one."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError, NmtError
from nmt.storage.file_lock import try_lock

WRITING = ".writing-"
"""Beginning of temporary names."""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_file(path: Path) -> None:
    """Force a file's content, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NmtError(
            f"{path} cannot be written: {reason}. Existing files are unchanged. Free some space, or choose a writable "
            "folder, then repeat the command."
        ) from error


@contextlib.contextmanager
def _aside(path: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty folder beside ``path``, which is locked as long as this process writes, and gone in the end."""
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try_lock(descriptor)
        with _disk_errors_in_words(path):
            yield folder
            sync_file(path.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned(folder: Path) -> None:
    """Delete what killed processes have left below a folder; what a process still writes stays."""
    for path in list(folder.rglob(f"{WRITING}*")):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if try_lock(descriptor):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for new content of ``path``; the content replaces ``path`` when the block succeeds.

    The temporary name has the suffixes of ``path``, since some writers choose a format by them.

    Raises:
        NmtError: if the disk refuses. ``path`` is unchanged then.
    """
    with _aside(path, WRITING) as folder:
        yield folder / path.name
        sync_file(folder / path.name)
        (folder / path.name).replace(path)


def refuse_existing(path: Path) -> None:
    """Raise ConflictError if ``path`` exists."""
    if path.exists():
        raise ConflictError(f"{path} exists already. It is never overwritten. Choose another name, or move it away.")


@contextlib.contextmanager
def atomic_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block succeeds.

    Raises:
        ConflictError: if ``path`` exists and ``replace`` is false, or if another process changes it meanwhile.
        NmtError: if the disk refuses. ``path`` is unchanged then.
    """
    if not replace:
        refuse_existing(path)
    before = _identity(path)
    with _aside(path, f"{WRITING}{path.name}-") as folder:
        yield folder
        for entry in folder.rglob("*"):
            sync_file(entry)
        mask = os.umask(0o077)  # can only be read by setting it
        os.umask(mask)
        folder.chmod(0o777 & ~mask)  # mkdtemp makes it private to this user
        _put_in_place(folder, path, before)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from others, its inode and when it was last changed; None if it does not exist."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _put_in_place(folder: Path, path: Path, before: tuple[int, int] | None) -> None:
    """Rename a folder to ``path``, where the folder of identity ``before`` gives way, and no other."""
    replaced = folder.with_name(folder.name + "-replaced")
    try:
        if before:
            path.rename(replaced)
        if _identity(replaced) != before:
            raise FileExistsError
        folder.rename(path)  # fails if a folder with files is there
    except OSError as error:
        with contextlib.suppress(OSError):
            replaced.rename(path)
        if _identity(path) == before:
            raise
        raise ConflictError(
            f"{path} was changed by another process meanwhile. Only one process at a time may write a folder. Repeat "
            "the command, or choose another name."
        ) from error
    shutil.rmtree(replaced, ignore_errors=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode("utf-8"))


def append_line(path: Path, line: str) -> None:
    """Add a line to a text file. A process that is killed meanwhile may leave a partial last line.

    Raises:
        NmtError: if the disk refuses.
    """
    with _disk_errors_in_words(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
