"""Exit codes, and messages for errors in the command line itself: what was received, the rule, the remedy."""

import re
import signal
from typing import Any

import typer

from nmt.storage.names import did_you_mean

BAD_INPUT = 2
SIGNAL = 128
"""Added to the number of a signal, as shells do."""
INTERRUPTED = SIGNAL + signal.SIGINT

UsageError: Any = typer.BadParameter.__mro__[1]  # which typer does not export

RENAMED = {"alignment": "attention"}
"""Commands of earlier versions, which messages lead to their successors."""

_UNKNOWN_COMMAND = re.compile(r"No such command '(.*?)'")
_EXTRA_ARGUMENTS = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_OPTION_RULES = [
    (re.compile(r"Option '(.*)' requires an argument"), r"\1 takes a value; received none"),
    (re.compile(r"Option '(.*)' does not take a value"), r"\1 takes no value; received one"),
]


def usage_message(error: Any) -> str:
    """Return typer's usage error, which has several lines and may leave out the value, as one message."""
    command = error.ctx.command_path if error.ctx else "nmt"
    name = command.removeprefix("nmt ")
    message = _parameter_message(error, name) if getattr(error, "param", None) else _line_message(error, name)
    return f"{message}. See {command} --help"


def _parameter_message(error: Any, name: str) -> str:
    parameter = error.param
    if type(error).__name__ == "MissingParameter":
        return f"{name} takes {parameter.metavar or parameter.opts[0]}; received none"
    if hasattr(error.__cause__, "errors"):  # pydantic's, which has the value
        problem = error.__cause__.errors()[0]
        rule = problem["msg"].replace("Input should be", "must be").partition(", unable")[0]
        return f"{parameter.opts[0]} {rule}; received {problem['input']!r}"
    return str(error.format_message()).rstrip(".")


def _line_message(error: Any, name: str) -> str:
    message = str(error.format_message()).rstrip(".")
    if hasattr(error, "possibilities"):
        options = [name for parameter in error.ctx.command.params for name in parameter.opts]
        known = [*error.ctx.help_option_names, *options]
        return f"{name} has no option {error.option_name!r}{did_you_mean(error.option_name, known)}"
    if message == "Missing command":
        return f"{name} takes {_kind(error)}; received none"
    if matched := _UNKNOWN_COMMAND.match(message):
        guess = did_you_mean(RENAMED.get(matched[1], matched[1]), error.ctx.command.commands)
        return f"There is no {_kind(error).lower()} {matched[1]!r}{guess}"
    if matched := _EXTRA_ARGUMENTS.match(message):
        takes = [each.metavar for each in error.ctx.command.params if each.param_type_name == "argument"]
        return f"{name} takes {' '.join(takes) or 'no argument'}; received {matched[1]!r}{' too' if takes else ''}"
    for pattern, words in _OPTION_RULES:
        message = pattern.sub(words, message)
    return message


def _kind(error: Any) -> str:
    """Return what the subcommands of a group are: COMMAND or FIGURE."""
    return str(error.ctx.command.subcommand_metavar).partition(" ")[0]
