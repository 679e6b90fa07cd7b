"""TODO."""

from pathlib import Path

from nmt.errors import DataError, NotFoundError

CONVERT = "Convert it, for example with iconv -f latin1 -t utf-8"


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a UTF-8 text file, split on ``\n`` alone; a byte-order mark and ``\r`` at line ends go.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is not UTF-8; the message names the first bad line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the name, or give the full path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Give the path of a text file.") from error
    return text_lines(content, str(path))


def text_lines(content: bytes, name: str) -> list[str]:
    """Return the lines of UTF-8 text as ``read_lines`` does; ``name`` is what a message calls it.

    Raises:
        DataError: if it is not UTF-8; the message names the first bad line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"Text must be UTF-8; {name}, line {line} holds the byte 0x{content[error.start]:02x}. {CONVERT}."
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
