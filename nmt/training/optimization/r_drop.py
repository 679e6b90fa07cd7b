"""Divergence of two passes with different dropout over the same tokens, which R-Drop makes small (Liang et al. 2021).

Shapes: N tokens, V vocabulary.
"""

from typing import NamedTuple

from nmt.runtime import tf


class SymmetricDivergence(NamedTuple):
    """KL(p || q) + KL(q || p) of the predictions p and q of each token.

    With r = log p - log q it is sum((p - q) r), and its gradient with respect to the logits of p is
    p (r - sum(p r)) + p - q; with respect to those of q likewise, with the roles exchanged.
    """

    softmax: tf.Tensor
    """p of N tokens and then q of the same: [2 N, V]."""
    ratio: tf.Tensor
    """r in the dtype of the softmax: [N, V]."""

    @classmethod
    def of(cls, logits: tf.Tensor, log_sum: tf.Tensor, softmax: tf.Tensor) -> "SymmetricDivergence":
        """Take logits [2 N, V], the logarithms of the sums of their exponentials, float32 [2 N], and their softmax."""
        (first, second), (first_sum, second_sum) = tf.split(logits, 2), tf.split(log_sum, 2)
        return cls(softmax, first - second - tf.cast(first_sum - second_sum, logits.dtype)[:, tf.newaxis])

    def values(self) -> tf.Tensor:
        """Return the divergence of each token, for both passes: float32 [2 N]."""
        first, second = self._means()
        return tf.tile(tf.cast(first - second, tf.float32)[:, 0], [2])

    def gradient(self) -> tf.Tensor:
        """Return the gradient of the divergence with respect to the logits: [2 N, V]."""
        p, q = tf.split(self.softmax, 2)
        first, second = self._means()
        change = p - q
        return tf.concat([p * (self.ratio - first) + change, q * (second - self.ratio) - change], axis=0)

    def _means(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return sum(p r) and sum(q r), added up in float32: [N, 1]."""
        p, q = tf.split(self.softmax, 2)
        ones = tf.ones([tf.shape(self.ratio)[1], 1], self.ratio.dtype)
        return tf.matmul(p * self.ratio, ones), tf.matmul(q * self.ratio, ones)
