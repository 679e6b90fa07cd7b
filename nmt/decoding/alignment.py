"""Attention of a model on a sentence and its translation; word alignment by cross-attention."""

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


class AttentionMaps(NamedTuple):
    """All attention of a model on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids as the decoder writes them, without bos. It reads bos and the first T - 1 of them."""
    encoder: np.ndarray | None
    """Attention of each source token to each of them: float32 [layers, heads, S, S]; None without self-attention."""
    decoder: np.ndarray | None
    """Attention of each token that the decoder reads to each of them, 0 above the diagonal: float32 [layers, heads, T,
    T]; None without self-attention."""
    cross: np.ndarray
    """Attention of each target token, as it is written, to each source token: float32 [layers, heads, T, S]."""
