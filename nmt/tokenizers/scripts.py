"""Words of a text in any script, and the space between its sentences.

Most scripts have a space between words. Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan have none. There, a
word is what Unicode's default word boundaries give without a dictionary (Unicode Annex 29): a character with its
combining marks, or a run of katakana.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
_PUNCTUATION_BLOCKS = ((0x21, 0x2FF), (0x2010, 0x205E), (0x3001, 0x3030), (0xFE30, 0xFF65), *_BLOCKS)
_LEADING_VOWELS = "\u0e40-\u0e44\u0ec0-\u0ec4"  # Thai and Lao write them before the consonant that they follow
_FOLLOWING_VOWELS = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"  # no combining marks for Unicode, but no words either
_MARKS_OF_ANY_SCRIPT = "\u0300-\u036f\u200c\u200d\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"


def _of_category(blocks: Iterable[tuple[int, int]], categories: Sequence[str]) -> str:
    """Return the characters of Unicode blocks whose category begins with one of ``categories``, escaped."""
    codes = (code for first, last in blocks for code in range(first, last + 1))
    return re.escape(
        "".join(chr(code) for code in codes if unicodedata.category(chr(code)).startswith(tuple(categories)))
    )


_LETTERS = f"{HAN}\u3041-\u309f{_of_category(_BLOCKS, ('Lo', 'Lm'))}"
_MARKS = f"{_MARKS_OF_ANY_SCRIPT}{_FOLLOWING_VOWELS}{_of_category(_BLOCKS, ('M',))}"
_OPENING = f"\u00a1\u00bf{_of_category(_PUNCTUATION_BLOCKS, ('Ps', 'Pi'))}"
_CLOSING = _of_category(_PUNCTUATION_BLOCKS, ("Pe", "Pf", "Po", "Pd"))
_SPACELESS = re.compile(f"[{_LETTERS}{_KATAKANA}]")
# Each part is possessive, so that long runs of any character take linear time.
_WORD = re.compile(
    f"[{_OPENING}]*+"  # opening brackets and quotes belong to the word after them
    f"(?:[{_LEADING_VOWELS}]?[{_LETTERS}][{_MARKS}]*+"
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
    chunks = text.split()
    words = [Word(part, "") for chunk in chunks[-1:] for part in _parts(chunk)]
    before = [Word(part, "") for chunk in chunks[:-1] for part in (*_parts(chunk), "")]
    spaced: list[Word] = []
    for word in before:
        if word.text:
            spaced.append(word)
        else:  # the end of a chunk
            spaced[-1] = spaced[-1]._replace(space=" ")
    return spaced + words


def join_words(words: Iterable[Word]) -> str:
    """Return the text of words, with the spaces between them."""
    return "".join(word.text + word.space for word in words).rstrip(" ")


def _parts(chunk: str) -> Iterator[str]:
    """Yield the words of a text without white space."""
    if chunk.isascii() or not _SPACELESS.search(chunk):
        yield chunk
        return
    yield from (match[0] for match in _WORD.finditer(chunk) if match[0])


def continues_word(before: str, after: str) -> bool:
    """Return whether a text put after another continues its last word: letters of scripts with spaces meet.

    >>> continues_word("Several", "women"), continues_word("several.", "Women"), continues_word("你", "好")
    (True, False, False)
    """
    meeting = before[-1:] + after[:1]
    are_letters = all(unicodedata.category(character)[0] in "LM" for character in meeting)  # letters and their marks
    return len(meeting) == 2 and are_letters and not _SPACELESS.search(meeting)


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
