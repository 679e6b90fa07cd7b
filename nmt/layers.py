"""Embeddings, feed-forward and residual blocks, and the encoder and decoder layers made of them.

Shapes: B batch, L length of either side, S source length, T target length, D model, F feed-forward, V vocabulary.
"""

import math
from typing import Any, Literal

import keras
import tensorflow as tf

from nmt.attention import KeysValues, MultiHeadAttention, Packing
from nmt.positions import angle_rates


def sinusoids(positions: tf.Tensor, d_model: int) -> tf.Tensor:
    """Return the sinusoidal encoding of integers of any shape [...]: float32 [..., D] (see ``nmt.positions``)."""
    angles = tf.cast(positions, tf.float32)[..., tf.newaxis] * angle_rates(d_model)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
    return tf.reshape(pairs, tf.concat([tf.shape(positions), [d_model]], axis=0))


class TokenEmbedding(keras.layers.Layer):
    """A vector for each id; the same matrix can serve as output layer (Vaswani et al. 2017, section 3.4)."""

    def __init__(self, vocabulary: int, d_model: int, *, scaled: bool, **kwargs: Any) -> None:
        """Take V, D and whether vectors are multiplied by sqrt(D)."""
        super().__init__(**kwargs)
        self.vocabulary = vocabulary
        self.d_model = d_model
        self.factor = math.sqrt(d_model) if scaled else 1.0
        # Gives scaled vectors and tied logits unit variance.
        self.kernel_initializer = keras.initializers.RandomNormal(stddev=d_model**-0.5)

    def build(self, input_shape: Any) -> None:
        """Make the matrix [V, D]."""
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.vocabulary, self.d_model),
            initializer=self.kernel_initializer,
        )

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """[...] -> [..., D]."""
        return tf.gather(tf.convert_to_tensor(self.matrix), ids) * self.factor

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """Use the matrix as output layer: [..., D] -> [..., V]."""
        flat = tf.matmul(tf.reshape(x, [-1, self.d_model]), tf.cast(self.matrix, x.dtype), transpose_b=True)
        logits = tf.reshape(flat, tf.concat([tf.shape(x)[:-1], [self.vocabulary]], axis=0))
        return tf.ensure_shape(logits, [*x.shape[:-1], self.vocabulary])


class SinusoidalTokenEmbedding(keras.layers.Layer):
    """A fixed vector for each id: the encoding of the id as if it were a position. Nothing is trained."""

    def __init__(self, d_model: int, *, scaled: bool, **kwargs: Any) -> None:
        """Take D and whether vectors are multiplied by sqrt(D)."""
        super().__init__(**kwargs)
        self.d_model = d_model
        self.factor = math.sqrt(d_model) if scaled else 1.0

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """[...] -> [..., D]."""
        return tf.cast(sinusoids(ids, self.d_model) * self.factor, self.compute_dtype)


class SinusoidalPositions(keras.layers.Layer):
    """Adds the sinusoidal encoding of each position, for sentences of any length."""

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to packed x [N, D] at positions [N]; shaped as x."""
        return x + tf.cast(sinusoids(positions, x.shape[-1]), x.dtype)


class LearnedPositions(keras.layers.Layer):
    """Adds a trained vector for each position, of which there are ``max_positions``."""

    def __init__(self, max_positions: int, d_model: int, **kwargs: Any) -> None:
        """Take the number of positions and D."""
        super().__init__(**kwargs)
        self.max_positions = max_positions
        self.d_model = d_model

    def build(self, input_shape: Any) -> None:
        """Make the matrix [max_positions, D]."""
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.max_positions, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to packed x [N, D] at positions [N]; shaped as x."""
        return x + tf.gather(tf.convert_to_tensor(self.matrix), positions)


class FeedForward(keras.layers.Layer):
    """max(0, x W1 + b1) W2 + b2, at each position alone (Vaswani et al. 2017, equation 2)."""

    def __init__(self, d_model: int, d_ff: int, **kwargs: Any) -> None:
        """Take D and F."""
        super().__init__(**kwargs)
        self.inner = keras.layers.Dense(d_ff, activation="relu", name="inner")
        self.outer = keras.layers.Dense(d_model, name="outer")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """[..., D] -> [..., D]."""
        return self.outer(self.inner(x))


class Residual(keras.layers.Layer):
    """The frame around a block: dropout, residual sum and layer norm, after the block or before it.

    Post-norm (Vaswani et al. 2017, section 3.1): norm(x + dropout(block(x))). Pre-norm (Xiong et al. 2020):
    x + dropout(block(norm(x))).
    """

    def __init__(
        self, norm: keras.layers.LayerNormalization, dropout: float, placement: Literal["post", "pre"], **kwargs: Any
    ) -> None:
        """Take the layer norm (two frames may share one), the dropout rate and where the norm stands."""
        super().__init__(**kwargs)
        self.norm = norm
        self.dropout = keras.layers.Dropout(dropout)
        self.placement = placement

    def before(self, x: tf.Tensor) -> tf.Tensor:
        """Return what the block reads of x [..., D]."""
        return self.norm(x) if self.placement == "pre" else x

    def call(self, x: tf.Tensor, output: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Join the block's output to x: [..., D] each and after."""
        total = x + self.dropout(output, training=training)
        return self.norm(total) if self.placement == "post" else total


class EncoderLayer(keras.layers.Layer):
    """Self-attention and feed-forward, each in its residual frame."""

    def __init__(self, attention: MultiHeadAttention, feed_forward: FeedForward, frames: list[Residual], **kwargs: Any):
        """Take the two blocks and a frame for each."""
        super().__init__(**kwargs)
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_frame, self.feed_forward_frame = frames

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """Its attention blocks."""
        return [self.attention]

    @property
    def frames(self) -> list[Residual]:
        """The frame of each block."""
        return [self.attention_frame, self.feed_forward_frame]

    def call(
        self, x: tf.Tensor, attention_mask: tf.Tensor, packing: Packing | None = None, training: bool = False
    ) -> tf.Tensor:
        """Let every position of x, [B, S, D] or packed [N, D], look at those the mask [B, 1, 1, S] allows."""
        seen = self.attention_frame.before(x)
        attended, _ = self.attention(
            seen, self.attention.keys_values(seen, packing), attention_mask=attention_mask, packing=packing
        )
        x = self.attention_frame(x, attended, training=training)
        expanded = self.feed_forward(self.feed_forward_frame.before(x))
        return self.feed_forward_frame(x, expanded, training=training)


class DecoderLayer(keras.layers.Layer):
    """Self-attention, attention over the encoder's output, and feed-forward, each in its residual frame."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        frames: list[Residual],
        **kwargs: Any,
    ) -> None:
        """Take the three blocks and a frame for each."""
        super().__init__(**kwargs)
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_attention_frame, self.cross_attention_frame, self.feed_forward_frame = frames

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """Its attention blocks."""
        return [self.self_attention, self.cross_attention]

    @property
    def frames(self) -> list[Residual]:
        """The frame of each block."""
        return [self.self_attention_frame, self.cross_attention_frame, self.feed_forward_frame]

    def call(
        self,
        x: tf.Tensor,
        source: KeysValues,
        source_mask: tf.Tensor,
        attention_mask: tf.Tensor,
        cache: KeysValues | None = None,
        index: tf.Tensor | int = 0,
        packing: Packing | None = None,
        training: bool = False,
    ) -> tuple[tf.Tensor, KeysValues, tf.Tensor]:
        """Run target positions through the layer.

        Args:
            x: [B, T, D], or packed [N, D].
            source: this layer's keys and values of the encoder's output, [B, H, S, d] each.
            source_mask: bool [B, 1, 1, S].
            attention_mask: look-ahead mask, bool [1, 1, T, K].
            cache: keys and values [B, H, K, d] of the positions before ``index``; None when x is the whole target.
            index: position of the first column of x.
            packing: where the tokens of a packed x stand.
            training: whether dropout is on.

        Returns:
            The output, shaped as x; the keys and values with those of x written in; the cross-attention weights
            [B, H, T, S].
        """
        seen = self.self_attention_frame.before(x)
        keys_values = self.self_attention.keys_values(seen, packing)
        if cache is not None:
            keys_values = cache.written_at(index, keys_values)
        attended, _ = self.self_attention(seen, keys_values, attention_mask=attention_mask, packing=packing)
        x = self.self_attention_frame(x, attended, training=training)
        seen = self.cross_attention_frame.before(x)
        attended, alignment = self.cross_attention(seen, source, attention_mask=source_mask, packing=packing)
        x = self.cross_attention_frame(x, attended, training=training)
        expanded = self.feed_forward(self.feed_forward_frame.before(x))
        return self.feed_forward_frame(x, expanded, training=training), keys_values, alignment
