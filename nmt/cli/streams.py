"""Standard output and standard error: escapes for a terminal, and refusals of a file or pipe as one kind of error."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, TextIO

# Control characters but line break and tab, marks that turn the direction of text, halves of surrogate pairs. A bar of
# tqdm begins and ends with a carriage return.
OBEYED = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|(?!\A)\r(?!\Z)")


class Terminal:
    """Standard output or standard error; what a terminal would obey is written as an escape, such as ``\\x1b``.

    Texts, file names and words of a vocabulary are shown in many places, and may hold anything. What rich draws goes
    past this stream.
    """

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self.rich_proxied_file.write(OBEYED.sub(lambda found: ascii(found[0])[1:-1], text))

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has."""
        return getattr(self.rich_proxied_file, name)


class OutputError(Exception):
    """Standard output that takes nothing more: its disk is full, or the reader of a pipe has gone."""

    def __init__(self, error: OSError) -> None:
        """Take the error of the system."""
        super().__init__(error.strerror)
        self.reader_has_gone = isinstance(error, BrokenPipeError)


class RedirectedOutput:
    """Standard output that is a file or a pipe. The text goes there as it is.

    Raises:
        OutputError: instead of an error of the system, which does not say that it is about standard output.
    """

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self._stream = stream
        self._refusal: OutputError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        if text == "":  # libraries probe a stream so, and a full device refuses even that
            return 0
        with self._refusals():
            return self._stream.write(text)

    def flush(self) -> None:
        """Hand over what has been written so far."""
        with self._refusals():
            self._stream.flush()

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        if self._refusal is not None:
            raise self._refusal
        try:
            yield
        except OSError as error:
            # Python writes what is left in its buffer at its end, and would fail again.
            with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a descriptor
                os.dup2(nowhere.fileno(), self._stream.fileno())
            self._refusal = OutputError(error)
            raise self._refusal from None

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has."""
        return getattr(self._stream, name)
