"""Text in UTF-8, a sentence per line."""

from pathlib import PurePath

from nmt.errors import DataError

SHOWN_ENCODINGS = ("cp1252", "cp1251", "gb18030", "shift_jis")
"""Frequent encodings of old files: Western, Cyrillic, Chinese and Japanese. A message shows a text in each of them."""
_SHOWN = 12  # characters before and after the place


def not_utf8(name: str, error: UnicodeDecodeError, before: int = 0) -> str:
    """Return a message that names the line and the byte at which a text is not UTF-8.

    Args:
        name: name of the text in the message.
        error: error of the decoder.
        before: number of lines of the text before the decoded bytes.
    """
    line = before + error.object.count(b"\n", 0, error.start) + 1
    byte = error.object[error.start]
    readings = _readings(error.object, error.start)
    shown = f" Read as {', '.join(readings)}." if readings else ""
    suffix = PurePath(name).suffix
    is_packed = suffix.lower() in (".gz", ".bz2", ".xz", ".zst") or ".zip/" in name.lower()
    file, converted = ("UNPACKED", "CONVERTED") if is_packed else (name, f"converted{suffix}")
    return (
        f"{name}, line {line} is not UTF-8: it holds the byte 0x{byte:02x}.{shown} Find out its encoding by what reads "
        f"well, or with a command: file {file}, or normalizer {file} (pip install charset-normalizer). Then convert "
        f"it, for a Western encoding with iconv -f cp1252 -t utf-8 {file} > {converted}."
    )


def _readings(content: bytes, place: int) -> list[str]:
    """Return the text around a byte in each frequent encoding in which its line can be read."""
    start = content.rfind(b"\n", 0, place) + 1
    end = content.find(b"\n", place)
    line = content[start : end if end >= 0 else None]
    readings = []
    for encoding in SHOWN_ENCODINGS:
        try:
            before, text = line[: place - start].decode(encoding), line.decode(encoding)
        except UnicodeDecodeError:
            continue
        shown = text[max(0, len(before) - _SHOWN) : len(before) + _SHOWN].strip("\r\t ")
        readings.append(f"{encoding} it has {shown!r}")
    return readings


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
