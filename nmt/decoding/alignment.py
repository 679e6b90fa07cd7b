"""TODO."""

from typing import NamedTuple

import numpy as np

from nmt.tokenizers.base import BOS, EOS


class Attention(NamedTuple):
    """Where the decoder looked while it wrote a translation."""

    source: list[int]
    """S ids, as the encoder reads them: with bos, unless the model drops it, and eos."""
    target: list[int]
    """T ids, without bos."""
    weights: np.ndarray
    """Cross-attention of each target token to each source token: float32 [decoder layers, heads, T, S]."""

    def alignment(self) -> list[tuple[int, int]]:
        """Return for each target token j but eos the source token i it looked at most: pairs (i, j) from 0, in words.

        By the last layer's attention, averaged over its heads; bos and eos of the source do not count.
        """
        words = [place for place, id_ in enumerate(self.source) if id_ not in (BOS, EOS)]
        if not words:
            return []
        seen = self.weights[-1].mean(axis=0)[:, words].argmax(axis=1)
        return [(int(i), j) for j, (i, id_) in enumerate(zip(seen, self.target, strict=True)) if id_ != EOS]
