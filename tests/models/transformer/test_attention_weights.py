"""Attention weights of the whole Transformer against its equations in NumPy, for pre-norm and post-norm."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import TransformerConfig
from nmt.models.build import build_model
from nmt.models.layers.attention import MultiHeadAttention
from nmt.models.layers.basic import LayerNormalization, Linear
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.models.transformer.blocks import FeedForward
from nmt.models.transformer.model import Transformer
from nmt.runtime import tf

SMALL: dict[str, Any] = {
    "encoder_layers": 2, "decoder_layers": 2, "d_model": 8, "d_ff": 12, "heads": 2, "tie_embeddings": "none",
}  # fmt: skip
BOOK = {"head_size": 3, "attention_scale": "projection", "share_decoder_norm": True, "source_bos": False}
SOURCE = np.array([[2, 5, 6, 7, 4, 3], [2, 8, 3, 0, 0, 0]], np.int32)
TARGET = np.array([[2, 5, 6, 7, 3], [2, 4, 0, 0, 0]], np.int32)
VOCABULARY = 9
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def linear(layer: Linear, x: np.ndarray) -> np.ndarray:
    return x @ layer.kernel.numpy() + layer.bias.numpy()


def norm(layer: LayerNormalization, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + layer.epsilon)
    return layer.gamma.numpy() * scaled + layer.beta.numpy()


class Reference:
    """The equations of Vaswani et al. 2017 with the weights of a model."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.config = model, model.config

    def attention(
        self, layer: MultiHeadAttention, queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the output [B, T, D] and softmax(Q K^T / sqrt(d)) [B, H, T, M], 0 where it is not allowed."""
        heads, size = self.config.heads, self.config.size_per_head

        def split(x: np.ndarray) -> np.ndarray:
            return x.reshape(*x.shape[:2], heads, size).transpose(0, 2, 1, 3)

        q, k, v = (
            split(linear(part, x)) for part, x in ((layer.query, queries), (layer.key, keys), (layer.value, keys))
        )
        width = size if self.config.attention_scale == "head" else heads * size
        weights = softmax(np.where(allowed, q @ k.transpose(0, 1, 3, 2) / np.sqrt(width), -np.inf))
        joined = (weights @ v).transpose(0, 2, 1, 3).reshape(*queries.shape[:2], heads * size)
        return linear(layer.output_projection, joined), weights

    def feed_forward(self, layer: FeedForward, x: np.ndarray) -> np.ndarray:
        return linear(layer.outer, np.maximum(0, linear(layer.inner, x)))

    def sublayer(self, connection: Any, x: np.ndarray, block: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the sum of x and a block's output, with the norm before the block or after the sum."""
        if self.config.norm_placement == "pre":
            return x + block(norm(connection.norm, x))
        return norm(connection.norm, x + block(x))

    def embed(self, embedding: Any, ids: np.ndarray) -> np.ndarray:
        encoding = sinusoidal_encoding(ids.shape[1], self.config.d_model)
        return embedding.matrix.numpy()[ids] * embedding.factor + encoding

    def weights(self, source: np.ndarray, target: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights of each kind, [layers, H, B, T, S]."""
        by_kind: dict[str, list[np.ndarray]] = {"encoder": [], "decoder": [], "cross": []}
        real, past = (source != 0)[:, None, None, :], np.tri(target.shape[1], dtype=bool)

        def attend(kind: str, layer: MultiHeadAttention, allowed: np.ndarray, keys: np.ndarray | None = None) -> Any:
            def block(x: np.ndarray) -> np.ndarray:
                output, weights = self.attention(layer, x, x if keys is None else keys, allowed)
                by_kind[kind].append(weights)
                return output

            return block

        x = self.embed(self.model.source_embedding, source)
        for layer in self.model.encoder_layers:
            x = self.sublayer(layer.attention_connection, x, attend("encoder", layer.attention, real))
            x = self.sublayer(layer.feed_forward_connection, x, partial(self.feed_forward, layer.feed_forward))
        memory = norm(self.model.encoder_norm, x) if self.config.norm_placement == "pre" else x
        x = self.embed(self.model.target_embedding, target)
        for layer in self.model.decoder_layers:
            x = self.sublayer(layer.target_connection, x, attend("decoder", layer.self_attention, past))
            x = self.sublayer(layer.cross_attention_connection, x, attend("cross", layer.cross_attention, real, memory))
            x = self.sublayer(layer.feed_forward_connection, x, partial(self.feed_forward, layer.feed_forward))
        return {kind: np.stack(layers).transpose(0, 2, 1, 3, 4) for kind, layers in by_kind.items()}


@pytest.mark.parametrize(
    "settings", [{"norm_placement": "post"}, {"norm_placement": "pre"}, {"norm_placement": "post", **BOOK}]
)
def test_weights_are_the_softmax_of_scaled_products_and_zero_behind_masks(settings: dict[str, Any]) -> None:
    model: Transformer = build_model(TransformerConfig(**SMALL, **settings), VOCABULARY, VOCABULARY)
    random = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(random.normal(1 if weight.name == "gamma" else 0, 0.5, weight.shape))
    computed = model.attention_weights(tf.constant(SOURCE), tf.constant(TARGET))
    expected = Reference(model).weights(SOURCE, TARGET)
    (b, s), t = SOURCE.shape, TARGET.shape[1]
    shapes = {"encoder": (2, 2, b, s, s), "decoder": (2, 2, b, t, t), "cross": (2, 2, b, t, s)}
    queries = {"encoder": SOURCE != 0, "decoder": TARGET != 0, "cross": TARGET != 0}
    for kind, shape in shapes.items():
        weights = getattr(computed, kind).numpy()
        assert (weights.shape, weights.dtype) == (shape, np.float32)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        # Rows of padding have no meaning: they depend on whether padding is computed.
        kept = np.broadcast_to(queries[kind][:, :, None], shape)
        np.testing.assert_allclose(weights[kept], expected[kind][kept], **CLOSE)
        if kind == "decoder":
            assert not np.triu(weights, 1).any()
        else:
            assert not weights[np.broadcast_to((SOURCE == 0)[:, None, :], shape)].any()
    np.testing.assert_array_equal(computed.cross, model.cross_attention(tf.constant(SOURCE), tf.constant(TARGET)))
