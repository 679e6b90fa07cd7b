"""Formats of documents by the suffixes of their names, and the translation of a document's texts."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Protocol

from nmt.documents.gettext import Catalogue
from nmt.documents.html import Page
from nmt.documents.subtitles import Subtitles
from nmt.documents.word import WordDocument
from nmt.errors import DataError
from nmt.tokenizers.sentences import LINE_BREAK

MOST_BYTES = 64 * 2**20
"""Longest document."""
PART = 256
"""Lines that are translated together."""


class Document(Protocol):
    """A document that was read."""

    texts: list[str]
    """Its texts, with marks for tags."""

    def render(self, texts: list[str]) -> bytes:
        """Return the document with other texts in place of ``texts``, of equal number."""


FORMATS: dict[str, Callable[[bytes, str], Document]] = {
    ".html": Page, ".htm": Page, ".srt": Subtitles, ".vtt": Subtitles, ".po": Catalogue, ".docx": WordDocument,
}  # fmt: skip
"""Readers of a document: of its content, and its name in messages."""


def supported() -> list[str]:
    """Return the suffixes of formats whose packages are installed."""
    return [suffix for suffix in FORMATS if suffix != ".docx" or importlib.util.find_spec("docx")]


def suffix_of(name: str) -> str:
    """Return the suffix of a document's name; an empty text for other names."""
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in FORMATS else ""


def read_document(name: str, content: bytes) -> Document:
    """Return the document of a name with a suffix of ``FORMATS``.

    Raises:
        DataError: if it is too long or damaged.
        NotFoundError: if its format needs a package that is missing.
    """
    if len(content) > MOST_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes. A document has at most {MOST_BYTES:,}. Split it.")
    return FORMATS[suffix_of(name)](content, name)


def translate_texts(
    texts: Sequence[str], translate: Callable[[list[str]], list[str]], progress: Callable[[int, int], None]
) -> list[str]:
    """Return the translations of texts; white space and line breaks stay.

    Args:
        texts: texts of a document.
        translate: returns the translations of lines.
        progress: called with the number of lines that are translated, and of all.
    """
    split = [LINE_BREAK.split(text) for text in texts]
    lines = [*dict.fromkeys(line.strip() for parts in split for line in parts if any(map(str.isalnum, line)))]
    found: dict[str, str] = {}
    for start in range(0, len(lines), PART):
        part = lines[start : start + PART]
        found |= zip(part, translate(part), strict=True)
        progress(len(found), len(lines))
    return ["".join(_replaced(line, found) for line in parts) for parts in split]


def _replaced(line: str, found: dict[str, str]) -> str:
    core = line.strip()
    return line.replace(core, found[core], 1) if core in found else line
