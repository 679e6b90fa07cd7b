"""The training loop: steps, validation, checkpoints; a resumed run ends in the same bits as an uninterrupted one."""

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.hosts import CHIEF, Hosts
from nmt.data.dataset import open_dataset
from nmt.errors import NmtError
from nmt.models.weights import weights_of
from nmt.runs.directory import Run
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    StepMetrics,
    StepValidation,
    best_of,
    parse_metrics,
    weights_id,
)
from nmt.runs.weights import average_weights, weights_to_delete
from nmt.storage.arrays import Arrays
from nmt.storage.file_lock import locked
from nmt.training import stopping
from nmt.training.checkpoints import Checkpoint, Progress, State, restore_newest
from nmt.training.divergence import (
    DivergedError,
    diverged,
    failed_step,
    loss_of_guessing,
    not_finite,
    shortage_in_words,
)
from nmt.training.initial_weights import set_initial_weights, starts_at_random
from nmt.training.input_pipeline import InputPipeline, check_lengths
from nmt.training.interrupts import StopRequested, never_stop
from nmt.training.listeners import Listener, StepEvent, ValidationEvent
from nmt.training.optimization.gradient_sums import Sums
from nmt.training.optimization.update import Update
from nmt.training.plan import RunPlan, check_unchanged, store
from nmt.training.saver import Saver
from nmt.training.validation import MakeDecode, ValidationResult, Validator


class Trainer:
    """The training of a planned run, inside a ``with`` block: model, optimizer, batches, and the lock of the run.

    All hosts go through it in step. What the chief reads from the run's folder it sends to the others.
    """

    def __init__(
        self,
        plan: RunPlan,
        make_decode: MakeDecode | None = None,
        *,
        keep: bool = True,
        hosts: Hosts | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        """Join the other hosts, lock a run that exists, build the model and restore the newest checkpoint.

        Nothing is written before ``train``, so that all refusals come first.

        Args:
            plan: the run.
            make_decode: makes the function that translates validation sentences; None: they are not translated.
            keep: false to measure the speed of a plan: initial weights are random, no run is read, locked or trained.
            hosts: the hosts to train with; None: this process alone.
            report: is called with words about hosts, damaged checkpoints and TensorBoard.

        Raises:
            ConfigError: for a model that does not fit the dataset.
            DataError: if no checkpoint can be used.
            ConflictError: if another process trains the run, or has changed it since it was planned.
            NmtError: for all else that keeps the run from training.
        """
        self.plan, self.config, self.run = plan, plan.config, plan.directory
        self.report = report
        self._locks = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._locks.close)
            self.group = Group(hosts, report)
            if keep and self.group.is_chief:
                if plan.resumes:
                    self._lock()
                check_unchanged(plan)
            with self.group.exchanging():
                self._build(make_decode, keep=keep)
            undo.pop_all()

    def _build(self, make_decode: MakeDecode | None, *, keep: bool) -> None:
        if self.group.count > 1:
            self.group.agree(self.plan.facts)
        self.dataset = open_dataset(self.plan.dataset)
        check_lengths(self.config.model, self.dataset.manifest)
        decode = make_decode(self.config, self.dataset) if make_decode else None
        self.pipeline = InputPipeline.of(self.config, self.dataset, self.group)
        restores = keep and self.group.is_chief  # the other hosts receive all that it has
        initialize = None
        if restores and not self.run.state_steps:
            initialize = functools.partial(set_initial_weights, config=self.config, dataset=self.dataset)
        self.update = Update.of(self.config, self.dataset.manifest.vocabulary, self.group, initialize)
        self.model = self.update.model
        self.validator = Validator.of(self.model, self.config, self.dataset, decode)
        self.progress, metrics, restored = Progress(), b"", None
        if restores:
            restored, damaged = restore_newest(self.run, self.update.restore)
            for checkpoint in damaged:
                self.report(f"Passed over: {checkpoint}")
            if restored:
                self.progress, metrics = restored.progress.model_copy(), restored.metrics
        if self.group.count > 1:
            metrics = self._receive_state(metrics)
        self.environment_before = self.progress.environment or runtime.environment()
        self.progress.environment = runtime.environment()
        records = parse_metrics(metrics, self.run.metrics_path)
        self.validations = [record for record in records if isinstance(record, StepValidation | EpochMetrics)]
        saved = restored.progress if restored else None
        self.saver = Saver(self.run, self.config.training, saved, metrics, writes=self.group.is_chief)
        self._listeners: list[Listener] = []
        self._check: Callable[[], None] = never_stop

    def _receive_state(self, metrics: bytes) -> bytes:
        """Take over the chief's weights, optimizer and progress, and return its metrics."""
        own = self.update.state()
        text, metrics = (
            self.group.gather_bytes(content)[CHIEF] for content in (self.progress.model_dump_json().encode(), metrics)
        )
        self.progress = Progress.model_validate_json(text)
        weights, optimizer = self.group.broadcast(own.weights), self.group.broadcast(own.optimizer)
        self.update.restore(State(weights, optimizer, self.progress.totals))
        return metrics

    def __enter__(self) -> Self:
        """Return the trainer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock of the run."""
        self._locks.close()

    def _lock(self) -> None:
        self._locks.enter_context(locked(self.run.lock_path, f"Run {self.run.name!r}"))

    # --- where the run stands

    @property
    def is_trained(self) -> bool:
        """Whether no epoch is left to train, by the chief's validations: another processor has other last bits."""
        return self._chief_says(stopping.is_trained(self.progress, self.validations, self.config.training))

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, neither an epoch nor the average, by the chief's files."""
        finished = stopping.is_finished(self.run, self.progress, self.validations, self.config.training)
        return self._chief_says(finished)

    def _chief_says(self, flag: bool) -> bool:
        with self.group.exchanging():
            return self.group.flags(flag)[CHIEF]

    @property
    def epochs_to_average(self) -> list[int]:
        """Epochs whose weights the run's average is made of; none if the run has too few."""
        return stopping.epochs_to_average(self.progress, self.validations, self.config.training)

    def profile(
        self,
        training: Sequence[np.ndarray],
        validation: Sequence[np.ndarray] = (),
        stop: Callable[[], None] = never_stop,
    ) -> list[float]:
        """Train and validate batches of the coming epoch, with the graphs that train, and undo it all.

        Args:
            training: indices of the pairs of each batch.
            validation: likewise, for the validation split.
            stop: is called after each batch, and may raise to break off.

        Returns:
            The seconds of each batch.
        """
        seconds, before, rate = [], self.update.state(), self.pipeline.learning_rate(1)
        stop = self.group.together(stop, StopRequested)

        def timed(compute: Callable[[], None]) -> None:
            started = time.perf_counter()
            compute()
            self.update.totals.read()  # waits for the device
            seconds.append(time.perf_counter() - started)
            stop()

        with self.group.exchanging():
            try:
                for number, batch in enumerate(self.pipeline.batches(self.progress.epoch + 1, list(training)), 1):
                    timed(lambda: self.update.take([batch], rate, self.progress.step + number))  # noqa: B023
                for batch in self.validator.batches(validation):
                    timed(lambda: self.validator.step(*batch))  # noqa: B023
            finally:
                self.update.restore(before)
        return seconds

    # --- the loop

    def train(self, listeners: Sequence[Listener] = (), stop: Callable[[], None] = never_stop) -> Run:
        """Train the remaining epochs, save after each and in between as configured, and return the run.

        Args:
            listeners: observers besides the metrics file and TensorBoard.
            stop: is called after each step and each validation batch; when it raises StopRequested on a host, a
                checkpoint is saved before the exception leaves on all.

        Raises:
            NmtError: if training diverges, the disk refuses, or a host is gone.
        """
        with self.group.exchanging():
            recorder = self._recorder()
            if self.is_finished:
                for listener in recorder:  # it records what it finds in the metrics
                    listener.on_start()
                    listener.close()
                return self.run
            if self.group.is_chief:
                store(self.plan, self.dataset)
                if not self.plan.resumes:
                    self._lock()
            self._check = self.group.together(stop, StopRequested)
            self._listeners = [self.saver.metrics_file, *listeners, *recorder]
            with self.saver:
                self._train()
        return self.run

    def _recorder(self) -> list[Listener]:
        if not (self.config.training.tensorboard and self.group.is_chief):
            return []
        from nmt.training.tensorboard import TensorBoard  # noqa: PLC0415 - an extra

        return [TensorBoard(self.run, self.report)]

    def _train(self) -> None:
        try:
            if self.saver.saved is None and not starts_at_random(self.config):
                self._save()  # another run may change, and another machine compute other last bits
            self._tell(lambda listener: listener.on_start())
            while not self.is_trained:
                self._train_epoch()
            self.saver.wait()
            average = None if self.is_finished else self._average()
            self._tell(lambda listener: listener.on_end(average))
        except StopRequested:
            self._read_totals()
            if self.saver.saved != self.progress:
                self._save()
            self.saver.wait()
            raise
        finally:
            self._tell(lambda listener: listener.close())

    def _train_epoch(self) -> None:
        progress = self.progress
        epoch = progress.epoch + 1
        steps = self.pipeline.steps(epoch)
        self._tell(lambda listener: listener.on_epoch_start(epoch, steps, progress.steps_in_epoch))
        if 0 < progress.steps_in_epoch < steps:
            self._validate_within_epoch()  # if training was stopped during that validation
        started = time.perf_counter()
        for batches in self.pipeline.step_batches(epoch, progress.steps_in_epoch):
            progress.step += 1
            progress.steps_in_epoch += 1
            with shortage_in_words(f"in step {progress.step:,}", self.config):
                self.update.take(batches, self.pipeline.learning_rate(progress.step), progress.step)
            is_logged = progress.step % self.config.training.log_every == 0
            needed = any(listener.needs_totals() for listener in self._listeners)
            totals = self._read_totals() if needed or is_logged else None
            progress.seconds += time.perf_counter() - started
            metrics = self._step_metrics(totals) if totals and is_logged else None
            event = StepEvent(totals if needed else None, progress.seconds, metrics)
            self._tell(lambda listener, event=event: listener.on_step(event))  # type: ignore[misc]
            if progress.steps_in_epoch < steps:
                self._validate_within_epoch()
            if self.saver.is_due(progress.step):
                self._save()
            self.saver.check()
            self._check()
            started = time.perf_counter()
        self._end_epoch(epoch)

    def _step_metrics(self, totals: Sums) -> StepMetrics | None:
        progress = self.progress
        since, progress.logged = totals.since(Sums(*progress.logged)), totals
        if not since.tokens:  # all steps were skipped
            return None
        (loss, accuracy), rate = since.means, self.pipeline.learning_rate(progress.step)
        return StepMetrics(
            epoch=progress.epoch + 1, step=progress.step, loss=loss, accuracy=accuracy, learning_rate=rate,
            gradient_norm=self.update.gradient_norm, target_tokens=int(totals.tokens), seconds=progress.seconds,
        )  # fmt: skip

    def _end_epoch(self, epoch: int) -> None:
        train, progress = self._read_totals(), self.progress
        if self.group.count > 1:
            state = self.update.state()
            self.group.compare([*state.weights.values(), *state.optimizer.values()])
        if not train.tokens:
            raise self._diverged(f"every step of epoch {epoch} was skipped")
        weights, result = self._validate()
        metrics = EpochMetrics(
            epoch=epoch, step=progress.step, train_loss=train.means[0], train_accuracy=train.means[1],
            target_tokens=int(train.tokens), seconds=progress.seconds, **result.fields(),
            pairs_by_corpus=self.pipeline.seen(epoch) if result.loss_by_corpus else None,
        )  # fmt: skip
        event = self._record(metrics, result)
        self._listeners[0].on_epoch(event)  # the checkpoint holds the metrics file
        self.progress = Progress(epoch=epoch, step=progress.step, environment=progress.environment)
        self.update.totals.set(Sums())
        self._save(weights)
        for listener in self._listeners[1:]:
            listener.on_epoch(event)

    def _validate_within_epoch(self) -> None:
        """Validate if that is due and not done; save the weights if they are the best so far."""
        every, progress = self.config.training.validate_every, self.progress
        done = any(validation.step == progress.step for validation in self.validations)
        if not every or progress.step % every or done:
            return
        self._read_totals()
        weights, result = self._validate()
        metrics = StepValidation(epoch=progress.epoch + 1, step=progress.step, **result.fields())
        if best_of([*self.validations, metrics], self.config.training.best_by) is metrics:
            self.saver.save_weights(weights, weights_id(metrics))
        event = self._record(metrics, result)
        self._tell(lambda listener: listener.on_validation(event))

    def _validate(self) -> tuple[Arrays, ValidationResult]:
        weights = self._finite(self.update.weights)
        return weights, self._quality(weights, own=self.update.moving_average is None)

    def _quality(self, weights: Arrays, *, own: bool = False) -> ValidationResult:
        """Validate weights; ``own``: those that the model has now."""

        def after_batch() -> None:
            self._tell(lambda listener: listener.on_validation_batch())
            self._check()

        self._tell(lambda listener: listener.on_validation_start(len(self.validator.plan)))
        try:
            return self.validator.validate(weights, after_batch, own=own)
        except DivergedError:
            raise self._diverged(f"validation loss after step {self.progress.step}") from None

    def _record(self, metrics: EpochMetrics | StepValidation, result: ValidationResult) -> ValidationEvent:
        self.validations.append(metrics)
        best = best_of(self.validations, self.config.training.best_by) is metrics
        best = best and metrics.validation_loss < self.guessing
        return ValidationEvent(metrics, list(result.decoded.samples), best)

    @functools.cached_property
    def guessing(self) -> float:
        """Validation loss of guesses, below which a model has learned anything."""
        train, validation = (self.dataset.split(name).target for name in ("train", "validation"))
        return loss_of_guessing(train, validation, self.dataset.manifest.vocabulary["target"])

    def _average(self) -> AverageMetrics:
        chief = self.group.is_chief  # the others have no weights of epochs, but arrays of the same names and shapes
        own = average_weights(self.run, self.epochs_to_average) if chief else weights_of(self.model)
        weights = self.group.broadcast(own)
        result = self._quality(weights)
        self.saver.save_weights(weights, "average")
        return AverageMetrics(epochs=self.epochs_to_average, step=self.progress.step, **result.fields())

    def _tell(self, call: Callable[[Listener], None]) -> None:
        for listener in self._listeners:
            call(listener)

    def _save(self, epoch_weights: Arrays | None = None) -> None:
        """Save a checkpoint in the background; before it the weights of an epoch that has ended."""
        self._read_totals()
        if not self.saver.writes:
            return
        self.saver.wait()
        state = self.update.state()
        if epoch_weights and self.update.moving_average is None:
            state = state._replace(weights=epoch_weights)  # one file serves both
        self._finite(state.weights)
        checkpoint = Checkpoint(self.progress.model_copy(), self.run.metrics_path.read_bytes(), state)
        settings = self.config.training
        kept, best = stopping.weights_to_keep(settings), best_of(self.validations, settings.best_by)
        # Listed now: weights saved while the checkpoint is written must stay.
        superfluous = weights_to_delete(self.run, self.progress.epoch, kept, weights_id(best) if best else None)
        self.saver.save(checkpoint, epoch_weights, superfluous)

    def _read_totals(self) -> Sums:
        """Return the epoch's totals so far; raises NmtError if training has diverged."""
        if failure := failed_step(self.update, self.progress):
            raise self._diverged(failure)
        totals = self.update.totals.read()
        self.progress.totals = totals
        return totals

    def _finite(self, weights: Arrays) -> Arrays:
        """Return weights; raises NmtError if some are not finite."""
        if failure := not_finite(weights, self.progress):
            raise self._diverged(failure)
        return weights

    def _diverged(self, what: str) -> NmtError:
        return diverged(what, self.saver.saved, self.config.training)
