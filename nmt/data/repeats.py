"""Phrases that a sentence repeats, and whether the targets of a dataset do so as a matter of course.

A translation that says a phrase three times in a row is mostly a model that has lost its place. In some tasks it is
right: the digits 3 1 3 3, sorted, are 1 3 3 3.
"""

import unicodedata
from collections.abc import Hashable, Sequence, Set

import numpy as np

from nmt.data.token_arrays import Sequences
from nmt.tokenizers.base import UNK, Tokenizer

MOST_REPEATED = 4
"""Tokens of the longest phrase that is looked for three times in a row."""
SAMPLE_TARGETS = 10_000


def repeats(tokens: Sequence[Hashable], empty: Set[Hashable] = frozenset()) -> bool:
    """Return whether a phrase of up to ``MOST_REPEATED`` tokens comes three times in a row.

    Args:
        tokens: the tokens of a sentence.
        empty: tokens that are not a phrase by themselves.
    """
    if len(tokens) - len(set(tokens)) < 2:
        return False
    for size in range(1, MOST_REPEATED + 1):
        run = 0
        for end in range(size + 1, len(tokens) + 1):
            run = run + 1 if tokens[end - 1] == tokens[end - 1 - size] else 0
            if run >= 2 * size and not empty >= {*tokens[end - size : end]}:
                return True
    return False


def empty_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids that make no phrase by themselves: unknown text, and pieces without a letter or a digit but zero.

    Dots, lines, spaces, and the zeros of 1,000 come in rows in any text; so do unknown words where many are unknown.
    """
    pieces = enumerate(tokenizer.pieces(range(tokenizer.size)))
    return frozenset({UNK, *(id_ for id_, piece in pieces if not any(map(_says_something, piece)))})


def _says_something(character: str) -> bool:
    return character.isalnum() and unicodedata.decimal(character, None) != 0


def share_of_repeats(targets: Sequences, tokenizer: Tokenizer) -> float:
    """Return the share of sentences that repeat a phrase, in a sample of N ``SAMPLE_TARGETS`` at even distances."""
    count = min(len(targets), SAMPLE_TARGETS)
    sample = np.linspace(0, len(targets) - 1, count).astype(int).tolist()
    empty = empty_ids(tokenizer)
    return sum(repeats(targets[index].tolist(), empty) for index in sample) / count
