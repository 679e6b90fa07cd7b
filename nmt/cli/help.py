"""Help pages: options in sections with their descriptions beside them, examples at the end.

The pages are plain text of at most ``MAX_WIDTH`` columns. Headings and option names have a style on a terminal, unless
the environment variable NO_COLOR is set.
"""

import inspect
import os
import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

from typer import style
from typer.core import TyperCommand, TyperGroup

MIN_WIDTH, MAX_WIDTH = 40, 100
MAX_LABEL = 22
"""Longest option with its metavar that has its description beside it; that of a longer option follows below."""
INDENT, GAP = 2, 2
NO_BREAK = "\N{NO-BREAK SPACE}"
FEW = 6
"""Most options that a command lists in one section."""

Row = tuple[str, str]
"""A label, such as an option with its metavar, and its description."""
Section = tuple[str, list[Row]]


class HelpCommand(TyperCommand):
    """A command with a help page of this module. Its help is the docstring, with examples after ``Examples:``."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        formatter.write(_page(ctx, _sections(self.get_params(ctx))))


class HelpGroup(TyperGroup):
    """A program or a group of commands with its help page: the commands in their help sections."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        sections: dict[str, list[Row]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            summary = inspect.cleandoc(command.help).partition("\n\n")[0]
            sections.setdefault(command.rich_help_panel, []).append((name, summary))
        formatter.write(_page(ctx, [*sections.items(), *_sections(self.get_params(ctx))]))


def terminal_width() -> int:
    """Return the columns of a help page."""
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns))


def _page(ctx: Any, sections: list[Section]) -> str:
    """Return the help page: usage, text of the help, sections of rows, examples."""
    width, command = terminal_width(), ctx.command
    text, _, examples = inspect.cleandoc(command.help or "").partition("Examples:\n")
    arguments = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    usage = f"Usage: {ctx.command_path} "
    pieces = ["[OPTIONS]", *([command.subcommand_metavar] if isinstance(command, TyperGroup) else arguments)]
    lines = textwrap.wrap(usage + " ".join(pieces), width, subsequent_indent=" " * len(usage))
    for paragraph in text.strip().split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), width)]
    labels = [label for _, rows in sections for label, _ in rows]
    column = min(MAX_LABEL, max(map(len, labels))) + INDENT + GAP
    for title, rows in sections:
        lines += ["", _heading(title), *(line for row in rows for line in _row_lines(row, column, width))]
    if examples:  # not wrapped, since they are to be copied
        lines += ["", _heading("Examples"), *textwrap.indent(textwrap.dedent(examples), " " * INDENT).splitlines()]
    return "\n".join(lines) + "\n"


def _row_lines(row: Row, column: int, width: int) -> list[str]:
    """Return a label and its description, which begins at ``column`` and wraps there."""
    label, description = row
    head = " " * INDENT + _styled(label, fg="cyan")
    body = textwrap.wrap(description, width - column, break_on_hyphens=False)
    below = [" " * column + line.replace(NO_BREAK, " ") for line in body]
    gap = column - INDENT - len(label)
    return [head, *below] if gap < GAP else [head + " " * gap + below[0].lstrip(), *below[1:]]


def _heading(title: str) -> str:
    return _styled(f"{title}:", bold=True)


def _sections(parameters: Iterable[Any]) -> list[Section]:
    """Return the arguments, then the options by help section. Few options are in one section."""
    parameters = list(parameters)
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    sections: dict[str, list[Row]] = {}
    if arguments:
        sections["Arguments"] = [(argument.metavar, argument.help) for argument in arguments]
    few = len(options) <= FEW
    for option in options:
        title = "Options" if few else getattr(option, "rich_help_panel", None) or "Other"
        sections.setdefault(title, []).append((_label(option), _description(option)))
    return list(sections.items())


def _label(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len, reverse=True))
    return names if option.is_flag else f"{names} {option.metavar}"


def _description(option: Any) -> str:
    shown = option.default not in (None, False, "") and not option.is_eager
    return f"{option.help} [default:{NO_BREAK}{option.default}]" if shown else str(option.help)


def _styled(text: str, **looks: Any) -> str:
    """Return text with escapes for a terminal. The printing function removes them where there is no terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # https://no-color.org
        return text
    return str(style(text, **looks))
