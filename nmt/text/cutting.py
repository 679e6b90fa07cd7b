"""Pieces and tags are cut out of a sentence, and each keeps its place among the words that remain."""

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from nmt.text.inline import CLOSING, OPENING, QUOTES, Cut, Span, Tag
from nmt.tokenizers.scripts import space_between, split_words

BRACKETS = frozenset([
    '""', "“”", "„“", "«»", "»«", "‘’", "‚‘", "()", "[]", "（）", "［］", "「」", "『』", "【】", "〈〉", "《》", "〔〕"
])  # fmt: skip
"""Pairs of opening and closing quotes and brackets."""


def normalize_spans(sentence: str, spans: Sequence[Span], tags: list[Tag]) -> tuple[list[Span], list[Tag]]:
    """Return spans in order without overlaps, and the tags outside of them.

    A pair of tags around no word becomes a span, and so does the number of a footnote with its tags.
    """
    text = blank(sentence, [*spans, *tags])
    all_spans = list(spans)
    starts = {tag.number: tag.start for tag in tags}
    for _, end, number in tags:
        if number < 0 and -number in starts:
            start = starts[-number]
            is_note = text[max(0, start - 1)].isalnum() and bool(space_between(text[start - 1], "a"))
            is_word = str.isalpha if start and is_note else str.isalnum
            if not any(map(is_word, text[start:end])):
                all_spans.append((start, end))
    merged = _merge(sentence, all_spans)
    remaining = blank(sentence, merged)
    return merged, [tag for tag in tags if remaining[tag.start] != " "]


def blank(sentence: str, parts: Sequence[tuple[int, ...]]) -> str:
    """Return a sentence with spaces in place of parts, which begin with their start and end."""
    characters = list(sentence)
    for start, end, *_ in parts:
        characters[start:end] = " " * (end - start)
    return "".join(characters)


class _Remainder:
    """Text that remains of a sentence."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.size = 0
        """Number of characters that are not white space."""
        self.last_sign = ""
        """Last character that is not white space; empty if there is none."""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, text: str) -> None:
        """Add text without changes."""
        signs = "".join(text.split())
        self.size += len(signs)
        self.last_sign = signs[-1:] or self.last_sign
        if text:
            self._parts.append(text)

    def join(self, text: str) -> None:
        """Add text that follows a cut: punctuation directly, and words after the space that their script has."""
        self._strip()
        text = text.lstrip()
        is_word = bool(text and self._parts) and text[0] not in CLOSING
        self.add(space_between(self.last_sign, text) + text if is_word else text)

    def drop_last_sign(self) -> None:
        """Remove the last character that is not white space."""
        self._strip()
        text = self.text[:-1]
        self.__init__()  # type: ignore[misc]
        self.add(text)

    def _strip(self) -> None:
        while self._parts:
            self._parts[-1] = self._parts[-1].rstrip()
            if self._parts[-1]:
                break
            self._parts.pop()


class _Place(NamedTuple):
    """A piece or a tag that was cut out, and its place in the remaining text."""

    cut: Cut
    """The piece or tag. Its number of words is not known yet."""
    size: int
    """Number of characters of the remaining text before it, without white space."""
    next_sign: str = ""
    """First character behind the start of a tag."""


class Cutter:
    """Cuts pieces and tags out of a sentence, from left to right."""

    def __init__(self, sentence: str, tags: list[Tag]) -> None:
        """Start at the beginning of a sentence with tags."""
        self.plain = blank(sentence, tags)
        """The sentence with spaces in place of its tags."""
        self._places = list[_Place]()
        self._sentence, self._rest = sentence, _Remainder()
        self._content_end = len(self.plain.rstrip(CLOSING + " "))
        self._position = 0
        """End of the part of the sentence that has been processed."""
        self._follows_cut = False
        """Whether the next text follows a cut, with nothing but tags between them."""

    def cut(self, start: int, end: int) -> None:
        """Cut a span out with the brackets around it. At the beginning, the punctuation after it is cut out too."""
        sentence, rest = self._sentence, self._rest
        if sentence[start - 1 : start] + sentence[end : end + 1] in BRACKETS:
            start, end = start - 1, end + 1
        self._add_until(start)
        self._follows_cut = True
        while rest.is_empty and self.plain[end : end + 1] and self.plain[end] in CLOSING:
            end += 1
        before, after = sentence[start - 1 : start], self.plain[end : end + 1]
        space = sentence[_end_of_word(sentence, start) : start]
        is_closed = end >= self._content_end
        if rest.last_sign == "," and is_closed:  # as in "Hello, {name}!"
            rest.drop_last_sign()
            space = f",{space}"
            self._places = [place._replace(size=min(place.size, rest.size)) for place in self._places]
        is_glued = after.isalnum() and not space
        if not space_between(before, after):  # the translation may have spaces there
            space, is_glued = space or " ", False
        self._add(Cut(space + sentence[start:end], 0, is_closed, is_glued=is_glued))
        self._position = end

    def replace(self, start: int, end: int, word: str) -> None:
        """Put a word in the place of a span."""
        self._add_until(start)
        self._rest.add(word)
        self._position, self._follows_cut = end, False

    def open_tag(self, start: int, end: int, number: int) -> None:
        """Cut out the start of a tag."""
        self._follows_cut = not self._add_until(start) and self._follows_cut
        self._add(Cut(self._sentence[start:end], 0, False, number), self.plain[end:].lstrip()[:1])
        self._position = end

    def close_tag(self, start: int, end: int, number: int) -> None:
        """Cut out the end of a tag."""
        self._follows_cut = not self._add_until(start) and self._follows_cut
        is_closed = self._rest.last_sign not in CLOSING + QUOTES
        self._add(Cut(self._sentence[start:end], 0, is_closed, number))
        self._position = end

    def finish(self) -> str:
        """Return the remaining text of the sentence."""
        self._add_until(len(self._sentence))
        return self._rest.text

    @property
    def cuts(self) -> list[Cut]:
        """Pieces and tags that were cut out, with the numbers of words of the remaining text before them."""
        texts = [word.text for word in split_words(self._rest.text)]
        ends = [0, *itertools.accumulate(map(len, texts))]
        cuts = list[Cut]()
        for placed, size, next_sign in self._places:
            cut = placed
            words = bisect.bisect_left(ends, size)  # words that begin before the cut
            if cut.tag > 0:
                is_within_word = size < ends[words]
                words -= is_within_word
                ends_in_letters = is_within_word and any(map(str.isalnum, texts[words][: size - ends[words]]))
                cut = cut._replace(is_closed=not ends_in_letters and next_sign not in OPENING + QUOTES)
                if cuts:  # if a piece was cut out of the same word, the tag begins behind the piece
                    words = max(words, cuts[-1].words)
            cuts.append(cut._replace(words=words))
        return cuts

    def _add(self, cut: Cut, next_sign: str = "") -> None:
        """Add a piece or a tag at the end of the remaining text."""
        self._places.append(_Place(cut, self._rest.size, next_sign))

    def _add_until(self, end: int) -> str:
        """Add the sentence up to a position to the remaining text, and return the added part."""
        text = self._sentence[self._position : end]
        if self._follows_cut:
            self._rest.join(text)
        else:
            self._rest.add(text)
        return text


def _end_of_word(sentence: str, position: int) -> int:
    """Return the end of the word before a position."""
    while position and sentence[position - 1].isspace():
        position -= 1
    return position


def _merge(sentence: str, spans: list[Span]) -> list[Span]:
    """Return spans in order; spans with only white space between them become one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and not sentence[merged[-1][1] : start].strip():
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
