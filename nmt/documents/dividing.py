"""Division of a text at word boundaries: over the cues of a sentence, and into the lines of a cue."""

import bisect
import itertools
import math
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from nmt.tokenizers.marks import CLOSE, MARK
from nmt.tokenizers.scripts import split_words
from nmt.tokenizers.sentences import PUNCTUATION

_NEAR = 10
"""Number of words before and after the ideal place at which a text may be cut."""
_PUNCTUATION_BONUS, _SPACE_BONUS = 6, 3
"""Distances from the ideal place that a cut after punctuation, or at a space, outweighs."""
_MORE_LINES = 3
"""Number of further lines that are tried for a text with long words."""
_NO_BREAK = {ord("\u00a0"): "\ufdd0", ord("\u202f"): "\ufdd1"}
_NO_BREAK_BACK = {ord(to): chr(from_) for from_, to in _NO_BREAK.items()}


class Word(NamedTuple):
    """A word with the marks of its tags."""

    text: str
    space: str
    """Space after the word: " " or ""."""
    width: int
    bonus: int
    """How good a cut after the word is, as a distance from the ideal place."""


def words_of(text: str) -> list[Word]:
    """Return the words of a text with marks. The mark of an opening tag belongs to the word after it."""
    words, beginning = list[Word](), ""
    for text_, space in split_words(text.translate(_NO_BREAK)):
        is_stop = PUNCTUATION.match(MARK.sub("", text_)[-1:]) is not None
        bonus = _SPACE_BONUS * bool(space) + _PUNCTUATION_BONUS * is_stop
        word = Word(beginning + text_.translate(_NO_BREAK_BACK), space, width(text_), bonus)
        if word.width:
            words.append(word)
            beginning = ""
        elif words and min(text_) >= chr(CLOSE):
            words[-1] = words[-1]._replace(text=words[-1].text + words[-1].space + text_, space=space)
        else:
            beginning = word.text
    if beginning and words:
        words[-1] = words[-1]._replace(text=words[-1].text + beginning)
    return words


def width(text: str) -> int:
    """Return the width of a text without its marks in columns. A Chinese character has two columns.

    >>> width("Haus"), width("公园"), width("पार्क")
    (4, 4, 3)
    """
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if character.isascii():
        return 1
    if MARK.match(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def divide(words: Sequence[Word], shares: Sequence[float], least: int) -> list[list[Word]]:
    """Return the words in as many parts as there are shares.

    Args:
        words: words of a text.
        shares: size of each part; only their ratios count.
        least: 1 if every part gets a word, as long as there are words; 0 if a part may be empty.
    """
    if len(shares) == 1:
        return [[*words]]
    ends = [0, *itertools.accumulate(word.width + len(word.space) for word in words)]
    total = sum(shares) or 1
    ideals = [ends[-1] * share / total for share in itertools.accumulate(shares)]
    bonuses = [0, *(least * word.bonus for word in words)]
    cuts = [0]
    for index, ideal in enumerate(ideals[:-1]):
        first = min(cuts[-1] + least, len(words))
        last = max(first, len(words) - least * (len(shares) - index - 1))
        near = min(max(bisect.bisect(ends, ideal), first), last)
        candidates = range(max(first, near - _NEAR), min(last, near + _NEAR) + 1)
        distances = {cut: abs(ends[cut] - ideal) - bonuses[cut] for cut in candidates}
        cuts.append(min(candidates, key=distances.__getitem__))
    return [[*words[start:end]] for start, end in itertools.pairwise([*cuts, len(words)])]


def lines_of(words: Sequence[Word], count: int, most: int) -> list[list[Word]]:
    """Return the words in balanced lines: ``count`` lines, or more if these would be wider than ``most``."""
    least = max(count, math.ceil(_line_width(words) / most))
    for number in range(least, least + _MORE_LINES):
        lines = [line for line in divide(words, [1] * number, 1) if line]
        if max(map(_line_width, lines), default=0) <= most:
            return lines
    return _filled_lines(words, most)


def _filled_lines(words: Sequence[Word], most: int) -> list[list[Word]]:
    """Return lines with as many words as fit."""
    lines, room = list[list[Word]](), 0
    for word in words:
        if word.width > room:
            lines.append([])
            room = most
        lines[-1].append(word)
        room -= word.width + len(word.space)
    return lines


def _line_width(words: Sequence[Word]) -> int:
    return sum(word.width + len(word.space) for word in words) - sum(len(word.space) for word in words[-1:])
