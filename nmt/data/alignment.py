"""Alignment of lines: blocks of a corpus whose lines are off by one (filter ``shifted``)."""

import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from nmt.data.sources.formats import Pair

SAMPLE_PAIRS = 20_000  # first pairs, which tell the ratio of lengths and the frequency of words
PREFIX = 4  # characters of a word that are compared
MOST_DEVIATIONS = 3.0  # a ratio of lengths that deviates more is as bad as this
MOST_SHARED = 3.0  # nats that shared words are evidence of, at most
WEIGHT = 0.5  # share of the information in shared words that is evidence
BEFORE, AFTER = 1, 2  # states of a line whose source stands one line before or after; 0: in the same line
_CJK = "\u2e80-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; each Chinese or Japanese character is a word."""
    return _WORD.findall(text.lower())


_Side = tuple[float, frozenset[str]]  # logarithm of the length, beginnings of the words


def _sides(pair: Pair | None) -> list[_Side]:
    return [(math.log(len(side) + 3), frozenset(word[:PREFIX] for word in words(side))) for side in pair or ("", "")]


def find_shifted(pairs: Iterable[Pair | None], threshold: float) -> bytearray:
    """Return which of N consecutive lines belong to a block whose lines are off by one: N bytes, 0 for no.

    A hidden Markov model: the translation of a target is the source of its line, of the line before, or of that after.
    Evidence is the ratio of lengths, beside that of the corpus, and words that begin alike: names, numbers, cognates.
    The line beside a block that has no translation then counts too.

    ``pairs``: the lines, None where one cannot be read. ``threshold``: evidence in nats at each end of a block.
    """
    lines = map(_sides, pairs)
    sample = list(itertools.islice(lines, SAMPLE_PAIRS))
    if not sample:
        return bytearray()
    ratios = np.array([target[0] - source[0] for source, target in sample])
    middle = float(np.median(ratios))
    deviation = 1.4826 * float(np.median(abs(ratios - middle))) + 0.01
    counts = Counter(word for line in sample for _, begun in line for word in begun)

    def fit(source: _Side, target: _Side) -> float:
        deviations = min(abs(target[0] - source[0] - middle) / deviation, MOST_DEVIATIONS)
        shared = sum(math.log(2 * len(sample) / max(counts[word], 1)) for word in source[1] & target[1])
        return min(WEIGHT * shared, MOST_SHARED) - deviations**2 / 2

    def evidence() -> Iterator[list[float]]:
        before, line = sample[0], sample[0]
        for after in itertools.chain(sample[1:], lines, sample[-1:]):
            yield [fit(other[0], line[1]) for other in (line, before, after)]
            before, line = line, after

    before, states, after = np.lib.stride_tricks.sliding_window_view(np.pad(_likeliest(evidence(), threshold), 1), 3).T
    return bytearray((states > 0) | (before == AFTER) | (after == BEFORE))


def _likeliest(evidence: Iterable[list[float]], change: float) -> np.ndarray:
    """Return the likeliest state of each line, uint8 [N], where a change of state costs ``change`` (Viterbi)."""
    scores = [0.0, -change, -change]
    before = array("B")  # best state before, of each line and state
    for row in evidence:
        best = max(scores)
        before.extend(state if score >= best - change else scores.index(best) for state, score in enumerate(scores))
        scores = [max(score, best - change) - best + each for score, each in zip(scores, row, strict=True)]
    states = np.empty(len(before) // len(scores), np.uint8)
    state = int(np.argmax(scores))
    for line in range(len(states) - 1, -1, -1):
        states[line] = state
        state = before[len(scores) * line + state]
    return states
