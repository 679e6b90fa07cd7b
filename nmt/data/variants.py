"""Variants of a sentence pair as in ordinary text: capitals, several sentences in a line, typing errors, quotes.

Training applies them to random pairs in each epoch (``training.augment``). ``nmt evaluate --stress`` scores them all. A
variant follows the languages of the two sides: letter case, quotation marks, the space between sentences. A pair that a
variant cannot change, such as a Chinese source in capitals, stays as it is.
"""

import re
from collections.abc import Callable
from functools import cache
from random import Random

from nmt.data.sources.formats import Pair
from nmt.tokenizers.letter_case import capitalize, has_case, upper
from nmt.tokenizers.scripts import MARKS, sentence_space
from nmt.tokenizers.sentences import STOPS

ENDS = "".join(sorted(STOPS)) + "\u0965\u0f0d\u1361\u1367"
"""Characters at the end of a sentence. Two Ethiopic word spaces in a row are a full stop too."""
CASED_SHARE = 0.8
"""Share of letters with case from which on a text counts as cased. "我有 iPhone" does not."""
SHORTEST_MISTYPED = 4
"""Number of letters of the shortest word that gets typing errors."""
MISTYPED_SHARE = 0.1
"""Probability of a typing error in a sufficiently long word."""
KEYBOARD = (
    "qwertyuiop", "asdfghjkl", "zxcvbnm",
    "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю",
    "ςερτυθιοπ", "ασδφγηξκλ", "ζχψωβνμ",
    "קראטוןםפ", "שדגכעיחלךף", "זסבהנמצתץ",
    "ضصثقفغعهخحجد", "شسيبلاتنمكط", "ئءؤرىةوزظ",
)  # fmt: skip
"""Rows of the keyboards of the alphabets in ``_TYPED``."""
# Latin, Greek, Cyrillic, Hebrew and Arabic. Letters of other scripts are typed as several keys, or carry marks.
_TYPED = re.compile(
    "(?:[A-Za-z\u00aa-\u02af\u1e00-\u1eff]|[\u0370-\u03ff\u1f00-\u1fff]|[\u0400-\u052f]|[\u05d0-\u05ea]|[\u0620-\u06d3])+"
)
_WORD = re.compile(rf"[^\W\d_](?:[{MARKS}]|[^\W\d_])*")
_CORNERS = ("「", "」")
_QUOTES = {
    "ja": _CORNERS, "yue": _CORNERS, "zh-Hant": _CORNERS, "zh-TW": _CORNERS, "zh-HK": _CORNERS, "zh": ("“", "”")
}  # fmt: skip
"""Quotation marks by language, where no keyboard has straight ones. Elsewhere people type straight ones."""

Languages = tuple[str, str]
"""Language codes of source and target; "source" or "target" if it is unknown."""
UNKNOWN: Languages = "source", "target"

Variant = Callable[[Pair, Pair, Random, Languages], Pair]
"""Function of a pair, a second pair to join to it, a random generator, and the languages."""


def is_cased(text: str) -> bool:
    """Return whether nearly all letters of a text have upper and lower case."""
    if text.isascii():
        return any(map(str.isalpha, text))
    letters = [*filter(str.isalpha, text)]
    return sum(map(_has_case, letters)) > CASED_SHARE * len(letters)


_has_case = cache(has_case)  # of a letter


def join_sentences(first: str, second: str, language: str) -> str:
    """Return two sentences with what their language puts between them."""
    return f"{first}{sentence_space(first, language)}{second}"


def _upper(pair: Pair, _second: Pair, _dice: Random, languages: Languages) -> Pair:
    if not is_cased(pair.source):  # nothing in such a source tells the model to write capitals
        return pair
    source, target = upper(pair.source, languages[0]), upper(pair.target, languages[1])
    return Pair(source, target if is_cased(pair.target) else pair.target)


def _title(pair: Pair, _second: Pair, _dice: Random, languages: Languages) -> Pair:
    """Capitalize the words of the source. The target of a heading stays unchanged."""
    if not is_cased(pair.source):
        return pair
    return pair._replace(source=_WORD.sub(lambda word: capitalize(word[0], languages[0]), pair.source))


def _join(pair: Pair, second: Pair, _dice: Random, languages: Languages) -> Pair:
    sides = zip(pair, second, languages, strict=True)
    return Pair(*(join_sentences(first, following, language) for first, following, language in sides))


def _typos(pair: Pair, _second: Pair, dice: Random, _languages: Languages) -> Pair:
    return pair._replace(source=_WORD.sub(lambda word: _mistyped(word[0], dice), pair.source))


def _no_stop(pair: Pair, _second: Pair, _dice: Random, _languages: Languages) -> Pair:
    """Remove the full stop of the source. The target keeps its own."""
    return pair._replace(source=pair.source.rstrip(ENDS))


def _quotes(pair: Pair, _second: Pair, _dice: Random, languages: Languages) -> Pair:
    return Pair(*(_quoted(text, language) for text, language in zip(pair, languages, strict=True)))


VARIANTS: dict[str, Variant] = {
    "upper": _upper, "title": _title, "join": _join, "typos": _typos, "no_stop": _no_stop, "quotes": _quotes,
}  # fmt: skip
"""Variants for training, by the names in ``training.augment``."""


def _quoted(text: str, language: str) -> str:
    opening, closing = _QUOTES.get(language) or _QUOTES.get(language.partition("-")[0], ('"', '"'))
    return f"{opening}{text}{closing}"


def _mistyped(word: str, dice: Random) -> str:
    """Return a word, at random with swapped letters, a letter missing or doubled, or an adjacent key.

    Words in scripts without a known keyboard, and words with combining marks, stay as they are.
    """
    if len(word) < SHORTEST_MISTYPED or not _TYPED.fullmatch(word) or dice.random() >= MISTYPED_SHARE:
        return word
    place, kind = dice.randrange(1, len(word) - 1), dice.randrange(4)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    row = next((keys for keys in KEYBOARD if letter in keys), "")
    if kind == 3 and row:
        beside = row.index(letter) + dice.choice((-1, 1))
        return before + row[max(0, min(beside, len(row) - 1))] + after
    return before + {0: after[0] + letter + after[1:], 1: after, 2: 2 * letter + after}.get(kind, after)
