"""Atomic files and folders: written under a temporary name, synced, renamed. A reader never sees a partial one."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError, NmtError


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


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
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for new content of ``path``; the content replaces ``path`` when the block succeeds.

    The temporary name has the suffixes of ``path``, since some writers choose a format by them.

    Raises:
        NmtError: if the disk refuses. ``path`` is unchanged then.
    """
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield temporary / path.name
            sync_file(temporary / path.name)
            (temporary / path.name).replace(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".writing-{path.name}-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync_file(file)
                else:
                    sync_folder(file)
            temporary.chmod(0o777 & ~_umask())  # mkdtemp makes it private to this user
            _put_in_place(temporary, path, before)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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
