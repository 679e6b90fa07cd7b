"""Errors that a user can correct. Each reaches the user as one message and exit code 2, never as a traceback.

A message names what was received (file, line, value), then the rule, then the remedy.
"""


def printable(text: str) -> str:
    """Return text with escapes in place of control and unprintable characters, except line breaks."""
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1] for character in text
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 epoch" or "1,500 epochs"; the plural of the noun ends in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unusable(error: OSError) -> str:
    """Return in words that the system refuses a file."""
    return f"{error.filename} cannot be used: {error.strerror}. Check the name, the permissions and the disk."


class NmtError(Exception):
    """Error that the user can correct."""

    in_python: str | None = None
    """Message for callers of the Python interface, whose functions set it."""

    @property
    def message(self) -> str:
        """The message, in which options of the command line may be named. It has no control characters of a file."""
        return printable(super().__str__())

    def __str__(self) -> str:
        """Return the message for whom the error has reached."""
        return self.message if self.in_python is None else self.in_python


class ConfigError(NmtError):
    """Configuration file or override that breaks the schema."""


class DataError(NmtError):
    """Corpus, prepared dataset, text or other file with unusable content."""


class TooLongError(DataError):
    """Sentence longer than the model takes."""


class NotFoundError(NmtError):
    """Missing file, dataset, run or epoch."""


class ConflictError(NmtError):
    """Conflict with files on disk, which would be overwritten or contradicted."""


class OutOfMemoryError(NmtError):
    """Model, batch or sentence that memory does not hold."""
