"""What a user can mend. Every error here reaches the user as one message and exit code 2, never as a traceback.

A message states the rule, then what was received (file, line, value), then the remedy.
"""


def printable(text: str) -> str:
    """Return text with escapes for what a terminal would obey or could not show, line breaks apart."""
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1] for character in text
    )


class NmtError(Exception):
    """Anything that the user, not the programmer, can put right."""

    def __str__(self) -> str:
        """Return the message, as a terminal can show it: it may quote a file."""
        return printable(super().__str__())


class ConfigError(NmtError):
    """A configuration file or override that breaks the schema."""


class DataError(NmtError):
    """A corpus, a prepared dataset or a text that cannot be used as it is."""


class NotFoundError(NmtError):
    """A file, dataset, run or epoch that does not exist."""


class ConflictError(NmtError):
    """Going on would overwrite or contradict what is already on disk."""
