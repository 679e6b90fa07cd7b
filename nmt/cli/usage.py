"""Help pages, messages about wrong command lines, exit codes."""

import inspect
import signal
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

BAD_INPUT = 2
SIGNAL = 128
"""Offset of the exit code after a signal, as in shells; the number of the signal is added."""
INTERRUPTED = SIGNAL + signal.SIGINT
READER_GONE = SIGNAL + 13  # SIGPIPE, which Windows lacks

UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not export this class

EQUIVALENTS = {
    "--name": "--run", "--model": "--run", "--checkpoint": "--epoch", "--weights": "--epoch", "--beam-size": "--beam",
    "--file": "--input", "--out": "--output", "--figure": "--by-length", "--backend": "--export",
    "--alignment": "--json", "--confidence": "--json",
    "--workers": "--set training.micro_batches=K, which up to K hosts share",
    "alignment": "nmt plot attention --head mean",
    "decode": "nmt translate", "score": "nmt evaluate", "list": "nmt runs", "download": "nmt fetch",
    "tune": "the example with Optuna in configs/README.md",
}  # fmt: skip
"""Options and commands of earlier versions and of other programs, with their equivalents in nmt."""


def usage_message(error: Any) -> str:
    """Return typer's usage error as one message, with a suggestion, and with the received value if typer omits it."""
    message = str(error.message if hasattr(error, "possibilities") else error.format_message())
    message = message.rstrip(".").partition(", unable to parse")[0].replace("Value error, ", "")
    if hasattr(error.__cause__, "errors"):  # pydantic's error contains the value
        received = repr(error.__cause__.errors()[0]["input"])
        message += "" if received in message else f"; received {received}"
    if error.ctx is None:
        return f"{message}. See nmt --help"
    path, command = error.ctx.command_path, error.ctx.command
    word = getattr(error, "option_name", "") or message.partition("No such command '")[2].partition("'")[0]
    known = {*getattr(command, "commands", ()), *(name for part in command.params for name in part.opts)}
    equivalent = EQUIVALENTS.get(word, "")
    if equivalent and (equivalent[0] != "-" or equivalent.partition(" ")[0] in known):
        message = f"{message.partition('. ')[0]}. Did you mean {equivalent}?"
    elif hasattr(error, "possibilities"):
        message += _nearest_option(word, known, error.possibilities)
    return f"{message}{'' if message.endswith('?') else '.'} See {path} --help"


def _nearest_option(word: str, known: set[str], similar: list[str]) -> str:
    """Return ". Did you mean ...?" with the setting of a configuration key, else with similar options; "" for none."""
    if "--set" in known:
        from nmt.config.loading import known_keys
        from nmt.config.schema import Config

        # Commands that translate can only set keys of section decoding.
        sections = ["decoding"] if "--beam" in known else list(Config.model_fields)
        key = word.removeprefix("--").replace("-", "_")
        value = _value_after(word)
        settings = [f"--set {section}.{key}={value}" for section in sections if key in known_keys(section)]
        similar = settings or similar
    return f". Did you mean {' or '.join(sorted(similar))}?" if similar else ""


def _value_after(option: str) -> str:
    """Return the value that was typed after an option, or three dots."""
    for place, word in enumerate(sys.argv):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and place + 1 < len(sys.argv):
            following = sys.argv[place + 1]
            return "..." if following.startswith("-") else following
    return "..."


class _Page:
    """A command with a help page. Its help is the docstring, with examples after ``Examples:``."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:
        text, colon, examples = inspect.cleandoc(help or "").partition("Examples:\n")
        paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]  # the terminal wraps
        super().__init__(*args, **{**settings, "help": "\n\n".join(paragraphs), "epilog": colon + examples or None})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options, changed so that the lines of the page are short.

        The placeholder of an option depends on its type; a flag has none. Ranges are not shown, since messages name
        them. The default is the last sentence of the help. --help itself is not listed.
        """
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            parameter._get_number_range_help_str = lambda: None
            if parameter.param_type_name == "argument":
                parameter.metavar = (parameter.metavar or parameter.name).strip("[].").upper()
                parameter.display_type_rich = lambda ctx: None  # <list[str]>
            elif parameter.metavar is None:
                kind = parameter.display_type(ctx).removeprefix("<list[").strip("<]>")
                known = {"bool": "", "int": "N", "float": "X", "path": "FILE"}
                parameter.metavar = next((known[word] for word in known if kind.startswith(word)), "TEXT")
            if parameter.show_default and type(parameter.default) in (int, float, str) and parameter.default != "":
                parameter.help, parameter.show_default = f"{parameter.help} Default: {parameter.default}.", False
            parameter.hidden = parameter.hidden or parameter.name == "help"
        return parameters


class HelpCommand(_Page, TyperCommand):
    """A command with a help page of this module."""


class HelpGroup(_Page, TyperGroup):
    """A program or a group of commands with a help page of this module: the commands in their help sections."""
