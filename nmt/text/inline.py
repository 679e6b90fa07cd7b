"""Inline markup and placeholders: found in a sentence, and woven into its translation where words attend to theirs.

Marks stand for the tags of documents (``nmt.tokenizers.marks``). Plain text has tags such as <b>, and placeholders such
as {name} and %s, as they are written.

Shapes: J words of a translation, I words of what the model read.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmt.tokenizers.marks import CLOSE, CLOSE_MARKS, OPEN, OPEN_MARKS, PIECE_MARKS

CLOSING, OPENING = ".,;:!?…)]}。！？", "([{¿¡"  # noqa: RUF001
QUOTES = "\"'”“„«»’‘‚"  # noqa: RUF001
MOST_NESTED = 100
"""Tags that are open at a time."""
# In a quoted value of an attribute < and > stand for themselves. Without the other quote, a tag ends at the first >.
_NAME, _REST = r"[a-zA-Z][\w:.-]*+", r"""(?:\s(?:(?:[^<>"']|"[^"]*"|'[^']*')*+|[^<>]*))?"""
_MARKUP = re.compile(
    rf"(?P<open>[{OPEN_MARKS}])|(?P<close>[{CLOSE_MARKS}])|</(?P<end>{_NAME})\s*>|<(?P<begin>{_NAME}){_REST}/?>"
    rf"|[{PIECE_MARKS}]|\{{\{{[^{{}}]*\}}\}}|\$?\{{[\\\w.:!,#&-]*\}}"
    r"|%(?:%|(?:\(\w++\)|\d++\$)?[-+#0]*+\d*+(?:\.\d++)?[sdifuxXeEgGc@])"
)
_SURE, _GLUE = 1e6, "\0"


class Cut(NamedTuple):
    """A piece that was taken out of a sentence."""

    piece: str
    """The piece, with the space before it."""
    words: int
    """Number of words before it; at the end of a tag, those that it holds a part of count."""
    is_closed: bool
    """Whether nothing but punctuation comes after it; for a tag, whether the punctuation of its word is outside."""
    tag: int = 0
    """N for the beginning of tag N, from 1, -N for its end, 0 for anything else."""
    is_glued: bool = False
    """Whether a word follows the piece without a space."""


class Tag(NamedTuple):
    """The beginning or the end of a tag in a sentence."""

    start: int
    end: int
    number: int
    """As ``Cut.tag``."""


def find_markup(sentence: str) -> tuple[list[Tag], list[tuple[int, int]]]:
    """Return the tags of a sentence, nested, and the places of all else, placeholders and tags without a partner.

    Marks alone may have their partner in another sentence. Where they are not nested, all are places.
    """
    found = list(_MARKUP.finditer(sentence))
    opened: list[tuple[int, int | str]] = []  # their index in ``found``, and the number of a mark or the name of a tag
    numbers: dict[int, int] = {}
    is_nested, alone = True, 0
    for index, match in enumerate(found):
        if match["begin"] and match[0].endswith("/>"):
            continue
        if match["open"] or match["begin"]:
            if len(opened) < MOST_NESTED:
                opened.append((index, ord(match["open"]) - OPEN if match["open"] else match["begin"]))
            else:
                is_nested &= not match["open"]
        elif match["close"] or match["end"]:
            key = ord(match["close"]) - CLOSE if match["close"] else match["end"]
            place = next((place for place in reversed(range(len(opened))) if opened[place][1] == key), -1)
            marks = [place for place, (_, other) in enumerate(opened) if isinstance(other, int)]
            if isinstance(key, str) and (place < 0 or place < max(marks, default=-1)):
                continue
            is_nested &= not any(mark > place for mark in marks)
            numbers[index] = -index - 1
            if place >= 0:
                numbers[opened[place][0]] = index + 1
            alone += place < 0
            del opened[max(place, 0) :]
    numbers |= {index: index + 1 for index, key in opened if isinstance(key, int)}
    if not is_nested or alone > MOST_NESTED:
        numbers = {}
    tags = [Tag(*found[index].span(), number) for index, number in sorted(numbers.items())]
    return tags, [match.span() for index, match in enumerate(found) if index not in numbers]


# --- the translation


@dataclass
class _Element:
    """What stands between two tags, or a piece.

    A place is 4 w before word w, 4 w + 1 behind its leading punctuation, 4 w + 2 before its trailing one, 4 w + 3 after
    it.
    """

    start: int
    end: int
    """Its words of the source: from ``start`` to before ``end``."""
    first: Cut | None = None
    last: Cut | None = None
    children: list["_Element"] = field(default_factory=list)
    words: tuple[int, int] = (0, 0)
    """Its words of the translation."""
    low: int = 0
    high: int = 0
    """Places of the beginning and the end."""

    @property
    def is_piece(self) -> bool:
        return self.first is not None and self.first.tag == 0


def weave(words: Sequence[str], cuts: Sequence[Cut], weights: np.ndarray, after: Sequence[int]) -> str:
    """Return a translation with tags around the words that attend to theirs, and with all other pieces.

    Args:
        words: J words of the translation.
        cuts: pieces and tags, in order.
        weights: attention of words of the translation to those of the source: float [J, I].
        after: number of words of the translation before each cut, if it is no tag.
    """
    most = len(words)
    root = _tree(cuts, after, weights.shape[1], most)
    root.words, root.high = (0, most), max(0, 4 * most - 1)
    # A word such as "the" attends to its noun too, which others attend to more.
    shares = (weights * weights / np.maximum(weights.sum(axis=0), 1e-9)) ** 2
    _place(root, shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9))
    inserted = [list[str]() for _ in range(4 * max(1, most))]
    for place, piece in _pieces(root):
        inserted[place].append(piece)
    parts = list(itertools.chain.from_iterable((*_edges(word), "") for word in words or [""]))
    placed = ["".join([*pieces, part]) for pieces, part in zip(inserted, parts, strict=True)]
    texts = ("".join(placed[start : start + 4]) for start in range(0, len(placed), 4))
    return " ".join(texts).replace(f"{_GLUE} ", "").replace(_GLUE, "").strip()


def _edges(word: str) -> tuple[str, str, str]:
    """Return the punctuation before a word, the word, and the punctuation after it."""
    begun = word.lstrip(OPENING + QUOTES)
    core = begun.rstrip(CLOSING + QUOTES)
    return word[: len(word) - len(begun)], core, begun[len(core) :]


def _tree(cuts: Sequence[Cut], after: Sequence[int], count: int, most: int) -> _Element:
    """Return the sentence, of I = ``count`` and J = ``most`` words, as an element; pieces have their wanted places."""
    root = _Element(0, count)
    opened = [root]
    for cut, number in zip(cuts, after, strict=True):
        around = opened[-1]
        if cut.tag > 0:
            element = _Element(cut.words, count, cut)
            around.children.append(element)
            opened.append(element)
        elif cut.tag == 0:
            at_end = cut.words >= count
            is_inside = cut.is_closed if at_end else number == most  # before the stop
            place = max(0, 4 * (most if at_end else number) - 1 - is_inside)
            around.children.append(_Element(cut.words, cut.words, cut, low=place))
        elif around.first is not None and around.first.tag == -cut.tag:
            around.end, around.last = cut.words, cut
            opened.pop()
        else:  # it began before the sentence
            root.children = [_Element(0, cut.words, None, cut, root.children)]
    return root


def _place(element: _Element, shares: np.ndarray) -> None:
    """Give all within an element places within it, those of tags apart from each other."""
    free = np.zeros(len(shares), bool)
    free[slice(*element.words)] = True
    tags = [child for child in element.children if not child.is_piece]
    for child in sorted(tags, key=lambda child: child.first is not None and child.last is not None):
        child.low = child.high = element.low if child.first is None else element.high
        if free.any() and child.start < child.end:
            gains = np.where(free, shares[:, child.start : child.end].sum(axis=1) - 0.5, -_SURE)
            if child.first is None:
                gains[element.words[0]] += _SURE
            if child.last is None:
                gains[element.words[1] - 1] += _SURE
            first, end = child.words = _best_range(gains)
            child.low = max(element.low, 4 * first + (child.first is not None and child.first.is_closed))
            child.high = min(element.high, 4 * end - 1 - (child.last is not None and child.last.is_closed))
            free[first:end] = False
        _place(child, shares)
    for child in element.children:
        if child.is_piece:
            child.low = min(max(child.low, element.low), element.high)
            for tag in tags:
                if tag.low < child.low < tag.high:
                    child.low = tag.low if child.start <= tag.start else tag.high
            child.high = child.low
    element.children.sort(key=lambda child: (child.low, child.high))


def _best_range(gains: np.ndarray) -> tuple[int, int]:
    """Return the beginning and the end of the range with the largest sum."""
    best, result, total, start = -np.inf, (0, 0), 0.0, 0
    for place, gain in enumerate(gains.tolist()):
        if total <= 0:
            total, start = 0.0, place
        total += gain
        if total > best:
            best, result = total, (start, place + 1)
    return result


def _pieces(element: _Element) -> Iterator[tuple[int, str]]:
    """Yield all tags and pieces with their places, which grow."""
    if element.is_piece and element.first is not None:
        piece = element.first.piece
        if element.low % 4 < 2:  # before its word
            piece = f"{piece.strip()} "
        yield element.low, f"{piece.removesuffix(' ')}{_GLUE}" if element.first.is_glued else piece
        return
    if element.first is not None:
        yield element.low, element.first.piece
    for child in element.children:
        yield from _pieces(child)
    if element.last is not None:
        yield element.high, element.last.piece
