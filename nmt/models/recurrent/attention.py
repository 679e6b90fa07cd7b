"""Attention of a decoder state to the annotations of a source sentence, over all of it or a window.

Shapes: B sentences, S source length, Q states of a sentence (T time steps, or K beams), R = B * Q rows, n state width,
E annotation width, A width of the scores' vectors.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.config.recurrent import ADDITIVE, RecurrentConfig
from nmt.models.layers.attention import MASKED_SCORE
from nmt.models.layers.basic import Layer
from nmt.models.layers.ops import flat_rows, shaped_like, sizes
from nmt.models.recurrent.scan import Operation, StepOps, Tensors
from nmt.runtime import keras, tf


class Source(NamedTuple):
    """What attention reads of B source sentences; all beams of a sentence share it."""

    annotations: tf.Tensor
    """Annotations h of the source tokens, zeros at padding: [B, S, E]."""
    keys: tf.Tensor
    """What states are compared with: [B, S, A] in additive scores, [B, n, S] in products."""
    lengths: tf.Tensor
    """Real lengths: int32 [B]."""


class Attention(Layer):
    """Attention weights alpha = softmax of scores a(s, h), and their context c = sum of alpha h.

    additive: v' tanh(W_1 h + W_2 s) (Bahdanau et al. 2015, appendix A.1.2). concat: v' tanh(W [s; h]) (Luong et al.
    2015, section 3.1), the same with W = [W_2; W_1]. dot: s' h. general: s' W h. scaled-dot: g s' h, where the trained
    g starts at 1 / sqrt(n).

    A window (Luong et al. 2015, section 3.2) leaves the source tokens i with abs(i - floor(p)) <= D, cut at the
    sentence's ends; softmax is over the window alone. local-m: p = t, at most the last token. local-p:
    p = S sigmoid(v' tanh(W s)); each weight is then multiplied by exp(-(i - p)^2 / (2 sigma^2)), sigma = D / 2. Tokens
    and target positions t count from 0, and S counts eos.
    """

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section."""
        super().__init__(**kwargs)
        self.config = config
        self.kernel_initializer: keras.initializers.Initializer = keras.initializers.GlorotUniform()

    def build(self, input_shape: Any) -> None:
        """Make the weights of the score and of the window."""
        config = self.config
        width, annotation, inner = config.width, config.annotation_width, config.score_width
        if config.attention in ADDITIVE:
            self._make("key_kernel", annotation, inner)
            self._make("query_kernel", width, inner)
            self._make("score_kernel", inner, 1)
        elif config.attention == "general":
            self._make("key_kernel", annotation, width)
        elif config.attention == "scaled-dot":
            initial = keras.initializers.Constant(width**-0.5)
            self.scale = self.add_weight(name="scale", shape=(), initializer=initial)
        if config.window == "local-p":
            self._make("position_kernel", width, inner)
            self._make("position_score_kernel", inner, 1)

    def _make(self, name: str, rows: int, columns: int) -> None:
        setattr(self, name, self.add_weight(name=name, shape=(rows, columns), initializer=self.kernel_initializer))

    def source(self, annotations: tf.Tensor, lengths: tf.Tensor) -> Source:
        """Return what attention reads of annotations [B, S, E] of sentences with real lengths int32 [B]."""
        keys = annotations
        if self.config.attention in (*ADDITIVE, "general"):
            kernel = self.cast(self.key_kernel)
            batch, length, width = sizes(annotations)
            keys = tf.reshape(tf.matmul(tf.reshape(annotations, [-1, width]), kernel), [batch, length, kernel.shape[1]])
        if self.config.attention not in ADDITIVE:
            keys = tf.transpose(keys, [0, 2, 1])
        return Source(keys=keys, annotations=annotations, lengths=lengths)

    def tensors(self, source: Source) -> Tensors:
        """Return what ``call`` reads, by name."""
        found = {"attention/context": source.annotations}
        if self.config.attention in ADDITIVE:
            found |= {"attention/query": self.cast(self.query_kernel), "attention/keys": source.keys}
            found["attention/score"] = self.cast(self.score_kernel)
        else:
            found["attention/scores"] = source.keys
        if self.config.attention == "scaled-dot":
            found["attention/scale"] = tf.cast(self.scale.value, tf.float32)
        if self.config.window == "local-p":
            found["attention/position"] = self.cast(self.position_kernel)
            found["attention/position_score"] = self.cast(self.position_score_kernel)
        return found

    def call(
        self, ops: StepOps, states: tf.Tensor, t: tf.Tensor, length: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attend from states.

        Args:
            ops: operations with the ``tensors``.
            states: [R, n].
            t: target positions of the Q states of a sentence: int32 scalar or [Q].
            length: S.
            lengths: real lengths: int32 [B].

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
        """States [R, n] -> scores of R * S elements."""
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
        """Return the position p that each state looks at, float32 [B, Q] or [B, 1]; None: no window."""
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
    """(keys [B, 1, S, A], query [B, Q, 1, A], v [A, 1]) -> v' tanh(keys + query) [B * Q * S, 1], and the tanh."""
    inner = tf.tanh(keys + query)
    return tf.matmul(flat_rows(inner), v), inner


def _additive_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    (of_scores, *_), (_, inner), (_, _, v) = upstream, y, x
    of_inner = shaped_like(of_scores * v[:, 0], inner)
    of_sum = tf.raw_ops.TanhGrad(y=inner, dy=of_inner)
    of_v = tf.matmul(flat_rows(inner), of_scores, transpose_a=True)
    return tf.reduce_sum(of_sum, axis=1, keepdims=True), tf.reduce_sum(of_sum, axis=2, keepdims=True), of_v


_ADDITIVE = Operation(_additive, _additive_gradient)
