"""Standard output and standard error: escapes of control characters on a terminal, and errors of a file or pipe."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, TextIO

# Control characters except line break and tab, marks that change the direction of text, and halves of surrogate pairs.
# A carriage return at the beginning or end is allowed, since tqdm's bars have it.
CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|(?!\A)\r(?!\Z)")


class Terminal:
    """Standard output or standard error on a terminal. Control characters are written as escapes, such as ``\\x1b``.

    Texts, file names and words of a vocabulary are shown in many places, and may contain any character. Tables of the
    library rich bypass this stream.
    """

    def __init__(self, stream: TextIO) -> None:
        """Store the stream."""
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text with escapes."""
        escaped = CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)
        return self.rich_proxied_file.write(escaped)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream."""
        return getattr(self.rich_proxied_file, name)


class OutputError(Exception):
    """Standard output cannot be written: its disk is full, or the reader of a pipe has gone."""

    def __init__(self, error: OSError) -> None:
        """Store the message and kind of the system's error."""
        super().__init__(error.strerror)
        self.reader_has_gone = isinstance(error, BrokenPipeError)


class RedirectedOutput:
    """Standard output that is a file or a pipe. Text is written unchanged.

    Raises:
        OutputError: if writing fails. The system's error would not say that it is about standard output.
    """

    def __init__(self, stream: TextIO) -> None:
        """Store the stream."""
        self._stream = stream
        self._refusal: OutputError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        if text == "":  # libraries probe a stream in this way, and a full device refuses even the empty text
            return 0
        with self._refusals():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush the buffer of the stream."""
        with self._refusals():
            self._stream.flush()

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        if self._refusal is not None:
            raise self._refusal
        try:
            yield
        except OSError as error:
            # When Python ends, it writes the rest of its buffer, and would fail again.
            with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a descriptor
                os.dup2(nowhere.fileno(), self._stream.fileno())
            self._refusal = OutputError(error)
            raise self._refusal from None

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream."""
        return getattr(self._stream, name)
