"""Output files that a user names. They never overwrite another file by mistake.

All commands write them by the same rule. An existing file stays, unless it is an earlier output of the same kind or the
user has asked to replace it. A file that the command reads is never replaced. Both are checked before the work begins,
and again when the file gets its name.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.errors import ConflictError
from nmt.storage.atomic import atomic_file, concurrent_change, identity, refuse_existing


class OutputFile:
    """Output file that a user has named. It is written when the work is done."""

    def __init__(
        self, path: Path, *, inputs: Iterable[Path] = (), kind: str = "",
        is_earlier: Callable[[Path], bool] | None = None, overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Refuse a path that cannot be an output.

        Args:
            path: file to write.
            inputs: other files that the command reads or writes.
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
                f"{path} exists and is not a {kind} of nmt. A {kind} replaces only an earlier {kind}. Choose another "
                "file, or remove this one."
            )

    def check_unchanged(self) -> None:
        """Raise ConflictError if another process has written the file since the work began."""
        if identity(self.path) != self._before:
            raise concurrent_change(self.path)

    @contextlib.contextmanager
    def temporary_file(self) -> Iterator[Path]:
        """Yield a temporary path for the content, which becomes the output file. Raises as for ``atomic_file``."""
        with atomic_file(self.path, before=self._before) as temporary:
            yield temporary

    def write(self, content: bytes) -> None:
        """Write the content. Raises as for ``atomic_file``."""
        with self.temporary_file() as temporary:
            temporary.write_bytes(content)


def refuse_inputs(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output file that the command also reads, and an output folder that contains such a file.

    Raises:
        ConflictError: if an input would be overwritten; names the first one.
    """
    resolved = output.resolve()
    for path in inputs:
        if path.resolve().is_relative_to(resolved):
            raise ConflictError(
                f"{output} would overwrite {path}, which the same command reads. A command never replaces its own "
                "input. Choose another name."
            )
