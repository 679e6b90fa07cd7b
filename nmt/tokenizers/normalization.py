"""Text normalization before tokenizing, which is the same in preparation and translation."""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

_SHORT_TEXT = 1_000  # length of a text that needs no joiners, even if all of it are combining marks
_MOST_MARKS, _JOINER = 30, "\u034f"
# Soft hyphen, zero-width space, word joiner, byte order mark, and marks of writing direction.
_INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u206f\ufeff]")
_NOT_WORD_CHARACTER = re.compile(r"[^a-z0-9 ]")

INVISIBLE, REPLACED = "invisible characters removed", "characters replaced"
"""Kinds of changes."""

Normalizer = Callable[[str], str]


class Change(NamedTuple):
    """A word that normalization changes by more than the white space around it."""

    kind: str
    """``INVISIBLE`` or ``REPLACED``."""
    before: str
    after: str


def collapse_white_space(text: str) -> str:
    """Return ``text`` with each run of white space replaced by one space, and none at the ends."""
    return " ".join(text.split())


def stream_safe(text: str) -> str:
    """Return ``text`` with a joiner after every 30 consecutive combining marks (Unicode Annex 15, section 13).

    Unicode normalization sorts a run of marks in quadratic time: half a million marks, one line of a hostile file,
    take minutes. No language has more than a few marks in a row.
    """
    if text.isascii() or len(text) <= _SHORT_TEXT:
        return text
    parts, marks = list[str](), 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            parts.append(_JOINER)
            marks = 1
        parts.append(character)
    return "".join(parts)


def without_invisible(text: str) -> str:
    """Return ``text`` without the invisible characters that carry no meaning for a model.

    The zero-width joiner and non-joiner stay: they change how letters of Persian and Hindi, and emoji, are written.
    """
    return text if text.isascii() else _INVISIBLE.sub("", text)


def nfc(text: str) -> str:
    """Return ``text`` in form NFC (Unicode Annex 15), without invisible characters, with white space collapsed.

    NFC changes how a character is stored, never how it looks.
    """
    visible = without_invisible(text)
    return collapse_white_space(unicodedata.normalize("NFC", stream_safe(visible)))


def nfkc(text: str) -> str:
    """Return ``text`` in Unicode normalization form NFKC (Unicode Annex 15), with white space collapsed."""
    return collapse_white_space(unicodedata.normalize("NFKC", stream_safe(text)))


def ascii_words(text: str) -> str:
    """Return the lower-case ASCII words of ``text``: "Grüße, I'm 5!" becomes "grue im".

    The function strips accents, removes other non-ASCII characters and punctuation without leaving a space, and drops
    words with digits, as the usual cleaning of lesson corpora does.
    """
    decomposed = unicodedata.normalize("NFD", stream_safe(collapse_white_space(text)))
    lower = decomposed.encode("ascii", "ignore").decode("ascii").lower()
    words = _NOT_WORD_CHARACTER.sub("", lower).split()
    return " ".join(word for word in words if word.isalpha())


NORMALIZERS: dict[str, Normalizer] = {
    "none": collapse_white_space, "nfc": nfc, "nfkc": nfkc, "ascii-words": ascii_words,
}  # fmt: skip
"""Normalization functions by their names in the configuration."""


def first_change(text: str, name: str) -> Change | None:
    """Return the first word of a text that the normalization ``name`` changes; None if it changes white space alone."""
    normalize = NORMALIZERS[name]
    if normalize(text) == collapse_white_space(text):
        return None
    for word in text.split():
        normal = normalize(word)
        if normal != word:
            is_removal = normal == without_invisible(word)
            return Change(INVISIBLE if is_removal else REPLACED, word, normal)
    return None
