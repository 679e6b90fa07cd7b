"""Masks and attention: who may look at whom, and the weighted sum of what they see.

Shapes: B batch, S source length, T target length, L either, D model, H heads, d head size, K keys (S, T or the
cache's length), N tokens that count.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.models.layers.basic import Composite, Dropout, Linear, joint_linear
from nmt.models.layers.ops import sizes
from nmt.models.layers.unpadding import Packing
from nmt.runtime import tf
from nmt.tokenizers.base import PAD

# Added to a score that is masked: any other score vanishes beside it, and it is finite in the type of the scores.
MASKED_SCORE, MASKED_FLOAT16_SCORE = -1e9, -3e4


def padding_mask(ids: tf.Tensor) -> tf.Tensor:
    """Return which of the ids [B, S] may be looked at, all but padding: bool [B, 1, 1, S]."""
    return tf.not_equal(ids, PAD)[:, tf.newaxis, tf.newaxis, :]


def look_ahead_mask(queries: tf.Tensor | int, keys: tf.Tensor | int, offset: tf.Tensor | int = 0) -> tf.Tensor:
    """Return which keys each query may look at, those up to its own position: bool [1, 1, T, K].

    Query t stands at position ``offset + t``, key k at position k. Padding at the end of a row needs no mask of its
    own in the decoder: it lies ahead of every token that counts.
    """
    at = tf.range(queries)[:, tf.newaxis] + offset
    return (tf.range(keys)[tf.newaxis, :] <= at)[tf.newaxis, tf.newaxis, :, :]


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
        key: [B, H, K, d].
        value: [B, H, K, d].
        mask: bool, broadcast to [B, H, T, K]; true where a query may look.
        scale: factor on the scores; 1 / sqrt(d) in the paper.
        drop: dropout on the softmax before it weighs the values.

    Returns:
        The context [B, H, T, d] and the attention weights [B, H, T, K], which add up to 1 over K: those before dropout.
    """
    # Scaled here, since there are fewer keys than numbers in a query, for all but long sentences.
    scores = tf.matmul(query, key, transpose_b=True) * tf.cast(scale, query.dtype)
    if mask is not None:
        # A sum, since its gradient costs nothing; the mask is small beside the scores.
        masked = MASKED_FLOAT16_SCORE if scores.dtype == tf.float16 else MASKED_SCORE
        scores += tf.where(mask, tf.constant(0, scores.dtype), tf.constant(masked, scores.dtype))
    weights = tf.nn.softmax(scores)
    return tf.matmul(weights if drop is None else drop(weights), value), weights


class KeysValues(NamedTuple):
    """What attention reads of a sequence."""

    keys: tf.Tensor
    """[B, H, K, d]."""
    values: tf.Tensor
    """[B, H, K, d]."""

    def written_at(self, index: tf.Tensor, new: "KeysValues") -> "KeysValues":
        """Return a copy with ``new`` at positions ``index`` .. of the second-last axis; self is unchanged."""
        batch, heads, room, size = sizes(self.keys)
        count = sizes(new.keys)[2]
        rows = tf.reshape(tf.range(batch * heads), [-1, 1]) * room + index + tf.range(count)
        places = tf.reshape(rows, [-1, 1])

        def written(old: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
            # Scattered rather than concatenated: in a compiled loop TensorFlow then writes into the tensor it has.
            flat = tf.tensor_scatter_nd_update(tf.reshape(old, [-1, size]), places, tf.reshape(part, [-1, size]))
            return tf.reshape(flat, [batch, heads, room, size])

        return KeysValues(written(self.keys, new.keys), written(self.values, new.values))


class MultiHeadAttention(Composite):
    """Attention by several heads side by side (Vaswani et al. 2017, section 3.2.2).

    Keys and values are projected apart from the call, by ``keys_values``, so that those of the encoder's output are
    computed once for a sentence and those of earlier target tokens once for each token.

    Training may hide a share of the weights from the sum over values (dropout after the softmax). The weights are
    those of padded rows with or without packing, so the two draw the same random numbers for a batch.
    """

    def __init__(
        self,
        heads: int,
        head_size: int,
        d_model: int,
        scale: float | None = None,
        dropout: Dropout | None = None,
        **kwargs: Any,
    ) -> None:
        """Take H, d, D, the factor on the scores, by default 1 / sqrt(d), and the dropout on the weights, if any."""
        super().__init__(**kwargs)
        self.heads = heads
        self.head_size = head_size
        self.scale = scale if scale is not None else 1 / math.sqrt(head_size)
        self.dropout = dropout
        self.query = Linear(heads * head_size, name="query")
        self.key = Linear(heads * head_size, name="key")
        self.value = Linear(heads * head_size, name="value")
        self.output_projection = Linear(d_model, name="output")

    def keys_values(self, x: tf.Tensor, packing: Packing | None = None) -> KeysValues:
        """Project a sequence [B, K, D], or packed [N, D], to what the heads read: [B, H, K, d] each."""
        return KeysValues(*self._heads(x, [self.key, self.value], packing))

    def project(self, x: tf.Tensor, packing: Packing | None = None) -> tuple[tf.Tensor, KeysValues]:
        """Project a sequence that looks at itself: the query [B, H, K, d], and ``keys_values``."""
        query, key, value = self._heads(x, [self.query, self.key, self.value], packing)
        return query, KeysValues(key, value)

    def call(
        self,
        x: tf.Tensor,
        keys_values: KeysValues,
        attention_mask: tf.Tensor | None = None,
        packing: Packing | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Let x, [B, T, D] or packed [N, D], look at keys and values; the rest is as for ``attend``."""
        (query,) = self._heads(x, [self.query], packing)
        return self.attend(query, keys_values, attention_mask, packing, dropout_seed)

    def attend(
        self,
        query: tf.Tensor,
        keys_values: KeysValues,
        attention_mask: tf.Tensor | None = None,
        packing: Packing | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Let a projected query look at keys and values.

        Args:
            query: [B, H, T, d].
            keys_values: [B, H, K, d] each.
            attention_mask: bool, broadcast to [B, H, T, K]; true where a query may look.
            packing: where the tokens of the output are to be taken from; None: everywhere.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The output, [B, T, D] or packed [N, D], and the attention weights [B, H, T, K], those before dropout.
        """

        def drop(weights: tf.Tensor) -> tf.Tensor:
            return weights if self.dropout is None else self.dropout(weights, dropout_seed)

        context, weights = scaled_dot_product_attention(query, *keys_values, attention_mask, self.scale, drop)
        return self.output_projection(self._join_heads(context, packing)), weights

    def _heads(self, x: tf.Tensor, projections: list[Linear], packing: Packing | None) -> list[tf.Tensor]:
        """[B, L, D], or packed [N, D], -> [B, H, L, d] of each projection, all of them one matrix product."""
        x = tf.convert_to_tensor(x)
        joint = joint_linear(x, projections, self.compute_dtype)
        if packing is not None:
            joint = packing.unpack(joint)
        split = tf.reshape(joint, [*sizes(joint)[:2], len(projections), self.heads, self.head_size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]), axis=0)

    def _join_heads(self, x: tf.Tensor, packing: Packing | None) -> tf.Tensor:
        """[B, H, L, d] -> [B, L, H * d], or packed [N, H * d]."""
        batch, _, length, _ = sizes(x)
        joined = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [batch, length, self.heads * self.head_size])
        return joined if packing is None else packing.pack(joined)
