"""Document formats by file suffix, and the translation of the texts of a document."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Protocol

from nmt.documents.gettext import Catalogue
from nmt.documents.html import Page
from nmt.documents.markdown import Markdown
from nmt.documents.subtitles import Subtitles
from nmt.documents.word import WordDocument
from nmt.errors import DataError
from nmt.tokenizers.sentences import LINE_BREAK

MOST_BYTES = 64 * 2**20
"""Largest size of a document, in bytes."""
PART = 256
"""Most lines that are translated together."""


class Document(Protocol):
    """A document in memory."""

    texts: list[str]
    """Texts of the document, with marks in place of tags."""

    def render(self, texts: list[str]) -> bytes:
        """Return the document with these texts in place of ``texts``; their numbers are equal."""


FORMATS: dict[str, Callable[[bytes, str], Document]] = {
    ".html": Page, ".htm": Page, ".srt": Subtitles, ".vtt": Subtitles, ".po": Catalogue, ".docx": WordDocument,
    ".md": Markdown, ".markdown": Markdown,
}  # fmt: skip
"""Readers by suffix. A reader takes the content of a document, and its name for messages."""


def supported_suffixes() -> list[str]:
    """Return the suffixes of the formats whose packages are installed."""
    return [suffix for suffix in FORMATS if suffix != ".docx" or importlib.util.find_spec("docx")]


def suffix_of(name: str) -> str:
    """Return the suffix of a file name if it is in ``FORMATS``; else an empty string."""
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in FORMATS else ""


def read_document(name: str, content: bytes) -> Document:
    """Read a document whose name has a suffix of ``FORMATS``.

    Raises:
        DataError: if the document is too long or damaged.
        NotFoundError: if the format needs a package that is not installed.
    """
    if len(content) > MOST_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes. A document may have {MOST_BYTES:,}. Split it.")
    return FORMATS[suffix_of(name)](content, name)


def render_document(document: Document, texts: list[str], source: str, target: str) -> bytes:
    """Return a document with these texts in place of ``document.texts``.

    Args:
        document: a document of any format.
        texts: the texts of the document in the language ``target``.
        source, target: language codes, which an HTML page declares; "source" and "target" if they are unknown.
    """
    return document.render(texts, source, target) if isinstance(document, Page) else document.render(texts)


def translate_texts(
    texts: Sequence[str], translate: Callable[[list[str]], list[str]], progress: Callable[[int, int], None]
) -> list[str]:
    """Return the translations of texts, with their white space and line breaks unchanged.

    Args:
        texts: texts of a document.
        translate: function that translates lines.
        progress: called with the number of translated lines and the number of all lines.
    """
    split_texts = [LINE_BREAK.split(text) for text in texts]
    lines = [*dict.fromkeys(line.strip() for parts in split_texts for line in parts if any(map(str.isalnum, line)))]
    translations: dict[str, str] = {}
    for start in range(0, len(lines), PART):
        part = lines[start : start + PART]
        translations |= zip(part, translate(part), strict=True)
        progress(len(translations), len(lines))
    return ["".join(_replace_core(line, translations) for line in parts) for parts in split_texts]


def _replace_core(line: str, translations: dict[str, str]) -> str:
    """Replace a line by its translation, between the same white space."""
    core = line.strip()
    return line.replace(core, translations[core], 1) if core in translations else line
