"""Graceful shutdown: Ctrl-C and SIGTERM are recorded, and training stops between two steps."""

import os
import signal
import threading
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """Request to stop training. The first argument is the signal, or the host that received it."""


def never_stop() -> None:
    """Do nothing: the check of a caller that cannot be asked to stop."""


class GracefulShutdown:
    """Context manager that records SIGINT and SIGTERM. A second signal ends the process at once."""

    def __init__(self, notice: str) -> None:
        """Install nothing yet. ``notice`` is the text that the first signal writes to standard error."""
        self.notice = notice
        self.requested: int | None = None
        """Number of the signal received; None: no signal yet."""
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():  # other threads cannot handle signals
            self._handlers = {number: signal.signal(number, self._record) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the earlier handlers."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.requested = number
        for handled in SIGNALS:
            signal.signal(handled, signal.SIG_DFL)
        os.write(2, f"\n{self.notice}\n".encode())  # the signal may have interrupted a print

    def check(self) -> None:
        """Raise StopRequested if a signal was received."""
        if self.requested is not None:
            raise StopRequested(self.requested)
