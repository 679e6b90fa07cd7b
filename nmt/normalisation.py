"""What is done to text before it is tokenized. The same function serves preparing and translating."""

import re
import unicodedata
from collections.abc import Callable

_WORD_CHARACTERS = re.compile(r"[^a-z0-9 ]")

Normaliser = Callable[[str], str]


def collapse_white_space(text: str) -> str:
    """Return ``text`` with runs of white space made one space and none at the ends."""
    return " ".join(text.split())


def nfkc(text: str) -> str:
    """Return ``text`` in Unicode's compatibility composition, white space collapsed (Unicode Annex 15)."""
    return collapse_white_space(unicodedata.normalize("NFKC", text))


def ascii_words(text: str) -> str:
    """Return the lower-case ASCII words of ``text``: "Grüße, I'm 5!" becomes "grue im".

    Accents are stripped from their letters, whatever else is not ASCII disappears, punctuation joins what it stood
    between, and words with digits are dropped: what corpora for lessons have undergone.
    """
    decomposed = unicodedata.normalize("NFD", collapse_white_space(text))
    kept = _WORD_CHARACTERS.sub("", decomposed.encode("ascii", "ignore").decode("ascii").lower())
    return " ".join(word for word in kept.split() if word.isalpha())


NORMALISERS: dict[str, Normaliser] = {"none": collapse_white_space, "nfkc": nfkc, "ascii-words": ascii_words}
