"""Training state: all that a step changes, saved and restored as a whole."""

import itertools
from dataclasses import dataclass, field

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.summation import additions
from nmt.config.schema import Config
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weight_name, weights_of
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.checkpoints import Checkpoint, LoopState
from nmt.training.input_pipeline import Batch
from nmt.training.optimization.gradient_sums import Sums, Totals
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.optimizer import Adam
from nmt.training.optimization.step import TrainStep


@dataclass
class Position:
    """Place of a run between two steps."""

    epoch: int = 0
    """Number of completed epochs: trained, validated and recorded."""
    step: int = 0
    """Number of optimizer steps since the run began."""
    steps_in_epoch: int = 0
    """Number of steps in the current epoch; all of its steps if only its validation is missing."""
    seconds: float = 0.0
    """Training time of the current epoch so far."""
    logged: Sums = field(default_factory=Sums)
    """Totals of the current epoch when its last step record was written."""


class TrainState:
    """Weights, optimizer, moving averages, loss scale, non-finite tracker, totals, and position of a run."""

    def __init__(self, config: Config, vocabulary: dict[str, int], group: Group | None = None) -> None:
        """Build the model with initial weights by ``training.seed``, and its training step.

        Args:
            config: the configuration.
            vocabulary: number of ids by side, "source" and "target".
            group: the hosts that share the micro-batches of a step; None: this process alone.

        Raises:
            ConfigError: for a model that does not fit the vocabularies.
        """
        runtime.start(config.training.seed)
        self.config, self.vocabulary = config, vocabulary
        self.precision = runtime.resolve_precision(config.training.precision)
        self.model: Seq2SeqModel = build_model(config.model, vocabulary["source"], vocabulary["target"], self.precision)
        self.totals = Totals()
        optimizer = self._optimizer()
        self.group = group or Group()
        self.train_step = TrainStep(self.model, optimizer, self.totals, config.training, self.group)
        self.additions = additions(self.group.share(config.training.micro_batches))
        self.position = Position()

    def _optimizer(self) -> Adam | Muon:
        variables = self.model.trainable_variables
        values = [variable.value for variable in variables]
        if self.config.training.optimizer == "adam":
            return Adam(values, self.config.training)
        blocks = [self.model.hidden_blocks(variable) for variable in variables]
        dtype = "bfloat16" if self.precision == "bfloat16" else "float32"
        return Muon(values, blocks, self.config.training, dtype)

    def step(self, batches: list[Batch], learning_rate: float) -> None:
        """Take the next step of the optimizer, and move on to the position after it.

        Args:
            batches: micro-batches of the step that this host computes; the last step of an epoch may have fewer than
                others, or none here.
            learning_rate: learning rate of the step.
        """
        settings = self.config.training
        self.position.step += 1
        self.position.steps_in_epoch += 1
        first = self.position.step * settings.micro_batches
        rate = tf.constant(learning_rate, tf.float32)
        if settings.micro_batches == 1:
            self.train_step.step(*batches[0], rate, tf.constant([settings.seed, first], tf.int64))
            return
        for addition, batch in itertools.zip_longest(self.additions, batches):
            seed = tf.constant([settings.seed, first + addition.micro_batch], tf.int64)
            self.train_step.add(batch, seed, addition)
        self.train_step.apply(rate)

    def next_epoch(self) -> None:
        """Move on to the beginning of the next epoch."""
        self.position = Position(epoch=self.position.epoch + 1, step=self.position.step)
        self.totals.set(Sums())

    @property
    def has_averages(self) -> bool:
        """Whether moving averages of the weights are kept."""
        return self.train_step.averages is not None

    @property
    def weights(self) -> Arrays:
        """Weights to validate, save and translate with: the moving averages if there are any."""
        weights, averages = weights_of(self.model), self.train_step.averages
        if averages:
            for variable, average in zip(self.model.trainable_variables, averages, strict=True):
                weights[weight_name(variable)] = value_of(average)
        return weights

    @property
    def loop_state(self) -> LoopState:
        """Position and totals, as a record to save."""
        position = self.position
        return LoopState(
            epoch=position.epoch, step=position.step, steps_in_epoch=position.steps_in_epoch,
            seconds=position.seconds, totals=(*self.totals.read(),), logged=(*position.logged,),
            environment=runtime.environment(),
        )  # fmt: skip

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore all that a checkpoint holds.

        Raises:
            KeyError, ValueError: for the checkpoint of another model.
        """
        set_weights(self.model, checkpoint.weights)
        self.train_step.restore(checkpoint.optimizer)
        loop = checkpoint.loop
        self.position = Position(loop.epoch, loop.step, loop.steps_in_epoch, loop.seconds, Sums(*loop.logged))
        self.totals.set(Sums(*loop.totals))
