"""TODO."""

import math
from typing import NamedTuple

from nmt.runtime import tf
from nmt.training.optimization.losses import TokenSums


class Sums(NamedTuple):
    """What ``Totals`` holds, read."""

    loss: float = 0.0
    right: float = 0.0
    tokens: float = 0.0

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss of a token in nats, and the share of tokens predicted right; NaN if all steps were left out."""
        if not self.tokens:
            return math.nan, math.nan
        return self.loss / self.tokens, self.right / self.tokens

    def since(self, earlier: "Sums") -> "Sums":
        """Return what was added since an earlier reading."""
        return Sums(*(now - then for now, then in zip(self, earlier, strict=True)))


class Totals(tf.Module):
    """Sums over batches, kept where the step runs: reading them is the only time the loop waits for the device."""

    def __init__(self) -> None:
        """Start from zero."""
        super().__init__(name="totals")
        self.sums = tf.Variable(tf.zeros([3], tf.float64), trainable=False)

    def add(self, sums: tf.Tensor) -> None:
        """Add what one batch or more came to: float64 [3], as ``counted`` returns."""
        self.sums.assign_add(sums)

    def read(self) -> Sums:
        """Return the sums so far."""
        return Sums(*self.sums.numpy().tolist())

    def set(self, sums: Sums) -> None:
        """Go on from these sums."""
        self.sums.assign(tf.constant(sums, tf.float64))


def counted(batch: TokenSums) -> tf.Tensor:
    """Return what ``Totals`` adds up: loss, right tokens and tokens of a batch, float64 [3]."""
    return tf.cast(tf.stack([batch.loss, batch.right, batch.tokens]), tf.float64)
