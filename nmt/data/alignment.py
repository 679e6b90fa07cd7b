"""Detection of misaligned lines: blocks of a corpus whose targets are off by one line (filter ``shifted``)."""

import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nmt.data.sources.formats import Pair
from nmt.tokenizers.scripts import HAN, KANA, MARKS, UNSPACED, split_words

SAMPLE_PAIRS = 20_000  # first pairs, from which the length ratio and the word frequencies are estimated
PREFIX = 4  # characters of a word that are compared
MOST_DEVIATIONS = 3.0  # a length ratio that deviates more counts as this many deviations
MOST_SHARED = 3.0  # largest evidence from shared words, in nats
WEIGHT = 0.5  # share of the information in shared words that counts as evidence
BEFORE, AFTER = 1, 2  # states of a line whose source is one line before or after; 0: in the same line
WITHOUT_SPACES = re.compile(f"[{HAN}{KANA}{UNSPACED}]")
"""A letter of a script without spaces between words."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_PLAIN_WORD = re.compile(r"\w+")
_WORD = re.compile(rf"\w[\w{MARKS}]*")
_CHINESE_OR_WORD = re.compile(rf"[{HAN}{KANA}]|[^\W{HAN}{KANA}]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    In scripts without spaces, a word is a character with its combining marks. The fastest pattern that knows all
    characters of the text finds the words, since this takes most of the time of the filters.
    """
    text = text.lower()
    if text.isascii() or max(text) < "\u0300":  # the first mark
        return _PLAIN_WORD.findall(text)
    if not WITHOUT_SPACES.search(text):
        return _WORD.findall(text)
    if not _UNSPACED.search(text):
        return _CHINESE_OR_WORD.findall(text)
    return [part for word in split_words(text) for part in _WORD.findall(word.text)]


class _Side(NamedTuple):
    """Features of one side of a line."""

    log_length: float
    """Logarithm of the number of characters."""
    prefixes: frozenset[str]
    """Beginnings of the words."""


class _Line(NamedTuple):
    """Features of a line of a corpus."""

    source: _Side
    target: _Side


def _side_features(text: str) -> _Side:
    return _Side(math.log(len(text) + 3), frozenset(word[:PREFIX] for word in words(text)))


def _line_features(pair: Pair | None) -> _Line:
    source, target = pair or ("", "")
    return _Line(_side_features(source), _side_features(target))


def find_shifted(pairs: Iterable[Pair | None], threshold: float) -> bytearray:
    """Return which of N consecutive lines belong to a block whose targets are off by one line: N bytes, 0 for no.

    A hidden Markov model has three states: the source of a target is in its own line, the line before, or the line
    after. The evidence for a state is the length ratio, relative to the whole corpus, and words that begin alike:
    names, numbers and cognates. The line next to a block that is left without a translation is reported too.

    Args:
        pairs: the lines; None stands for a line that cannot be read.
        threshold: evidence in nats that is needed at each end of a block.
    """
    lines = map(_line_features, pairs)
    sample = list(itertools.islice(lines, SAMPLE_PAIRS))
    if not sample:
        return bytearray()
    ratios = np.array([line.target.log_length - line.source.log_length for line in sample])
    middle = float(np.median(ratios))
    deviation = 1.4826 * float(np.median(abs(ratios - middle))) + 0.01
    counts = Counter(prefix for line in sample for side in line for prefix in side.prefixes)

    def fit(source: _Side, target: _Side) -> float:
        ratio = target.log_length - source.log_length
        deviations = min(abs(ratio - middle) / deviation, MOST_DEVIATIONS)
        common = source.prefixes & target.prefixes
        shared = sum(math.log(2 * len(sample) / max(counts[prefix], 1)) for prefix in common)
        return min(WEIGHT * shared, MOST_SHARED) - deviations**2 / 2

    def evidence() -> Iterator[list[float]]:
        before, line = sample[0], sample[0]
        for after in itertools.chain(sample[1:], lines, sample[-1:]):
            yield [fit(candidate.source, line.target) for candidate in (line, before, after)]
            before, line = line, after

    padded = np.pad(_likeliest_states(evidence(), threshold), 1)
    before, states, after = padded[:-2], padded[1:-1], padded[2:]
    return bytearray((states > 0) | (before == AFTER) | (after == BEFORE))


def _likeliest_states(evidence: Iterable[list[float]], change: float) -> np.ndarray:
    """Return the most likely state of each line, uint8 [N] (Viterbi). A change of state costs ``change`` nats."""
    scores = [0.0, -change, -change]
    previous_states = array("B")  # best previous state for each line and state, flat
    for row in evidence:
        best = max(scores)
        best_state = scores.index(best)
        previous_states.extend(state if score >= best - change else best_state for state, score in enumerate(scores))
        scores = [max(score, best - change) - best + gain for score, gain in zip(scores, row, strict=True)]
    states = np.empty(len(previous_states) // len(scores), np.uint8)
    state = int(np.argmax(scores))
    for line in range(len(states) - 1, -1, -1):
        states[line] = state
        state = previous_states[len(scores) * line + state]
    return states
