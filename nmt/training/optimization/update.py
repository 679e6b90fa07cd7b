"""One step of training: forward pass, backward pass and optimizer, traced as one graph for batches of all shapes.

Shapes: B batch, S source length, T target length.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nmt import runtime
from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.models.weights import set_weights, weight_name, weights_of
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.checkpoints import TrainingState
from nmt.training.optimization.losses import fused_linear_cross_entropy
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.nonfinite import LossScale, NonFiniteTracker
from nmt.training.optimization.optimizer import Adam, Checkpointed, MovingAverage
from nmt.training.optimization.totals import RunningTotals, TokenTotals, loss_and_counts

Batch = tuple[tf.Tensor, tf.Tensor]
"""Source int32 [B, S], and target int32 [B, T + 1] from bos to eos."""
BATCH = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))
RATE, SEED = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int64)
SECOND_PASS = [0, 1 << 62]
"""Offset of the dropout seed of R-Drop's second pass. It exceeds every batch number."""


class Update:
    """Optimizer steps on a model, each from a single batch. ``SharedUpdate`` takes them from several micro-batches.

    A step minimizes the mean objective over all of its target tokens.

    The tracker ``nonfinite`` records every batch with a non-finite loss. With ``skip_nonfinite``, ``clip_norm`` or
    float16, the gradient norm is computed too, and a step with a non-finite loss or norm is skipped: weights, moments,
    averages and totals stay as they were. Without these settings the norm is not computed (it costs a pass over all
    gradients), and every step is taken. In float16, gradients that overflow although the loss is finite skip the step
    and halve the loss scale, without a record.
    """

    def __init__(self, model: Seq2SeqModel, config: TrainingConfig, optimizer: Adam | Muon) -> None:
        """Trace nothing yet: the first step does.

        Args:
            model: the model, built in its compute precision.
            config: the training section.
            optimizer: the optimizer of the model's trainable weights.
        """
        self.model, self.config, self.optimizer = model, config, optimizer
        self.totals = RunningTotals()
        self.loss_scale = LossScale() if model.compute_dtype == "float16" else None
        self.nonfinite = NonFiniteTracker()
        self.skips = bool(config.skip_nonfinite or config.clip_norm or self.loss_scale)
        """Whether steps with a non-finite loss or gradient are skipped."""
        self._norm = tf.Variable(float("nan"), trainable=False)
        weights = optimizer.variables_trained
        self.moving_average = MovingAverage(weights, config.ema_decay) if config.ema_decay else None
        """Averages of the weights, used to validate, save and translate; None: the weights themselves are used."""
        self.devices = runtime.devices()[:1]
        """Names of the devices that compute at the same time. The first has the weights and takes the step."""
        self._step = self._traced(self._take_batch, (*BATCH, RATE, SEED))

    def take(self, batches: Sequence[Batch], learning_rate: float, step: int) -> None:
        """Take step n of a run.

        Args:
            batches: the batch of the step.
            learning_rate: learning rate of the step.
            step: n, from 1. It selects the dropout masks.
        """
        [(source, target)] = batches
        self._step(source, target, tf.constant(learning_rate, tf.float32), self._dropout_seed(step))

    def _dropout_seed(self, batch: int) -> tf.Tensor:
        """Return the dropout seed of a batch by its number in the run: int64 [2]."""
        with runtime.on_host():
            return tf.constant([self.config.seed, batch], tf.int64)

    def _traced(self, function: Callable[..., None], signature: tuple[tf.TensorSpec, ...] | None = None) -> Any:
        """Return a function as one graph for batches of all shapes; the function itself with ``training.eager``."""
        if self.config.eager:
            return function
        # Steps have no Python control flow on tensors. To search for it would take most of the time of tracing.
        return tf.function(function, input_signature=signature, autograph=False)

    def _take_batch(
        self, source: tf.Tensor, target: tf.Tensor, learning_rate: tf.Tensor, dropout_seed: tf.Tensor
    ) -> None:
        """Take a step from one batch.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            learning_rate: float32 scalar.
            dropout_seed: int64 [2]: the run's seed, and the number of the batch in the run.
        """
        gradients, sums = self._gradients(source, target, dropout_seed, per_token=True)
        self.nonfinite.note(~tf.math.is_finite(sums[0]), dropout_seed[1])
        self._take_or_skip(gradients, learning_rate, sums, dropout_seed[1])

    def _gradients(
        self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, *, per_token: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Compute the gradients of the objective times the loss scale.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            dropout_seed: int64 [2].
            per_token: whether the objective is the mean over the tokens of the batch; false: their sum.

        Returns:
            The gradients; loss, correct tokens and tokens of the batch, float64 [3].
        """
        settings = self.config
        teacher_forcing = partial(self.model.teacher_forcing, source, target, remove_padding=settings.remove_padding)
        weights = [variable.value for variable in self.model.trainable_variables]  # or their copies on this device
        with tf.GradientTape() as tape:
            tape.watch(weights)
            states, targets = teacher_forcing(dropout_seed=dropout_seed)
            if settings.r_drop:
                with runtime.on_host():
                    second_seed = dropout_seed + SECOND_PASS
                second_states, second_targets = teacher_forcing(dropout_seed=second_seed)
                states = tf.concat([states, second_states], axis=0)
                targets = tf.concat([targets, second_targets], axis=0)
            projection = self.model.output_projection()
            sums = fused_linear_cross_entropy(states, projection, targets, settings.label_smoothing, settings.r_drop)
            objective = sums.objective
            if per_token:
                objective /= sums.tokens
            if self.loss_scale:
                objective *= self.loss_scale.value
        with tf.name_scope("backward"):  # scopes tell the phases apart in a trace
            gradients = tape.gradient(objective, weights)
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # embeddings give slices
        return gradients, loss_and_counts(sums)

    def _take_or_skip(
        self, gradients: list[tf.Tensor], learning_rate: tf.Tensor, sums: tf.Tensor, batch: tf.Tensor
    ) -> None:
        """Take a step, or skip it if loss or gradient norm are not finite.

        Args:
            gradients: gradients of the mean objective over all tokens of the step, times the loss scale.
            learning_rate: float32 scalar.
            sums: loss, correct tokens and tokens of all batches of the step: float64 [3].
            batch: number of the last of these batches in the run: int64 scalar.
        """
        with tf.name_scope("optimizer"):
            if not self.skips:
                self.totals.add(sums)
                self._apply_gradients(gradients, learning_rate)
                return
            if self.loss_scale:
                gradients = [gradient / self.loss_scale.value for gradient in gradients]
            norm = tf.linalg.global_norm(gradients)
            self._norm.assign(norm)
            if self.config.clip_norm:
                factor = tf.minimum(1.0, self.config.clip_norm / norm)
                gradients = [gradient * factor for gradient in gradients]
            finite_loss, finite_norm = tf.math.is_finite(sums[0]), tf.math.is_finite(norm)
            finite = finite_loss & finite_norm
            if not self.loss_scale:
                self.nonfinite.note(finite_loss & ~finite_norm, batch)

            def count() -> None:
                self.totals.add(sums)
                if self.loss_scale:
                    self.loss_scale.update(finite_norm)

            tf.cond(finite, lambda: self._apply_gradients(gradients, learning_rate), lambda: None)
            # With a loss scale, a gradient that overflows is no fault of the batch: the step counts.
            tf.cond(finite_loss if self.loss_scale else finite, count, self.nonfinite.skip)

    def _apply_gradients(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        self.optimizer.apply(gradients, learning_rate)
        if self.moving_average:
            self.moving_average.update(self.optimizer.steps)

    @property
    def gradient_norm(self) -> float | None:
        """Norm of the gradient of the last step, before it is clipped; None if it is unknown or not finite."""
        norm = float(self._norm.numpy())
        return norm if math.isfinite(norm) else None

    @property
    def weights(self) -> Arrays:
        """Weights to validate, save and translate with."""
        weights = weights_of(self.model)
        if self.moving_average:
            for variable, average in zip(self.model.trainable_variables, self.moving_average.averages, strict=True):
                weights[weight_name(variable)] = value_of(average)
        return weights

    def state(self) -> TrainingState:
        """Return all that the next step changes. Gradient accumulators are empty between steps."""
        arrays = {name: array for part in self._parts() for name, array in part.state().items()}
        return TrainingState(weights_of(self.model), arrays, self.totals.read())

    def _parts(self) -> list[Checkpointed]:
        parts = (self.optimizer, self.nonfinite, self.moving_average, self.loss_scale)
        return [part for part in parts if part is not None]

    def restore(self, state: TrainingState) -> None:
        """Restore what ``state`` returned.

        Raises:
            KeyError, ValueError: for the arrays of another model or precision.
        """
        set_weights(self.model, state.weights)
        for part in self._parts():
            part.restore(state.optimizer)
        self.totals.set(TokenTotals(*state.totals))
