"""Attention of a decoder state to the annotations of a source sentence, over all of it or a window.

Shapes: B sentences, S source length, Q states of a sentence (T time steps, or K beams), R = B * Q rows, n state width,
E annotation width, A width of the scores' vectors.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.config.recurrent import ADDITIVE, RecurrentConfig
from nmt.models.layers.attention import MASKED_SCORE
from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import flat_rows, shaped_like, sizes
from nmt.models.recurrent.scan import Operation, StepOps, Tensors
from nmt.runtime import keras, tf


class Source(NamedTuple):
    """Input of attention from B source sentences. All beams of a sentence share it."""

    annotations: tf.Tensor
    """Annotations h of the source tokens, zeros at padding: [B, S, E]."""
    keys: tf.Tensor
    """Vectors that decoder states are compared with: [B, S, A] for additive scores, [B, n, S] for products."""
    lengths: tf.Tensor
    """Lengths without padding: int32 [B]."""


class Attention(Layer):
    """Attention of decoder states s to annotations h: weights alpha = softmax(a(s, h)), context c = sum of alpha h.

    The scores a(s, h) are one of:

    - additive: v' tanh(W_1 h + W_2 s) (Bahdanau et al. 2015, appendix A.1.2).
    - concat: v' tanh(W [s; h]) (Luong et al. 2015, section 3.1), the same with W = [W_2; W_1].
    - dot: s' h.
    - general: s' W h.
    - scaled-dot: g s' h, where the trained g starts at 1 / sqrt(n).

    A window (Luong et al. 2015, section 3.2) limits attention to the source tokens i with abs(i - floor(p)) <= D, and
    the softmax to their scores. Tokens and target positions t count from 0, and S counts eos. The centre p is one of:

    - local-m: p = t, at most the last token.
    - local-p: p = S sigmoid(v' tanh(W s)). Each weight is then multiplied by exp(-(i - p)^2 / (2 sigma^2)) with
      sigma = D / 2.
    """

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section."""
        super().__init__(**kwargs)
        self.config = config
        self.initializer = keras.initializers.GlorotUniform()  # of all kernels
        width, annotation, inner = config.width, config.annotation_width, config.score_width
        if config.attention in ADDITIVE:
            self._declare_kernel("key_kernel", annotation, inner)
            self._declare_kernel("query_kernel", width, inner)
            self._declare_kernel("score_kernel", inner, 1)
        elif config.attention == "general":
            self._declare_kernel("key_kernel", annotation, width)
        elif config.attention == "scaled-dot":
            self.declare("scale", (), keras.initializers.Constant(width**-0.5))
        if config.window == "local-p":
            self._declare_kernel("position_kernel", width, inner)
            self._declare_kernel("position_score_kernel", inner, 1)

    def _declare_kernel(self, name: str, rows: int, columns: int) -> None:
        self.declare(name, (rows, columns), self.initializer, Blocks())

    def source(self, annotations: tf.Tensor, lengths: tf.Tensor) -> Source:
        """Return the input of attention from annotations [B, S, E] and lengths without padding, int32 [B]."""
        keys = annotations
        if self.config.attention in (*ADDITIVE, "general"):
            keys = shaped_like(tf.matmul(flat_rows(annotations), self.cast(self.key_kernel)), annotations)
        if self.config.attention not in ADDITIVE:
            keys = tf.transpose(keys, [0, 2, 1])
        return Source(keys=keys, annotations=annotations, lengths=lengths)

    def tensors(self, source: Source) -> Tensors:
        """Return the tensors that ``call`` reads, by name."""
        tensors = {"attention/context": source.annotations}
        if self.config.attention in ADDITIVE:
            tensors["attention/query"] = self.cast(self.query_kernel)
            tensors["attention/keys"] = source.keys
            tensors["attention/score"] = self.cast(self.score_kernel)
        else:
            tensors["attention/scores"] = source.keys
        if self.config.attention == "scaled-dot":
            tensors["attention/scale"] = tf.cast(self.scale.value, tf.float32)
        if self.config.window == "local-p":
            tensors["attention/position"] = self.cast(self.position_kernel)
            tensors["attention/position_score"] = self.cast(self.position_score_kernel)
        return tensors

    def call(
        self, ops: StepOps, states: tf.Tensor, t: tf.Tensor, length: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attend from states.

        Args:
            ops: operations with the ``tensors``.
            states: decoder states: [R, n].
            t: target positions of the Q states of a sentence: int32 scalar or [Q].
            length: S.
            lengths: lengths without padding: int32 [B].

        Returns:
            Contexts [R, E], and weights [R, S] in float32.
        """
        batch = sizes(lengths)[0]
        scores = tf.reshape(tf.cast(self._scores(ops, states, batch, length), tf.float32), [batch, -1, length])
        places = tf.range(length)
        allowed = places < lengths[:, tf.newaxis, tf.newaxis]  # [B, 1, S]
        centre = self._centre(ops, states, t, lengths)
        if centre is not None:
            distance = places - tf.cast(tf.floor(centre), tf.int32)[..., tf.newaxis]
            allowed &= tf.abs(distance) <= self.config.window_half_width
        weights = ops.softmax(scores + tf.where(allowed, 0.0, MASKED_SCORE))
        if self.config.window == "local-p" and centre is not None:
            distance = (tf.cast(places, tf.float32) - centre[..., tf.newaxis]) / (self.config.window_half_width / 2)
            weights *= tf.exp(-tf.square(distance) / 2)
        weights = tf.reshape(weights, [-1, length])
        return ops.product("attention/context", tf.cast(weights, self.compute_dtype)), weights

    def _scores(self, ops: StepOps, states: tf.Tensor, batch: Any, length: tf.Tensor) -> tf.Tensor:
        """Return the scores of states [R, n]: a tensor of R * S elements."""
        if self.config.attention in ADDITIVE:
            query = ops.product("attention/query", states)
            query = tf.reshape(query, [batch, -1, 1, query.shape[-1]])
            keys = tf.expand_dims(ops.tensors["attention/keys"], 1)
            return ops.apply(_ADDITIVE, keys, query, ops.tensors["attention/score"])[0]
        scores = ops.product("attention/scores", states)
        if self.config.attention == "scaled-dot":
            return tf.cast(scores, tf.float32) * ops.tensors["attention/scale"]
        return scores

    def _centre(self, ops: StepOps, states: tf.Tensor, t: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor | None:
        """Return the centre p of each state's window, float32 [B, Q] or [B, 1]; None without windows."""
        if self.config.window == "global":
            return None
        lengths = lengths[:, tf.newaxis]
        if self.config.window == "local-m":
            return tf.cast(tf.minimum(tf.reshape(t, [1, -1]), lengths - 1), tf.float32)
        inner = ops.tanh(ops.product("attention/position", states))
        share = tf.matmul(inner, ops.tensors["attention/position_score"])
        share = tf.reshape(ops.sigmoid(tf.cast(share, tf.float32)), [sizes(lengths)[0], -1])
        return tf.cast(lengths, tf.float32) * share


def _additive(keys: tf.Tensor, query: tf.Tensor, v: tf.Tensor) -> Sequence[tf.Tensor]:
    """Compute additive scores.

    Args:
        keys: [B, 1, S, A].
        query: [B, Q, 1, A].
        v: [A, 1].

    Returns:
        v' tanh(keys + query), [B * Q * S, 1], and the tanh.
    """
    inner = tf.tanh(keys + query)
    return tf.matmul(flat_rows(inner), v), inner


def _additive_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    d_scores = upstream[0]
    inner = y[1]
    v = x[2]
    d_inner = shaped_like(d_scores * v[:, 0], inner)
    d_sum = tf.raw_ops.TanhGrad(y=inner, dy=d_inner)
    d_keys = tf.reduce_sum(d_sum, axis=1, keepdims=True)
    d_query = tf.reduce_sum(d_sum, axis=2, keepdims=True)
    d_v = tf.matmul(flat_rows(inner), d_scores, transpose_a=True)
    return d_keys, d_query, d_v


_ADDITIVE = Operation(_additive, _additive_gradient)
