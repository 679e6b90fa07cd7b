"""Loss, correct tokens and tokens summed over batches: kept on the device, read by the training loop."""

import math
from typing import NamedTuple

from nmt.runtime import tf
from nmt.training.optimization.losses import TokenSums


class TokenTotals(NamedTuple):
    """Loss and counts over the target tokens of some batches."""

    loss: float = 0.0
    """Summed cross-entropy in nats."""
    correct: float = 0.0
    """Number of tokens predicted correctly."""
    tokens: float = 0.0
    """Number of tokens."""

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss of a token in nats, and accuracy: share of correct tokens; NaN without any token."""
        if not self.tokens:
            return math.nan, math.nan
        return self.loss / self.tokens, self.correct / self.tokens

    def since(self, earlier: "TokenTotals") -> "TokenTotals":
        """Return the difference to earlier totals."""
        return TokenTotals(*(now - then for now, then in zip(self, earlier, strict=True)))


class RunningTotals(tf.Module):
    """Totals on the device. Only reading them makes the training loop wait for the device."""

    def __init__(self) -> None:
        """Start from zero."""
        super().__init__(name="totals")
        self.sums = tf.Variable(tf.zeros([3], tf.float64), trainable=False)

    def add(self, sums: tf.Tensor) -> None:
        """Add loss, correct tokens and tokens of one or more batches, float64 [3], as from ``loss_and_counts``."""
        self.sums.assign_add(sums)

    def read(self) -> TokenTotals:
        """Return the totals so far."""
        return TokenTotals(*self.sums.numpy().tolist())

    def set(self, totals: TokenTotals) -> None:
        """Set the totals."""
        self.sums.assign(tf.constant(totals, tf.float64))


def loss_and_counts(sums: TokenSums) -> tf.Tensor:
    """Return loss, correct tokens and tokens of a batch: float64 [3]."""
    return tf.cast(tf.stack([sums.loss, sums.correct, sums.tokens]), tf.float64)
