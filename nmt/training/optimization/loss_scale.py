"""TODO."""

from nmt.runtime import tf


class LossScale(tf.Module):
    """Keeps float16's gradients off zero: multiplies the objective, divides the gradients (Micikevicius et al. 2018).

    A step whose gradients overflow is left out and the scale halved; after ``PATIENCE`` steps without, it is doubled.
    """

    PATIENCE = 2000
    FIRST, LEAST, MOST = 2.0**15, 1.0, 2.0**24

    def __init__(self) -> None:
        """Start from the first scale."""
        super().__init__(name="loss_scale")
        self.value = tf.Variable(self.FIRST, trainable=False)
        self.good_steps = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, finite: tf.Tensor) -> None:
        """Take note of a step, whose gradients were all finite or not: bool scalar."""
        good = tf.where(finite, self.good_steps + 1, 0)
        grown = tf.where(good >= self.PATIENCE, self.value * 2, self.value)
        self.value.assign(tf.clip_by_value(tf.where(finite, grown, self.value / 2), self.LEAST, self.MOST))
        self.good_steps.assign(good % self.PATIENCE)
