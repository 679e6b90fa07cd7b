"""The traced training step: forward and backward pass and optimizer, one graph for batches of all shapes.

Shapes: B batch, S source length, T target length.
"""

from collections.abc import Callable
from typing import Any

from nmt.cluster.group import Group
from nmt.cluster.summation import Addition
from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.optimization.gradient_sums import GradientSums, Totals, stacked
from nmt.training.optimization.losses import fused_linear_cross_entropy
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.nonfinite import LossScale, NonFiniteReport, NonFiniteTracker
from nmt.training.optimization.optimizer import Adam, MovingAverage

BATCH = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))
RATE, SEED, SLOT = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int64), tf.TensorSpec([], tf.int32)
SECOND_PASS = [0, 1 << 62]
"""Offset of the dropout seed of the second pass of R-Drop: batches have smaller numbers."""


class TrainStep:
    """A step of the optimizer, from one batch or from several micro-batches whose gradients are summed.

    The gradient is that of the mean over all tokens of the step.

    The tracker ``nonfinite`` records a batch with a non-finite loss. With ``skip_nonfinite``, ``clip_norm`` or float16,
    a step with such a batch or with a non-finite gradient norm is skipped: weights, moments, averages and totals stay.
    Otherwise the norm is unknown, since it would cost a pass over all gradients, and the step is taken. In float16,
    gradients that overflow with a finite loss skip the step and halve the loss scale, without a record.
    """

    def __init__(
        self, model: Seq2SeqModel, optimizer: Adam | Muon, totals: Totals, config: TrainingConfig, group: Group
    ) -> None:
        """Take the model, built in its compute precision, its optimizer, the totals to add to, and the hosts."""
        self.model, self.optimizer, self.totals, self.config = model, optimizer, totals, config
        self.loss_scale = LossScale() if model.compute_dtype == "float16" else None
        self.nonfinite = NonFiniteTracker()
        self.skips = bool(config.skip_nonfinite or config.clip_norm or self.loss_scale)
        weights = optimizer.variables_trained
        self.moving_average = MovingAverage(weights, config.ema_decay) if config.ema_decay else None
        if config.micro_batches > 1:
            self.sums = GradientSums(weights, config.micro_batches, group)
        self.step = self._traced(self._step, (*BATCH, RATE, SEED))
        self._traced_add = self._traced(self._add, (*BATCH, SEED, SLOT))
        self._traced_merge = self._traced(self._merge)
        self.apply = self._traced(self._apply, (RATE,))

    def _traced(self, function: Callable[..., None], signature: tuple[tf.TensorSpec, ...] | None = None) -> Any:
        """Return a function as one graph for batches of all shapes; itself if the configuration says eager."""
        return function if self.config.eager else tf.function(function, input_signature=signature)

    def _step(self, source: tf.Tensor, target: tf.Tensor, learning_rate: tf.Tensor, dropout_seed: tf.Tensor) -> None:
        """Take a step from one batch.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            learning_rate: float32 scalar.
            dropout_seed: int64 [2]: the run's seed, and the number of the batch in the run.
        """
        gradients, sums = self._gradients(source, target, dropout_seed, per_token=True)
        self.nonfinite.note(~tf.math.is_finite(sums[0]), dropout_seed[1])
        self._update(gradients, learning_rate, sums, dropout_seed[1])

    def add(self, batch: tuple[tf.Tensor, tf.Tensor] | None, dropout_seed: tf.Tensor, addition: Addition) -> None:
        """Add the gradients of a micro-batch to the sums that ``apply`` uses.

        Args:
            batch: source and target, as of ``step``; None: the step has no such micro-batch.
            dropout_seed: as of ``step``.
            addition: its place in the summation tree.
        """
        if batch is not None:
            self._traced_add(*batch, dropout_seed, tf.constant(addition.slot))
        for slot in addition.merged:
            self._traced_merge(slot)

    def _add(self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, slot: tf.Tensor) -> None:
        gradients, sums = self._gradients(source, target, dropout_seed)
        self.sums.add(gradients, sums, dropout_seed[1], slot)

    def _merge(self, slot: int) -> None:
        self.sums.merge(slot)

    def _apply(self, learning_rate: tf.Tensor) -> None:
        """Take a step from the micro-batches added, here and on other hosts."""
        gradients, sums, last_batch = self.sums.take(self.nonfinite)
        tokens = tf.cast(sums[2], tf.float32)
        gradients = [gradient / tokens for gradient in gradients]
        self._update(gradients, learning_rate, sums, last_batch)
        self.sums.clear()

    def _gradients(
        self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, *, per_token: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Differentiate the summed objective, or its mean over the tokens of the batch, times the loss scale.

        Returns:
            The gradients; loss, correct tokens and tokens of the batch, float64 [3].
        """
        with tf.GradientTape() as tape:
            seeds = [dropout_seed, dropout_seed + SECOND_PASS] if self.config.r_drop else [dropout_seed]
            passes = [
                self.model.teacher_forcing(source, target, remove_padding=self.config.remove_padding, dropout_seed=seed)
                for seed in seeds
            ]
            states, targets = (
                side[0] if len(side) == 1 else tf.concat(side, axis=0) for side in zip(*passes, strict=True)
            )
            projection, settings = self.model.output_projection(), self.config
            sums = fused_linear_cross_entropy(states, projection, targets, settings.label_smoothing, settings.r_drop)
            objective = sums.objective
            if per_token:
                objective /= sums.tokens
            if self.loss_scale:
                objective *= self.loss_scale.value
        with tf.name_scope("backward"):  # scopes tell the phases apart in a trace
            gradients = tape.gradient(objective, self.optimizer.variables_trained)
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's comes as slices
        return gradients, stacked(sums)

    def _update(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor, sums: tf.Tensor, batch: tf.Tensor) -> None:
        """Take the step, or skip it.

        Args:
            gradients: gradients of the mean objective of a token, times the loss scale.
            learning_rate: float32 scalar.
            sums: loss, correct tokens and tokens of all batches of the step: float64 [3].
            batch: number of the last of these batches: int64 scalar.
        """
        with tf.name_scope("optimizer"):
            if not self.skips:
                self.totals.add(sums)
                self._learn(gradients, learning_rate)
                return
            if self.loss_scale:
                gradients = [gradient / self.loss_scale.value for gradient in gradients]
            norm = tf.linalg.global_norm(gradients)
            if self.config.clip_norm:
                factor = tf.minimum(1.0, self.config.clip_norm / norm)
                gradients = [gradient * factor for gradient in gradients]
            finite_loss, finite_norm = tf.math.is_finite(sums[0]), tf.math.is_finite(norm)
            if finite_loss & finite_norm:
                self._learn(gradients, learning_rate)
            if self.loss_scale:
                good = finite_loss
            else:
                good = finite_loss & finite_norm
                self.nonfinite.note(finite_loss & ~finite_norm, batch)
            if good:
                self.totals.add(sums)
                if self.loss_scale:
                    self.loss_scale.update(finite_norm)
            else:
                self.nonfinite.skip()

    def _learn(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        self.optimizer.apply(gradients, learning_rate)
        if self.moving_average:
            self.moving_average.update(self.optimizer.steps)

    @property
    def averages(self) -> list[tf.Variable] | None:
        """Moving averages of the trainable variables, in their order, float32; None without ``ema_decay``."""
        return self.moving_average.averages if self.moving_average else None

    def nonfinite_report(self) -> NonFiniteReport:
        """Return the bad batches and the skipped steps so far; waits for the running step."""
        return self.nonfinite.read()

    def state(self) -> Arrays:
        """Return all that the next step changes besides the weights; between steps no gradient sums are pending."""
        state = self.optimizer.state() | self.nonfinite.state()
        if self.moving_average:
            state |= self.moving_average.state()
        if self.loss_scale:
            state["loss_scale"] = value_of(self.loss_scale.value)
            state["loss_scale_good_steps"] = value_of(self.loss_scale.good_steps)
        return state

    def restore(self, arrays: Arrays) -> None:
        """Restore what ``state`` returned.

        Raises:
            KeyError, ValueError: for the arrays of another model or precision.
        """
        self.optimizer.restore(arrays)
        self.nonfinite.restore(arrays)
        if self.moving_average:
            self.moving_average.restore(arrays)
        if self.loss_scale:
            self.loss_scale.value.assign(arrays["loss_scale"])
            self.loss_scale.good_steps.assign(arrays["loss_scale_good_steps"])
