"""Messages about disk errors, whether the system raises them or a library that is not written in Python."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import ConflictError, NmtError, blocking_file_message

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
REFUSALS = (*NO_SPACE, errno.EROFS, errno.EFBIG, errno.EIO)
"""Error numbers of a disk or file system that cannot be written to."""


class DiskError(NmtError):
    """File that cannot be written to the disk."""


@contextlib.contextmanager
def disk_errors_in_words(path: Path) -> Iterator[None]:
    """Turn a disk error within the block into a message about ``path``.

    Raises:
        DiskError: if ``path`` cannot be written.
        ConflictError: if a parent of ``path`` is a file.
    """
    try:
        yield
    except NmtError:
        raise
    except Exception as error:
        if isinstance(error, FileExistsError | NotADirectoryError) and (needs_folder := blocking_file_message(path)):
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

    safetensors and TensorFlow raise errors of their own, which contain the system's message.
    """
    if isinstance(error, OSError):
        return error.strerror or str(error)
    refusals = [os.strerror(number) for number in REFUSALS]
    return next((refusal for refusal in refusals if refusal in str(error)), None)


def _space(path: Path, reason: str) -> str:
    """Return a note on the free space if the disk is full, else ""."""
    if reason not in [os.strerror(number) for number in NO_SPACE]:
        return ""
    with contextlib.suppress(OSError):
        return f" ({free_bytes(path):,} bytes are free)"
    return ""


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of a path, which need not exist yet."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    return shutil.disk_usage(existing).free
