"""A step of training: forward and backward pass and optimizer, traced as one graph for batches of all shapes.

Shapes: B batch, S source length, T target length.
"""

import contextlib
import gc
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.summation import additions, shares
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weight_name, weights_of
from nmt.runtime import keras, tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.checkpoints import State
from nmt.training.optimization.gradient_sums import GradientSums, Sums, Totals, stacked, take
from nmt.training.optimization.losses import fused_linear_cross_entropy
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.nonfinite import LossScale, NonFiniteTracker
from nmt.training.optimization.optimizer import Adam, Checkpointed, MovingAverage

Batch = tuple[tf.Tensor, tf.Tensor]
"""Source int32 [B, S], and target int32 [B, T + 1] from bos to eos."""
BATCH = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))
RATE, SEED, SLOT = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int64), tf.TensorSpec([], tf.int32)
NO_BATCH = (np.zeros([0, 0], np.int32),) * 2
SECOND_PASS = [0, 1 << 62]
"""Offset of the dropout seed of the second pass of R-Drop: batches have smaller numbers."""


class Update:
    """Steps of the optimizer on a model, each from one batch or from several micro-batches whose gradients are summed.

    The gradient is that of the mean over all tokens of the step.

    The tracker ``nonfinite`` records a batch with a non-finite loss. With ``skip_nonfinite``, ``clip_norm`` or float16,
    a step with such a batch or with a non-finite gradient norm is skipped: weights, moments, averages and totals stay.
    Otherwise the norm is unknown, since it would cost a pass over all gradients, and the step is taken; where it is
    known, ``gradient_norm`` is that of the last step. In float16,
    gradients that overflow with a finite loss skip the step and halve the loss scale, without a record.
    """

    def __init__(self, model: Seq2SeqModel, config: TrainingConfig, group: Group | None = None) -> None:
        """Take the model, built in its compute precision, the training section, and the hosts; None: one alone."""
        self.model, self.config, group = model, config, group or Group()
        self.optimizer = _optimizer(model, config)
        self.totals = Totals()
        self.loss_scale = LossScale() if model.compute_dtype == "float16" else None
        self.nonfinite = NonFiniteTracker()
        self.skips = bool(config.skip_nonfinite or config.clip_norm or self.loss_scale)
        self._norm = tf.Variable(float("nan"), trainable=False)
        weights = self.optimizer.variables_trained
        self.moving_average = MovingAverage(weights, config.ema_decay) if config.ema_decay else None
        """Averages of the weights, to validate, save and translate with; None: the weights themselves."""
        self._group, self._share = group, group.share(config.micro_batches)
        self.devices = runtime.devices()[: len(self._share) if group.count == 1 else 1]
        """Devices that compute micro-batches at the same time. The first has the weights, and takes the step."""
        device_shares = shares(self._share, len(self.devices))
        self.additions = [additions(share) for share in device_shares]
        self.sums: list[GradientSums] = []
        for device, share in zip(self.devices, device_shares, strict=True) if config.micro_batches > 1 else ():
            with self._on(device):
                self.sums.append(GradientSums(weights, share))
        self._merges = [self._traced(sums.merge) for sums in self.sums]
        self._step = self._traced(self._take_batch, (*BATCH, RATE, SEED))
        self._add = self._traced(self._add_batches, (*BATCH, SEED, SLOT) * len(self.devices))
        self._apply = self._traced(self._apply_sums, (RATE,))

    @classmethod
    def of(
        cls,
        config: Config,
        vocabulary: dict[str, int],
        group: Group | None = None,
        initialize: Callable[[Seq2SeqModel], None] | None = None,
    ) -> "Update":
        """Build a model with initial weights by ``training.seed``, and its update.

        Args:
            config: the configuration; a precision "auto" is that of this machine.
            vocabulary: number of ids by side, "source" and "target".
            group: the hosts that share the micro-batches of a step; None: this process alone.
            initialize: sets other initial weights, from which moving averages then start too.

        Raises:
            ConfigError: for a model that does not fit the vocabularies.
        """
        gc.collect()  # models are in cycles: one that was trained before leaves the memory
        precision, seed = runtime.resolve_precision(config.training.precision), config.training.seed
        model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision, seed=seed)
        if initialize:
            initialize(model)
        return cls(model, config.training, group)

    def take(self, batches: Sequence[Batch], learning_rate: float, step: int) -> None:
        """Take step n of a run, from 1.

        Args:
            batches: micro-batches of the step that this host computes; the last step of an epoch may have fewer than
                others, or none here.
            learning_rate: learning rate of the step.
            step: n, by which the dropout of its batches is drawn.
        """
        first = step * self.config.micro_batches
        rate = tf.constant(learning_rate, tf.float32)
        if self.config.micro_batches == 1:
            self._step(*batches[0], rate, self._seed(first))
            return
        numbered = dict(zip(self._share, batches, strict=False))
        for additions_now in itertools.zip_longest(*self.additions):  # one of each device
            inputs: list[tf.Tensor] = []
            for addition in additions_now:
                number, slot, _ = addition or (self._share.stop, 0, ())
                inputs += [*numbered.get(number, NO_BATCH), self._seed(first + number), tf.constant(slot)]
            if any(addition.micro_batch in numbered for addition in additions_now if addition):
                self._add(*inputs)
            for merge, addition in zip(self._merges, additions_now, strict=True):
                for slot in addition.merged if addition else ():
                    merge(slot)
        self._apply(rate)

    def _on(self, device: str) -> contextlib.AbstractContextManager[None]:
        return tf.device(device) if len(self.devices) > 1 else contextlib.nullcontext()

    def _seed(self, batch: int) -> tf.Tensor:
        """Return the seed of the dropout of a batch of the run: int64 [2]."""
        with runtime.on_host():
            return tf.constant([self.config.seed, batch], tf.int64)

    def _traced(self, function: Callable[..., None], signature: tuple[tf.TensorSpec, ...] | None = None) -> Any:
        """Return a function as one graph for batches of all shapes; itself if the configuration says eager."""
        return function if self.config.eager else tf.function(function, input_signature=signature)

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
        self._update(gradients, learning_rate, sums, dropout_seed[1])

    def _add_batches(self, *inputs: tf.Tensor) -> None:
        """Add the gradients of a micro-batch to a slot of each device's sums: source, target, seed and slot of each.

        A device without a batch has a source without elements.
        """

        def add(sums: GradientSums, source: tf.Tensor, target: tf.Tensor, seed: tf.Tensor, slot: tf.Tensor) -> None:
            gradients, totals = self._gradients(source, target, seed)
            sums.add(gradients, totals, seed[1], slot)

        if len(self.devices) == 1:
            add(self.sums[0], *inputs)
            return
        batches = (inputs[start : start + 4] for start in range(0, len(inputs), 4))
        for device, sums, batch in zip(self.devices, self.sums, batches, strict=True):
            with tf.device(device):
                variables = self.model.trainable_variables
                copies = [tf.identity(variable.value) for variable in variables]  # once, not for each use of a weight
                with keras.StatelessScope(zip(variables, copies, strict=True)):
                    tf.cond(tf.size(batch[0]) > 0, lambda: add(sums, *batch), lambda: None)  # noqa: B023

    def _apply_sums(self, learning_rate: tf.Tensor) -> None:
        """Take a step from the micro-batches added, here and on other hosts."""
        gradients, sums, last_batch = take(self.sums, self._group, self.nonfinite)
        tokens = tf.cast(sums[2], tf.float32)
        gradients = [gradient / tokens for gradient in gradients]
        self._update(gradients, learning_rate, sums, last_batch)
        for each in self.sums:
            each.clear()

    def _gradients(
        self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, *, per_token: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Differentiate the summed objective, or its mean over the tokens of the batch, times the loss scale.

        Returns:
            The gradients; loss, correct tokens and tokens of the batch, float64 [3].
        """
        weights = [variable.value for variable in self.model.trainable_variables]  # or their copies on this device
        with tf.GradientTape() as tape:
            tape.watch(weights)
            with runtime.on_host():
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
            gradients = tape.gradient(objective, weights)
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
            self._norm.assign(norm)
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

    def state(self) -> State:
        """Return all that the next step changes; between steps no gradient sums are pending."""
        arrays = {name: array for part in self._parts() for name, array in part.state().items()}
        return State(weights_of(self.model), arrays, self.totals.read())

    def _parts(self) -> list[Checkpointed]:
        parts = (self.optimizer, self.nonfinite, self.moving_average, self.loss_scale)
        return [part for part in parts if part is not None]

    def restore(self, state: State) -> None:
        """Restore what ``state`` returned.

        Raises:
            KeyError, ValueError: for the arrays of another model or precision.
        """
        set_weights(self.model, state.weights)
        for part in self._parts():
            part.restore(state.optimizer)
        self.totals.set(Sums(*state.totals))


def _optimizer(model: Seq2SeqModel, config: TrainingConfig) -> Adam | Muon:
    variables = model.trainable_variables
    values = [variable.value for variable in variables]
    if config.optimizer == "adam":
        return Adam(values, config)
    blocks = [variable.blocks for variable in variables]
    return Muon(values, blocks, config, "bfloat16" if model.compute_dtype == "bfloat16" else "float32")
