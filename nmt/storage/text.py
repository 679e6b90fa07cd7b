"""Text in UTF-8, a sentence per line."""

from nmt.errors import DataError


def not_utf8(name: str, error: UnicodeDecodeError, before: int = 0) -> str:
    """Return a message that names the line and the byte at which a text is not UTF-8.

    Args:
        name: name of the text in the message.
        error: error of the decoder.
        before: number of lines of the text before the decoded bytes.
    """
    line = before + error.object.count(b"\n", 0, error.start) + 1
    byte = error.object[error.start]
    problem = f"{name}, line {line} is not UTF-8: it holds the byte 0x{byte:02x}."
    return f"{problem} Convert it, for example with iconv -f latin1 -t utf-8."


def decode_utf8(content: bytes, name: str, before: int = 0) -> str:
    """Return UTF-8 text, including a byte-order mark. Args, Raises: as for ``text_lines``."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(name, error, before)) from error


def text_lines(content: bytes, name: str, before: int = 0) -> list[str]:
    r"""Return the lines of UTF-8 text, split at ``\n`` alone, without byte-order mark and final ``\r``.

    Args:
        content: UTF-8 bytes.
        name: name of the text in messages.
        before: number of lines of the text before ``content``.

    Raises:
        DataError: if the text is not UTF-8; names the first bad line.
    """
    text = decode_utf8(content, name, before)
    lines = (text if before else text.removeprefix("\ufeff")).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def as_cell(text: str) -> str:
    """Return text with spaces in place of line breaks and tabs, so that it is a single cell of a table of lines.

    Translations need this, since a model with byte fallback can produce any character.
    """
    return " ".join(text.replace("\t", " ").splitlines())
