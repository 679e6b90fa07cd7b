"""What is done to text before it is tokenized. The same function serves preparing and translating."""

import functools
import re
import sys
import unicodedata
from collections.abc import Callable

_FEW = 1_000  # characters that may all be marks
_WORD_CHARACTERS = re.compile(r"[^a-z0-9 ]")

Normalizer = Callable[[str], str]


def collapse_white_space(text: str) -> str:
    """Return ``text`` with runs of white space made one space and none at the ends."""
    return " ".join(text.split())


def stream_safe(text: str) -> str:
    """Return ``text`` with a joiner after every 30 combining marks in a row (Unicode Annex 15, section 13).

    Normalizing sorts such a row in the square of its length: half a million marks, a line of a hostile file, take
    minutes. No language has more than a few.
    """
    if text.isascii() or len(text) <= _FEW:
        return text
    return _marks().sub("\\g<0>\u034f", text)


@functools.cache
def _marks() -> re.Pattern[str]:
    mark = f"[{''.join(filter(unicodedata.combining, map(chr, range(sys.maxunicode + 1))))}]"
    return re.compile(f"{mark}{{30}}(?={mark})")


def nfkc(text: str) -> str:
    """Return ``text`` in Unicode's compatibility composition, white space collapsed (Unicode Annex 15)."""
    return collapse_white_space(unicodedata.normalize("NFKC", stream_safe(text)))


def ascii_words(text: str) -> str:
    """Return the lower-case ASCII words of ``text``: "Grüße, I'm 5!" becomes "grue im".

    Accents are stripped from their letters, whatever else is not ASCII disappears, punctuation joins what it stood
    between, and words with digits are dropped: what corpora for lessons have undergone.
    """
    decomposed = unicodedata.normalize("NFD", stream_safe(collapse_white_space(text)))
    kept = _WORD_CHARACTERS.sub("", decomposed.encode("ascii", "ignore").decode("ascii").lower())
    return " ".join(word for word in kept.split() if word.isalpha())


NORMALIZERS: dict[str, Normalizer] = {"none": collapse_white_space, "nfkc": nfkc, "ascii-words": ascii_words}
