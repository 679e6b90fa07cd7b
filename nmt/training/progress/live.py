"""Lines at the bottom of a terminal that are drawn again and again, with all other output above them."""

import contextlib
import functools
import io
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TextIO

LINE_START, ERASE_LINE, ERASE_BELOW = "\r", "\x1b[K", "\x1b[J"
DEFAULT_COLUMNS = 80


def is_live_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class LiveLines:
    """Lines that stay below what the process prints.

    Each frame is one write, and overwrites its predecessor in place. The cursor rests at the end of the last line and
    is never hidden, so that a process that is killed leaves the terminal as it was. Several threads may print.
    """

    def __init__(self, stream: TextIO) -> None:
        """Take the terminal."""
        self.stream = stream
        self._height = 0  # lines of the last frame
        self._lock = threading.RLock()
        self._restore: list[Callable[[], object]] = []

    @property
    def columns(self) -> int:
        """Columns that a line may fill: the last one stays free, since a full line wraps in some terminals."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
        return max(1, (columns or DEFAULT_COLUMNS) - 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, each of at most ``columns`` columns, in place of those before."""
        with self._lock:
            body = "\r\n".join(line + ERASE_LINE for line in lines)
            self._write(self._to_top() + body + (ERASE_BELOW if len(lines) < self._height else ""))
            self._height = len(lines)

    def erase(self) -> None:
        """Remove the lines."""
        with self._lock:
            if self._height:
                self._write(self._to_top() + ERASE_BELOW)
                self._height = 0

    def print(self, text: str) -> None:
        """Write whole lines above."""
        with self._lock:
            self._write((self._to_top() + ERASE_BELOW if self._height else "") + text + "\n")
            self._height = 0

    def print_from_signal(self, text: str) -> None:
        """Write a line above from a signal handler, which may have interrupted another write."""
        content = f"{self._to_top()}{ERASE_BELOW}{text}\n"  # over the ^C that the terminal shows
        self._height = 0
        os.write(self.stream.fileno(), content.encode())

    def _to_top(self) -> str:
        """Return what moves the cursor to the start of the first line."""
        return LINE_START + (f"\x1b[{self._height - 1}A" if self._height > 1 else "")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()

    # --- output of others

    def capture(self) -> None:
        """Print above what the process writes to its terminal: by print, warnings and logging."""
        if self._restore:
            return
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                above = Above(self, stream)
                setattr(sys, name, above)
                self._restore.append(functools.partial(setattr, sys, name, stream))
                self._restore.append(above.finish)
                self._capture_handlers(stream, above)

    def _capture_handlers(self, stream: TextIO, above: "Above") -> None:
        loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
        for handler in {handler for logger in loggers for handler in logger.handlers}:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
                handler.setStream(above)
                self._restore.append(functools.partial(handler.setStream, stream))

    def close(self) -> None:
        """Remove the lines, and leave the terminal to others."""
        self.erase()
        while self._restore:
            with contextlib.suppress(ValueError):  # a stream that was closed meanwhile
                self._restore.pop()()


class Above(io.TextIOBase):
    """Stream whose whole lines appear above live lines."""

    def __init__(self, live: LiveLines, stream: TextIO) -> None:
        """Take the live lines and the stream that this one stands for."""
        self._live, self._stream, self._part = live, stream, ""

    def write(self, text: str) -> int:
        """Print the whole lines; keep the rest until its line ends."""
        whole, line_break, rest = (self._part + text).rpartition("\n")
        self._part = rest
        if line_break:
            self._live.print(whole)
        return len(text)

    def finish(self) -> None:
        """Print the last line, which did not end."""
        if self._part:
            self._stream.write(self._part)
            self._part = ""

    def flush(self) -> None:
        """Do nothing: whole lines are written at once."""

    def isatty(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the terminal."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the terminal."""
        return self._stream.encoding
