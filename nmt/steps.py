"""The traced steps: forward and backward pass, optimizer, and validation, one graph each for batches of all shapes.

Shapes: B batch, S source length, T target length.
"""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from nmt.config import TrainingConfig
from nmt.losses import TokenSums, cross_entropy
from nmt.models import teacher_forced
from nmt.optimizer import Adam

BATCH = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))
RATE, SEED = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int64)


class Sums(NamedTuple):
    """What ``Totals`` holds, read."""

    loss: float = 0.0
    right: float = 0.0
    tokens: float = 0.0

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss of a token in nats, and the share of tokens predicted right."""
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

    def add(self, batch: TokenSums) -> None:
        """Add what a batch came to."""
        self.sums.assign_add(tf.cast(tf.stack([batch.loss, batch.right, batch.tokens]), tf.float64))

    def read(self) -> Sums:
        """Return the sums so far."""
        return Sums(*self.sums.numpy().tolist())

    def set(self, sums: Sums) -> None:
        """Go on from these sums."""
        self.sums.assign(tf.constant(sums, tf.float64))


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


class TrainStep:
    """One step of the optimizer, from one batch or from several whose gradients are added up.

    The gradient is that of the mean over all tokens of these batches, as if they were one.
    """

    def __init__(self, model: keras.Model, optimizer: Adam, totals: Totals, settings: TrainingConfig) -> None:
        """Take the model, built in the precision it is to compute in, what updates it, and what counts."""
        self.model, self.optimizer, self.totals, self.settings = model, optimizer, totals, settings
        self.loss_scale = LossScale() if model.compute_dtype == "float16" else None
        if settings.accumulate > 1:
            self.sums = [tf.Variable(tf.zeros_like(one), trainable=False) for one in optimizer.variables_trained]
            self.tokens = tf.Variable(0.0, trainable=False)
        # One graph each for batches of all shapes. XLA compiles one for each shape, which only a GPU makes up for.
        self.step = tf.function(self._step, input_signature=(*BATCH, RATE, SEED), jit_compile=settings.xla)
        self.add = tf.function(self._add, input_signature=(*BATCH, SEED), jit_compile=settings.xla)
        self.apply = tf.function(self._apply, input_signature=(RATE,), jit_compile=settings.xla)

    def _step(self, source: tf.Tensor, target: tf.Tensor, learning_rate: tf.Tensor, dropout_seed: tf.Tensor) -> None:
        """Learn from one batch.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            learning_rate: float32 scalar.
            dropout_seed: int64 [2]: the run's seed, and a number that no other batch of the run has.
        """
        self._update(self._gradients(source, target, dropout_seed, per_token=True), learning_rate)

    def _add(self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor) -> None:
        """Add a batch's gradients to those that ``apply`` will use; arguments as for ``step``."""
        for total, gradient in zip(self.sums, self._gradients(source, target, dropout_seed), strict=True):
            total.assign_add(gradient)

    def _apply(self, learning_rate: tf.Tensor) -> None:
        """Learn from the batches that were added."""
        self._update([total / self.tokens for total in self.sums], learning_rate)
        for total in (*self.sums, self.tokens):
            total.assign(tf.zeros_like(total))

    def _gradients(
        self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, *, per_token: bool = False
    ) -> list[tf.Tensor]:
        """Return the gradients of the summed objective, or of its mean over tokens; multiplied by the loss scale."""
        settings = self.settings
        with tf.GradientTape() as tape:
            logits, expected = teacher_forced(
                self.model, source, target, packed=settings.pack, dropout_seed=dropout_seed
            )
            sums = cross_entropy(logits, expected, settings.label_smoothing)
            objective = sums.objective / sums.tokens if per_token else sums.objective
            if self.loss_scale:
                objective *= self.loss_scale.value
        with tf.name_scope("backward"):  # the scopes are how a trace tells phases apart (see nmt.op_times)
            gradients = tape.gradient(objective, self.optimizer.variables_trained)
            gradients = [tf.convert_to_tensor(one) for one in gradients]  # an embedding's comes as slices of it
        self.totals.add(sums)
        if not per_token:
            self.tokens.assign_add(sums.tokens)
        return gradients

    def _update(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        with tf.name_scope("optimizer"):
            if self.loss_scale is None:
                self.optimizer.apply(gradients, learning_rate)
                return
            gradients = [one / self.loss_scale.value for one in gradients]
            finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(one)) for one in gradients])
            if finite:
                self.optimizer.apply(gradients, learning_rate)
            self.loss_scale.update(finite)

    def state(self) -> dict[str, np.ndarray]:
        """Return what a resumed run needs besides the weights; between steps no gradients are pending."""
        state = self.optimizer.state()
        if self.loss_scale:
            state["loss_scale"] = self.loss_scale.value.numpy()
            state["loss_scale_good_steps"] = self.loss_scale.good_steps.numpy()
        return state

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what ``state`` returned.

        Raises:
            KeyError, ValueError: if the arrays are those of another model or precision.
        """
        self.optimizer.restore(arrays)
        if self.loss_scale:
            self.loss_scale.value.assign(arrays["loss_scale"])
            self.loss_scale.good_steps.assign(arrays["loss_scale_good_steps"])


def make_validation_step(model: keras.Model, totals: Totals) -> Callable[[tf.Tensor, tf.Tensor], None]:
    """Return the traced validation step: teacher forcing without dropout, the loss in float32, into ``totals``."""

    @tf.function(input_signature=BATCH)
    def validation_step(source: tf.Tensor, target: tf.Tensor) -> None:
        logits, expected = teacher_forced(model, source, target)
        totals.add(cross_entropy(tf.cast(logits, tf.float32), expected))

    return validation_step
