"""Errors that a user can correct. Each reaches the user as one message and exit code 2, never as a traceback.

A message names what was received (file, line, value), then the rule, then the remedy.
"""

import os
from collections.abc import Iterable
from pathlib import Path

JOINERS = "\u200c\u200d"
"""Zero-width non-joiner and joiner: invisible, but they change how Persian and Hindi letters are written."""
SPACES = "\u00a0\u202f\u3000"
"""No-break spaces, which French has before a question mark, and the wide space of Chinese and Japanese."""
_SHOWN = frozenset(f"\n{JOINERS}{SPACES}")


def printable(text: str) -> str:
    """Return text with escapes in place of control and unprintable characters.

    Line breaks, and the joiners and spaces of ordinary text, stay as they are.
    """
    return "".join(
        character if character.isprintable() or character in _SHOWN else ascii(character)[1:-1] for character in text
    )


def on_command_line(parts: Iterable[object]) -> str:
    """Return the parts of a message as users of the command line read them."""
    return "".join(part.on_command_line() if hasattr(part, "on_command_line") else str(part) for part in parts)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 epoch" or "1,500 epochs"; the plural of the noun ends in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def blocking_file_message(path: Path) -> str | None:
    """Return a message if one of the folders of ``path`` is a file, else None."""
    try:
        file = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
    except OSError:  # a name that is too long
        return None
    if file is None:
        return None
    return f"{path} cannot be used: {file} is a file, and has to be a folder. Move it away, then repeat the command."


def unusable_file_message(error: OSError) -> str:
    """Return the message about a file that the system refuses."""
    if needs_folder := blocking_file_message(Path(os.fsdecode(error.filename))):
        return needs_folder
    return f"{error.filename} cannot be used: {error.strerror}. Check the name, the permissions and the disk."


class NmtError(Exception):
    """Error that the user can correct.

    The message is the concatenation of its parts: text, and the arguments, settings and commands of ``nmt.message``,
    which are spelled differently on the command line and in Python.
    """

    def __init__(self, *parts: object) -> None:
        """Store the parts of the message."""
        super().__init__(*parts)

    @property
    def parts(self) -> tuple[object, ...]:
        """Parts of the message. Another message can include them."""
        return self.args

    def __str__(self) -> str:
        """Return the message for callers of the Python interface, with control characters escaped."""
        return printable("".join(map(str, self.parts)))

    def on_command_line(self) -> str:
        """Return the message for users of the command line."""
        return printable(on_command_line(self.parts))


class ConfigError(NmtError):
    """Configuration file or override that breaks the schema."""


class DataError(NmtError):
    """Corpus, prepared dataset, text or other file with unusable content."""


class TooLongError(DataError):
    """Sentence longer than the model reads."""


class NotFoundError(NmtError):
    """Missing file, dataset, run or epoch."""


class ConflictError(NmtError):
    """Conflict with files on disk, which would be overwritten or contradicted."""


class OutOfMemoryError(NmtError):
    """Model, batch or sentence that does not fit into memory."""
