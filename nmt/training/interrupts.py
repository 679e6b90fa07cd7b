"""Leaving on request: Ctrl-C and SIGTERM are noted, and obeyed between two steps, so that nothing is lost."""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Departed(Exception):  # noqa: N818 - not an error
    """Somebody has asked to leave, by the signal of this number."""


class Departure:
    """Whether somebody has asked to leave, inside a ``with`` block; a second Ctrl-C there ends the process at once."""

    def __init__(self, notice: str) -> None:
        """Take what to say on standard error at the first request."""
        self.notice = notice
        self.asked: int | None = None
        """Number of the signal."""
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Begin to note requests."""
        if threading.current_thread() is threading.main_thread():  # no other may ask for signals
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave signals to whom they were left before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        os.write(2, f"\n{self.notice}\n".encode())  # print may be just what was interrupted

    def check(self) -> None:
        """Raise Departed if somebody has asked to leave."""
        if self.asked is not None:
            raise Departed(self.asked)
