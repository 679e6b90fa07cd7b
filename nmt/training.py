"""The training loop: one traced step, exact means, and states to go on from as if nothing had happened.

Shapes: B batch, S source length, T target length.
"""

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nmt import runtime
from nmt.batches import batch_dataset, grouped, plan_epoch
from nmt.checkpoint import (
    Content,
    Saved,
    Standing,
    average_weights,
    restore,
    rotate_weights,
    save_state,
    save_weights,
    set_weights,
    sweep,
    weight_name,
    weights_of,
)
from nmt.config import Config
from nmt.continuation import check_positions, load_start
from nmt.dataset import Dataset, Split
from nmt.departure import Departed
from nmt.errors import NmtError
from nmt.models import build_model
from nmt.optimizer import Adam
from nmt.progress import TrainingProgress
from nmt.run import (
    AverageMetrics,
    EpochMetrics,
    Run,
    Sample,
    SampleMetrics,
    StepMetrics,
    StepValidation,
    best_of,
    parse_metrics,
    weights_name,
)
from nmt.schedule import ends_with_run, learning_rate, steps_of_run
from nmt.steps import Sums, Totals, TrainStep
from nmt.tensor_file import Arrays
from nmt.validation_pass import ValidationPass

# Weights of early epochs lie too far apart for their mean to be any good.
EPOCHS_FOR_EACH_AVERAGED = 4


class Decoded(NamedTuple):
    """What translating validation sentences brought."""

    bleu: float | None
    chrf: float | None
    samples: list[Sample]


Decode = Callable[[Arrays, Callable[[], None]], Decoded]
"""Translates validation sentences with these weights; calls the second now and then, which may raise Departed."""


def _stay() -> None:
    """Nobody asks to leave."""


class Trainer:
    """A model in training: its steps, its batches, and where it stands."""

    def __init__(self, run: Run, config: Config, dataset: Dataset, decode: Decode | None = None) -> None:
        """Build the model from the configuration and load the run's newest state, if it has one; nothing is written.

        Raises:
            ConfigError: if the model does not fit the dataset.
            DataError: if nothing that was saved can be used.
            NotFoundError, ConflictError: if it is to start from weights that are not there, or not of its vocabulary.
        """
        runtime.start(config.training.seed)
        self.run, self.config, self.dataset, self.decode = run, config, dataset, decode
        self.train_split, self.validation_split = dataset.split("train"), dataset.split("validation")
        check_positions(config.model, dataset.manifest)
        vocabulary = dataset.manifest.vocabulary
        self.precision = runtime.resolve_precision(config.training.precision)
        self.model = build_model(config.model, vocabulary["source"], vocabulary["target"], self.precision)
        if config.training.start_from and not run.state_steps:
            load_start(config.training.start_from, self.model, dataset)
        self.optimizer = Adam([variable.value for variable in self.model.trainable_variables], config.training)
        self.totals = Totals()
        self.train_step = TrainStep(self.model, self.optimizer, self.totals, config.training)
        self.validation = ValidationPass(self.model, config, self.validation_split)
        self.check: Callable[[], None] = _stay

        self.epoch, self.step, self.steps_in_epoch, self.seconds, self.logged = 0, 0, 0, 0.0, Sums()
        self._metrics = b""
        restored = restore(run, self.model, self.train_step)
        self.damaged = restored.damaged if restored else []
        self.made_with = restored.standing.made_with if restored else runtime.build()
        if restored:
            self._take(restored.standing)
            self._metrics = restored.metrics
        records = parse_metrics(self._metrics, run.metrics_path)
        self.validations = [one for one in records if isinstance(one, StepValidation | EpochMetrics)]
        self._saved: Standing | None = restored.standing if restored else None
        self._saved_at = time.monotonic()
        self._saving: Future[None] | None = None

    # --- where it stands

    @property
    def standing(self) -> Standing:
        """Where training stands between two steps."""
        return Standing(
            epoch=self.epoch, step=self.step, steps_in_epoch=self.steps_in_epoch, seconds=self.seconds,
            totals=(*self.totals.read(),), logged=(*self.logged,), made_with=runtime.build(),
        )  # fmt: skip

    def _take(self, standing: Standing) -> None:
        self.epoch, self.step, self.steps_in_epoch = standing.epoch, standing.step, standing.steps_in_epoch
        self.seconds, self.logged = standing.seconds, Sums(*standing.logged)
        self.totals.set(Sums(*standing.totals))

    @property
    def differences_of_machine(self) -> list[str]:
        """In words: what of versions and processor is not as it was when the state gone on from was saved."""
        before, now = self.made_with, runtime.build()
        return [f"{what} {old} before, {now.get(what)} now" for what, old in before.items() if old != now.get(what)]

    @property
    def stopped_early(self) -> bool:
        """Whether ``training.patience`` is at its end."""
        patience = self.config.training.patience
        best = best_of(self.validations, self.config.training.best_by)
        return patience is not None and best is not None and self._validations_since(best) >= patience

    def _validations_since(self, best: StepValidation | EpochMetrics) -> int:
        return len(self.validations) - 1 - self.validations.index(best)

    @property
    def is_trained(self) -> bool:
        """Whether no epoch is left to do."""
        return self.epoch >= self.config.training.epochs or (self.stopped_early and self.steps_in_epoch == 0)

    @property
    def epochs_to_average(self) -> list[int]:
        """The epochs whose weights the run is to end with the mean of; none if they are too few."""
        last = self.epoch if self.stopped_early else self.config.training.epochs
        count = min(self.config.training.average_last, last // EPOCHS_FOR_EACH_AVERAGED)
        return list(range(last - count + 1, last + 1)) if count > 1 else []

    @property
    def weights_to_keep(self) -> int | None:
        """Of how many epochs, from the last."""
        kept = self.config.training.max_to_keep
        return None if kept is None else max(kept, self.config.training.average_last)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, neither epochs nor their average."""
        if not self.is_trained:
            return False
        kept = set(self.run.weights_epochs)
        wanted = self.epochs_to_average if self.epoch <= self.config.training.epochs else []
        averaged = any(one.epochs == wanted for one in self.run.averages())  # others by nmt average came after it
        return not wanted or not kept.issuperset(wanted) or averaged

    # --- the loop

    def train(self, progress: TrainingProgress, check: Callable[[], None] = _stay) -> None:
        """Train the epochs that are still to do, saving after each and in between as configured.

        Args:
            progress: is told of steps and epochs.
            check: is called after each step; if it raises Departed, the state is saved before this leaves.

        Raises:
            NmtError: if training diverges, or the disk refuses.
        """
        self.check = check
        sweep(self.run)
        self.run.restore_metrics(self._metrics)
        with ThreadPoolExecutor(1) as self._saver:  # however this ends, what is being saved is saved
            try:
                if self._saved is None and self.config.training.start_from:
                    self._save()  # the other run may change before this one has a state
                while not self.is_trained:
                    self._train_epoch(progress)
                self._wait_for_saving()
                if not self.is_finished:
                    progress.end_average(self._average())
            except Departed:
                if self._saved != self.standing:
                    self._save()
                self._wait_for_saving()
                raise

    def _train_epoch(self, progress: TrainingProgress) -> None:
        settings = self.config.training
        epoch = self.epoch + 1
        plan = self.plan(epoch)
        steps = math.ceil(len(plan) / settings.accumulate)
        progress.start_epoch(epoch, steps, done=self.steps_in_epoch)
        if 0 < self.steps_in_epoch < steps:
            self._validate_amid(progress)  # if the run was left in the middle of that
        ahead = plan[self.steps_in_epoch * settings.accumulate :]
        now = time.perf_counter()
        for batches in grouped(self._batches(self.epoch_split(epoch), ahead), settings.accumulate):
            self.step += 1
            self.steps_in_epoch += 1
            learning_rate = self.learning_rate(self.step)
            self._learn(batches, learning_rate)
            if self.step % settings.log_every == 0:
                self._log(epoch, learning_rate)
            figures = self._read_totals() if progress.is_due() else None
            before, now = now, time.perf_counter()
            self.seconds += now - before
            progress.step(figures, self.seconds)
            if self.steps_in_epoch < steps:
                self._validate_amid(progress)
            if self._is_save_due():
                self._save()
            elif self._saving and self._saving.done():
                self._wait_for_saving()  # or a disk that refuses would be told of at the next save
            self.check()
            now = time.perf_counter()
        self._end_epoch(epoch, progress)

    def _log(self, epoch: int, learning_rate: float) -> None:
        sums = self._read_totals()
        since, self.logged = sums.since(self.logged), sums
        if since.tokens:  # or all steps were left out
            loss, right = since.means
            self.run.append_metrics(
                StepMetrics(epoch=epoch, step=self.step, loss=loss, accuracy=right, learning_rate=learning_rate)
            )

    def _end_epoch(self, epoch: int, progress: TrainingProgress) -> None:
        train = self._read_totals()
        train_loss, train_accuracy = train.means
        weights = self._weights()
        loss, accuracy, decoded = self._validate(weights, others=bool(self.train_step.averages))
        metrics = EpochMetrics(
            epoch=epoch, step=self.step, train_loss=train_loss, train_accuracy=train_accuracy,
            validation_loss=loss, validation_accuracy=accuracy, validation_bleu=decoded.bleu,
            validation_chrf=decoded.chrf, target_tokens=int(train.tokens), seconds=self.seconds,
        )  # fmt: skip
        saved: Saved | None = save_weights(self.run, weights, epoch)
        if self.train_step.averages:
            saved = None  # the state holds the weights that steps change
        self._note(metrics, decoded.samples)
        self.epoch, self.steps_in_epoch, self.seconds, self.logged = epoch, 0, 0.0, Sums()
        self.totals.set(Sums())
        self._save(saved)
        progress.end_epoch(metrics, decoded.samples, best=self._is_best(metrics))

    def _validate_amid(self, progress: TrainingProgress) -> None:
        """Validate amid an epoch if that is due and not done; keep the weights if they are the best so far."""
        every = self.config.training.validate_every
        if not every or self.step % every or any(one.step == self.step for one in self.validations):
            return
        self._read_totals()
        weights = self._weights()
        loss, accuracy, decoded = self._validate(weights, others=bool(self.train_step.averages))
        metrics = StepValidation(
            epoch=self.epoch + 1, step=self.step, validation_loss=loss, validation_accuracy=accuracy,
            validation_bleu=decoded.bleu, validation_chrf=decoded.chrf,
        )  # fmt: skip
        if best_of([*self.validations, metrics], self.config.training.best_by) is metrics:
            save_weights(self.run, weights, weights_name(metrics))
        self._note(metrics, decoded.samples)
        progress.end_validation(metrics, decoded.samples, best=self._is_best(metrics))

    def _note(self, metrics: EpochMetrics | StepValidation, samples: list[Sample]) -> None:
        self.validations.append(metrics)
        self.run.append_metrics(metrics)
        if samples:
            self.run.append_metrics(SampleMetrics(epoch=metrics.epoch, step=metrics.step, samples=samples))

    def _is_best(self, metrics: EpochMetrics | StepValidation) -> bool:
        return best_of(self.validations, self.config.training.best_by) is metrics

    def _average(self) -> AverageMetrics:
        weights = average_weights(self.run, self.epochs_to_average)
        loss, accuracy, decoded = self._validate(weights, others=True)
        save_weights(self.run, weights, "average")
        metrics = AverageMetrics(
            epochs=self.epochs_to_average, step=self.step, validation_loss=loss, validation_accuracy=accuracy,
            validation_bleu=decoded.bleu, validation_chrf=decoded.chrf,
        )  # fmt: skip
        self.run.append_metrics(metrics)
        return metrics

    # --- what is saved

    def _is_save_due(self) -> bool:
        settings = self.config.training
        by_steps = settings.save_every is not None and self.step % settings.save_every == 0
        minutes = settings.save_every_minutes
        return by_steps or (minutes is not None and time.monotonic() - self._saved_at >= 60 * minutes)

    def _save(self, saved: Saved | None = None) -> None:
        """Save the state between two steps, while training goes on; ``saved`` is a file with the same weights."""
        self._read_totals()
        self._wait_for_saving()
        metrics = self.run.metrics_path.read_bytes()
        content = Content(self.standing, metrics, self._own_weights(), self.train_step.state())
        best = best_of(self.validations, self.config.training.best_by)
        kept = self.weights_to_keep, weights_name(best) if best else None

        def write() -> None:
            save_state(self.run, content, saved)
            rotate_weights(self.run, *kept)  # not before there is a state that can do without them

        self._saving = self._saver.submit(write)
        self._saved, self._saved_at = content.standing, time.monotonic()

    def _wait_for_saving(self) -> None:
        """Wait until the last state is saved; raises NmtError if the disk refused it."""
        if self._saving:
            self._saving.result()
        self._saving = None

    def _own_weights(self) -> Arrays:
        """Return the weights that steps change.

        Raises:
            NmtError: if they are not numbers any more.
        """
        weights = weights_of(self.model)
        for name, array in weights.items():
            if not np.isfinite(array).all():
                raise self._diverged(f"after step {self.step} some in {name} are not")
        return weights

    def _weights(self) -> Arrays:
        """Return the weights to validate, save and translate with: their moving averages if there are any."""
        weights, averages = self._own_weights(), self.train_step.averages
        if averages:
            for variable, average in zip(self.model.trainable_variables, averages, strict=True):
                weights[weight_name(variable)] = average.numpy()
        return weights

    @contextlib.contextmanager
    def _wearing(self, weights: Arrays | None) -> Iterator[None]:
        """Let the model compute with other weights inside the block, if there are any."""
        own = weights_of(self.model) if weights is not None else {}
        if weights is not None:
            set_weights(self.model, weights)
        try:
            yield
        finally:
            if weights is not None:
                set_weights(self.model, own)

    def rehearse(self, train: list[np.ndarray], validation: list[np.ndarray]) -> list[float]:
        """Take the steps of some batches and validate others, forget it all, and return the seconds of each."""
        before = self.standing, weights_of(self.model), self.train_step.state()
        seconds = []
        try:
            training = ((batch, True) for batch in self._batches(self.train_split, train))
            validating = ((batch, False) for batch in self.validation.batches(validation))
            for batch, learning in itertools.chain(training, validating):
                started = time.perf_counter()
                if learning:
                    self._learn([batch], self.learning_rate(self.step + 1))
                else:
                    self.validation.step(*batch)
                self.totals.read()  # waits for the step
                seconds.append(time.perf_counter() - started)
                self.check()
        finally:
            self._take(before[0])
            set_weights(self.model, before[1])
            self.train_step.restore(before[2])
        return seconds

    # --- steps and batches

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch: a pure function of the configuration, the dataset and the epoch's number."""
        settings = self.config.training
        return plan_epoch(
            self.epoch_split(epoch),
            settings.batch_size,
            seed=settings.seed,
            epoch=epoch if settings.reshuffle else 1,
            sort_by_length=settings.sort_by_length,
            batch_type=settings.batch_type,
        )

    def epoch_split(self, epoch: int) -> Split:
        """The training split, its text cut into other subwords every epoch if the dataset was prepared for that."""
        if not self.dataset.manifest.settings.subword_sampling:
            return self.train_split
        if self._resampled is None or self._resampled[0] != epoch:
            self._resampled = epoch, self.dataset.resampled(self.config.training.seed, epoch)
        return self._resampled[1]

    _resampled: tuple[int, Split] | None = None

    def _learn(self, batches: list[tuple[tf.Tensor, tf.Tensor]], learning_rate: float) -> None:
        """Take a step of the optimizer."""
        rate, first = tf.constant(learning_rate, tf.float32), self.step * self.config.training.accumulate
        seeds = [tf.constant([self.config.training.seed, first + number], tf.int64) for number in range(len(batches))]
        if self.config.training.accumulate == 1:
            self.train_step.step(*batches[0], rate, seeds[0])
            return
        for batch, seed in zip(batches, seeds, strict=True):
            self.train_step.add(*batch, seed)
        self.train_step.apply(rate)

    def _read_totals(self) -> Sums:
        """Return the epoch's sums so far.

        Raises:
            NmtError: if training has diverged.
        """
        trouble, settings = self.train_step.trouble(), self.config.training
        if trouble.last_bad_batch is not None:
            if not self.train_step.leaves_out:
                raise self._diverged(f"those of step {trouble.first_bad_batch // settings.accumulate} are not")  # type: ignore[operator]
            if trouble.skipped > settings.skip_nonfinite:
                raise self._diverged(
                    f"those of step {trouble.last_bad_batch // settings.accumulate} are not, after "
                    f"{trouble.skipped - 1} steps that were left out for it"
                )
        return self.totals.read()

    def _diverged(self, what: str) -> NmtError:
        saved = f"step {self._saved.step} is the last one saved" if self._saved else "nothing has been saved"
        settings = self.config.training
        key = "learning_rate_scale" if settings.schedule == "paper" else "peak_learning_rate"
        return NmtError(
            f"Loss, gradients and weights must stay finite numbers; in epoch {self.epoch + 1} {what}; {saved}. Start "
            f"another run with a lower rate, such as --set training.{key}={getattr(settings, key) / 2:g}, with more "
            "training.warmup_steps or with --set training.clip_norm=1."
        )

    def _validate(self, weights: Arrays, *, others: bool = False) -> tuple[float, float, Decoded]:
        """Return mean loss, accuracy, and what translating brought, with these weights: the model's own, or others."""
        with self._wearing(weights if others else None):
            loss, accuracy = self.validation.measure(self.check)
        decoded = self.decode(weights, self.check) if self.decode else Decoded(None, None, [])
        return loss, accuracy, decoded

    def _batches(self, split: Split, plan: list[np.ndarray]) -> tf.data.Dataset:
        return batch_dataset(
            split,
            plan,
            source_bos=self.config.model.source_bos,
            pad_to_longest=self.config.training.pad_to_longest,
        )

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, the first being 1."""
        return learning_rate(step, self.config.model.d_model, self.config.training, self.total_steps)

    @functools.cached_property
    def total_steps(self) -> int | None:
        """What the schedule takes as the steps of the run; None if it does not need to know."""
        settings = self.config.training
        if not ends_with_run(settings):
            return None
        return steps_of_run(len(self.plan(1)), settings)
