"""Ctrl-C in a command: the work is undone, and a line says what was interrupted, what is kept and how to go on.

``nmt train`` and ``nmt serve`` handle it themselves while they train and serve.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

REPEAT = "Complete files stay, and no partial one is left. Give the same command again."
KEPT = {
    "translate": "The translations printed so far are complete; a document of --output was not written. Give the "
    "sentences that follow again.",
    "tokens": "The lines printed so far are complete. Give the sentences that follow again.",
    "train": "States saved before are kept. The same command goes on with them.",
    "synthesize": "The lines translated so far are kept. The same command goes on with them.",
    "demo": "The dataset and the states of the run that were saved are kept. Give the same command again.",
    **dict.fromkeys(("runs", "info", "samples", "bench", "serve"), "Nothing was changed. Give the same command again."),
}
"""What is kept and how to go on, by command; of other commands ``REPEAT``."""


class Interrupted(BaseException):
    """Ctrl-C. It is no KeyboardInterrupt, which libraries catch and turn into errors of their own."""


class Interruption:
    """Whether Ctrl-C has been pressed. Afterwards any exception is taken for its consequence."""

    def __init__(self) -> None:
        """Begin without."""
        self.requested = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Raise Interrupted at the first Ctrl-C within the block; a second one ends the process at once."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT)
        if not in_main_thread or before is not signal.default_int_handler:  # a background job ignores Ctrl-C
            yield
            return
        signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise Interrupted


def message(arguments: list[str]) -> str:
    """Return what was interrupted, what is kept and how to go on, for the arguments of a command line."""
    command = arguments[0] if arguments else ""
    return f"nmt {command}".rstrip() + f" was interrupted. {KEPT.get(command, REPEAT)}"
