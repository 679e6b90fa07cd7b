"""Loss and accuracy over target tokens, as (sum, count), so that sums over batches stay exact.

Shapes: B batch, T target length, V vocabulary.
"""

import tensorflow as tf

from nmt.tokenizer import PAD


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the summed -log softmax(logits)[target] of all tokens but padding, and their count.

    Args:
        logits: [B, T, V], or [N, V] of the tokens that count.
        targets: int32 [B, T] or [N], padding 0.

    Returns:
        Sum in nats, and count: float32 scalars.
    """
    mask = tf.cast(tf.not_equal(targets, PAD), tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, tf.cast(logits, tf.float32))
    return tf.reduce_sum(losses * mask), tf.reduce_sum(mask)


def accuracy(logits: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return how many tokens but padding have the largest logit, and their count: float32 scalars."""
    mask = tf.not_equal(targets, PAD)
    right = tf.equal(tf.argmax(logits, axis=-1, output_type=targets.dtype), targets)
    return tf.reduce_sum(tf.cast(right & mask, tf.float32)), tf.reduce_sum(tf.cast(mask, tf.float32))
