"""BLEU and chrF by source length: the sentences of a test set in buckets of like length, each bucket scored apart.

A length is the number of words of a raw source sentence, split at white space, so that all systems share it. Such
scores show what attention does for long sentences (Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6).

N sentences, R references of each.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from nmt.config.record import Record
from nmt.evaluation.scoring import Scores, score_subset

METRICS_BY_LENGTH = ["bleu", "chrf"]
# A bucket ends at each percentile. The shortest and the longest tenth are apart, for there the systems differ most.
PERCENTILES = (10, 30, 50, 70, 90)
FEWEST_SENTENCES = 20  # of a bucket: corpus BLEU of fewer varies by several points


class LengthBucket(Record):
    """The sentences of like source length, and the scores on them."""

    shortest: int
    """Words of the shortest source."""
    longest: int
    """Words of the longest source."""
    scores: Scores
    """BLEU and chrF on these sentences, without intervals and tests."""

    @property
    def lengths(self) -> str:
        """Range of lengths, such as 4-8, or 3 alone."""
        return f"{self.shortest}" if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


def source_lengths(sources: Sequence[str]) -> list[int]:
    """Return the number of words of each source."""
    return [len(source.split()) for source in sources]


def length_buckets(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the shortest and the longest length of each bucket, in rising order.

    Buckets end at the lengths of ``PERCENTILES``, so there are at most six. A bucket with fewer than
    ``FEWEST_SENTENCES`` is merged with the next, the last with the one before it.

    Args:
        lengths: N lengths in any order, N > 0.
    """
    ordered = sorted(lengths)
    count = len(ordered)
    starts = [0]  # index into ``ordered`` of the first sentence of each bucket
    for percentile in PERCENTILES:
        longest = ordered[math.ceil(count * percentile / 100) - 1]
        end = bisect_right(ordered, longest)  # sentences of equal length stay together
        if end - starts[-1] >= FEWEST_SENTENCES and count - end >= FEWEST_SENTENCES:
            starts.append(end)
    return [(ordered[start], ordered[end - 1]) for start, end in pairwise([*starts, count])]


def score_by_length(
    systems: dict[str, list[str]], sources: Sequence[str], references: list[list[str]], tokenization: str
) -> list[LengthBucket]:
    """Return the buckets of a test set with the scores of systems.

    Args:
        systems: N translations of each system, by its name.
        sources: N source sentences.
        references: R lists of N sentences.
        tokenization: tokenization of BLEU, one of ``nmt.evaluation.scoring.TOKENIZATIONS``.
    """
    lengths = source_lengths(sources)
    buckets = []
    for shortest, longest in length_buckets(lengths):
        chosen = [index for index, length in enumerate(lengths) if shortest <= length <= longest]
        scores = score_subset(chosen, systems, references, METRICS_BY_LENGTH, tokenization, resamples=0)
        buckets.append(LengthBucket(shortest=shortest, longest=longest, scores=scores))
    return buckets
