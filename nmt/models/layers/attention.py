"""Masks, scaled dot-product attention and multi-head attention.

Shapes: B batch, S source length, T target length, L length of either side, D model, H heads, d head size, M keys (S, T
or the columns of a cache), N real tokens.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.models.layers.basic import Dropout, Linear, joint_linear
from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import sizes
from nmt.models.layers.positions import angle_rates
from nmt.models.layers.unpadding import TokenLayout
from nmt.runtime import keras, tf
from nmt.tokenizers.base import PAD


def rotate(heads: tf.Tensor, positions: tf.Tensor, base: float) -> tf.Tensor:
    """Turn queries or keys by their positions, so that a score depends on the distance of the two (Su et al. 2021).

    Channels i and i + d/2 are the coordinates of a point in a plane, which position p turns by p / base^(2i / d).
    Models with rotary positions add no position vectors to the words.

    Args:
        heads: [..., L, d].
        positions: int32 [L], or [1] for all vectors.
        base: base of the angles.
    """
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * angle_rates(sizes(heads)[-1], base)
    cosines, sines = tf.cast(tf.cos(angles), heads.dtype), tf.cast(tf.sin(angles), heads.dtype)
    x, y = tf.split(heads, 2, axis=-1)
    return tf.concat([x * cosines - y * sines, x * sines + y * cosines], axis=-1)


def normalize(heads: tf.Tensor, axes: Sequence[int], epsilon: float) -> tf.Tensor:
    """Scale queries or keys to a mean square of 1 (RMS normalization, Zhang and Sennrich 2019).

    Args:
        heads: [B, H, L, d]; the arithmetic is float32.
        axes: axes of the mean.
        epsilon: added to the mean square.
    """
    values = tf.cast(heads, tf.float32)
    mean_square = tf.reduce_mean(tf.square(values), axes, keepdims=True)
    return tf.cast(values * tf.math.rsqrt(mean_square + epsilon), heads.dtype)


# Added to masked scores: finite in the dtype of the scores, and so low that exp() of the sum vanishes beside exp() of
# an unmasked score.
MASKED_SCORE, MASKED_FLOAT16_SCORE = -1e9, -3e4

COPYING_GAIN = 0.5**0.5
"""Factor on both matrices that a copied vector passes through, so that half of it comes out."""
NEIGHBOR_SCORE = 2.0
"""How much the initial score of a head's neighbor exceeds the score of the position after it."""
SLOWEST_PLANE = 0.1
"""Planes that a step of one position turns by less than this angle, in radians, do not distinguish neighbors."""


def padding_mask(ids: tf.Tensor) -> tf.Tensor:
    """Return True at the real tokens of ids [B, S] and False at padding: bool [B, 1, 1, S]."""
    return tf.not_equal(ids, PAD)[:, tf.newaxis, tf.newaxis, :]


def causal_mask(length: tf.Tensor | int) -> tf.Tensor:
    """Return True where a key is at or before the query's position: bool [1, 1, T, T].

    The decoder needs no further mask for padding, which comes after every real token of a row.
    """
    positions = tf.range(length)
    return (positions <= positions[:, tf.newaxis])[tf.newaxis, tf.newaxis, :, :]


def scaled_dot_product_attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    mask: tf.Tensor | None,
    scale: float,
    drop: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return softmax(query key^T * scale) value, and the softmax (Vaswani et al. 2017, equation 1).

    Args:
        query: [B, H, T, d].
        key: [B, H, M, d].
        value: [B, H, M, d].
        mask: bool, broadcast to [B, H, T, M]; True where attention is allowed.
        scale: factor on the scores; 1 / sqrt(d) in the paper.
        drop: dropout on the attention weights, before they multiply the values.

    Returns:
        The context [B, H, T, d], and the attention weights [B, H, T, M] before dropout, which sum to 1 over M.
    """
    # Scores are scaled rather than queries: M is smaller than d for all but long sentences.
    scores = tf.matmul(query, key, transpose_b=True) * tf.cast(scale, query.dtype)
    if mask is not None:
        # A sum, whose gradient costs nothing; the mask is small beside the scores.
        masked = MASKED_FLOAT16_SCORE if scores.dtype == tf.float16 else MASKED_SCORE
        scores += tf.where(mask, tf.constant(0, scores.dtype), tf.constant(masked, scores.dtype))
    weights = tf.nn.softmax(scores)
    return tf.matmul(weights if drop is None else drop(weights), value), weights


class KeysValues(NamedTuple):
    """Keys and values of a sequence, for H heads."""

    keys: tf.Tensor
    """[B, H, M, d]."""
    values: tf.Tensor
    """[B, H, M, d]."""


class MultiHeadAttention(Layer):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2).

    Projections to queries, keys and values are methods of their own, so that search projects the encoder's output once
    a sentence and target tokens once a token.

    Dropout applies to the attention weights. They have the shape of padded rows with and without padding removal, so
    both drop the same weights of a batch.
    """

    def __init__(
        self,
        heads: int,
        head_size: int,
        d_model: int,
        scale: float | None = None,
        dropout: Dropout | None = None,
        rotary_base: float | None = None,
        norm_epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Take H, d, D, the factor on the scores (1 / sqrt(d) by default) and the dropout on attention weights.

        With the epsilon of a norm, attention normalizes queries and keys by head, but the queries of cross-attention
        over all heads, as CTranslate2 does. With the base of rotary positions, self-attention then turns both.
        """
        super().__init__(**kwargs)
        self.heads = heads
        self.head_size = head_size
        self.scale = scale if scale is not None else 1 / math.sqrt(head_size)
        self.dropout = dropout
        self.rotary_base = rotary_base
        self.norm_epsilon = norm_epsilon
        inner = heads * head_size
        by_head = Blocks(across=heads)
        self.query = Linear(d_model, inner, by_head, name="query")
        self.key = Linear(d_model, inner, by_head, name="key")
        self.value = Linear(d_model, inner, by_head, name="value")
        self.output_projection = Linear(inner, d_model, Blocks(down=heads), name="output")

    def add_copying(self) -> None:
        """Add matrices to the initial kernels with which attention copies half of the keys that are like the query.

        With a matrix R [D, H d] of orthonormal rows or columns, R / sqrt(2) is added to the kernels of query, key and
        value, and its transpose to the kernel of the output. The output then has R R^T / 2 of the attended vectors
        (after Trockman and Kolter 2023, "Mimetic Initialization of Self-Attention Layers").
        """
        copying = keras.initializers.Orthogonal(gain=COPYING_GAIN)

        def copying_back(shape: tuple[int, int], dtype: Any = None) -> tf.Tensor:
            return tf.transpose(copying(shape[::-1], dtype))

        for layer in (self.query, self.key, self.value):
            layer.initialize_matrices(_sum_of(layer.specs["kernel"].initializer, copying))
        output = self.output_projection
        output.initialize_matrices(_sum_of(output.specs["kernel"].initializer, copying_back))

    def add_neighbors(self, offsets: Sequence[int]) -> None:
        """Set initial biases with which the first heads attend to neighbors of the query's position.

        Head i starts with attention to the position at ``offsets[i]``: -1 is the position before the query's, 1 the
        position after it. In each fast plane, the key's bias is a vector (a, 0), and the query's bias is the same
        vector turned by the offset. Rotary positions turn both further, so their product a^2 cos((offset - distance)
        angle) is largest where the distance is the offset.

        Trained models have such heads (Voita et al. 2019, "Analyzing Multi-Head Self-Attention"), and heads that are
        fixed to neighbors hardly harm (Raganato et al. 2020, "Fixed Encoder Self-Attention Patterns"). Here they are
        only a start, from which training departs.

        Raises:
            ValueError: if the layer has no rotary positions.
        """
        if self.rotary_base is None:
            raise ValueError("heads find neighbors by rotary positions, which this layer does not have")
        angles = angle_rates(self.head_size, self.rotary_base)
        fast = angles > SLOWEST_PLANE
        length = math.sqrt(NEIGHBOR_SCORE / (self.scale * np.sum(1 - np.cos(angles[fast]))))
        lengths = length * fast  # of the vector in each plane, [d / 2]
        query, key = (np.zeros((self.heads, self.head_size), np.float32) for _ in range(2))
        for head, offset in enumerate(offsets[: self.heads]):
            turned = offset * angles
            query[head] = np.concatenate([lengths * np.cos(turned), lengths * np.sin(turned)])
            key[head] = np.concatenate([lengths, np.zeros_like(lengths)])
        for layer, bias in ((self.query, query), (self.key, key)):
            layer.specs["bias"].initializer = _constant(bias.reshape(-1))

    def queries(self, x: tf.Tensor, layout: TokenLayout | None = None) -> tf.Tensor:
        """Project a sequence, [B, T, D] or with a layout [N, D], to its queries [B, H, T, d]."""
        [query] = self._project(x, [self.query], layout)
        return query if self.norm_epsilon is None else normalize(query, [1, 3], self.norm_epsilon)

    def keys_values(self, x: tf.Tensor, layout: TokenLayout | None = None) -> KeysValues:
        """Project a sequence, [B, M, D] or with a layout [N, D], to its keys and values."""
        key, value = self._project(x, [self.key, self.value], layout)
        return KeysValues(key if self.norm_epsilon is None else normalize(key, [3], self.norm_epsilon), value)

    def queries_keys_values(self, x: tf.Tensor, layout: TokenLayout | None = None) -> tuple[tf.Tensor, KeysValues]:
        """Project a sequence for self-attention: to queries [B, H, M, d], keys and values."""
        query, key, value = self._project(x, [self.query, self.key, self.value], layout)
        if self.norm_epsilon is not None:
            query = normalize(query, [3], self.norm_epsilon)
            key = normalize(key, [3], self.norm_epsilon)
        if self.rotary_base is not None:
            positions = tf.range(sizes(query)[2]) if layout is None else layout.columns
            query = rotate(query, positions, self.rotary_base)
            key = rotate(key, positions, self.rotary_base)
        return query, KeysValues(key, value)

    def call(
        self,
        query: tf.Tensor,
        keys_values: KeysValues,
        attention_mask: tf.Tensor | None = None,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attend from projected queries.

        Args:
            query: [B, H, T, d].
            keys_values: [B, H, M, d] each.
            attention_mask: bool, broadcast to [B, H, T, M]; True where attention is allowed.
            layout: layout of the output; None: padded rows.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The output, [B, T, D] or with a layout [N, D], and the attention weights [B, H, T, M] before dropout.
        """

        def drop(weights: tf.Tensor) -> tf.Tensor:
            return weights if self.dropout is None else self.dropout(weights, dropout_seed)

        context, weights = scaled_dot_product_attention(query, *keys_values, attention_mask, self.scale, drop)
        return self.output_projection(self._join_heads(context, layout)), weights

    def _project(self, x: tf.Tensor, projections: list[Linear], layout: TokenLayout | None) -> list[tf.Tensor]:
        """Project x, [B, L, D] or with a layout [N, D], to [B, H, L, d] of each projection, by one matrix product."""
        joint = joint_linear(tf.convert_to_tensor(x), projections, self.compute_dtype)
        if layout is not None:
            joint = layout.restore(joint)
        split = tf.reshape(joint, [*sizes(joint)[:2], len(projections), self.heads, self.head_size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]), axis=0)

    def _join_heads(self, x: tf.Tensor, layout: TokenLayout | None) -> tf.Tensor:
        """Join the heads of x, [B, H, L, d]: [B, L, H * d], or with a layout [N, H * d]."""
        batch, _, length, _ = sizes(x)
        joined = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [batch, length, self.heads * self.head_size])
        return joined if layout is None else layout.flatten(joined)


def _constant(values: np.ndarray) -> Callable[..., tf.Tensor]:
    """Return an initializer that gives these values."""
    return lambda shape, dtype=None: tf.constant(values, dtype, shape)


def _sum_of(first: Callable[..., tf.Tensor], second: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Return an initializer that adds the values of two initializers."""
    return lambda shape, dtype=None: first(shape, dtype) + second(shape, dtype)
