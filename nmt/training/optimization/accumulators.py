"""Sums of loss, correct tokens and tokens over batches, accumulated on the device."""

import math
from typing import NamedTuple

from nmt.runtime import tf
from nmt.training.optimization.losses import TokenSums


class Sums(NamedTuple):
    """Reading of ``Totals``, and differences of readings."""

    loss: float = 0.0
    correct: float = 0.0
    tokens: float = 0.0

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss of a token in nats, and accuracy: share of correct tokens; NaN without any token."""
        if not self.tokens:
            return math.nan, math.nan
        return self.loss / self.tokens, self.correct / self.tokens

    def since(self, earlier: "Sums") -> "Sums":
        """Return the difference to an earlier reading."""
        return Sums(*(now - then for now, then in zip(self, earlier, strict=True)))


class Totals(tf.Module):
    """Sums over batches on the device. Reading them is the only point where the loop waits for the device."""

    def __init__(self) -> None:
        """Start from zero."""
        super().__init__(name="totals")
        self.sums = tf.Variable(tf.zeros([3], tf.float64), trainable=False)

    def add(self, sums: tf.Tensor) -> None:
        """Add the sums of one or more batches: float64 [3], as of ``stacked``."""
        self.sums.assign_add(sums)

    def read(self) -> Sums:
        """Return the sums so far."""
        return Sums(*self.sums.numpy().tolist())

    def set(self, sums: Sums) -> None:
        """Set the sums."""
        self.sums.assign(tf.constant(sums, tf.float64))


def stacked(batch: TokenSums) -> tf.Tensor:
    """Return loss, correct tokens and tokens of a batch for ``Totals``: float64 [3]."""
    return tf.cast(tf.stack([batch.loss, batch.correct, batch.tokens]), tf.float64)
