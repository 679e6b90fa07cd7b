"""Weights of a trained Transformer by their role, in NumPy, for formats that lay them out differently.

Shapes: D model, V vocabulary, L positions.
"""

from typing import NamedTuple

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.models.weights import current_name
from nmt.storage.arrays import Arrays


class LinearWeights(NamedTuple):
    """x kernel + bias."""

    kernel: np.ndarray
    """float32 [inputs, outputs]."""
    bias: np.ndarray
    """float32 [outputs]."""


class NormWeights(NamedTuple):
    """Layer normalization."""

    gamma: np.ndarray
    """Scale, float32 [D]."""
    beta: np.ndarray
    """Shift, float32 [D]."""


class AttentionWeights(NamedTuple):
    """Multi-head attention of H heads of size d."""

    query: LinearWeights
    """[D, H d]."""
    key: LinearWeights
    """[D, H d]."""
    value: LinearWeights
    """[D, H d]."""
    output: LinearWeights
    """[H d, D]."""
    norm: NormWeights
    """Norm of the sublayer."""


class FeedForwardWeights(NamedTuple):
    """Feed-forward block."""

    inner: LinearWeights
    """[D, F]."""
    outer: LinearWeights
    """[F, D]."""
    norm: NormWeights
    """Norm of the sublayer."""


class TransformerWeights:
    """Weights by role. A layer number counts from 1; a side is "source" or "target"."""

    def __init__(self, config: TransformerConfig, arrays: Arrays) -> None:
        """Take the model section and the weights by name."""
        self.config = config
        self._arrays = {current_name(name): array for name, array in arrays.items()}

    def _linear(self, name: str) -> LinearWeights:
        return LinearWeights(self._arrays[f"{name}/kernel"], self._arrays[f"{name}/bias"])

    def _norm(self, name: str) -> NormWeights:
        return NormWeights(self._arrays[f"{name}/gamma"], self._arrays[f"{name}/beta"])

    def _attention(self, layer: str, name: str, norm: str) -> AttentionWeights:
        query, key, value, output = (
            self._linear(f"{layer}/{name}/{part}") for part in ("query", "key", "value", "output")
        )
        return AttentionWeights(query, key, value, output, self._norm(f"{layer}/{norm}_sublayer/norm"))

    def _feed_forward(self, layer: str) -> FeedForwardWeights:
        inner, outer = (self._linear(f"{layer}/feed_forward/{part}") for part in ("inner", "outer"))
        return FeedForwardWeights(inner, outer, self._norm(f"{layer}/feed_forward_sublayer/norm"))

    def encoder_layer(self, number: int) -> tuple[AttentionWeights, FeedForwardWeights]:
        """Return self-attention and feed-forward block of an encoder layer."""
        layer = f"encoder_{number}"
        return self._attention(layer, "attention", "attention"), self._feed_forward(layer)

    def decoder_layer(self, number: int) -> tuple[AttentionWeights, AttentionWeights, FeedForwardWeights]:
        """Return self-attention, cross-attention and feed-forward block of a decoder layer."""
        layer = f"decoder_{number}"
        norm = "self_attention" if self.config.share_decoder_norm else "cross_attention"
        return (
            self._attention(layer, "self_attention", "self_attention"),
            self._attention(layer, "cross_attention", norm),
            self._feed_forward(layer),
        )

    def final_norm(self, stack: str) -> NormWeights:
        """Return the norm after the last layer of stack "encoder" or "decoder", which pre-norm models have."""
        return self._norm(f"{stack}_norm")

    def embedding(self, side: str, vocabulary: int) -> np.ndarray:
        """Return the word vectors of a side before they are scaled: float32 [V, D]."""
        if self.config.word_embedding == "sinusoidal":
            return sinusoidal_encoding(vocabulary, self.config.d_model, self.config.position_base)
        return self._arrays["embedding/matrix" if self.config.tie_embeddings == "all" else f"{side}_embedding/matrix"]

    def positions(self, side: str, count: int) -> np.ndarray:
        """Return the position vectors of a side, float32 [L, D]: ``count`` sinusoids, or all learned ones."""
        if self.config.positions == "learned":
            return self._arrays[f"{side}_positions/matrix"]
        return sinusoidal_encoding(count, self.config.d_model, self.config.position_base)

    def output_layer(self, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
        """Return matrix [V, D] and bias [V] of the output layer, float32; the bias of a tied matrix is 0."""
        if self.config.tie_embeddings == "none":
            kernel, bias = self._linear("output_layer")
            return np.ascontiguousarray(kernel.T), bias
        return self.embedding("target", vocabulary), np.zeros(vocabulary, np.float32)
