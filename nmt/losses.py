"""Loss and accuracy over target tokens as sums and counts, so that sums over batches stay exact.

Shapes: B batch, T target length, V vocabulary, N tokens.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from nmt.tokenizer import PAD


class TokenSums(NamedTuple):
    """Sums over the tokens of a batch, padding left out: float32 scalars."""

    objective: tf.Tensor
    """What training lessens: the loss, with label smoothing the smoothed one. The only one with a gradient."""
    loss: tf.Tensor
    """Cross-entropy in nats: -log softmax(logits)[target]."""
    right: tf.Tensor
    """Number of tokens to which the model gives the largest logit."""
    tokens: tf.Tensor
    """Number of tokens."""


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float = 0.0) -> TokenSums:
    """Compare predictions with the tokens expected.

    With label smoothing e (Szegedy et al. 2016) the objective is the cross-entropy against 1 - e at the target and e
    spread evenly over all V. The matrix [N, V] is what costs here: besides the logits only their softmax is made, in
    the type of the logits, and turned into the gradient.

    Args:
        logits: [B, T, V], or [N, V] of the tokens that count.
        targets: int32 [B, T] or [N], padding 0.
        label_smoothing: e, 0 or more and below 1.
    """
    vocabulary = logits.shape[-1]
    flat, targets = tf.reshape(logits, [-1, vocabulary]), tf.reshape(targets, [-1])
    counted = tf.cast(tf.not_equal(targets, PAD), tf.float32)

    def at(matrix: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.gather(matrix, columns, batch_dims=1), tf.float32)

    @tf.custom_gradient
    def sums(logits: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor, tf.Tensor], Callable[..., tf.Tensor]]:
        softmax = tf.nn.softmax(logits, name="loss_softmax")
        best = _largest(softmax)
        # The log of the sum of exponents comes from the largest term: the target's own may be too small to hold.
        log_sum = at(logits, best) - tf.math.log(at(softmax, best))
        losses = log_sum - at(logits, targets)
        objective = losses
        if label_smoothing:
            evenly = tf.fill([vocabulary, 1], tf.cast(1 / vocabulary, logits.dtype))
            mean_logit = tf.cast(tf.matmul(logits, evenly)[:, 0], tf.float32)
            objective = (1 - label_smoothing) * losses + label_smoothing * (log_sum - mean_logit)

        def gradient(upstream: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
            rows = tf.stack([tf.range(tf.size(targets)), targets], axis=1)
            at_target = tf.fill([tf.size(targets)], tf.cast(label_smoothing - 1, logits.dtype))
            difference = softmax
            if label_smoothing:
                difference -= tf.cast(label_smoothing / vocabulary, logits.dtype)
            difference = tf.tensor_scatter_nd_add(difference, rows, at_target)
            return difference * tf.cast(upstream * counted, logits.dtype)[:, tf.newaxis]

        right = tf.cast(tf.equal(best, targets), tf.float32)
        return tuple(tf.reduce_sum(each * counted) for each in (objective, losses, right)), gradient

    objective, loss, right = sums(flat)
    return TokenSums(objective, tf.stop_gradient(loss), tf.stop_gradient(right), tf.reduce_sum(counted))


def _largest(softmax: tf.Tensor) -> tf.Tensor:
    """Return the column of the largest in each row of [N, V]: int32 [N]."""
    if softmax.dtype.size == 2:  # not negative, so its bits as integers have the same order, and are compared faster
        softmax = tf.bitcast(softmax, tf.int16)
    return tf.cast(tf.argmax(softmax, axis=-1), tf.int32)
