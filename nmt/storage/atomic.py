"""Whole or absent: files and folders are written aside, synced and renamed, so no reader ever sees half of one."""

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
    """Make the names in ``folder`` as durable as the data behind them."""
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
            f"{path} cannot be written: {reason}. Nothing that was there before has changed; "
            "free some space or choose a folder that can be written, then repeat the command."
        ) from error


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what is written there replaces ``path`` when the block ends well.

    The temporary name keeps the suffixes of ``path``, for writers that choose a format by them.

    Raises:
        NmtError: if the disk refuses; ``path`` is then as it was.
    """
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".writing-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield aside / path.name
            sync_file(aside / path.name)
            (aside / path.name).replace(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def refuse_existing(path: Path) -> None:
    """Raise ConflictError if ``path`` exists."""
    if path.exists():
        raise ConflictError(f"What is there is not overwritten; {path} exists. Choose another name, or move it away.")


@contextlib.contextmanager
def atomic_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block ends well.

    Raises:
        ConflictError: if ``path`` exists and ``replace`` is false.
        NmtError: if the disk refuses; ``path`` is then as it was.
    """
    if not replace:
        refuse_existing(path)
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".writing-{path.name}-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield aside
            for file in aside.rglob("*"):
                if file.is_file():
                    sync_file(file)
                else:
                    sync_folder(file)
            aside.chmod(0o777 & ~_umask())  # mkdtemp made it private to this user
            if path.exists():
                replaced = aside.with_name(aside.name + "-replaced")
                path.rename(replaced)
                try:
                    aside.rename(path)
                except OSError:
                    replaced.rename(path)
                    raise
                shutil.rmtree(replaced, ignore_errors=True)
            else:
                aside.rename(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with atomic_file(path) as aside:
        aside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def append_line(path: Path, line: str) -> None:
    """Add a line to a text file; killed on the way, it may leave a last line without its end.

    Raises:
        NmtError: if the disk refuses.
    """
    with _disk_errors_in_words(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
