"""Length of the sides of a pair relative to their corpus.

English needs three times as many characters as Chinese. So the ratio of a pair is compared with the median ratio of its
corpus. It counts characters, so that the same pairs are dropped with every tokenizer.
"""

import statistics
from collections.abc import Iterable

from nmt.config.decoding import LENGTH_RATIO
from nmt.data.manifest import SIDES, Manifest
from nmt.data.sources.formats import Pair

SLACK = 10
"""Characters that are added to both sides, as the ratios of short pairs vary more."""
SAMPLE_PAIRS = 10_000
"""Most pairs from which the median of a corpus is estimated."""


def median_ratio(pairs: Iterable[Pair]) -> float | None:
    """Return the median of target characters per source character; None without a pair that has text on both sides."""
    ratios = [len(target) / len(source) for source, target in pairs if source and target]
    return statistics.median(ratios) if ratios else None


def corpus_median(manifest: Manifest) -> float | None:
    """Return the median of a training corpus, or for a manifest of an older format the mean; None if unknown."""
    characters = manifest.splits["train"].characters
    if manifest.report.median_length_ratio is None and all(characters.get(side) for side in SIDES):
        return characters["target"] / characters["source"]
    return manifest.report.median_length_ratio


def relative_ratio(pair: Pair, median: float) -> float:
    """Return how many times longer one side of a pair is than the other side lets expect, 1 or more.

    Both sides are compared in characters of the language that needs more of them. So exchanged sides have the same
    ratio.
    """
    source = len(pair.source) * max(1.0, median)
    target = len(pair.target) / min(1.0, median)
    shorter, longer = sorted((source + SLACK, target + SLACK))
    return longer / shorter


def search_ratio(manifest: Manifest) -> float:
    """Return ``decoding.max_length_ratio`` for "auto": twice the ratio of tokens in training, and at least 2.

    A model from Chinese to English characters writes three to four times as many tokens as it reads.
    """
    train = manifest.splits["train"]
    source, target = (train.tokens[side] + train.pairs for side in SIDES)  # with eos
    return round(LENGTH_RATIO * max(1.0, target / max(1, source)), 1)
