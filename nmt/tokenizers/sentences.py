"""Splitting of a text into the sentences that a model reads, and the text between them.

Sentences and separators together are exactly the text, with all its white space and line breaks.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import sentencex

from nmt.tokenizers.icu import has_choices
from nmt.tokenizers.letter_case import has_case
from nmt.tokenizers.marks import CLOSINGS, MARK, PAIRED
from nmt.tokenizers.scripts import HAN, KANA

LINE_BREAK = re.compile(r"([\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+)")
SPACE = re.compile(r"\s")
SPACES = re.compile(r"\s+")
CLOSING = (
    ")]}\xbb\u2019\u201d\u203a\u3009\u300b\u300d\u300f\u3011\u3015\u3017\u3019\u301b\u301e\u301f\ufe42\ufe44\uff09\uff3d"
    "\uff5d\uff63"
)
"""Brackets and quotes that end something, in all scripts."""
STOPS = frozenset(
    ".!?\u2026\u203c\u2047\u2048\u2049"  # Latin, Greek and Cyrillic
    "\u3002\uff01\uff0e\uff1f\uff61"  # Chinese and Japanese
    "\u061f\u06d4"  # Arabic
    "\u0964\u0965\u1c7e\u1c7f\uabeb"  # scripts of India
    "\u0589\u1362\u1367\u1368\u1803"  # Armenian, Ethiopic, Mongolian
    "\u0f0e\u104b\u17d4\u17d5"  # Tibetan, Burmese, Khmer
)
"""Characters that end a sentence. A line with none of them before its last character is a single sentence."""
_PAUSES = ";:,\u2013\u2014\u060c\u061b\u055d\u0f0d\u104a\u1363\u1364\u1365\u1366\u1802\u3001\uff0c\uff1a\uff1b\uff64"
PUNCTUATION = re.compile(rf"[{re.escape(''.join(sorted(STOPS)) + CLOSING + _PAUSES)}]+\s*")
_STOP = re.compile(rf"[\u0f0e\u17d4\u17d5]+[{re.escape(CLOSING)}]*\s*")
"""The end of a Tibetan or Khmer sentence, which sentencex does not know."""
_WITHOUT_SPACES = re.compile(f"[{HAN}{KANA}]")

MOST_WORD_CHARACTERS = 100
"""Most characters of a word of a language."""
_PLAIN = r"[^\s!-@\[-`{-~]"
_LAST_WORD = re.compile(rf"(?<!\S)[\"'(]?({_PLAIN}{{2,}}+)[.!?]+\Z")
_NEXT_WORD = re.compile(rf"{_PLAIN}++(?=[,;:.!?]?(?:\s|\Z))")

SEVERAL_SHARE = 0.1
"""Share of lines with several sentences from which on the lines of a corpus do not count as single sentences."""
SAMPLE_LINES = 1_000
"""Number of lines of a corpus from which this share is estimated."""

WINDOW = 4_000
"""Number of characters of a line that are split into sentences at a time. Hardly any line has more."""

Count = Callable[[str], int]
"""Function that returns the number of tokens of a sentence."""


class Segment(NamedTuple):
    """A sentence, or a part of a very long sentence."""

    text: str
    """Sentence without white space around it; empty for the white space that a text begins with."""
    separator: str
    """Text after the sentence: white space, line breaks, or nothing."""
    tokens: int
    """Number of tokens."""

    @property
    def has_words(self) -> bool:
        """Whether the text has a letter or a digit. For any other text models make up words."""
        return any(map(str.isalnum, self.text))


def segment(text: str, language: str, count: Count, most_tokens: int) -> list[Segment]:
    """Return the sentences of a text.

    Args:
        text: text with lines and paragraphs. A line break ends a sentence.
        language: code of the language, for abbreviations and punctuation.
        count: function that returns the number of tokens of a sentence.
        most_tokens: most tokens of a sentence. A longer sentence is cut at punctuation, else at white space, else
            anywhere.
    """
    segments: list[Segment] = []
    for line in split_lines(text):
        for piece in _pieces(line, language) if line else []:
            core = piece.strip()
            start = piece.find(core) if core else len(piece)
            before, after = piece[:start], piece[start + len(core) :]
            if before:
                if not segments:
                    segments.append(Segment("", "", 0))
                _append_space(segments, before)
            if core:
                is_whole = has_choices(core)
                segments.extend([Segment(core, "", count(core))] if is_whole else _shorten(core, count, most_tokens))
                _append_space(segments, after)
    return segments


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, and the line breaks between them.

    A message of ICU stays whole, since there may be line breaks between its branches.
    """
    parts = LINE_BREAK.split(text)
    if not has_choices(text):
        return parts
    lines, depth = list[str](), 0
    for part in parts:
        if depth > 0:
            lines[-1] += part
        else:
            lines.append(part)
        depth += part.count("{") - part.count("}")
    return lines


def _append_space(segments: list[Segment], space: str) -> None:
    """Append white space to the separator of the last segment."""
    segments[-1] = segments[-1]._replace(separator=segments[-1].separator + space)


def sentences_of(line: str, language: str) -> list[tuple[str, str]]:
    """Return the sentences of a line without white space around it, each with the white space after it."""
    if STOPS.isdisjoint(line[:-1]):
        return [(line, "")]
    sentences = list[tuple[str, str]]()
    for piece in _pieces(line, language):
        text = piece.rstrip()
        sentences.append((text, piece[len(text) :]))
    return [(text, space) for text, space in sentences if text]


def has_fewer_sentences(source: str, translation: str, source_language: str, target_language: str) -> bool:
    """Return whether a line of several sentences has a translation of fewer.

    A translation without any character that ends a sentence counts as complete: some models write no punctuation.
    """
    if STOPS.isdisjoint(translation):
        return False
    sentences = sentences_of(translation.strip(), target_language)
    return len(sentences) < len(sentences_of(source.strip(), source_language))


def are_single(lines: Iterable[str], language: str) -> bool:
    """Return whether nearly all lines of a corpus are single sentences."""
    sample = list(itertools.islice(lines, SAMPLE_LINES))
    several = sum(len(sentences_of(line.strip(), language)) > 1 for line in sample)
    return several < SEVERAL_SHARE * max(1, len(sample))


def _pieces(line: str, language: str) -> list[str]:
    """Return the parts of a line, with at most one sentence in each part. Joined they are the line."""
    if has_choices(line):
        return [line]
    # sentencex counts a white space of several bytes, such as a no-break space, as a single byte and panics.
    plain, language = SPACE.sub(" ", line), language.replace("_", "-").partition("-")[0].lower()
    if is_marked := MARK.search(line):  # tags have no width, and other pieces have the width of a space
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
    """Return the sentences of a line without tags; none if sentencex fails on the line.

    The line is split window by window, since sentencex takes quadratic time for sentences without spaces between them.
    The last sentence of a window may end beyond the window, so the next window begins with this sentence.
    """
    line_sentences, start, is_unfinished = list[str](), 0, False
    while start < len(line):
        window = line[start : start + WINDOW]
        try:
            sentences = sentencex.segment(language.partition("-")[0], window)  # of a variety it knows nothing
        except BaseException as error:
            # A panic of Rust code is no subclass of Exception.
            if type(error).__name__ != "PanicException":
                raise
            return []
        if "".join(sentences) != window:
            return []
        is_last, is_single = start + WINDOW >= len(line), len(sentences) == 1
        if not is_last and not is_single:
            sentences.pop()
        start += sum(map(len, sentences))
        if is_unfinished:
            sentences[0] = line_sentences.pop() + sentences[0]
        line_sentences += sentences
        is_unfinished = is_single
    return _corrected(line_sentences, language)


def _corrected(sentences: list[str], language: str) -> list[str]:
    """Return the sentences of sentencex with its mistakes mended.

    Closing quotes and brackets belong to the sentence before them, words such as www.example.com and numbers with a
    wide full stop are not split, and Tibetan and Khmer have stops of their own.
    """
    corrected = list[str]()
    for sentence in sentences:
        start = 0
        if corrected and not corrected[-1][-1:].isspace():
            is_split_word = _is_split_word(corrected[-1], sentence, language)
            start = len(sentence) if is_split_word else _closings_end(sentence)
            corrected[-1] += sentence[:start]
        ends = [match.end() for match in _STOP.finditer(sentence, start)]
        places = [start, *(end for end in ends if end < len(sentence)), len(sentence)]
        corrected += [sentence[first:last] for first, last in itertools.pairwise(places) if first < last]
    return corrected


def _is_split_word(before: str, after: str, language: str) -> bool:
    """Return whether two parts of a line without white space between them are no sentences, but share a word."""
    last = before[-1:]
    if last == "\uff0e":
        return after[:1].isdigit()
    ends_word = last == "." or (last in "!?" and not _WITHOUT_SPACES.match(after))
    return ends_word and not _lacks_space(before, after, language)


def _lacks_space(before: str, after: str, language: str) -> bool:
    """Return whether the space between two sentences is missing, as in "a book.A dog", and not in "www.Example.com".

    The words at the stop have letters alone. In scripts with case, the first word has no capital, except in German,
    whose nouns have one.
    """
    words = _LAST_WORD.search(before[-MOST_WORD_CHARACTERS:]), _NEXT_WORD.match(after)
    if words[0] is None or words[1] is None:
        return False
    word, next_word = words[0][1], words[1][0]
    if not has_case(word + next_word):
        return len(next_word) > 1
    is_word = word.islower() or (language == "de" and word[1:].islower())
    return is_word and next_word[:1].isupper() and next_word[1:] == next_word[1:].lower()


def _closings_end(sentence: str) -> int:
    """Return the end of the closing quotes and brackets at the beginning of a sentence, with the space behind them."""
    size = len(sentence) - len(sentence.lstrip(CLOSING))
    rest = sentence[size:]
    return size + (len(rest) - len(rest.lstrip()) if size else 0)


def _shorten(sentence: str, count: Count, most_tokens: int) -> list[Segment]:
    """Return a sentence as segments of at most ``most_tokens`` tokens. A single character is never cut."""
    segments: list[Segment] = []
    waiting = [(sentence, "")]
    while waiting:
        text, separator = waiting.pop()
        tokens = count(text)
        if tokens <= most_tokens or len(text) < 2:
            segments.append(Segment(text, separator, tokens))
            continue
        place = _cut(text)
        left, right = text[:place].rstrip(), text[place:].lstrip()
        waiting += [(right, separator), (left, text[len(left) : len(text) - len(right)])]
    return segments


def _cut(text: str) -> int:
    """Return the place at which a text without white space around it is cut, from 1 to its length - 1."""
    middle, quarter = len(text) // 2, len(text) // 4
    for pattern in (PUNCTUATION, SPACES):
        places = [match.end() for match in pattern.finditer(text, quarter, len(text) - quarter)]  # in the middle half
        if places:
            nearest = min(places, key=lambda place: abs(place - middle))
            return max(1, min(nearest, len(text) - 1))
    return middle
