"""Text files: UTF-8, a sentence per line."""

from pathlib import Path

from nmt.errors import DataError, NotFoundError

CONVERT = "Convert it, for example with iconv -f latin1 -t utf-8"


def not_utf8(name: str, error: UnicodeDecodeError) -> str:
    """Return the message about text that is not UTF-8, with the line and the byte."""
    line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
    return f"{name}, line {line} is not UTF-8: it holds the byte 0x{byte:02x}. {CONVERT}."


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a UTF-8 text file, split at ``\n`` alone, without byte-order mark and final ``\r``.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if the file is not UTF-8; names the first bad line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the name, or give the full path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Give the path of a text file.") from error
    return text_lines(content, str(path))


def text_lines(content: bytes, name: str) -> list[str]:
    """Return the lines of UTF-8 text, split like those of ``read_lines``.

    Args:
        content: UTF-8 bytes.
        name: Name of the text in messages.

    Raises:
        DataError: if the text is not UTF-8; names the first bad line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(name, error)) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def as_cell(text: str) -> str:
    """Return text that is one cell of one line to every reader: spaces in place of line breaks and tabs.

    A model with byte fallback can write any character.
    """
    return " ".join(text.replace("\t", " ").splitlines())
