"""Atomic files and folders: written under a temporary name, synced, renamed. A reader never sees partial content."""

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nmt.errors import ConflictError
from nmt.storage.disk import disk_errors_in_words
from nmt.storage.file_lock import try_lock

if TYPE_CHECKING:
    from filelock import BaseFileLock

WRITING = ".writing-"
"""Prefix of the names of temporary folders in which a process writes."""
REPLACED = ".replaced-"
"""Prefix of the temporary name of a folder that is being replaced; its own name and random letters follow."""
LOCK = ".lock"
"""Suffix of the file that is locked while a process writes in a temporary folder."""
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
"""Error numbers of a file system without locks."""
ON_WINDOWS = sys.platform == "win32"


class Identity(NamedTuple):
    """Mark of a file or folder with its present content. Another file, or other content, has another mark."""

    inode: int
    changed: int
    """Time of the last change, in nanoseconds since 1970."""


Before = Identity | None | Literal["anything"]
"""File that a new file may replace: the file of this identity, no file (None), or any file."""


def identity(path: Path) -> Identity | None:
    """Return the identity of a file or folder; None if it does not exist."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return Identity(status.st_ino, status.st_mtime_ns)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_file(path: Path) -> None:
    """Force a file's content, or the names in a folder, to the disk. Windows can only sync files."""
    if ON_WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if ON_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- temporary folders


@contextlib.contextmanager
def _temporary_folder(path: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty folder beside ``path``. It is locked within the block and removed at its end.

    Folders that killed processes have left beside ``path`` are removed first.
    """
    with disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path.parent)
        with _locked_name(path.parent, prefix) as folder:
            try:
                folder.mkdir(0o700)
                yield folder
                sync_file(path.parent)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder in the system's folder for temporary files. It is removed at the end of the block.

    Folders that killed processes of this user have left there are removed first.
    """
    with _temporary_folder(Path(tempfile.gettempdir()) / "scratch", WRITING) as folder:
        yield folder


@contextlib.contextmanager
def _locked_name(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield the path for a new folder, and hold its lock within the block.

    The lock is taken before the folder is made, so that no process takes the folder for abandoned. On a file system
    without locks nothing is locked, and no process takes any folder for abandoned.
    """
    lock = None
    while lock is None:  # another process may hold the lock for a moment, to check whether it is abandoned
        folder = parent / f"{prefix}{os.urandom(8).hex()}"
        try:
            lock = try_lock(_lock_path(folder))
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            break
    try:
        yield folder
    finally:
        _remove_lock(_lock_path(folder), lock)


def _lock_path(folder: Path) -> Path:
    """Return the lock file of a temporary folder. The folder that it replaces has the same lock file."""
    letters = folder.name.removeprefix(WRITING).removeprefix(REPLACED)
    return folder.with_name(WRITING + letters + LOCK)


def _remove_lock(path: Path, lock: "BaseFileLock | None") -> None:
    with contextlib.suppress(OSError):
        path.unlink()  # before the release, so that no process locks a file without a name; Windows unlinks it later
    if lock is not None:
        lock.release()


def remove_abandoned(folder: Path) -> None:
    """Remove temporary folders that killed processes have left below a folder. Folders of live processes stay."""
    for parent, names, _ in os.walk(folder):  # os.walk skips a folder that another process removes meanwhile
        names[:] = [name for name in names if not name.startswith((WRITING, REPLACED))]
        _clear(Path(parent))


def _clear(parent: Path) -> None:
    """Remove temporary folders that killed processes have left in a folder."""
    try:
        paths = list(parent.iterdir())
    except OSError:  # the folder has just been removed, or cannot be read
        return
    lock_paths = set()
    for path in paths:
        if path.name.startswith(WRITING) and path.name.endswith(LOCK):
            lock_paths.add(path)
        elif path.name.startswith((WRITING, REPLACED)) and path.is_dir():
            lock_paths.add(_lock_path(path))
    for lock_path in lock_paths:
        with contextlib.suppress(OSError):  # the file has just been removed, or belongs to another user
            lock = try_lock(lock_path)
            if lock is not None:
                try:
                    _remove_or_restore(lock_path.name.removeprefix(WRITING).removesuffix(LOCK), lock_path.parent)
                finally:
                    _remove_lock(lock_path, lock)


def _remove_or_restore(letters: str, parent: Path) -> None:
    """Remove an abandoned folder. The folder that it was to replace gets its name back, unless the name is taken.

    Args:
        letters: rest of both folders' names, after ``WRITING`` or ``REPLACED``.
        parent: folder in which both folders are.
    """
    replaced, original = parent / (REPLACED + letters), parent / letters.rpartition("-")[0]
    if replaced.exists() and not original.exists():
        replaced.rename(original)
    for folder in (parent / (WRITING + letters), replaced):
        shutil.rmtree(folder, ignore_errors=True)


# --- files


@contextlib.contextmanager
def atomic_file(path: Path, *, before: Before = "anything") -> Iterator[Path]:
    """Yield a temporary path for new content, and rename it to ``path`` when the block succeeds.

    The temporary name has the suffixes of ``path``, since some writers choose a format by the suffix.

    Args:
        path: file to write.
        before: file that the new file may replace.

    Raises:
        ConflictError: if ``path`` is not ``before`` when the block ends.
        DiskError: if the disk refuses. ``path`` is unchanged then.
    """
    with _temporary_folder(path, WRITING) as folder:
        temporary = folder / path.name
        yield temporary
        sync_file(temporary)
        if before is None:
            _rename_without_replacing(temporary, path)
        elif before in ("anything", identity(path)):
            temporary.replace(path)
        else:
            raise concurrent_change(path)


def _rename_without_replacing(temporary: Path, path: Path) -> None:
    """Rename a file to ``path``, or raise ConflictError if another file has that name."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise concurrent_change(path) from None
    except OSError:  # on a file system without links an empty file takes the name first
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise concurrent_change(path) from None
        try:
            temporary.replace(path)
        except OSError:
            path.unlink()
            raise


def concurrent_change(path: Path) -> ConflictError:
    """Return the error about a file or folder that another process changed while this process prepared it."""
    return ConflictError(
        f"{path} was changed by another process meanwhile, and stays as it is. Only one process at a time may write "
        "it. Repeat the command, or choose another name."
    )


def refuse_existing(path: Path) -> None:
    """Raise ConflictError if ``path`` exists."""
    if os.path.lexists(path):
        raise ConflictError(f"{path} exists already. It is never overwritten. Choose another name, or move it away.")


# --- folders


@contextlib.contextmanager
def atomic_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block succeeds.

    Raises:
        ConflictError: if ``path`` exists and ``replace`` is false, or if another process changes it within the block.
        DiskError: if the disk refuses. ``path`` is unchanged then.
    """
    if not replace:
        refuse_existing(path)
    before = identity(path)
    with _temporary_folder(path, f"{WRITING}{path.name}-") as folder:
        yield folder
        for entry in folder.rglob("*"):
            sync_file(entry)
        mask = os.umask(0o077)  # the mask can only be read by setting it
        os.umask(mask)
        folder.chmod(0o777 & ~mask)  # the temporary folder was private to this user
        _rename_folder(folder, path, before)


def _rename_folder(folder: Path, path: Path, before: Identity | None) -> None:
    """Rename a folder to ``path``. It replaces the folder of identity ``before``, and no other folder."""
    replaced = path.with_name(REPLACED + folder.name.removeprefix(WRITING))
    try:
        if before:
            path.rename(replaced)
        if identity(replaced) != before:
            raise FileExistsError
        folder.rename(path)  # fails if ``path`` is a folder with files
    except OSError as error:
        with contextlib.suppress(OSError):
            replaced.rename(path)
        if identity(path) == before:
            raise
        raise concurrent_change(path) from error
    shutil.rmtree(replaced, ignore_errors=True)


# --- content


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode("utf-8"))


def append_line(path: Path, line: str) -> None:
    """Append a line to a text file. A process that is killed meanwhile may leave a partial last line.

    Raises:
        DiskError: if the disk refuses.
    """
    with disk_errors_in_words(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
