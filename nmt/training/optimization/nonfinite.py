"""Tracking of batches with a non-finite loss or gradient, and the loss scale of float16.

A step counts them on the device without synchronization. The training loop reads the counts together with the totals.
"""

from typing import NamedTuple

from nmt.runtime import tf
from nmt.training.optimization.optimizer import Checkpointed


class LossScale(Checkpointed):
    """Dynamic loss scale: a factor that keeps float16 gradients from underflowing (Micikevicius et al. 2018).

    A step whose gradients overflow is skipped and halves the scale. ``PATIENCE`` steps without overflow double it.
    """

    PATIENCE = 2000
    FIRST, LEAST, MOST = 2.0**15, 1.0, 2.0**24

    def __init__(self) -> None:
        """Start with the scale ``FIRST``."""
        super().__init__(name="loss_scale")
        self.value = tf.Variable(self.FIRST, trainable=False)
        self.good_steps = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, finite: tf.Tensor) -> None:
        """Update the scale after a step. ``finite`` tells whether all gradients were finite: bool scalar."""
        good = tf.where(finite, self.good_steps + 1, 0)
        grown = tf.where(good >= self.PATIENCE, self.value * 2, self.value)
        self.value.assign(tf.clip_by_value(tf.where(finite, grown, self.value / 2), self.LEAST, self.MOST))
        self.good_steps.assign(good % self.PATIENCE)

    def named(self) -> dict[str, tf.Variable]:
        """Return the scale, and the number of steps without overflow."""
        return {"loss_scale": self.value, "loss_scale_good_steps": self.good_steps}


NONE = -1  # number of no batch


class NonFiniteReport(NamedTuple):
    """Reading of a ``NonFiniteTracker``."""

    first_bad_batch: int | None
    """Number of the run's first batch with a non-finite loss or gradient; None: no such batch."""
    last_bad_batch: int | None
    """Number of the last such batch; None: no such batch."""
    skipped: int
    """Number of skipped steps of the run."""


class NonFiniteTracker(Checkpointed):
    """Record of the first and last batch with a non-finite loss or gradient, and of the number of skipped steps."""

    def __init__(self) -> None:
        """Start with no such batch."""
        super().__init__(name="nonfinite")
        self.first, self.last, self.skipped = (
            tf.Variable(value, dtype=tf.int64, trainable=False) for value in (NONE, NONE, 0)
        )

    def note(self, bad: tf.Tensor, batch: tf.Tensor) -> None:
        """Record the number of a batch if it is bad.

        Args:
            bad: bool scalar.
            batch: number of the batch in the run: int64 scalar.
        """
        self.first.assign(tf.where(bad & (self.first < 0), batch, self.first))
        self.last.assign(tf.where(bad, batch, self.last))

    def skip(self) -> None:
        """Count a skipped step."""
        self.skipped.assign_add(1)

    def read(self) -> NonFiniteReport:
        """Return the record so far."""
        first, last, skipped = (int(array) for array in self.state().values())
        return NonFiniteReport(None if first == NONE else first, None if last == NONE else last, skipped)

    def named(self) -> dict[str, tf.Variable]:
        """Return the numbers of the first and the last bad batch, and of skipped steps."""
        return {"first_bad_batch": self.first, "last_bad_batch": self.last, "skipped": self.skipped}
