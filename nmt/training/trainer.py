"""The training loop: steps, validations, checkpoints. A resumed run ends in the same bits as an uninterrupted one."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.hosts import CHIEF
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
from nmt.training.checkpoints import Checkpoint, TrainingProgress, TrainingState, restore_newest
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
from nmt.training.optimization.build import build_update
from nmt.training.optimization.totals import TokenTotals
from nmt.training.plan import RunPlan, check_unchanged, store
from nmt.training.saver import Saver
from nmt.training.validation import MakeDecode, ValidationResult, Validator


class Trainer:
    """Trainer of a planned run, a context manager: model, optimizer, batches, and the lock of the run.

    All hosts call its methods at the same points. The chief reads the run's folder and sends its content to the others.
    """

    def __init__(
        self,
        plan: RunPlan,
        make_decode: MakeDecode | None = None,
        *,
        keep: bool = True,
        group: Group | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        """Lock the run if it exists, build the model and restore the newest checkpoint.

        Nothing is written before ``train``, so every refusal comes first.

        Args:
            plan: the plan of the run.
            make_decode: makes the function that translates validation sentences; None: they are not translated.
            keep: false to only measure the speed of a plan: the initial weights are random, and no run is read, locked
                or trained.
            group: the hosts to train with; None: this process alone.
            report: is called with messages about damaged checkpoints and TensorBoard.

        Raises:
            ConfigError: for a model that does not fit the dataset.
            DataError: if no checkpoint can be used.
            ConflictError: if another process trains the run, or has changed it since it was planned.
            NmtError: for anything else that keeps the run from training.
        """
        self.plan, self.config, self.run = plan, plan.config, plan.directory
        self.group, self.report = group or Group(), report
        self._locks = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._locks.close)
            if keep and self.group.is_chief:
                if plan.resumes:
                    self._lock()
                check_unchanged(plan)
            with self.group.exchanging():
                self._build(make_decode, keep=keep)
            undo.pop_all()

    def _build(self, make_decode: MakeDecode | None, *, keep: bool) -> None:
        self.dataset = open_dataset(self.plan.dataset)
        check_lengths(self.config.model, self.dataset.manifest)
        decode = make_decode(self.config, self.dataset) if make_decode else None
        self.pipeline = InputPipeline.of(self.config, self.dataset, self.group)
        restores = keep and self.group.is_chief  # the other hosts receive the result
        initialize = None
        if restores and not self.run.state_steps:
            initialize = functools.partial(set_initial_weights, config=self.config, dataset=self.dataset)
        self.update = build_update(self.config, self.dataset.manifest.vocabulary, self.group, initialize)
        self.model = self.update.model
        self.validator = Validator.of(self.model, self.config, self.dataset, decode)
        self.progress, metrics, restored = TrainingProgress(), b"", None
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
        """Take over weights, optimizer and progress of the chief, and return its metrics file."""
        own = self.update.state()
        progress = self.group.broadcast_bytes(self.progress.model_dump_json().encode())
        self.progress = TrainingProgress.model_validate_json(progress)
        weights, optimizer = self.group.broadcast(own.weights), self.group.broadcast(own.optimizer)
        self.update.restore(TrainingState(weights, optimizer, self.progress.totals))
        return self.group.broadcast_bytes(metrics)

    def __enter__(self) -> Self:
        """Return the trainer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock of the run."""
        self._locks.close()

    def _lock(self) -> None:
        self._locks.enter_context(locked(self.run.lock_path, f"Run {self.run.name!r}"))

    # --- progress of the run

    def is_trained(self) -> bool:
        """Ask the chief whether no epoch is left to train: on other processors the last bits of validations differ."""
        return self._chief_says(stopping.is_trained(self.progress, self.validations, self.config.training))

    def is_finished(self) -> bool:
        """Ask the chief, which has the run's files, whether neither an epoch nor the average is left to do."""
        finished = stopping.is_finished(self.run, self.progress, self.validations, self.config.training)
        return self._chief_says(finished)

    def _chief_says(self, flag: bool) -> bool:
        with self.group.exchanging():
            return self.group.flags(flag)[CHIEF]

    @property
    def epochs_to_average(self) -> list[int]:
        """Epochs whose weights the run averages at its end; empty if it has too few."""
        return stopping.epochs_to_average(self.progress, self.validations, self.config.training)

    def profile(
        self,
        training: Sequence[np.ndarray],
        validation: Sequence[np.ndarray] = (),
        stop: Callable[[], None] = never_stop,
    ) -> list[float]:
        """Time training and validation batches of the coming epoch with the graphs that train, then undo them all.

        Args:
            training: training batches, each as indices of pairs.
            validation: validation batches, likewise.
            stop: is called after each batch, and may raise to break off.

        Returns:
            The seconds of each batch.
        """
        seconds, before = [], self.update.state()
        stop = self.group.check_on_all_hosts(stop, StopRequested)
        with self.group.exchanging():
            try:
                for compute in self._computations(training, validation):
                    started = time.perf_counter()
                    compute()
                    self.update.totals.read()  # waits for the device
                    seconds.append(time.perf_counter() - started)
                    stop()
            finally:
                self.update.restore(before)
        return seconds

    def _computations(
        self, training: Sequence[np.ndarray], validation: Sequence[np.ndarray]
    ) -> Iterator[Callable[[], None]]:
        rate = self.pipeline.learning_rate(1)
        batches = self.pipeline.batches(self.progress.epoch + 1, list(training))
        for step, batch in enumerate(batches, self.progress.step + 1):
            yield functools.partial(self.update.take, [batch], rate, step)
        for batch in self.validator.batches(validation):
            yield functools.partial(self.validator.step, *batch)

    # --- the loop

    def train(self, listeners: Sequence[Listener] = (), stop: Callable[[], None] = never_stop) -> Run:
        """Train the remaining epochs and return the run. Checkpoints are saved after each epoch and as configured.

        Args:
            listeners: observers besides the metrics file and TensorBoard.
            stop: is called after each step and each validation batch. If it raises StopRequested on any host, a
                checkpoint is saved and then all hosts raise it.

        Raises:
            NmtError: if training diverges, the disk cannot be written, or a host is gone.
        """
        with self.group.exchanging():
            recorder = self._recorder()
            if self.is_finished():
                for listener in recorder:  # TensorBoard records the metrics file
                    listener.on_start()
                    listener.close()
                return self.run
            if self.group.is_chief:
                store(self.plan, self.dataset)
                if not self.plan.resumes:
                    self._lock()
            self._check = self.group.check_on_all_hosts(stop, StopRequested)
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
                self._save()  # the source of these weights may change, and machines differ in the last bits
            self._tell(lambda listener: listener.on_start())
            while not self.is_trained():
                self._train_epoch()
            self.saver.wait()
            average = None if self.is_finished() else self._average()
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
            self._validate_within_epoch()  # training may have been stopped during that validation
        started = time.perf_counter()
        for batches in self.pipeline.step_batches(epoch, progress.steps_in_epoch):
            progress.step += 1
            progress.steps_in_epoch += 1
            with shortage_in_words(f"in step {progress.step:,}", self.config):
                self.update.take(batches, self.pipeline.learning_rate(progress.step), progress.step)
            is_logged = progress.step % self.config.training.log_every == 0
            is_needed = any(listener.needs_totals() for listener in self._listeners)
            totals = self._read_totals() if is_needed or is_logged else None
            progress.seconds += time.perf_counter() - started
            metrics = self._step_metrics(totals) if totals and is_logged else None
            event = StepEvent(totals if is_needed else None, progress.seconds, metrics)
            self._tell(lambda listener, event=event: listener.on_step(event))  # type: ignore[misc]
            if progress.steps_in_epoch < steps:
                self._validate_within_epoch()
            if self.saver.is_due(progress.step):
                self._save()
            self.saver.check()
            self._check()
            started = time.perf_counter()
        self._end_epoch(epoch)

    def _step_metrics(self, totals: TokenTotals) -> StepMetrics | None:
        """Return the record of the steps since the last record; None if all of them were skipped."""
        progress = self.progress
        recent = totals.since(TokenTotals(*progress.logged))
        progress.logged = totals
        if not recent.tokens:
            return None
        loss, accuracy = recent.means
        rate = self.pipeline.learning_rate(progress.step)
        return StepMetrics(
            epoch=progress.epoch + 1, step=progress.step, loss=loss, accuracy=accuracy, learning_rate=rate,
            gradient_norm=self.update.gradient_norm, target_tokens=int(totals.tokens), seconds=progress.seconds,
        )  # fmt: skip

    def _end_epoch(self, epoch: int) -> None:
        totals, progress = self._read_totals(), self.progress
        if self.group.count > 1:
            state = self.update.state()
            self.group.compare([*state.weights.values(), *state.optimizer.values()])
        if not totals.tokens:
            raise self._diverged(f"every step of epoch {epoch} was skipped")
        weights, result = self._validate()
        loss, accuracy = totals.means
        memory = runtime.peak_memory()
        metrics = EpochMetrics(
            epoch=epoch, step=progress.step, train_loss=loss, train_accuracy=accuracy,
            target_tokens=int(totals.tokens), seconds=progress.seconds, **result.fields(),
            peak_memory=round(memory / 1e9, 3) if memory else None,
            pairs_by_corpus=self.pipeline.seen(epoch) if result.loss_by_corpus else None,
        )  # fmt: skip
        event = self._record(metrics, result)
        self._listeners[0].on_epoch(event)  # the checkpoint holds the metrics file
        self.progress = TrainingProgress(epoch=epoch, step=progress.step, environment=progress.environment)
        self.update.totals.set(TokenTotals())
        self._save(weights)
        for listener in self._listeners[1:]:
            listener.on_epoch(event)

    def _validate_within_epoch(self) -> None:
        """Validate if a validation is due and not made yet; save the weights if they are the best so far."""
        every, progress = self.config.training.validate_every, self.progress
        is_made = any(validation.step == progress.step for validation in self.validations)
        if not every or progress.step % every or is_made:
            return
        self._read_totals()
        weights, result = self._validate()
        metrics = StepValidation(epoch=progress.epoch + 1, step=progress.step, **result.fields())
        if best_of([*self.validations, metrics], self.config.training.best_by) is metrics:
            self.saver.save_weights(weights, weights_id(metrics))
        event = self._record(metrics, result)
        self._tell(lambda listener: listener.on_validation(event))

    def _validate(self) -> tuple[Arrays, ValidationResult]:
        weights = self.update.weights
        self._check_finite(weights)
        return weights, self._quality(weights, own=self.update.moving_average is None)

    def _quality(self, weights: Arrays, *, own: bool = False) -> ValidationResult:
        """Validate weights. ``own`` says that the model has these weights now."""

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
        beats_guessing = metrics.validation_loss < self.guessing
        return ValidationEvent(metrics, list(result.decoded.samples), best, beats_guessing)

    @functools.cached_property
    def guessing(self) -> float:
        """Validation loss of guesses, below which a model has learned anything."""
        train, validation = (self.dataset.split(name).target for name in ("train", "validation"))
        return loss_of_guessing(train, validation, self.dataset.manifest.vocabulary["target"])

    def _average(self) -> AverageMetrics:
        """Save the average of the last epochs' weights, and return its record."""
        epochs = self.epochs_to_average
        # Only the chief has the weights of epochs. The other hosts give names, shapes and dtypes for the exchange.
        weights = average_weights(self.run, epochs) if self.group.is_chief else weights_of(self.model)
        weights = self.group.broadcast(weights)
        result = self._quality(weights)
        self.saver.save_weights(weights, "average")
        return AverageMetrics(epochs=epochs, step=self.progress.step, **result.fields())

    def _tell(self, call: Callable[[Listener], None]) -> None:
        for listener in self._listeners:
            call(listener)

    def _save(self, epoch_weights: Arrays | None = None) -> None:
        """Save the weights of an epoch that has just ended, if any, and a checkpoint, in the background."""
        self._read_totals()
        if not self.saver.writes:
            return
        self.saver.wait()
        state = self.update.state()
        if epoch_weights and self.update.moving_average is None:
            state = state._replace(weights=epoch_weights)  # one file serves both
        self._check_finite(state.weights)
        checkpoint = Checkpoint(self.progress.model_copy(), self.run.metrics_path.read_bytes(), state)
        settings = self.config.training
        kept, best = stopping.weights_to_keep(settings), best_of(self.validations, settings.best_by)
        # Listed before the checkpoint is written: weights saved meanwhile must stay.
        superfluous = weights_to_delete(self.run, self.progress.epoch, kept, weights_id(best) if best else None)
        self.saver.save(checkpoint, epoch_weights, superfluous)

    def _read_totals(self) -> TokenTotals:
        """Return the totals of the epoch so far, or raise NmtError if training has diverged."""
        if failure := failed_step(self.update, self.progress):
            raise self._diverged(failure)
        totals = self.update.totals.read()
        self.progress.totals = totals
        return totals

    def _check_finite(self, weights: Arrays) -> None:
        if failure := not_finite(weights, self.progress):
            raise self._diverged(failure)

    def _diverged(self, failure: str) -> NmtError:
        return diverged(failure, self.saver.saved, self.config.training)
