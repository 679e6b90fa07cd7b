"""Help pages, drawn by Typer with rich: the docstring of a command, its parameters, and its examples at the end."""

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Page:
    """A command with such a page. Its help is the docstring, with examples after ``Examples:``."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:
        text, colon, examples = inspect.cleandoc(help or "").partition("Examples:\n")
        paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]  # the terminal wraps
        super().__init__(*args, **{**settings, "help": "\n\n".join(paragraphs), "epilog": colon + examples or None})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options; an option has a placeholder by its type, and a flag has none."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.metavar = (parameter.metavar or parameter.name).strip("[].").upper()
                parameter.display_type_rich = lambda ctx: None  # <list[str]>
            elif parameter.metavar is None:
                kind = parameter.display_type(ctx).removeprefix("<list[").strip("<]>")
                known = {"bool": "", "int": "N", "float": "X", "path": "FILE"}
                parameter.metavar = next((known[word] for word in known if kind.startswith(word)), "TEXT")
        return parameters


class HelpCommand(_Page, TyperCommand):
    """A command with a help page of this module."""


class HelpGroup(_Page, TyperGroup):
    """A program or a group of commands with a help page of this module: the commands in their help sections."""
