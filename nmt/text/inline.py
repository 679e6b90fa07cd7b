"""Inline markup and placeholders: their places in a sentence, and their return to its translation.

Marks (``nmt.tokenizers.marks``) stand for the tags of documents. Plain text has tags such as <b> and placeholders such
as {name} and %s in their usual spelling. In the translation, a tag encloses the words that attend to its source words.

Shapes: J words of a translation, I words of the model input.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmt.tokenizers.marks import CLOSE, CLOSE_MARKS, OPEN, OPEN_MARKS, PIECE_MARKS
from nmt.tokenizers.placeholders import PLACEHOLDER
from nmt.tokenizers.scripts import Word, space_between

_BRACKETS = "()[]{}（）［］｛｝「」『』【】〈〉《》〔〕〖〗〘〙〚〛｢｣﹁﹂﹃﹄⸨⸩⟨⟩"
OPENING = f"{_BRACKETS[::2]}¿¡"
"""Punctuation that is written before a word, in all scripts."""
CLOSING = f".,;:!?…{_BRACKETS[1::2]}‼⁇⁈⁉。，、．：；！？｡､・･،؛؟۔؍।॥։՝՞՜·၊။།༎។៕៖።፣፤፥፦፧፨᠂᠃᱾᱿꯫߹߸"
"""Punctuation that is written behind a word, in all scripts."""
QUOTES = "\"'”“„‟«»’‘‚‛‹›″′〝〞〟＂＇"
MOST_NESTED = 100
"""Most tags that are open at the same time."""
# In a quoted value of an attribute < and > stand for themselves. Without the closing quote, a tag ends at the first >.
_NAME, _REST = r"[a-zA-Z][\w:.-]*+", r"""(?:\s(?:(?:[^<>"']|"[^"]*"|'[^']*')*+|[^<>]*))?"""
# Links and strong text of Markdown occur in plain text too.
_MARKUP = re.compile(
    rf"(?P<open>[{OPEN_MARKS}])|(?P<close>[{CLOSE_MARKS}])|</(?P<end>{_NAME})\s*>|<(?P<begin>{_NAME}){_REST}/?>"
    r"|(?P<link>\[)(?=[^\[\]]{1,400}\]\([^\s()]+\))|(?P<target>\]\([^\s()]++\))"
    r"|(?P<strong>(?<![\w*])\*\*(?=[^\s*]))|(?P<weak>(?<=[^\s*])\*\*(?![\w*]))"
    rf"|[{PIECE_MARKS}]|{PLACEHOLDER}"
)
_FIXED_GAIN = 1e6
"""Gain that forces a word into a tag, or out of it."""
_GLUE = "\0"
"""Sign behind a piece that the next word follows without a space."""

Span = tuple[int, int]
"""Start and end of a part of a sentence, in characters."""


class Cut(NamedTuple):
    """A piece or a tag that was cut out of a sentence."""

    piece: str
    """The piece, with the space before it. A single space is left out next to a script without spaces."""
    words: int
    """Number of words before the piece. At the end of a tag, words that are only partly inside count."""
    is_closed: bool
    """Whether only punctuation follows the piece; for a tag, whether the punctuation of its word is outside."""
    tag: int = 0
    """N for the start of tag N (from 1), -N for its end, 0 for a piece."""
    is_glued: bool = False
    """Whether a word follows the piece without a space."""


class Tag(NamedTuple):
    """The start or the end of a tag in a sentence."""

    start: int
    end: int
    number: int
    """N for the start of tag N (from 1), -N for its end."""


class _OpenTag(NamedTuple):
    """The start of a tag whose end has not come yet."""

    match: int
    """Index of its match in the sentence."""
    key: int | str
    """Number of a mark, or name of a tag."""


def find_markup(sentence: str) -> tuple[list[Tag], list[Span]]:
    """Return the nested tags of a sentence, and the spans of placeholders and of tags without a partner.

    The partner of a mark may be in another sentence. If marks are not properly nested, all tags are returned as spans.
    """
    matches = list(_MARKUP.finditer(sentence))
    open_tags: list[_OpenTag] = []
    numbers: dict[int, int] = {}
    is_nested, unmatched = True, 0
    for index, match in enumerate(matches):
        if match["begin"] and match[0].endswith("/>"):
            continue
        opened = match["begin"] or match["link"] or match["strong"]
        closed = match["end"] or (match["target"] and "[") or match["weak"]
        if match["open"] or opened:
            if len(open_tags) < MOST_NESTED:
                open_tags.append(_OpenTag(index, ord(match["open"]) - OPEN if match["open"] else opened))
            else:
                is_nested &= not match["open"]
        elif match["close"] or closed:
            key = ord(match["close"]) - CLOSE if match["close"] else closed
            partner = next((depth for depth in reversed(range(len(open_tags))) if open_tags[depth].key == key), -1)
            last_mark = max((depth for depth, tag in enumerate(open_tags) if isinstance(tag.key, int)), default=-1)
            if isinstance(key, str) and (partner < 0 or partner < last_mark):
                continue
            is_nested &= last_mark <= partner
            numbers[index] = -index - 1
            if partner >= 0:
                numbers[open_tags[partner].match] = index + 1
            unmatched += partner < 0
            del open_tags[max(partner, 0) :]
    numbers |= {tag.match: tag.match + 1 for tag in open_tags if isinstance(tag.key, int)}
    if not is_nested or unmatched > MOST_NESTED:
        numbers = {}
    tags = [Tag(*matches[index].span(), number) for index, number in sorted(numbers.items())]
    return tags, [match.span() for index, match in enumerate(matches) if index not in numbers]


# --- the translation


@dataclass
class _Element:
    """A part of a sentence and of its translation: a piece, or the text between the start and the end of a tag.

    Every word w of the translation has four slots for insertions: 4 w before the word, 4 w + 1 behind its leading
    punctuation, 4 w + 2 before its trailing punctuation, and 4 w + 3 behind the word.
    """

    start: int
    end: int
    """End of the range of source words; ``start`` is its beginning."""
    first: Cut | None = None
    """Start of the tag, or the piece; None for a tag that starts before the sentence."""
    last: Cut | None = None
    """End of the tag; None for a piece, and for a tag that ends after the sentence."""
    children: list["_Element"] = field(default_factory=list)
    """Elements inside the tag."""
    words: tuple[int, int] = (0, 0)
    """Range of words of the translation."""
    low: int = 0
    high: int = 0
    """Slot of the end; ``low`` is the slot of the start."""

    @property
    def is_piece(self) -> bool:
        return self.first is not None and self.first.tag == 0


def weave(words: Sequence[Word], cuts: Sequence[Cut], weights: np.ndarray, after: Sequence[int]) -> str:
    """Return a translation with all pieces, and with tags around the words that attend to the source words of a tag.

    Args:
        words: J words of the translation.
        cuts: pieces and tags, in order.
        weights: attention of translation words to source words: float [J, I].
        after: number of words of the translation before each cut; for tags it is not used.
    """
    word_count = len(words)
    root = _tree(cuts, after, weights.shape[1], word_count)
    root.words, root.high = (0, word_count), max(0, 4 * word_count - 1)
    _assign_slots(root, shares_of(weights))
    words = words or [Word("", "")]
    insertions = [list[str]() for _ in range(4 * len(words))]
    for slot, piece in _pieces(root, words):
        insertions[slot].append(piece)
    text = ""
    for number, word in enumerate(words):
        slots = insertions[4 * number : 4 * number + 4]
        parts = [*edges_of(word.text), ""]
        text += "".join("".join([*pieces, part]) for pieces, part in zip(slots, parts, strict=True)) + word.space
    return text.replace(f"{_GLUE} ", "").replace(_GLUE, "").strip()


def shares_of(weights: np.ndarray) -> np.ndarray:
    """Return the shares of the source words in each translation word, from its attention to them: float [J, I]."""
    # A word such as "the" attends to its noun too, but other words attend to the noun more.
    shares = (weights * weights / np.maximum(weights.sum(axis=0), 1e-9)) ** 2
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)


def edges_of(word: str) -> tuple[str, str, str]:
    """Return the punctuation before a word, the word, and the punctuation after it."""
    without_leading = word.lstrip(OPENING + QUOTES)
    core = without_leading.rstrip(CLOSING + QUOTES)
    return word[: len(word) - len(without_leading)], core, without_leading[len(core) :]


def _tree(cuts: Sequence[Cut], after: Sequence[int], source_words: int, target_words: int) -> _Element:
    """Return a sentence of I words, translated into J words, as an element. Pieces have their preferred slots."""
    root = _Element(0, source_words)
    path = [root]
    for cut, words_before in zip(cuts, after, strict=True):
        parent = path[-1]
        if cut.tag > 0:
            element = _Element(cut.words, source_words, cut)
            parent.children.append(element)
            path.append(element)
        elif cut.tag == 0:
            is_last = cut.words >= source_words
            is_before_stop = cut.is_closed if is_last else words_before == target_words
            word_end = target_words if is_last else words_before
            slot = max(0, 4 * word_end - 1 - is_before_stop)
            parent.children.append(_Element(cut.words, cut.words, cut, low=slot))
        elif parent.first is not None and parent.first.tag == -cut.tag:
            parent.end, parent.last = cut.words, cut
            path.pop()
        else:  # the tag starts before the sentence
            root.children = [_Element(0, cut.words, None, cut, root.children)]
    return root


def _assign_slots(element: _Element, shares: np.ndarray) -> None:
    """Set the slots of everything inside an element. They lie within its own slots, and tags do not overlap."""
    is_free = np.zeros(len(shares), bool)
    is_free[slice(*element.words)] = True
    tags = [child for child in element.children if not child.is_piece]
    for child in sorted(tags, key=lambda child: child.first is not None and child.last is not None):
        child.low = child.high = element.low if child.first is None else element.high
        if is_free.any() and child.start < child.end:
            gains = np.where(is_free, shares[:, child.start : child.end].sum(axis=1) - 0.5, -_FIXED_GAIN)
            if child.first is None:
                gains[element.words[0]] += _FIXED_GAIN
            if child.last is None:
                gains[element.words[1] - 1] += _FIXED_GAIN
            first, end = child.words = best_range(gains)
            child.low = max(element.low, 4 * first + (child.first is not None and child.first.is_closed))
            child.high = min(element.high, 4 * end - 1 - (child.last is not None and child.last.is_closed))
            is_free[first:end] = False
        _assign_slots(child, shares)
    for child in element.children:
        if child.is_piece:
            child.low = min(max(child.low, element.low), element.high)
            for tag in tags:
                if tag.low < child.low < tag.high:
                    child.low = tag.low if child.start <= tag.start else tag.high
            child.high = child.low
    element.children.sort(key=lambda child: (child.low, child.high))


def best_range(gains: np.ndarray) -> tuple[int, int]:
    """Return the start and the end of the range with the largest sum."""
    best, best_range, total, start = -np.inf, (0, 0), 0.0, 0
    for index, gain in enumerate(gains.tolist()):
        if total <= 0:
            total, start = 0.0, index
        total += gain
        if total > best:
            best, best_range = total, (start, index + 1)
    return best_range


def _pieces(element: _Element, words: Sequence[Word]) -> Iterator[tuple[int, str]]:
    """Yield the slots and the texts of all tags and pieces, in order of their slots."""
    if element.is_piece and element.first is not None:
        number, place = divmod(element.low, 4)
        yield element.low, _spaced(element.first, words[number].text, is_before=place < 2)
        return
    if element.first is not None:
        yield element.low, element.first.piece
    for child in element.children:
        yield from _pieces(child, words)
    if element.last is not None:
        yield element.high, element.last.piece


def _spaced(cut: Cut, word: str, *, is_before: bool) -> str:
    """Return a piece with the space between it and its word of the translation, before or behind which it stands."""
    core = cut.piece.strip()
    if is_before:
        piece = core + ("" if cut.is_glued else space_between(core, word))
    elif cut.piece == f" {core}":
        piece = space_between(word, core) + core
    else:
        piece = cut.piece
    return f"{piece}{_GLUE}" if cut.is_glued else piece
