"""Batches whose loss or gradients are not finite, and the loss scale of float16.

The step counts them on the device without synchronization; the loop reads the counts together with the totals.
"""

from typing import NamedTuple

from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of


class LossScale(tf.Module):
    """Dynamic loss scale: a factor on the objective that keeps float16 gradients off zero (Micikevicius et al. 2018).

    A step whose gradients overflow is skipped and halves the scale; ``PATIENCE`` steps without one double it.
    """

    PATIENCE = 2000
    FIRST, LEAST, MOST = 2.0**15, 1.0, 2.0**24

    def __init__(self) -> None:
        """Start from the first scale."""
        super().__init__(name="loss_scale")
        self.value = tf.Variable(self.FIRST, trainable=False)
        self.good_steps = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, finite: tf.Tensor) -> None:
        """Update the scale after a step; ``finite``, bool scalar: whether all its gradients were finite."""
        good = tf.where(finite, self.good_steps + 1, 0)
        grown = tf.where(good >= self.PATIENCE, self.value * 2, self.value)
        self.value.assign(tf.clip_by_value(tf.where(finite, grown, self.value / 2), self.LEAST, self.MOST))
        self.good_steps.assign(good % self.PATIENCE)

    def state(self) -> Arrays:
        """Return the arrays to save."""
        return {"loss_scale": value_of(self.value), "loss_scale_good_steps": value_of(self.good_steps)}

    def restore(self, arrays: Arrays) -> None:
        """Restore what ``state`` returned; KeyError if an array is missing."""
        self.value.assign(arrays["loss_scale"])
        self.good_steps.assign(arrays["loss_scale_good_steps"])


NONE = -1  # in place of a batch's number


class NonFiniteReport(NamedTuple):
    """Reading of a ``NonFiniteTracker``."""

    first_bad_batch: int | None
    """Number of the run's first batch with a non-finite loss or gradient; None: there was none."""
    last_bad_batch: int | None
    """Number of the last such batch; None: there was none."""
    skipped: int
    """Number of steps of the run that were skipped."""


class NonFiniteTracker(tf.Module):
    """First and last batch with a non-finite loss or gradient, and the number of steps skipped for it."""

    def __init__(self) -> None:
        """Start with no such batch."""
        super().__init__(name="nonfinite")
        self.batches = tf.Variable([NONE, NONE], dtype=tf.int64, trainable=False)  # the first and the last
        self.skipped = tf.Variable(0, dtype=tf.int64, trainable=False)

    def note(self, bad: tf.Tensor, batch: tf.Tensor) -> None:
        """Record the number of a batch, int64 scalar, if it is bad, bool scalar."""
        changes = (self.batches < 0) | tf.constant([False, True])
        self.batches.assign(tf.where(bad & changes, batch, self.batches))

    def skip(self) -> None:
        """Count a skipped step."""
        self.skipped.assign_add(1)

    def read(self) -> NonFiniteReport:
        """Return the record so far."""
        first, last = (None if batch == NONE else batch for batch in self.batches.numpy().tolist())
        return NonFiniteReport(first, last, int(self.skipped.numpy()))

    def state(self) -> Arrays:
        """Return the arrays to save."""
        first, last = self.batches.numpy()
        return {"first_bad_batch": first, "last_bad_batch": last, "skipped": self.skipped.numpy()}

    def restore(self, arrays: Arrays) -> None:
        """Restore what ``state`` returned; KeyError if an array is missing."""
        self.batches.assign([arrays["first_bad_batch"], arrays["last_bad_batch"]])
        self.skipped.assign(arrays["skipped"])
