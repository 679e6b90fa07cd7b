"""TODO."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sequences:
    """Sequences of different lengths end to end: sequence i is ``tokens[offsets[i]:offsets[i + 1]]``."""

    tokens: np.ndarray
    """Unsigned integers, the smallest kind that holds the vocabulary [total tokens]."""
    offsets: np.ndarray
    """int64 [N + 1]."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens in each sequence, int64 [N]."""
        return np.diff(self.offsets)

    def check(self, sequences: int, tokens: int, longest: int, vocabulary: int) -> None:
        """Raise ValueError unless these are so many sequences and tokens, with ids below ``vocabulary``."""
        kinds = {
            "tokens": (self.tokens, np.min_scalar_type(vocabulary - 1)),
            "offsets": (self.offsets, np.dtype(np.int64)),
        }
        for name, (array, kind) in kinds.items():
            if array.ndim != 1 or array.dtype != kind:
                raise ValueError(f"{name} are {array.dtype} of shape {array.shape} instead of {kind} in a row")
        if len(self) != sequences or len(self.tokens) != tokens:
            raise ValueError(f"{len(self)} sequences of {len(self.tokens)} tokens instead of {sequences} of {tokens}")
        lengths = self.lengths
        if self.offsets[0] != 0 or self.offsets[-1] != tokens or lengths.min() < 0 or lengths.max() != longest:
            raise ValueError("offsets do not rise from 0 to the end of the tokens by the lengths that were counted")
        if self.tokens.max() >= vocabulary:
            raise ValueError(f"an id {self.tokens.max()} where {vocabulary} ids are known")

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the tokens of one sequence."""
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    @classmethod
    def pack(cls, rows: Iterable[list[int]], vocabulary: int) -> "Sequences":
        """Lay rows of ids below ``vocabulary`` end to end."""
        rows = list(rows)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        tokens = np.fromiter((id_ for row in rows for id_ in row), np.min_scalar_type(vocabulary - 1), offsets[-1])
        return cls(tokens, offsets)


@dataclass(frozen=True)
class Split:
    """The token ids of one split, pair i being ``source[i]`` and ``target[i]``."""

    source: Sequences
    target: Sequences

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source)
