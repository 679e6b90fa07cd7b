"""Errors of the disk in words: those of the system, and those that libraries in other languages make of them."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError, NmtError, file_for_folder

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
REFUSALS = (*NO_SPACE, errno.EROFS, errno.EFBIG, errno.EIO)
"""Numbers of errors that a disk causes, not a program."""


class DiskError(NmtError):
    """File that the disk refuses to write."""


@contextlib.contextmanager
def disk_errors_in_words(path: Path) -> Iterator[None]:
    """Turn a refusal of the disk within the block into a message about ``path``.

    Raises:
        DiskError: if the disk refuses.
        ConflictError: if a file stands where the path needs a folder.
    """
    try:
        yield
    except NmtError:
        raise
    except Exception as error:
        if isinstance(error, FileExistsError | NotADirectoryError) and (needs_folder := file_for_folder(path)):
            raise ConflictError(needs_folder) from error
        reason = _reason(error)
        if reason is None:
            raise
        raise DiskError(
            f"{path} cannot be written: {reason}{_space(path, reason)}. Existing files are unchanged. Free some space, "
            "or choose a writable folder, then repeat the command."
        ) from error


def _reason(error: Exception) -> str | None:
    """Return why the disk refuses; None for an error of another kind.

    safetensors and TensorFlow raise errors of their own, which hold the words of the system.
    """
    if isinstance(error, OSError):
        return error.strerror or str(error)
    refusals = [os.strerror(number) for number in REFUSALS]
    return next((refusal for refusal in refusals if refusal in str(error)), None)


def _space(path: Path, reason: str) -> str:
    """Return the free space of a full disk in words."""
    if reason not in [os.strerror(number) for number in NO_SPACE]:
        return ""
    with contextlib.suppress(OSError):
        return f" ({free_bytes(path):,} bytes are free)"
    return ""


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of a path, which need not exist yet."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    return shutil.disk_usage(existing).free
