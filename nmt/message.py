"""Parts of messages: arguments, settings and commands, stored as data.

The command line prints them as they are typed; the Python interface shows how to pass them. Only this module knows both
spellings.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nmt.errors import NmtError, on_command_line

OPTIONS = {
    "n": "--n-best", "tokenization": "--tokenize", "references": "--reference", "hypotheses": "--hypothesis",
    "metrics": "--metric", "files": "FILE", "beam_size": "--beam", "mbr_candidates": "--mbr",
    "corpora": "--corpus", "teachers": "--teacher",
    "target_language": "--to", "source_language": "--from",
}  # fmt: skip
"""Options whose name differs from the argument, or from the key of section ``decoding``."""

OWN_OPTION = frozenset(
    {"beam_size", "temperature", "ordinary_text", "batch_size", "source_language", "target_language"}
)
"""Keys of section ``decoding`` that have an option of their own. ``--set`` sets the remaining keys."""


def option_of(name: str) -> str:
    """Return the command-line option of an argument or of a key of section ``decoding``."""
    return OPTIONS[name] if name in OPTIONS else "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Argument:
    """Argument of a function, which is also an option of a command.

    >>> argument = Argument("by_length", True)
    >>> f"{argument} or {argument.on_command_line()}"
    'by_length=True or --by-length'
    """

    name: str
    """Name in Python."""
    value: Any = None
    """Value to pass; True for a flag, a list for an option that can be repeated, None to show only the name."""

    def __str__(self) -> str:
        """Return the argument as Python callers pass it."""
        return self.name if self.value is None else f"{self.name}={_literal(self.value)}"

    def on_command_line(self) -> str:
        """Return the option, with its value."""
        option = option_of(self.name)
        if self.value is None or self.value is True:
            return option
        values = self.value if isinstance(self.value, list) else [self.value]
        return " ".join(f"{option} {_word(value)}" for value in values)


class Settings:
    """Keys of the configuration with values.

    >>> settings = Settings({"training.clip_norm": 1})
    >>> f"{settings} or {settings.on_command_line()}"
    'set={"training.clip_norm": 1} or --set training.clip_norm=1'
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Store the values by key, such as ``training.epochs``."""
        self._values = values

    @classmethod
    def join(cls, parts: "Iterable[Settings]") -> "Settings":
        """Return a single object with the values of all parts."""
        values: dict[str, Any] = {}
        for part in parts:
            values |= part._values
        return cls(values)

    def __str__(self) -> str:
        """Return the settings as Python callers pass them."""
        decoding = {key.removeprefix("decoding."): value for key, value in self._values.items()}
        is_decoding = all(key.startswith("decoding.") for key in self._values)
        return f"decoding={_literal(decoding)}" if is_decoding else f"set={_literal(self._values)}"

    def on_command_line(self) -> str:
        """Return the options that set the keys."""
        return " ".join(self._option(*item) for item in self._values.items())

    @staticmethod
    def _option(key: str, value: Any) -> str:
        if key == "training.start_from":
            return f"--from {_word(value)}"
        section, _, name = key.partition(".")
        if section == "decoding" and name in OWN_OPTION:
            return f"{option_of(name)} {_word(value)}"
        return f"--set {_word(f'{key}={_yaml(value)}')}"


class Command:
    """Command of nmt to type in a shell.

    >>> print(Command("prepare FILE", Argument("overwrite", True)))
    nmt prepare FILE --overwrite
    """

    def __init__(self, words: str, *options: Argument | Settings) -> None:
        """Store the command with its arguments, and its options."""
        self._words, self._options = words, options

    def on_command_line(self) -> str:
        """Return the command line."""
        return " ".join(["nmt", self._words, *(option.on_command_line() for option in self._options)])

    __str__ = on_command_line


Part = str | Argument | Settings | Command | NmtError
"""Part of a message."""


class Message:
    """Message that is the concatenation of its parts. ``str`` gives the text for Python callers."""

    def __init__(self, *parts: Part) -> None:
        """Store the parts."""
        self.parts = parts

    def __str__(self) -> str:
        """Return the message for callers of the Python interface."""
        return "".join(map(str, self.parts))

    def on_command_line(self) -> str:
        """Return the message for users of the command line."""
        return on_command_line(self.parts)


Report = Callable[[str | Message], None]
"""Function that shows a message to the user."""


def _literal(value: Any) -> str:
    """Return a value as Python writes it, with double quotes. A placeholder such as N stays bare."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{key}": {_literal(item)}' for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        is_placeholder = len(value) == 1 and value.isupper()
        return value if is_placeholder else json.dumps(value, ensure_ascii=False)
    return repr(value)


def _yaml(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"[{','.join(map(_yaml, value))}]" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def _word(value: Any) -> str:
    """Return a value as one word of a command line, in quotes only if it contains white space."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return shlex.quote(text) if " " in text else text
