"""Words of a text in any script, and the space between its sentences.

Most scripts have a space between words. Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan have none. There, a
word is what Unicode's default word boundaries give without a dictionary (Unicode Annex 29): a character with its
combining marks, or a run of katakana.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
"""Hiragana and katakana, as a range in regular expressions."""
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, likewise."""
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
# First and last code points of the other scripts without spaces: Thai, Lao, Tibetan, Burmese and Khmer.
_BLOCKS = (
    (0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
)  # fmt: skip
_MARK_BLOCKS = ((0x300, 0x1DFF), (0x20D0, 0x20F0), (0x302A, 0x309A), (0xA66F, 0xABED), (0xFB1E, 0xFE2F))
_PUNCTUATION_BLOCKS = ((0x21, 0x2FF), (0x2010, 0x205E), (0x3001, 0x3030), (0xFE30, 0xFF65), *_BLOCKS)
_LEADING_VOWELS = "\u0e40-\u0e44\u0ec0-\u0ec4"  # Thai and Lao write them before the consonant that they follow
_STACKING = "\u1039\u17d2"  # Burmese and Khmer write the next consonant below the last
_FOLLOWING_VOWELS = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"  # no combining marks for Unicode, but no words either
_MARKS_OF_ANY_SCRIPT = "\u0300-\u036f\u200c\u200d\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"


def _of_category(blocks: Iterable[tuple[int, int]], categories: Sequence[str]) -> str:
    """Return the characters of Unicode blocks whose category begins with one of ``categories``, escaped."""
    codes = (code for first, last in blocks for code in range(first, last + 1))
    return re.escape(
        "".join(chr(code) for code in codes if unicodedata.category(chr(code)).startswith(tuple(categories)))
    )


UNSPACED = _of_category(_BLOCKS, ("Lo", "Lm"))
"""Letters of Thai, Lao, Tibetan, Burmese and Khmer, likewise."""
MARKS = f"{_of_category(_MARK_BLOCKS, ('M',))}\u200c\u200d"
"""Combining marks, such as vowel signs of Indic scripts, and the two joiners, likewise: no word ends at them."""
_LETTERS = f"{HAN}\u3041-\u309f{UNSPACED}"
_MARKS = f"{_MARKS_OF_ANY_SCRIPT}{_FOLLOWING_VOWELS}{_of_category(_BLOCKS, ('M',))}"
_OPENING = f"\u00a1\u00bf{_of_category(_PUNCTUATION_BLOCKS, ('Ps', 'Pi'))}"
_CLOSING = _of_category(_PUNCTUATION_BLOCKS, ("Pe", "Pf", "Po", "Pd"))
_SPACELESS = re.compile(f"[{_LETTERS}{_KATAKANA}]")
# Each part is possessive, so that long runs of any character take linear time.
_WORD = re.compile(
    f"[{_OPENING}]*+"  # opening brackets and quotes belong to the word after them
    f"(?:[{_LEADING_VOWELS}]?[{_LETTERS}][{_MARKS}]*+(?:(?<=[{_STACKING}])[{_LETTERS}][{_MARKS}]*+)*+"
    f"|[{_KATAKANA}]++[{_MARKS}]*+"
    f"|(?:[^{_LETTERS}{_KATAKANA}{_OPENING}]++|[{_OPENING}]++(?=[^{_LETTERS}{_KATAKANA}{_OPENING}]))++)?+"
    f"[{_CLOSING}]*+"  # closing punctuation belongs to the word before it
)


class Word(NamedTuple):
    """A word of a text, with the punctuation that is written next to it."""

    text: str
    space: str
    """Space after the word: " ", or "" within text without spaces and at the end of the text."""


def split_words(text: str) -> list[Word]:
    """Return the words of a text.

    In scripts with spaces, a word is what lies between white space, as ``str.split`` returns it. Runs of letters of a
    script without spaces are split further.

    >>> [word.text for word in split_words("我有(一个) iPhone 15。")]
    ['我', '有', '(一', '个)', 'iPhone', '15。']
    """
    words = list[Word]()
    if text.isascii() or not _SPACELESS.search(text):
        words = [Word(chunk, " ") for chunk in text.split()]
    else:
        for chunk in text.split():
            *parts, last = _parts(chunk)
            words += [*(Word(part, "") for part in parts), Word(last, " ")]
    if words:
        words[-1] = Word(words[-1].text, "")
    return words


def join_words(words: Iterable[Word]) -> str:
    """Return the text of words, with the spaces between them."""
    return "".join(word.text + word.space for word in words).rstrip(" ")


def _parts(chunk: str) -> Iterator[str]:
    """Yield the words of a text without white space."""
    if chunk.isascii() or not _SPACELESS.search(chunk):
        yield chunk
        return
    yield from (match[0] for match in _WORD.finditer(chunk) if match[0])


_TOUCHING = re.compile(
    f"[{_LETTERS}{_KATAKANA}{_FOLLOWING_VOWELS}{_of_category(_BLOCKS, ('M',))}\u3001-\u303f\uff01-\uff65]"
)


def space_between(before: str, after: str) -> str:
    """Return the space between two words that come together: none next to a script without spaces, else " ".

    >>> space_between("ein", "Hund"), space_between("我", "iPhone")
    (' ', '')
    """
    return "" if _TOUCHING.match(before[-1:]) or _TOUCHING.match(after[:1]) else " "


def continues_word(before: str, after: str) -> bool:
    """Return whether a text put after another continues its last word: letters of scripts with spaces meet.

    >>> continues_word("Several", "women"), continues_word("several.", "Women"), continues_word("你", "好")
    (True, False, False)
    """
    meeting = before[-1:] + after[:1]
    are_letters = all(unicodedata.category(character)[0] in "LM" for character in meeting)  # letters and their marks
    return len(meeting) == 2 and are_letters and not _SPACELESS.search(meeting)


_SHARE = 0.1  # of the letters, from which a script counts: Japanese text has about half of its letters in kana
# Kana come before Chinese characters, which Japanese has too. Thai stands for all other scripts without spaces.
_LANGUAGES_WITHOUT_SPACES = (
    ("ja", re.compile(f"[{KANA}]")),
    ("zh", re.compile(f"[{HAN}]")),
    ("th", re.compile(f"[{UNSPACED}]")),
)


def language_without_spaces(texts: Iterable[str]) -> str:
    """Return a language written in the script of texts, if that has no spaces between words; else an empty string.

    The languages are "ja" for Japanese, "zh" for Chinese, and "th" for the other scripts without spaces.
    """
    letters = "".join(filter(str.isalpha, "".join(texts)))
    for language, letter in _LANGUAGES_WITHOUT_SPACES:
        if letters and len(letter.findall(letters)) >= _SHARE * len(letters):
            return language
    return ""


_NO_SPACE_BETWEEN_SENTENCES = frozenset({"zh", "ja", "yue", "wuu", "lzh"})
_SPACELESS_END = re.compile(f"[{HAN}{KANA}\u3001-\u303f\uff01-\uff65]$")


def sentence_space(before: str, language: str) -> str:
    """Return what stands between two sentences: nothing in Chinese and Japanese, a space in every other language.

    Thai, Lao, Khmer and Burmese have no space between words, but one between sentences.

    Args:
        before: the first sentence, whose last character decides if the language is unknown.
        language: language code; "source" or "target" if it is unknown.
    """
    if language in ("source", "target", ""):
        return "" if _SPACELESS_END.search(before) else " "
    return "" if language.partition("-")[0] in _NO_SPACE_BETWEEN_SENTENCES else " "


_RIGHT_TO_LEFT = frozenset({
    "ar", "ara", "arb", "ary", "arz", "azb", "ckb", "div", "dv", "fa", "fas", "he", "heb", "kas", "ks", "lrc", "mzn",
    "nqo", "pbt", "pes", "pnb", "prs", "ps", "pus", "sd", "skr", "snd", "syr", "ug", "uig", "ur", "urd", "yi", "yid",
})  # fmt: skip
SCRIPT_LETTERS = 4
"""Letters of a script in a language code, as in zh-Hans."""
_RIGHT_TO_LEFT_SCRIPTS = frozenset({"adlm", "arab", "hebr", "mand", "nkoo", "rohg", "samr", "syrc", "thaa"})


def direction(language: str) -> Literal["ltr", "rtl", "auto"]:
    """Return the direction in which a language is written, as a value of HTML's ``dir``.

    >>> direction("ar"), direction("pa-Arab"), direction("de"), direction("target")
    ('rtl', 'rtl', 'ltr', 'auto')

    Args:
        language: language code; "source" or "target" if it is unknown.
    """
    if language in ("source", "target", ""):
        return "auto"
    base, *subtags = language.lower().replace("_", "-").split("-")
    for subtag in subtags:
        if len(subtag) == SCRIPT_LETTERS and subtag.isalpha():
            return "rtl" if subtag in _RIGHT_TO_LEFT_SCRIPTS else "ltr"
    return "rtl" if base in _RIGHT_TO_LEFT else "ltr"
