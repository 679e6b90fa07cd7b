"""Files that a user names as outputs: created, but never written over a file that is not meant.

All commands write them by the same rule. A file that exists stays, unless it is an earlier output of the same kind or
the user has asked to replace it. A file that the command reads is no output in any case. Both are checked before the
work begins, and again when the file gets its name.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.errors import ConflictError
from nmt.storage.atomic import atomic_file, changed_meanwhile, identity, refuse_existing


class OutputFile:
    """A file that a user has named, to be written when the work is done."""

    def __init__(
        self, path: Path, *, inputs: Iterable[Path] = (), kind: str = "",
        is_earlier: Callable[[Path], bool] | None = None, overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Refuse a path that cannot be an output.

        Args:
            path: file to write.
            inputs: files that the command reads or writes besides.
            kind: kind of output in messages, such as "report"; with ``is_earlier``.
            is_earlier: returns whether an existing file is an earlier output of that kind, which may be replaced.
            overwrite: whether the user has asked to replace any file.

        Raises:
            ConflictError: if the path is an input, or exists and may not be replaced.
        """
        self.path = path
        refuse_inputs(path, inputs)
        self._before = identity(path)
        if self._before is None or overwrite:
            return
        if is_earlier is None:
            refuse_existing(path)
        elif not path.is_file() or not is_earlier(path):
            raise ConflictError(
                f"{path} exists and is no {kind} of nmt. A {kind} replaces an earlier {kind} alone. Choose another "
                "file, or remove this one."
            )

    def check_unchanged(self) -> None:
        """Raise ConflictError if another process has written the file since the work began."""
        if identity(self.path) != self._before:
            raise changed_meanwhile(self.path)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield a temporary path for the content; raises as ``atomic_file`` if the file has changed meanwhile."""
        with atomic_file(self.path, before=self._before) as temporary:
            yield temporary

    def write(self, content: bytes) -> None:
        """Write the content; raises as ``writing``."""
        with self.writing() as temporary:
            temporary.write_bytes(content)


def refuse_inputs(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output file or folder that is, or holds, a file that the command reads.

    Raises:
        ConflictError: naming the first such file.
    """
    place = output.resolve()
    for path in inputs:
        if path.resolve().is_relative_to(place):
            raise ConflictError(
                f"{output} would be written over {path}, which the same command names too. A command never replaces "
                "what it reads. Choose another name."
            )
