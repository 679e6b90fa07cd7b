"""Token arrays, and random ones: realistic lengths, ids within the vocabulary, equal for equal seeds."""

import numpy as np
import pytest

from nmt.data.token_arrays import Sequences, generate_split
from nmt.tokenizers.base import FIRST_WORD


@pytest.mark.parametrize(
    ("vocabulary", "kind"),
    [(4, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")],
)
def test_ids_are_stored_in_the_smallest_integers_that_hold_them(vocabulary: int, kind: str) -> None:
    sequences = Sequences.from_rows([[0, vocabulary - 1]], vocabulary)
    assert sequences.tokens.dtype == kind
    assert sequences[0].tolist() == [0, vocabulary - 1]
    assert sequences.offsets.dtype == np.int64


def test_lengths_are_those_of_multi30k() -> None:
    split = generate_split(20_000, 8000, seed=1)
    source, target = split.source.lengths, split.target.lengths
    assert abs(source.mean() - 14.66) < 0.3  # measured on its training pairs in 8,000 joint subwords
    assert abs(target.mean() - 15.21) < 0.3
    assert abs(source.std() - 4.93) < 0.4
    assert abs(target.std() - 5.65) < 0.6
    assert abs(np.corrcoef(source, target)[0, 1] - 0.85) < 0.04


def test_ids_are_words_of_the_vocabulary_some_far_more_frequent() -> None:
    split = generate_split(5000, 1000, seed=1)
    for side in (split.source, split.target):
        assert (side.tokens.min(), side.tokens.max()) == (FIRST_WORD, 999)
        counts = np.bincount(side.tokens)
        assert 1.5 < counts[FIRST_WORD] / counts[FIRST_WORD + 1] < 2.5
        assert side.offsets[-1] == len(side.tokens)
