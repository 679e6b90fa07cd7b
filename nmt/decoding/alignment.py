"""Word alignment by cross-attention."""

from typing import NamedTuple

import numpy as np

from nmt.tokenizers.base import BOS, EOS


class CrossAttention(NamedTuple):
    """Cross-attention of the decoder on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids, without bos."""
    weights: np.ndarray
    """Attention of each target token to each source token: float32 [layers, heads, T, S]."""

    def alignment(self) -> list[tuple[int, int]]:
        """Return pairs (i, j) from 0: the source token i with the most attention of each target token j.

        The attention is that of the last layer, averaged over its heads. Tokens bos and eos have no alignment.
        """
        words = [place for place, id_ in enumerate(self.source) if id_ not in (BOS, EOS)]
        if not words:
            return []
        aligned = self.weights[-1].mean(axis=0)[:, words].argmax(axis=1)
        return [(int(i), j) for j, (i, id_) in enumerate(zip(aligned, self.target, strict=True)) if id_ != EOS]
