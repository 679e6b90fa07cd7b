"""Synthetic token ids with the length distribution of a real corpus, for measuring speed."""

import numpy as np

from nmt.data.token_arrays import Sequences, Split
from nmt.tokenizers.base import FIRST_WORD

# Fitted to the 29,000 English-German training pairs of Multi30k in 8,000 joint subwords. Lengths are log-normal, 14.7
# source and 15.2 target tokens on average, and correlated within a pair.
LOG_SOURCE_LENGTH = (2.63, 0.32)  # mean and standard deviation
LOG_LENGTH_RATIO = (0.02, 0.20)  # mean and standard deviation of log(target length / source length)
LONGEST = 100  # tokens


def generate_split(pairs: int, vocabulary: int, *, seed: int, longest: int = LONGEST) -> Split:
    """Return pairs of sequences without bos and eos, whose ids follow Zipf's law: id of rank r has frequency ~ 1 / r.

    Args:
        pairs: number of pairs.
        vocabulary: number of ids of each side, the special ones included, which do not occur.
        seed: seed of the generator; equal arguments give equal pairs.
        longest: largest number of tokens of a sequence.
    """
    random = np.random.default_rng(seed)
    source = np.exp(random.normal(*LOG_SOURCE_LENGTH, pairs))
    target = source * np.exp(random.normal(*LOG_LENGTH_RATIO, pairs))
    ids = np.arange(FIRST_WORD, vocabulary)
    frequencies = 1 / np.arange(1, len(ids) + 1)

    def sequences(lengths: np.ndarray) -> Sequences:
        offsets = np.concatenate([[0], np.cumsum(np.clip(np.round(lengths), 1, longest).astype(np.int64))])
        tokens = random.choice(ids, offsets[-1], p=frequencies / frequencies.sum())
        return Sequences(tokens.astype(np.min_scalar_type(vocabulary - 1)), offsets)

    return Split(sequences(source), sequences(target))
