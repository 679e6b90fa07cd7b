"""Gradient accumulation over the micro-batches of a step, in the order of the summation tree."""

from collections.abc import Sequence

from nmt.cluster.group import Group, tree_sum
from nmt.cluster.summation import slots
from nmt.runtime import tf
from nmt.training.optimization.nonfinite import NONE, NonFiniteTracker


class GradientAccumulator(tf.Module):
    """Gradients, and loss, correct tokens and tokens, summed over the micro-batches of one device.

    The sums are held in slots (see ``nmt.cluster.summation``), which are zero between steps. Adding a value to zero
    gives the value, except that -0 becomes +0. So a micro-batch that a short step lacks changes no bit.
    """

    def __init__(self, weights: list[tf.Variable], share: range) -> None:
        """Make slots of zeros.

        Args:
            weights: the trained weights.
            share: the micro-batches of a step that this device computes.
        """
        super().__init__(name="gradient_sums")
        self.slots = [
            [
                *(tf.Variable(tf.zeros(weight.shape, weight.dtype), trainable=False) for weight in weights),
                tf.Variable(tf.zeros([3], tf.float64), trainable=False),
            ]
            for _ in range(slots(len(share)))
        ]
        # The first and the last micro-batch with a non-finite loss, and the last micro-batch of all.
        self.numbers = tf.Variable([NONE] * 3, dtype=tf.int64, trainable=False)

    def add(self, gradients: list[tf.Tensor], sums: tf.Tensor, batch: tf.Tensor, slot: tf.Tensor) -> None:
        """Add a micro-batch to a slot.

        Args:
            gradients: the gradient of each weight.
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
        """Add a slot to the slot before it, and clear it."""
        for total, part in zip(self.slots[slot - 1], self.slots[slot], strict=True):
            total.assign_add(part)
            part.assign(tf.zeros_like(part))

    def clear(self) -> None:
        """Set the first slot to zeros, and forget the numbers."""
        for variable in self.slots[0]:
            variable.assign(tf.zeros_like(variable))
        self.numbers.assign([NONE] * 3)


def all_reduce(
    accumulators: Sequence[GradientAccumulator], group: Group, nonfinite: NonFiniteTracker
) -> tuple[list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """Return the sums over the devices of all hosts, and record micro-batches with a non-finite loss.

    Args:
        accumulators: the accumulator of each device of this host.
        group: the hosts.
        nonfinite: records the first and the last such micro-batch.

    Returns:
        The gradients; loss, correct tokens and tokens, float64 [3]; number of the last micro-batch, int64 scalar.
    """
    device_sums = [[variable.read_value() for variable in accumulator.slots[0]] for accumulator in accumulators]
    *gradients, sums = map(tree_sum, zip(*device_sums, strict=True))
    gradients, sums = group.total(gradients, sums)
    numbers = [group.gather(accumulator.numbers.read_value()) for accumulator in accumulators]
    firsts, lasts, newest = tf.unstack(tf.concat(numbers, axis=0), axis=1)
    first, last = -tf.reduce_max(tf.where(firsts < 0, -tf.int64.max, -firsts)), tf.reduce_max(lasts)
    nonfinite.note(last >= 0, first)
    nonfinite.note(last >= 0, last)
    return gradients, sums, tf.reduce_max(newest)
