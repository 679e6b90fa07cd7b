"""Ctrl-C in a command: partial files are removed, and a message says what is kept and how to go on.

``nmt train`` and ``nmt serve`` handle Ctrl-C themselves while they train or serve.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

AGAIN_SECONDS = 0.2
"""Time until a Ctrl-C that a library has discarded is raised again, in seconds."""
REPEAT = "Complete files stay, and partial files are removed. Give the same command again."
KEPT = {
    "translate": "The translations printed so far are complete; a document of --output was not written. Give the "
    "remaining sentences again.",
    "tokens": "The lines printed so far are complete. Give the remaining sentences again.",
    "train": "Saved states are kept. The same command goes on from the last state.",
    "synthesize": "The lines translated so far are kept. The same command translates the remaining lines.",
    "demo": "The dataset and the saved states of the run are kept. Give the same command again.",
    **dict.fromkeys(("runs", "info", "samples", "bench", "serve"), "Nothing was changed. Give the same command again."),
}
"""Sentences by command that say what is kept and how to go on. Commands that are not listed have ``REPEAT``."""


class Interrupted(BaseException):
    """Ctrl-C. It is not a KeyboardInterrupt, since libraries catch that and raise errors of their own."""


class Interruption:
    """Record of whether Ctrl-C was pressed. Any exception after that counts as its consequence."""

    def __init__(self) -> None:
        """Start without a Ctrl-C."""
        self.requested = False

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Raise Interrupted at the first Ctrl-C within the block. A second Ctrl-C ends the process at once.

        Libraries in C discard exceptions at some places. So Interrupted is raised again until it reaches the end of the
        block; under Windows, only at the end.
        """
        in_main_thread = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT)
        if not in_main_thread or before is not signal.default_int_handler:  # a background job ignores Ctrl-C
            yield
            return
        signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
            if self.requested:
                raise Interrupted
        finally:
            if self.requested and hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._raise_again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        raise Interrupted

    def _raise_again(self, number: int, frame: FrameType | None) -> None:
        is_handled = sys.exc_info()[0] is not None  # partial files are being removed, for example
        if not is_handled:
            raise Interrupted


def message(arguments: list[str]) -> str:
    """Return the message about an interrupted command, given the arguments of the command line."""
    command = arguments[0] if arguments else ""
    return f"nmt {command}".rstrip() + f" was interrupted. {KEPT.get(command, REPEAT)}"
