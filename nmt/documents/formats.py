"""Document formats by file suffix, and the translation of a document."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from nmt.documents.catalogues.gettext import Catalogue
from nmt.documents.catalogues.json_messages import JsonMessages
from nmt.documents.catalogues.properties import Properties
from nmt.documents.catalogues.xliff import Xliff
from nmt.documents.document import Document
from nmt.documents.html import Page
from nmt.documents.markdown import Markdown
from nmt.documents.office.opendocument import OpenDocumentText
from nmt.documents.office.word import WordDocument
from nmt.documents.plain_text import PlainText
from nmt.documents.subtitles import Subtitles
from nmt.errors import DataError
from nmt.tokenizers.sentences import split_lines

if TYPE_CHECKING:
    from nmt.decoding.translation import Translation
    from nmt.text.translator import TextOptions, Translator

MOST_BYTES = 64 * 2**20
"""Largest size of a document, in bytes."""
PART = 256
"""Most lines that are translated together."""


FORMATS: dict[str, type[Document]] = {
    suffix: format_
    for format_ in (
        Page, Markdown, Subtitles, Catalogue, Xliff, JsonMessages, Properties, WordDocument, OpenDocumentText,
        PlainText,
    )
    for suffix in format_.SUFFIXES
}  # fmt: skip
"""Formats by suffix. Each is created from the content of a document, and its name for messages."""


def supported_suffixes() -> list[str]:
    """Return the suffixes of all formats."""
    return [*FORMATS]


def suffix_of(name: str) -> str:
    """Return the suffix of a file name if it is in ``FORMATS``; else an empty string."""
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in FORMATS else ""


def output_suffix(suffix: str) -> str:
    """Return the suffix of the translation of a document. The translation of a template (.pot) is a catalogue (.po)."""
    return ".po" if suffix == ".pot" else suffix


def read_document(name: str, content: bytes) -> Document:
    """Read a document whose name has a suffix of ``FORMATS``.

    Raises:
        DataError: if the document is too long or damaged.
    """
    if len(content) > MOST_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes. A document may have {MOST_BYTES:,}. Split it.")
    return FORMATS[suffix_of(name)](content, name)


def translate_document(
    document: Document, name: str, translator: "Translator", options: "TextOptions", *, skip_too_long: bool = False,
    report: "Callable[[list[Translation], list[str]], object]", progress: Callable[[int, int], object],
) -> bytes:  # fmt: skip
    """Return a document with its texts translated.

    Args:
        document: the document.
        name: name of the document in messages.
        translator: model.
        options: options for its translations.
        skip_too_long: whether a sentence that is longer than the model reads stays as it is.
        report: called with translations and the names of their lines in messages.
        progress: called with the number of translated lines and the number of all lines.

    Raises: the errors of ``Translator.translate``.
    """

    def translate(lines: list[str]) -> list[str]:
        names = [f"{name}, text {line[:60]!r}" for line in lines]
        results = [best for best, *_ in translator.find(lines, options, names=names, skip_too_long=skip_too_long)]
        report(results, names)
        return [line if result.is_skipped else result.text for line, result in zip(lines, results, strict=True)]

    return document.render(translate_texts(document.texts, translate, progress), *translator.languages)


def translate_texts(
    texts: Sequence[str], translate: Callable[[list[str]], list[str]], progress: Callable[[int, int], object]
) -> list[str]:
    """Return the translations of texts, with their white space and line breaks unchanged.

    Args:
        texts: texts of a document.
        translate: function that translates lines.
        progress: called with the number of translated lines and the number of all lines.
    """
    split_texts = [split_lines(text) for text in texts]
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
