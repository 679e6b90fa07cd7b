"""Exit codes, and messages for errors in the command line itself."""

import signal
from typing import Any

import typer

BAD_INPUT = 2
SIGNAL = 128
"""Added to the number of a signal, as shells do."""
INTERRUPTED = SIGNAL + signal.SIGINT

UsageError: Any = typer.BadParameter.__mro__[1]  # which typer does not export


def usage_message(error: Any) -> str:
    """Return typer's usage error as one message, with the value that was received where typer leaves it out."""
    message = str(error.format_message()).rstrip(".").partition(", unable to parse")[0].replace("Value error, ", "")
    if hasattr(error.__cause__, "errors"):  # pydantic's, which has the value
        received = repr(error.__cause__.errors()[0]["input"])
        message += "" if received in message else f"; received {received}"
    end = "" if message.endswith("?") else "."
    return f"{message}{end} See {error.ctx.command_path if error.ctx else 'nmt'} --help"
