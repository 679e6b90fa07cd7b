"""Masks and attention: who may look at whom, and the weighted sum of what they see.

Shapes: B batch, S source length, T target length, L either, D model, H heads, d head size, K keys (S, T or the
cache's length), N tokens that count.
"""

import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from nmt.tokenizer import PAD

# Added to no score but put in its place: small enough for a weight of exactly 0, and finite in bfloat16.
MASKED_SCORE = -1e9


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
    query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, mask: tf.Tensor | None, scale: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return softmax(query key^T * scale) value, and the softmax (Vaswani et al. 2017, equation 1).

    Args:
        query: [B, H, T, d].
        key: [B, H, K, d].
        value: [B, H, K, d].
        mask: bool, broadcast to [B, H, T, K]; true where a query may look.
        scale: factor on the scores; 1 / sqrt(d) in the paper.

    Returns:
        The context [B, H, T, d] and the attention weights [B, H, T, K], which add up to 1 over K.
    """
    scores = tf.matmul(query * tf.cast(scale, query.dtype), key, transpose_b=True)
    if mask is not None:
        scores = tf.where(mask, scores, tf.cast(MASKED_SCORE, scores.dtype))
    weights = tf.nn.softmax(scores)
    return tf.matmul(weights, value), weights


class Packing(NamedTuple):
    """Where the tokens that count stand in padded rows.

    Attention needs rows; all else looks at one position at a time, and then need not see padding: it works on the N
    tokens that count, end to end. In batches of short sentences in random order that is half the arithmetic.
    """

    indices: tf.Tensor
    """Row and column of each token that counts, row by row: int64 [N, 2]."""
    shape: tf.Tensor
    """Of the rows: B and L, int64 [2]."""

    @classmethod
    def of(cls, ids: tf.Tensor) -> "Packing":
        """Return where ids [B, L] are not padding."""
        return cls(tf.where(tf.not_equal(ids, PAD)), tf.shape(ids, out_type=tf.int64))

    @property
    def positions(self) -> tf.Tensor:
        """The column of each token: int64 [N]."""
        return self.indices[:, 1]

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, L, ...] -> [N, ...]."""
        return tf.gather_nd(rows, self.indices)

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """[N, D] -> [B, L, D], zeros where nothing counts."""
        rows = tf.scatter_nd(self.indices, tokens, tf.concat([self.shape, [tokens.shape[-1]]], axis=0))
        return tf.ensure_shape(rows, [None, None, tokens.shape[-1]])


class Grid(NamedTuple):
    """One token for each of K beams of B sentences, end to end: the packing of a step of search.

    To attention the beams of a sentence are so many queries of one row, and read one source.
    """

    size: tf.Tensor
    """B and K, int32 [2]."""
    position: tf.Tensor
    """Where in their sentences all these tokens stand: int32 scalar."""

    @property
    def positions(self) -> tf.Tensor:
        """The one position: int32 [1]."""
        return self.position[tf.newaxis]

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, K, ...] -> [B * K, ...]."""
        return tf.reshape(rows, tf.concat([[-1], tf.shape(rows)[2:]], axis=0))

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """[B * K, D] -> [B, K, D]."""
        return tf.reshape(tokens, [self.size[0], self.size[1], tokens.shape[-1]])


class KeysValues(NamedTuple):
    """What attention reads of a sequence."""

    keys: tf.Tensor
    """[B, H, K, d]."""
    values: tf.Tensor
    """[B, H, K, d]."""

    def written_at(self, index: tf.Tensor, new: "KeysValues") -> "KeysValues":
        """Return a copy with ``new`` at positions ``index`` .. of the second-last axis; self is unchanged."""

        def written(old: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
            batch, heads, room, size = tf.unstack(tf.shape(old))
            count = tf.shape(part)[2]
            # Scattered rather than concatenated: in a compiled loop TensorFlow then writes into the tensor it has.
            rows = tf.range(batch * heads)[:, tf.newaxis] * room + index + tf.range(count)
            flat = tf.tensor_scatter_nd_update(
                tf.reshape(old, [-1, size]), tf.reshape(rows, [-1, 1]), tf.reshape(part, [-1, size])
            )
            return tf.ensure_shape(tf.reshape(flat, [batch, heads, room, size]), old.shape)

        return KeysValues(written(self.keys, new.keys), written(self.values, new.values))


class MultiHeadAttention(keras.layers.Layer):
    """Attention by several heads side by side (Vaswani et al. 2017, section 3.2.2).

    Keys and values are projected apart from the call, by ``keys_values``, so that those of the encoder's output are
    computed once for a sentence and those of earlier target tokens once for each token.
    """

    def __init__(self, heads: int, head_size: int, d_model: int, scale: float | None = None, **kwargs: Any) -> None:
        """Take H, d, D and the factor on the scores, by default 1 / sqrt(d)."""
        super().__init__(**kwargs)
        self.heads = heads
        self.head_size = head_size
        self.scale = scale if scale is not None else 1 / math.sqrt(head_size)
        self.query = keras.layers.Dense(heads * head_size, name="query")
        self.key = keras.layers.Dense(heads * head_size, name="key")
        self.value = keras.layers.Dense(heads * head_size, name="value")
        self.output_projection = keras.layers.Dense(d_model, name="output")

    def keys_values(self, x: tf.Tensor, packing: Packing | None = None) -> KeysValues:
        """Project a sequence [B, K, D], or packed [N, D], to what the heads read: [B, H, K, d] each."""
        return KeysValues(self._split_heads(self.key(x), packing), self._split_heads(self.value(x), packing))

    def call(
        self,
        x: tf.Tensor,
        keys_values: KeysValues,
        attention_mask: tf.Tensor | None = None,
        packing: Packing | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Let x look at keys and values.

        Args:
            x: [B, T, D], or packed [N, D].
            keys_values: [B, H, K, d] each.
            attention_mask: bool, broadcast to [B, H, T, K]; true where a query may look.
            packing: where the tokens of a packed x stand.

        Returns:
            The output, shaped as x, and the attention weights [B, H, T, K].
        """
        query = self._split_heads(self.query(x), packing)
        context, weights = scaled_dot_product_attention(query, *keys_values, attention_mask, self.scale)
        return self.output_projection(self._join_heads(context, packing)), weights

    def _split_heads(self, x: tf.Tensor, packing: Packing | None) -> tf.Tensor:
        """[B, L, H * d], or packed [N, H * d], -> [B, H, L, d]."""
        if packing is not None:
            x = packing.unpack(x)
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], self.heads, self.head_size]), [0, 2, 1, 3])

    def _join_heads(self, x: tf.Tensor, packing: Packing | None) -> tf.Tensor:
        """[B, H, L, d] -> [B, L, H * d], or packed [N, H * d]."""
        shape = tf.shape(x)
        joined = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [shape[0], shape[2], self.heads * self.head_size])
        return joined if packing is None else packing.pack(joined)
