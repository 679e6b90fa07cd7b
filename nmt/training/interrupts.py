"""Graceful shutdown: Ctrl-C and SIGTERM are recorded, and obeyed between two steps."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """A signal, the first argument, has asked training to stop."""


def never_stop() -> None:
    """Return: the check of callers whom nobody can ask to stop."""


def _write(text: str) -> None:
    os.write(2, f"\n{text}\n".encode())  # the signal may have interrupted a print


class GracefulShutdown:
    """Record of SIGINT and SIGTERM inside a ``with`` block; a second Ctrl-C there ends the process at once."""

    def __init__(self, notice: str, announce: Callable[[str], None] | None = None) -> None:
        """Take the text for the first signal, and what writes it from a signal handler (None: to standard error)."""
        self.notice, self.announce = notice, announce or _write
        self.requested: int | None = None
        """Number of the signal received; None: none."""
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():  # other threads cannot handle signals
            self._handlers = {number: signal.signal(number, self._record) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the earlier handlers."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.requested = number
        for handled in SIGNALS:
            signal.signal(handled, signal.SIG_DFL)
        self.announce(self.notice)

    def check(self) -> None:
        """Raise StopRequested if a signal was received."""
        if self.requested is not None:
            raise StopRequested(self.requested)
