"""Token ids of one split as flat arrays: of a corpus, or at random with the lengths of real sentences."""

from dataclasses import dataclass

import numpy as np

from nmt.errors import counted
from nmt.tokenizers.base import FIRST_WORD

# Fitted to the 29,000 English-German training pairs of Multi30k in 8,000 joint subwords. Lengths are log-normal, 14.7
# source and 15.2 target tokens on average, and correlated within a pair.
LOG_SOURCE_LENGTH = (2.63, 0.32)  # mean and standard deviation
LOG_LENGTH_RATIO = (0.02, 0.20)  # mean and standard deviation of log(target length / source length)
LONGEST = 100  # tokens


@dataclass(frozen=True)
class Sequences:
    """N token sequences, concatenated: sequence i is ``tokens[offsets[i]:offsets[i + 1]]``."""

    tokens: np.ndarray
    """Token ids without bos and eos, in the smallest unsigned type that holds the vocabulary [total tokens]."""
    offsets: np.ndarray
    """Start of each sequence in ``tokens``, and the end of the last, int64 [N + 1]."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sequence, int64 [N]."""
        return np.diff(self.offsets)

    def check(self, sequences: int, tokens: int, longest: int, vocabulary: int) -> None:
        """Compare the arrays with what a manifest states about them.

        Args:
            sequences: N.
            tokens: total number of tokens.
            longest: number of tokens of the longest sequence.
            vocabulary: number of ids; every token is below it.

        Raises:
            ValueError: if the arrays have another type, shape or content.
        """
        dtypes = {
            "tokens": (self.tokens, np.min_scalar_type(vocabulary - 1)),
            "offsets": (self.offsets, np.dtype(np.int64)),
        }
        for name, (array, dtype) in dtypes.items():
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"{name} are {array.dtype} of shape {array.shape} instead of one-dimensional {dtype}")
        if len(self) != sequences or len(self.tokens) != tokens:
            found = f"{counted(len(self), 'sequence')} of {counted(len(self.tokens), 'token')}"
            raise ValueError(f"{found} instead of {sequences} of {tokens}")
        lengths = self.lengths
        if self.offsets[0] != 0 or self.offsets[-1] != tokens or lengths.min() < 0 or lengths.max() != longest:
            raise ValueError("offsets do not rise from 0 to the number of tokens, or not by the recorded lengths")
        if self.tokens.max() >= vocabulary:
            raise ValueError(f"an id {self.tokens.max()} in a vocabulary of {vocabulary} ids")

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the tokens of one sequence."""
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    @classmethod
    def from_rows(cls, rows: list[list[int]], vocabulary: int) -> "Sequences":
        """Concatenate rows of ids, each below ``vocabulary``."""
        tokens = np.array([id_ for row in rows for id_ in row], np.min_scalar_type(vocabulary - 1))
        return cls(tokens, offsets_of([len(row) for row in rows]))


def offsets_of(lengths: list[int] | np.ndarray) -> np.ndarray:
    """Return the offsets of N sequences of these lengths, int64 [N + 1]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True)
class Split:
    """Token ids of one split: pair i is ``source[i]`` and ``target[i]``."""

    source: Sequences
    target: Sequences

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source)

    def chosen(self, indices: np.ndarray) -> "Split":
        """Return the pairs at ``indices``, int64 [B], in memory."""

        def rows(side: Sequences) -> Sequences:
            return Sequences(np.concatenate([side[index] for index in indices]), offsets_of(side.lengths[indices]))

        return Split(rows(self.source), rows(self.target))


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
        offsets = offsets_of(np.clip(np.round(lengths), 1, longest).astype(np.int64))
        tokens = random.choice(ids, offsets[-1], p=frequencies / frequencies.sum())
        return Sequences(tokens.astype(np.min_scalar_type(vocabulary - 1)), offsets)

    return Split(sequences(source), sequences(target))
