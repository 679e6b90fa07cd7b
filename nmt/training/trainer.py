"""The training loop: exact means, validation, and states to go on from as if nothing had happened."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from nmt import runtime
from nmt.config.schema import Config
from nmt.data.batch_plan import grouped
from nmt.data.dataset import Dataset
from nmt.errors import NmtError
from nmt.models.weights import weights_of
from nmt.runs.directory import Run
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    Sample,
    SampleMetrics,
    StepMetrics,
    StepValidation,
    best_of,
    parse_metrics,
    weights_name,
)
from nmt.runs.weights import average_weights, save_weights, superfluous_weights
from nmt.storage.arrays import Arrays
from nmt.training.checkpoints import Content, Standing, restore, save_state, sweep
from nmt.training.console import TrainingProgress
from nmt.training.interrupts import Departed
from nmt.training.optimization.accumulators import Sums
from nmt.training.state import Learner

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
    """A run in training, and where it stands."""

    def __init__(self, run: Run, config: Config, dataset: Dataset, decode: Decode | None = None) -> None:
        """Build the model from the configuration and load the run's newest state, if it has one; nothing is written.

        Raises:
            ConfigError: if the model does not fit the dataset.
            DataError: if nothing that was saved can be used.
            NotFoundError, ConflictError: if it is to start from weights that are not there, or not of its vocabulary.
        """
        self.run, self.config, self.decode = run, config, decode
        self.learner = Learner(config, dataset, fresh=not run.state_steps)
        self.check: Callable[[], None] = _stay

        self.epoch, self.step, self.steps_in_epoch, self.seconds, self.logged = 0, 0, 0, 0.0, Sums()
        self._metrics = b""
        restored = restore(run, self.learner.model, self.learner.train_step)
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
            totals=(*self.learner.totals.read(),), logged=(*self.logged,), made_with=runtime.build(),
        )  # fmt: skip

    def _take(self, standing: Standing) -> None:
        self.epoch, self.step, self.steps_in_epoch = standing.epoch, standing.step, standing.steps_in_epoch
        self.seconds, self.logged = standing.seconds, Sums(*standing.logged)
        self.learner.totals.set(Sums(*standing.totals))

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
        plan = self.learner.plan(epoch)
        steps = math.ceil(len(plan) / settings.accumulation_steps)
        progress.start_epoch(epoch, steps, done=self.steps_in_epoch)
        if 0 < self.steps_in_epoch < steps:
            self._validate_amid(progress)  # if the run was left in the middle of that
        ahead = plan[self.steps_in_epoch * settings.accumulation_steps :]
        now = time.perf_counter()
        for batches in grouped(self.learner.batches(self.learner.split(epoch), ahead), settings.accumulation_steps):
            self.step += 1
            self.steps_in_epoch += 1
            self.learner.learn(self.step, batches)
            if self.step % settings.log_every == 0:
                self._log(epoch)
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

    def _log(self, epoch: int) -> None:
        sums = self._read_totals()
        since, self.logged = sums.since(self.logged), sums
        if since.tokens:  # or all steps were left out
            (loss, right), rate = since.means, self.learner.learning_rate(self.step)
            self.run.append_metrics(
                StepMetrics(epoch=epoch, step=self.step, loss=loss, accuracy=right, learning_rate=rate)
            )

    def _end_epoch(self, epoch: int, progress: TrainingProgress) -> None:
        train = self._read_totals()
        if not train.tokens:
            raise self._diverged(f"no step of epoch {epoch} had such, and all were left out")
        train_loss, train_accuracy = train.means
        weights = self._finite(self.learner.weights)
        loss, accuracy, decoded = self._validate(weights, others=bool(self.learner.train_step.averages))
        metrics = EpochMetrics(
            epoch=epoch, step=self.step, train_loss=train_loss, train_accuracy=train_accuracy,
            validation_loss=loss, validation_accuracy=accuracy, validation_bleu=decoded.bleu,
            validation_chrf=decoded.chrf, target_tokens=int(train.tokens), seconds=self.seconds,
        )  # fmt: skip
        self._note(metrics, decoded.samples)
        self.epoch, self.steps_in_epoch, self.seconds, self.logged = epoch, 0, 0.0, Sums()
        self.learner.totals.set(Sums())
        self._save(weights)
        progress.end_epoch(metrics, decoded.samples, best=self._is_best(metrics))

    def _validate_amid(self, progress: TrainingProgress) -> None:
        """Validate amid an epoch if that is due and not done; keep the weights if they are the best so far."""
        every = self.config.training.validate_every
        if not every or self.step % every or any(one.step == self.step for one in self.validations):
            return
        self._read_totals()
        weights = self._finite(self.learner.weights)
        loss, accuracy, decoded = self._validate(weights, others=bool(self.learner.train_step.averages))
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

    def _save(self, of_epoch: Arrays | None = None) -> None:
        """Save the state between two steps, while training goes on; before it the weights of an epoch that ended."""
        self._read_totals()
        self._wait_for_saving()
        metrics, step, epoch = self.run.metrics_path.read_bytes(), self.learner.train_step, self.epoch
        # Steps change the weights themselves; those of the epoch are their averages, if there are any.
        weights = of_epoch if of_epoch and not step.averages else self._finite(weights_of(self.learner.model))
        content = Content(self.standing, metrics, weights, step.state())
        best = best_of(self.validations, self.config.training.best_by)
        best_weights = weights_name(best) if best else None
        # Looked up now: what is saved while this is written is none of its business.
        superfluous = superfluous_weights(self.run, epoch, self.weights_to_keep, best_weights)

        def write() -> None:
            saved = save_weights(self.run, of_epoch, epoch) if of_epoch else None
            save_state(self.run, content, saved if weights is of_epoch else None)
            for path in superfluous:  # not before there is a state that can do without them
                path.unlink(missing_ok=True)

        self._saving = self._saver.submit(write)
        self._saved, self._saved_at = content.standing, time.monotonic()

    def _wait_for_saving(self) -> None:
        """Wait until the last state is saved; raises NmtError if the disk refused it."""
        if self._saving:
            self._saving.result()
        self._saving = None

    # --- what training came to

    def _read_totals(self) -> Sums:
        """Return the epoch's sums so far.

        Raises:
            NmtError: if training has diverged.
        """
        straw = self.learner.last_straw
        if straw:
            accumulate = self.config.training.accumulation_steps
            step, number = divmod(straw[0], accumulate)
            batch = (step - 1 - self.step + self.steps_in_epoch) * accumulate + number + 1
            after = f" after {straw[1]} steps left out for the same," if straw[1] else ""
            raise self._diverged(f"those of step {step}, batch {batch} of epoch {self.epoch + 1},{after} are not")
        return self.learner.totals.read()

    def _finite(self, weights: Arrays) -> Arrays:
        """Return weights; raises NmtError if they are not numbers any more."""
        for name, array in weights.items():
            if not (np.isfinite(array.min()) and np.isfinite(array.max())):  # both are NaN if any is
                raise self._diverged(f"some in {name} after step {self.step}, in epoch {self.epoch + 1}, are not")
        return weights

    def _diverged(self, what: str) -> NmtError:
        saved = f"step {self._saved.step} is the last one saved" if self._saved else "nothing has been saved"
        settings = self.config.training
        key = "learning_rate_scale" if settings.schedule == "noam" else "peak_learning_rate"
        return NmtError(
            f"Loss, gradients and weights must stay finite numbers; {what}; {saved}. Start another run "
            f"with a lower rate, such as --set training.{key}={getattr(settings, key) / 2:g}, with more "
            "training.warmup_steps or with --set training.clip_norm=1."
        )

    def _validate(self, weights: Arrays, *, others: bool = False) -> tuple[float, float, Decoded]:
        """Return mean loss, accuracy, and what translating brought, with these weights: the model's own, or others."""
        with self.learner.wearing(weights if others else None):
            loss, accuracy = self.learner.validation.measure(self.check)
        decoded = self.decode(weights, self.check) if self.decode else Decoded(None, None, [])
        return loss, accuracy, decoded
