"""The traced steps: forward and backward pass, optimizer, and validation, one graph each for batches of all shapes.

Shapes: B batch, S source length, T target length.
"""

from collections.abc import Callable

from nmt.config.training import TrainingConfig
from nmt.models.build import teacher_forced, teacher_forced_states
from nmt.runtime import keras, tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.optimization.accumulators import Totals, counted
from nmt.training.optimization.loss_scale import LossScale
from nmt.training.optimization.losses import cross_entropy, projected_cross_entropy
from nmt.training.optimization.nonfinite import Divergence, Trouble
from nmt.training.optimization.optimizer import Adam, MovingAverage

BATCH = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))
RATE, SEED = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int64)


class TrainStep:
    """One step of the optimizer, from one batch or from several whose gradients are added up.

    The gradient is that of the mean over all tokens of these batches, as if they were one.

    A batch whose loss is not finite is noted in ``trouble``. A step that has such a batch, or whose gradients have a
    norm that is not finite, is left out, and counted there, where leaving out is asked for (``skip_nonfinite``) or the
    norm is known anyway (``clip_norm``, float16): then weights, moments, averages and totals stay as they were. Where
    it is not, finding that out would cost a pass over all gradients, and the step is taken. In float16, gradients that
    overflow with a finite loss are no trouble: the step is left out, and the loss scale halved.
    """

    def __init__(self, model: keras.Model, optimizer: Adam, totals: Totals, settings: TrainingConfig) -> None:
        """Take the model, built in the precision it is to compute in, what updates it, and what counts."""
        self.model, self.optimizer, self.totals, self.settings = model, optimizer, totals, settings
        self.loss_scale = LossScale() if model.compute_dtype == "float16" else None
        self.divergence = Divergence()
        self.leaves_out = bool(settings.skip_nonfinite or settings.clip_norm or self.loss_scale)
        weights = optimizer.variables_trained
        self.moving_average = MovingAverage(weights, settings.ema_decay) if settings.ema_decay else None
        if settings.accumulation_steps > 1:
            self.sums = [tf.Variable(tf.zeros_like(one), trainable=False) for one in weights]
            self.added = Totals()
            self.last_added = tf.Variable(0, dtype=tf.int64, trainable=False)  # a batch's number
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
        gradients, sums = self._gradients(source, target, dropout_seed, per_token=True)
        self._update(gradients, learning_rate, sums, dropout_seed[1])

    def _add(self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor) -> None:
        """Add a batch's gradients to those that ``apply`` will use; arguments as for ``step``."""
        gradients, sums = self._gradients(source, target, dropout_seed)
        for total, gradient in zip(self.sums, gradients, strict=True):
            total.assign_add(gradient)
        self.added.add(sums)
        self.last_added.assign(dropout_seed[1])

    def _apply(self, learning_rate: tf.Tensor) -> None:
        """Learn from the batches that were added."""
        sums = self.added.sums.read_value()
        tokens = tf.cast(sums[2], tf.float32)
        self._update([total / tokens for total in self.sums], learning_rate, sums, self.last_added.read_value())
        for total in (*self.sums, self.added.sums):
            total.assign(tf.zeros_like(total))

    def _gradients(
        self, source: tf.Tensor, target: tf.Tensor, dropout_seed: tf.Tensor, *, per_token: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Differentiate the summed objective, or its mean over tokens, times the loss scale.

        Returns:
            The gradients, and loss, right tokens and tokens of the batch, float64 [3].
        """
        settings = self.settings
        with tf.GradientTape() as tape:
            states, expected = teacher_forced_states(
                self.model, source, target, packed=settings.remove_padding, dropout_seed=dropout_seed
            )
            sums = projected_cross_entropy(states, self.model.projection(), expected, settings.label_smoothing)
            objective = sums.objective / sums.tokens if per_token else sums.objective
            if self.loss_scale:
                objective *= self.loss_scale.value
        with tf.name_scope("backward"):  # the scopes are how a trace tells phases apart (see nmt.benchmark.profiler)
            gradients = tape.gradient(objective, self.optimizer.variables_trained)
            gradients = [tf.convert_to_tensor(one) for one in gradients]  # an embedding's comes as slices of it
        self.divergence.note(~tf.math.is_finite(sums.loss), dropout_seed[1])
        return gradients, counted(sums)

    def _update(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor, sums: tf.Tensor, batch: tf.Tensor) -> None:
        """Take the step, or leave it out.

        Args:
            gradients: of the mean objective of a token, times the loss scale.
            learning_rate: float32 scalar.
            sums: of all batches of the step, for the totals: float64 [3].
            batch: number of the last of these batches, int64 scalar.
        """
        with tf.name_scope("optimizer"):
            if not self.leaves_out:
                self.totals.add(sums)
                self._learn(gradients, learning_rate)
                return
            if self.loss_scale:
                gradients = [one / self.loss_scale.value for one in gradients]
            norm = tf.linalg.global_norm(gradients)
            if self.settings.clip_norm:
                factor = tf.minimum(1.0, self.settings.clip_norm / norm)
                gradients = [one * factor for one in gradients]
            finite_loss, finite_norm = tf.math.is_finite(sums[0]), tf.math.is_finite(norm)
            if finite_loss & finite_norm:
                self._learn(gradients, learning_rate)
            if self.loss_scale:
                good = finite_loss
            else:
                good = finite_loss & finite_norm
                self.divergence.note(finite_loss & ~finite_norm, batch)
            if good:
                self.totals.add(sums)
                if self.loss_scale:
                    self.loss_scale.update(finite_norm)
            else:
                self.divergence.skip()

    def _learn(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        self.optimizer.apply(gradients, learning_rate)
        if self.moving_average:
            self.moving_average.update(self.optimizer.steps)

    @property
    def averages(self) -> list[tf.Variable] | None:
        """The moving averages of the trainable variables, in their order, float32; None without ``ema_decay``."""
        return self.moving_average.averages if self.moving_average else None

    def trouble(self) -> Trouble:
        """Return the batches that were bad and the steps left out so far; waits for the step that runs."""
        return self.divergence.read()

    def state(self) -> Arrays:
        """Return what a resumed run needs besides the weights; between steps no gradients are pending."""
        state = self.optimizer.state() | self.divergence.state()
        if self.moving_average:
            state |= self.moving_average.state()
        if self.loss_scale:
            state["loss_scale"] = value_of(self.loss_scale.value)
            state["loss_scale_good_steps"] = value_of(self.loss_scale.good_steps)
        return state

    def restore(self, arrays: Arrays) -> None:
        """Take back what ``state`` returned.

        Raises:
            KeyError, ValueError: if the arrays are those of another model or precision.
        """
        self.optimizer.restore(arrays)
        self.divergence.restore(arrays)
        if self.moving_average:
            self.moving_average.restore(arrays)
        if self.loss_scale:
            self.loss_scale.value.assign(arrays["loss_scale"])
            self.loss_scale.good_steps.assign(arrays["loss_scale_good_steps"])


def make_validation_step(model: keras.Model, totals: Totals) -> Callable[[tf.Tensor, tf.Tensor], None]:
    """Return the traced validation step: teacher forcing without dropout, the loss in float32, into ``totals``."""

    @tf.function(input_signature=BATCH)
    def validation_step(source: tf.Tensor, target: tf.Tensor) -> None:
        logits, expected = teacher_forced(model, source, target)
        totals.add(counted(cross_entropy(logits, expected)))

    return validation_step
