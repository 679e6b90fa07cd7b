"""Sums of the gradients of a step's micro-batches, in the order of the summation tree."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from nmt.cluster.group import Group, tree_sum
from nmt.cluster.summation import slots
from nmt.runtime import tf
from nmt.training.optimization.losses import TokenSums
from nmt.training.optimization.nonfinite import NONE, NonFiniteTracker


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


class GradientSums(tf.Module):
    """Gradients, and loss, correct tokens and tokens, summed over micro-batches.

    They are held in slots (see ``nmt.cluster.summation``), all of which are zeros between steps. A value added to zero
    is the value, but -0 becomes +0; so a micro-batch that a short step lacks changes no bit.
    """

    def __init__(self, weights: list[tf.Variable], share: range) -> None:
        """Take the weights, and the micro-batches of a step that this device computes."""
        super().__init__(name="gradient_sums")
        self.slots = [
            [
                *(tf.Variable(tf.zeros(weight.shape, weight.dtype), trainable=False) for weight in weights),
                tf.Variable(tf.zeros([3], tf.float64), trainable=False),
            ]
            for _ in range(slots(len(share)))
        ]
        # The first and the last micro-batch with a non-finite loss, and the last of all.
        self.numbers = tf.Variable([NONE] * 3, dtype=tf.int64, trainable=False)

    def add(self, gradients: list[tf.Tensor], sums: tf.Tensor, batch: tf.Tensor, slot: tf.Tensor) -> None:
        """Add a micro-batch to a slot.

        Args:
            gradients: as the weights.
            sums: loss, correct tokens and tokens: float64 [3].
            batch: number of the micro-batch in the run: int64 scalar.
            slot: int32 scalar.
        """
        values = [*gradients, sums]

        def add_to(variables: list[tf.Variable]) -> None:
            for variable, value in zip(variables, values, strict=True):
                variable.assign_add(value)

        if len(self.slots) == 1:
            add_to(self.slots[0])
        else:
            tf.switch_case(slot, [lambda variables=variables: add_to(variables) for variables in self.slots])
        first, last, _ = tf.unstack(self.numbers)
        bad = ~tf.math.is_finite(sums[0])
        self.numbers.assign([tf.where(bad & (first < 0), batch, first), tf.where(bad, batch, last), batch])

    def merge(self, slot: int) -> None:
        """Add a slot to the one before it, and clear it."""
        for total, part in zip(self.slots[slot - 1], self.slots[slot], strict=True):
            total.assign_add(part)
            part.assign(tf.zeros_like(part))

    def clear(self) -> None:
        """Set the sums to zeros, and forget the numbers."""
        for variable in self.slots[0]:
            variable.assign(tf.zeros_like(variable))
        self.numbers.assign([NONE] * 3)


def take(
    devices: Sequence[GradientSums], group: Group, nonfinite: NonFiniteTracker
) -> tuple[list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """Return what the micro-batches of all devices of all hosts sum to, and note those with a non-finite loss.

    Returns:
        The gradients; loss, correct tokens and tokens, float64 [3]; number of the last micro-batch, int64 scalar.
    """
    parts = zip(*([variable.read_value() for variable in each.slots[0]] for each in devices), strict=True)
    *gradients, sums = map(tree_sum, parts)
    gradients, sums = group.total(gradients, sums)
    gathered = [group.gather(each.numbers.read_value()) for each in devices]
    firsts, lasts, numbers = tf.unstack(tf.concat(gathered, axis=0), axis=1)
    first, last = -tf.reduce_max(tf.where(firsts < 0, -tf.int64.max, -firsts)), tf.reduce_max(lasts)
    nonfinite.note(last >= 0, first)
    nonfinite.note(last >= 0, last)
    return gradients, sums, tf.reduce_max(numbers)
