"""Errors that a user can correct. Each reaches the user as one message and exit code 2, never as a traceback.

A message names what was received (file, line, value), then the rule, then the remedy.
"""


def printable(text: str) -> str:
    """Return text with escapes in place of control and unprintable characters, except line breaks."""
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1] for character in text
    )


class NmtError(Exception):
    """Error that the user can correct."""

    def __str__(self) -> str:
        """Return the message without control characters: it may quote a file."""
        return printable(super().__str__())


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
