"""Sums of the gradients of a step's micro-batches, in the order of the summation tree."""

from nmt.cluster.summation import slots
from nmt.runtime import tf


class GradientSums(tf.Module):
    """Gradients, and loss, correct tokens and tokens, summed over micro-batches.

    They are held in slots (see ``nmt.cluster.summation``), all of which are zeros between steps. A value added to zero
    is the value, but -0 becomes +0; so a micro-batch that a short step lacks changes no bit.
    """

    def __init__(self, weights: list[tf.Variable], micro_batches: int) -> None:
        """Take the weights, and the number of micro-batches of a step that this process computes."""
        super().__init__(name="gradient_sums")
        self.slots = [
            [
                *(tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights),
                tf.Variable(tf.zeros([3], tf.float64), trainable=False),
            ]
            for _ in range(slots(micro_batches))
        ]
        self.last_batch = tf.Variable(0, dtype=tf.int64, trainable=False)

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
        self.last_batch.assign(batch)

    def merge(self, slot: int) -> None:
        """Add a slot to the one before it, and clear it."""
        for total, part in zip(self.slots[slot - 1], self.slots[slot], strict=True):
            total.assign_add(part)
            part.assign(tf.zeros_like(part))

    def take(self) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return the summed gradients, and the sums float64 [3], of all micro-batches added."""
        *gradients, sums = (variable.read_value() for variable in self.slots[0])
        return gradients, sums

    def clear(self) -> None:
        """Set the sums to zeros."""
        for variable in self.slots[0]:
            variable.assign(tf.zeros_like(variable))
