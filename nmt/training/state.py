"""What learns: the model, its optimizer and traced step, and the batches of each epoch.

Shapes: B batch, S source length, T target length.
"""

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from nmt import runtime
from nmt.config.schema import Config
from nmt.data.batch_plan import plan_epoch
from nmt.data.batching import batch_dataset
from nmt.data.dataset import Dataset
from nmt.data.token_arrays import Split
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weight_name, weights_of
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.optimization.accumulators import Totals
from nmt.training.optimization.optimizer import Adam
from nmt.training.optimization.schedules import ends_with_run, learning_rate, steps_of_run
from nmt.training.optimization.step import TrainStep
from nmt.training.resume import check_positions, load_start
from nmt.training.validation import ValidationPass


class Learner:
    """A model, what changes it, and what it learns from; of runs it knows nothing."""

    def __init__(self, config: Config, dataset: Dataset, *, fresh: bool) -> None:
        """Build the model; a fresh one starts from ``training.start_from``, if that is set.

        Raises:
            ConfigError: if the model does not fit the dataset.
            NotFoundError, ConflictError: if it is to start from weights that are not there, or not of its vocabulary.
        """
        runtime.start(config.training.seed)
        self.config, self.dataset = config, dataset
        self.train_split, self.validation_split = dataset.split("train"), dataset.split("validation")
        check_positions(config.model, dataset.manifest)
        vocabulary = dataset.manifest.vocabulary
        self.precision = runtime.resolve_precision(config.training.precision)
        self.model = build_model(config.model, vocabulary["source"], vocabulary["target"], self.precision)
        if config.training.start_from and fresh:
            load_start(config.training.start_from, self.model, dataset)
        self.optimizer = Adam([variable.value for variable in self.model.trainable_variables], config.training)
        self.totals = Totals()
        self.train_step = TrainStep(self.model, self.optimizer, self.totals, config.training)
        self.validation = ValidationPass(self.model, config, self.validation_split)

    # --- batches

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch: a pure function of the configuration, the dataset and the epoch's number."""
        if self._planned is None or self._planned[0] != epoch:  # the look ahead asks for it too
            settings = self.config.training
            plan = plan_epoch(
                self.split(epoch),
                settings.batch_size,
                seed=settings.seed,
                epoch=epoch if settings.reshuffle else 1,
                sort_by_length=settings.sort_by_length,
                batch_type=settings.batch_type,
            )
            self._planned = epoch, plan
        return self._planned[1]

    _planned: tuple[int, list[np.ndarray]] | None = None

    def split(self, epoch: int) -> Split:
        """The training split, its text cut into other subwords every epoch if the dataset was prepared for that."""
        if not self.dataset.manifest.settings.subword_sampling:
            return self.train_split
        if self._resampled is None or self._resampled[0] != epoch:
            self._resampled = epoch, self.dataset.resampled(self.config.training.seed, epoch)
        return self._resampled[1]

    _resampled: tuple[int, Split] | None = None

    def batches(self, split: Split, plan: list[np.ndarray]) -> tf.data.Dataset:
        """Return source int32 [B, S] and target int32 [B, T + 1] of each batch of a plan."""
        return batch_dataset(
            split,
            plan,
            source_bos=self.config.model.source_bos,
            pad_to_longest=self.config.training.pad_to_longest,
        )

    # --- steps

    def learn(self, step: int, batches: list[tuple[tf.Tensor, tf.Tensor]]) -> None:
        """Take a step of the optimizer, the first being 1, from the batches of that step."""
        settings = self.config.training
        rate, first = tf.constant(self.learning_rate(step), tf.float32), step * settings.accumulation_steps
        seeds = [tf.constant([settings.seed, first + number], tf.int64) for number in range(len(batches))]
        if settings.accumulation_steps == 1:
            self.train_step.step(*batches[0], rate, seeds[0])
            return
        for batch, seed in zip(batches, seeds, strict=True):
            self.train_step.add(*batch, seed)
        self.train_step.apply(rate)

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, the first being 1."""
        return learning_rate(step, self.config.model.d_model, self.config.training, self.total_steps)

    @functools.cached_property
    def total_steps(self) -> int | None:
        """What the schedule takes as the steps of the run; None if it does not need to know."""
        settings = self.config.training
        return steps_of_run(len(self.plan(1)), settings) if ends_with_run(settings) else None

    @property
    def last_straw(self) -> tuple[int, int] | None:
        """The number of the batch at which training diverged, and the steps left out before; None if it has not."""
        trouble = self.train_step.trouble()
        if trouble.first_bad_batch is None or trouble.last_bad_batch is None:
            return None
        if not self.train_step.leaves_out:
            return trouble.first_bad_batch, 0
        if trouble.skipped <= self.config.training.skip_nonfinite:
            return None
        return trouble.last_bad_batch, trouble.skipped - 1

    def rehearse(self, train: list[np.ndarray], validation: list[np.ndarray], check: Callable[[], None]) -> list[float]:
        """Take the steps of some batches and validate others, forget it all, and return the seconds of each.

        ``check`` is called after each, and may raise to break off.
        """
        sums, weights, state = self.totals.read(), weights_of(self.model), self.train_step.state()
        seconds = []
        try:
            training = ((batch, True) for batch in self.batches(self.train_split, train))
            validating = ((batch, False) for batch in self.validation.batches(validation))
            for batch, learning in itertools.chain(training, validating):
                started = time.perf_counter()
                if learning:
                    self.learn(1, [batch])
                else:
                    self.validation.step(*batch)
                self.totals.read()  # waits for the step
                seconds.append(time.perf_counter() - started)
                check()
        finally:
            self.totals.set(sums)
            set_weights(self.model, weights)
            self.train_step.restore(state)
        return seconds

    # --- weights

    @property
    def weights(self) -> Arrays:
        """The weights to validate, save and translate with: their moving averages if there are any."""
        weights, averages = weights_of(self.model), self.train_step.averages
        if averages:
            for variable, average in zip(self.model.trainable_variables, averages, strict=True):
                weights[weight_name(variable)] = value_of(average)
        return weights

    @contextlib.contextmanager
    def wearing(self, weights: Arrays | None) -> Iterator[None]:
        """Let the model compute with other weights inside the block, if there are any."""
        if weights is None:
            yield
            return
        own = weights_of(self.model)
        set_weights(self.model, weights)
        try:
            yield
        finally:
            set_weights(self.model, own)
