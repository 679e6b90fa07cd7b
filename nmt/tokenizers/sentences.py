"""Text of any length into sentences that a model reads, and the text between them.

White space and line breaks are kept exactly: sentences and separators in order are the text again.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import sentencex

from nmt.tokenizers.marks import CLOSINGS, MARK, PAIRED

LINE_BREAK = re.compile(r"([\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+)")
SPACE = re.compile(r"\s")
SPACES = re.compile(r"\s+")
PUNCTUATION = re.compile(
    r"[.!?;:,)\]}\xbb\u2013-\u2014\u2019\u201d\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+\s*"
)

STOPS = frozenset(".!?\u2026\u3002\uff01\uff1f\uff61\u0964\u061f\u06d4\u1362\u104b\u17d4\u0589\u203c\u2047\u2048\u2049")
"""Signs that end a sentence; a line without them within it has one."""

SEVERAL_SHARE, SAMPLE_LINES = 0.1, 1_000
"""Share of lines with several sentences from which lines are not split; lines that decide it."""

WINDOW = 4_000
"""Characters of a line that are split into sentences at a time; hardly any line has more."""

Count = Callable[[str], int]
"""Number of tokens of a sentence."""


class Segment(NamedTuple):
    """Sentence, or part of a very long one."""

    text: str
    """Sentence without white space around it; empty at the beginning of a text that begins with white space."""
    separator: str
    """Text after the sentence: white space, line breaks, or nothing."""
    tokens: int
    """Number of tokens."""

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate: a letter or a digit. Models make up words for all else."""
        return any(map(str.isalnum, self.text))


def segment(text: str, language: str, count: Count, most_tokens: int) -> list[Segment]:
    """Return the sentences of a text.

    Args:
        text: text with lines and paragraphs. A line break ends a sentence.
        language: code of its language, for abbreviations and punctuation.
        count: tokens of a sentence.
        most_tokens: most tokens of a sentence. Longer ones are cut at punctuation, else at white space, else anywhere.
    """
    found: list[Segment] = []
    for piece in (piece for line in LINE_BREAK.split(text) if line for piece in _pieces(line, language)):
        core = piece.strip()
        start = piece.find(core) if core else len(piece)
        before, after = piece[:start], piece[start + len(core) :]
        if before:
            if found:
                found[-1] = found[-1]._replace(separator=found[-1].separator + before)
            else:
                found.append(Segment("", before, 0))
        if core:
            found.extend(_shorten(core, count, most_tokens))
            found[-1] = found[-1]._replace(separator=found[-1].separator + after)
    return found


def sentences_of(line: str, language: str) -> list[tuple[str, str]]:
    """Return the sentences of a line without white space around it, each with the white space after it."""
    if STOPS.isdisjoint(line[:-1]):
        return [(line, "")]
    found: list[tuple[str, str]] = []
    for piece in _pieces(line, language):
        text = piece.rstrip()
        if found and not found[-1][1] and found[-1][0][-1:] in ".!?":  # as in www.example.com
            found[-1] = found[-1][0] + text, piece[len(text) :]
        else:
            found.append((text, piece[len(text) :]))
    return [each for each in found if each[0]]


def has_fewer_sentences(source: str, translation: str, source_language: str, target_language: str) -> bool:
    """Return whether a line of several sentences has a translation of fewer.

    A translation without any sign that ends a sentence, as of a model that writes no punctuation, counts as whole.
    """
    if STOPS.isdisjoint(translation):
        return False
    sentences = sentences_of(translation.strip(), target_language)
    return len(sentences) < len(sentences_of(source.strip(), source_language))


def are_single(lines: Iterable[str], language: str) -> bool:
    """Return whether nearly all lines of a corpus are one sentence, so that a line of several is unlike them."""
    sample = list(itertools.islice(lines, SAMPLE_LINES))
    several = sum(len(sentences_of(line.strip(), language)) > 1 for line in sample)
    return several < SEVERAL_SHARE * max(1, len(sample))


def _pieces(line: str, language: str) -> list[str]:
    """Return parts of a line with at most a sentence in each; all together they are the line."""
    # sentencex counts a white space of several bytes, such as a no-break space, as a single byte and panics.
    plain = SPACE.sub(" ", line)
    if is_marked := MARK.search(line):  # tags have no width, other pieces that of a space
        plain = MARK.sub(" ", PAIRED.sub("", plain))
    sentences = _plain_sentences(plain, language)
    if not sentences:
        return [line]
    ends = [0, *itertools.accumulate(map(len, sentences))]
    if is_marked:
        places = [place for place, character in enumerate(line) if not PAIRED.match(character)]
        within = (places[end - 1] + 1 for end in ends[1:-1] if end)
        ends = [0, *(CLOSINGS.match(line, place).end() for place in within), len(line)]  # type: ignore[union-attr]
    return [line[start:end] for start, end in itertools.pairwise(ends)]


def _plain_sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line without tags; none where they cannot be told.

    The line is read in windows: sentencex takes quadratic time for sentences without spaces between them. The last
    sentence of a window may end beyond it, so the next window begins with it.
    """
    found, start, goes_on = list[str](), 0, False
    while start < len(line):
        window = line[start : start + WINDOW]
        try:
            sentences = sentencex.segment(language, window)
        except BaseException as error:
            # A panic of Rust code is no Exception.
            if type(error).__name__ != "PanicException":
                raise
            return []
        if "".join(sentences) != window:
            return []
        is_last, is_one = start + WINDOW >= len(line), len(sentences) == 1
        if not is_last and not is_one:
            sentences.pop()
        start += sum(map(len, sentences))
        if goes_on:
            sentences[0] = found.pop() + sentences[0]
        found += sentences
        goes_on = is_one
    return found


def _shorten(sentence: str, count: Count, most_tokens: int) -> list[Segment]:
    """Return a sentence as segments of at most ``most_tokens`` tokens; a single character is not cut."""
    segments: list[Segment] = []
    waiting = [(sentence, "")]
    while waiting:
        text, separator = waiting.pop()
        tokens = count(text)
        if tokens <= most_tokens or len(text) < 2:
            segments.append(Segment(text, separator, tokens))
            continue
        place = _cut(text)
        left, right = text[:place], text[place:]
        stripped = left.rstrip()
        waiting += [(right, separator), (stripped, left[len(stripped) :])]
    return segments


def _cut(text: str) -> int:
    """Return where to cut a text without white space around it: a place from 1 to its length - 1."""
    middle, quarter = len(text) // 2, len(text) // 4  # a place in its middle half, if there is any
    for pattern in (PUNCTUATION, SPACES):
        places = [match.end() for match in pattern.finditer(text, quarter, len(text) - quarter)]
        if places:
            return max(1, min(min(places, key=lambda place: abs(place - middle)), len(text) - 1))
    return middle
