"""Where training goes astray: batches whose loss or gradients are not finite, noted where the step runs.

The step writes it down without waiting for anybody; the loop reads it when it reads the totals, and decides.
"""

from typing import NamedTuple

import numpy as np

from nmt.runtime import tf

NONE = -1  # in place of a batch's number


class Trouble(NamedTuple):
    """What ``Divergence`` holds, read."""

    first_bad_batch: int | None
    """Number of the first batch of the run whose loss or gradients were not finite; None: there was none."""
    last_bad_batch: int | None
    """Number of the last such batch."""
    skipped: int
    """Steps of the run that were left out for it."""


class Divergence(tf.Module):
    """A record of bad batches and of the steps left out because of them."""

    def __init__(self) -> None:
        """Start with no trouble."""
        super().__init__(name="divergence")
        self.batches = tf.Variable([NONE, NONE], dtype=tf.int64, trainable=False)  # the first and the last
        self.skipped = tf.Variable(0, dtype=tf.int64, trainable=False)

    def note(self, bad: tf.Tensor, batch: tf.Tensor) -> None:
        """Write down the number of a batch, int64 scalar, if it is bad: bool scalar."""
        changes = (self.batches < 0) | tf.constant([False, True])
        self.batches.assign(tf.where(bad & changes, batch, self.batches))

    def skip(self) -> None:
        """Count a step that is left out."""
        self.skipped.assign_add(1)

    def read(self) -> Trouble:
        """Return what there was so far."""
        first, last = (None if batch == NONE else batch for batch in self.batches.numpy().tolist())
        return Trouble(first, last, int(self.skipped.numpy()))

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays that a resumed run needs."""
        first, last = self.batches.numpy()
        return {"first_bad_batch": first, "last_bad_batch": last, "skipped": self.skipped.numpy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what ``state`` returned; KeyError if it is missing."""
        self.batches.assign([arrays["first_bad_batch"], arrays["last_bad_batch"]])
        self.skipped.assign(arrays["skipped"])
