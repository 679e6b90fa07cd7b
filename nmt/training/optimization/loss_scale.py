"""Dynamic loss scaling for float16."""

from nmt.runtime import tf


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
