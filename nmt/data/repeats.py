"""Phrases that a sentence repeats, and whether the targets of a dataset do so as a matter of course.

A translation that says a phrase three times in a row is mostly a model that has lost its place. In some tasks it is
right: the digits 3 1 3 3, sorted, are 1 3 3 3.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from nmt.data.token_arrays import Sequences

MOST_REPEATED = 4
"""Tokens of the longest phrase that is looked for three times in a row."""
SAMPLE_TARGETS = 10_000


def repeats(tokens: Sequence[Hashable]) -> bool:
    """Return whether a phrase of up to ``MOST_REPEATED`` tokens comes three times in a row."""
    if len(tokens) - len(set(tokens)) < 2:
        return False
    for size in range(1, MOST_REPEATED + 1):
        run = 0
        for now, before in zip(tokens[size:], tokens, strict=False):
            run = run + 1 if now == before else 0
            if run == 2 * size:
                return True
    return False


def share_of_repeats(targets: Sequences) -> float:
    """Return the share of sentences that repeat a phrase, in a sample of N ``SAMPLE_TARGETS`` at even distances."""
    count = min(len(targets), SAMPLE_TARGETS)
    sample = np.linspace(0, len(targets) - 1, count).astype(int).tolist()
    return sum(repeats(targets[index].tolist()) for index in sample) / count
