"""What is wrong with a command line itself, said as every other error is: the rule, what was received, the remedy."""

import re
from typing import Any

import typer

from nmt.storage.names import did_you_mean

UsageError: Any = typer.BadParameter.__mro__[1]  # which typer does not export

_NO_COMMAND = re.compile(r"No such command '(.*?)'")
_TOO_MANY = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_IN_OTHER_WORDS = [
    (re.compile(r"Option '(.*)' requires an argument"), r"\1 takes a value; received none"),
    (re.compile(r"Option '(.*)' does not take a value"), r"\1 takes no value; received one"),
]


def in_words(error: Any) -> str:
    """Return a usage error of typer's, which takes several lines and may leave out the value, as one message."""
    command = error.ctx.command_path if error.ctx else "nmt"
    name = command.removeprefix("nmt ")
    said = _of_parameter(error, name) if getattr(error, "param", None) else _of_line(error, name)
    return f"{said}. See {command} --help"


def _of_parameter(error: Any, name: str) -> str:
    parameter = error.param
    if type(error).__name__ == "MissingParameter":
        return f"{name} takes {parameter.metavar or parameter.opts[0]}; received none"
    if hasattr(error.__cause__, "errors"):  # pydantic's, which knows the value
        problem = error.__cause__.errors()[0]
        rule = problem["msg"].replace("Input should be", "must be").partition(", unable")[0]
        return f"{parameter.opts[0]} {rule}; received {problem['input']!r}"
    return str(error.format_message()).rstrip(".")


def _of_line(error: Any, name: str) -> str:
    message = str(error.format_message()).rstrip(".")
    if hasattr(error, "possibilities"):
        known = [*error.ctx.help_option_names, *(option for one in error.ctx.command.params for option in one.opts)]
        return f"{name} has no option {error.option_name!r}{did_you_mean(error.option_name, known)}"
    if matched := _NO_COMMAND.match(message):
        return f"There is no command {matched[1]!r}{did_you_mean(matched[1], error.ctx.command.commands)}"
    if matched := _TOO_MANY.match(message):
        takes = [one.metavar for one in error.ctx.command.params if one.param_type_name == "argument"]
        return f"{name} takes {' '.join(takes) or 'no argument'}; received {matched[1]!r}{' too' if takes else ''}"
    for pattern, words in _IN_OTHER_WORDS:
        message = pattern.sub(words, message)
    return message
