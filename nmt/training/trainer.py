"""The training loop: steps, validation, checkpoints; a resumed run ends in the same bits as an uninterrupted one."""

import time
from collections.abc import Callable, Sequence

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.hosts import CHIEF
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
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
from nmt.training import stopping
from nmt.training.checkpoints import Checkpoint, LoopState, restore_newest
from nmt.training.divergence import DivergedError, diverged, failed_step, not_finite, shortage_in_words
from nmt.training.initial_weights import set_initial_weights, starts_at_random
from nmt.training.input_pipeline import InputPipeline, check_lengths
from nmt.training.interrupts import StopRequested, never_stop
from nmt.training.listeners import Listener, StepEvent, ValidationEvent
from nmt.training.optimization.gradient_sums import Sums
from nmt.training.saver import Saver
from nmt.training.state import TrainState
from nmt.training.validation import Decode, ValidationResult, Validator


class Trainer:
    """A run in training: its state, input pipeline, validator and listeners.

    All hosts go through it in step. What the chief reads from the run's folder it sends to the others.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        dataset: Dataset,
        decode: Decode | None = None,
        group: Group | None = None,
    ) -> None:
        """Build the model and restore the run's newest checkpoint, if it has one; nothing is written.

        ``decode`` is a function that translates; ``group``: None for this process alone.

        Raises:
            ConfigError: for a model that does not fit the dataset.
            DataError: if no checkpoint can be used.
            NotFoundError, ConflictError: for initial weights that are missing or of another vocabulary.
        """
        self.run, self.config, self.group = run, config, group or Group()
        check_lengths(config.model, dataset.manifest)
        self.pipeline = InputPipeline.of(config, dataset, self.group)
        self.state = TrainState(config, dataset.manifest.vocabulary, self.group)
        self.validator = Validator(self.state.model, config, dataset.split("validation"), decode)
        self.check: Callable[[], None] = never_stop

        self.damaged: list[str] = []
        self._metrics = b""
        loop = self._restore(dataset) if self.group.is_chief else None
        self._receive_state()
        self.environment_before = loop.environment if loop else runtime.environment()
        records = parse_metrics(self._metrics, run.metrics_path)
        self.validations = [record for record in records if isinstance(record, StepValidation | EpochMetrics)]
        self.saver = Saver(run, config.training, loop, writes=self.group.is_chief)
        self.listeners: list[Listener] = [self.saver.metrics_file]

    def _restore(self, dataset: Dataset) -> LoopState | None:
        """Restore the newest checkpoint, or set the initial weights; returns the position of the checkpoint."""
        if not self.run.state_steps:
            set_initial_weights(self.state.model, self.config, dataset)
        restored = restore_newest(self.run, self.state.restore)
        self._metrics, self.damaged = (restored.metrics, restored.damaged) if restored else (b"", [])
        return restored.loop if restored else None

    def _receive_state(self) -> None:
        """Take over the chief's weights, optimizer, position and metrics."""
        if self.group.count == 1:
            return
        own = self.state.loop_state.model_dump_json().encode()
        text, self._metrics = (self.group.gather_bytes(content)[CHIEF] for content in (own, self._metrics))
        weights = self.group.broadcast(weights_of(self.state.model))
        optimizer = self.group.broadcast(self.state.train_step.state())
        self.state.restore(Checkpoint(LoopState.model_validate_json(text), self._metrics, weights, optimizer))

    # --- progress of the run

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return self.state.position.epoch

    @property
    def stopped_early(self) -> bool:
        """Whether ``training.patience`` has ended training."""
        return stopping.stopped_early(self.validations, self.config.training)

    @property
    def is_trained(self) -> bool:
        """Whether no epoch is left to train, by the chief's validations: another processor has other last bits."""
        trained = stopping.is_trained(self.state.position, self.validations, self.config.training)
        return self.group.chief_says(trained)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, neither an epoch nor the average, by the chief's files."""
        finished = stopping.is_finished(self.run, self.state.position, self.validations, self.config.training)
        return self.group.chief_says(finished)

    @property
    def epochs_to_average(self) -> list[int]:
        """Epochs whose weights the run's average is made of; none if the run has too few."""
        return stopping.epochs_to_average(self.state.position, self.validations, self.config.training)

    @property
    def weights_to_keep(self) -> int | None:
        """Number of last epochs whose weights are kept; None: all."""
        kept = self.config.training.max_to_keep
        return None if kept is None else max(kept, self.config.training.average_last)

    # --- the loop

    def train(self, listeners: Sequence[Listener] = (), check: Callable[[], None] = never_stop) -> None:
        """Train the remaining epochs, and save after each and in between as configured.

        Args:
            listeners: observers besides the metrics file.
            check: is called after each step and each validation batch; when it raises StopRequested on a host, a
                checkpoint is saved before the exception leaves on all.

        Raises:
            NmtError: if training diverges, the disk refuses, or a host is gone.
        """
        self.check = self.group.together(check, StopRequested)
        self.listeners = [self.listeners[0], *listeners]
        self.saver.begin(self._metrics)
        with self.saver:
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
                if self.saver.saved != self.state.loop_state:
                    self._save()
                self.saver.wait()
                raise
            finally:
                self._tell(lambda listener: listener.close())

    def _train_epoch(self) -> None:
        epoch, position = self.epoch + 1, self.state.position
        steps = self.pipeline.steps(epoch)
        self._tell(lambda listener: listener.on_epoch_start(epoch, steps, position.steps_in_epoch))
        if 0 < position.steps_in_epoch < steps:
            self._validate_within_epoch()  # if training was stopped during that validation
        started = time.perf_counter()
        for batches in self.pipeline.step_batches(epoch, position.steps_in_epoch):
            with shortage_in_words(f"in step {position.step + 1:,}", self.config):
                self.state.step(batches, self.pipeline.learning_rate(position.step + 1))
            is_logged = position.step % self.config.training.log_every == 0
            needed = any(listener.needs_totals() for listener in self.listeners)
            totals = self._read_totals() if needed or is_logged else None
            position.seconds += time.perf_counter() - started
            metrics = self._step_metrics(totals) if totals and is_logged else None
            event = StepEvent(totals if needed else None, position.seconds, metrics)
            for listener in self.listeners:
                listener.on_step(event)
            if position.steps_in_epoch < steps:
                self._validate_within_epoch()
            if self.saver.is_due(position.step):
                self._save()
            self.saver.check()
            self.check()
            started = time.perf_counter()
        self._end_epoch(epoch)

    def _step_metrics(self, totals: Sums) -> StepMetrics | None:
        position = self.state.position
        since, position.logged = totals.since(position.logged), totals
        if not since.tokens:  # all steps were skipped
            return None
        (loss, accuracy), rate = since.means, self.pipeline.learning_rate(position.step)
        return StepMetrics(
            epoch=position.epoch + 1, step=position.step, loss=loss, accuracy=accuracy, learning_rate=rate,
            target_tokens=int(totals.tokens), seconds=position.seconds,
        )  # fmt: skip

    def _end_epoch(self, epoch: int) -> None:
        train, position = self._read_totals(), self.state.position
        if self.group.count > 1:
            self.group.compare([*weights_of(self.state.model).values(), *self.state.train_step.state().values()])
        if not train.tokens:
            raise self._diverged(f"every step of epoch {epoch} was skipped")
        weights, result = self._validate()
        metrics = EpochMetrics(
            epoch=epoch, step=position.step, train_loss=train.means[0], train_accuracy=train.means[1],
            target_tokens=int(train.tokens), seconds=position.seconds, **result.fields(),
        )  # fmt: skip
        event = self._record(metrics, result)
        self.listeners[0].on_epoch(event)  # the checkpoint holds the metrics file
        self.state.next_epoch()
        self._save(weights)
        for listener in self.listeners[1:]:
            listener.on_epoch(event)

    def _validate_within_epoch(self) -> None:
        """Validate if that is due and not done; save the weights if they are the best so far."""
        every, position = self.config.training.validate_every, self.state.position
        done = any(validation.step == position.step for validation in self.validations)
        if not every or position.step % every or done:
            return
        self._read_totals()
        weights, result = self._validate()
        metrics = StepValidation(epoch=position.epoch + 1, step=position.step, **result.fields())
        if best_of([*self.validations, metrics], self.config.training.best_by) is metrics:
            self.saver.save_weights(weights, weights_id(metrics))
        event = self._record(metrics, result)
        self._tell(lambda listener: listener.on_validation(event))

    def _validate(self) -> tuple[Arrays, ValidationResult]:
        weights = self._finite(self.state.weights)
        return weights, self._quality(weights, own=not self.state.has_averages)

    def _quality(self, weights: Arrays, *, own: bool = False) -> ValidationResult:
        """Validate weights; ``own``: those that the model has now."""

        def after_batch() -> None:
            self._tell(lambda listener: listener.on_validation_batch())
            self.check()

        self._tell(lambda listener: listener.on_validation_start(len(self.validator.plan)))
        try:
            return self.validator.validate(weights, after_batch, own=own)
        except DivergedError:
            raise self._diverged(f"validation loss after step {self.state.position.step}") from None

    def _record(self, metrics: EpochMetrics | StepValidation, result: ValidationResult) -> ValidationEvent:
        self.validations.append(metrics)
        best = best_of(self.validations, self.config.training.best_by) is metrics
        return ValidationEvent(metrics, list(result.decoded.samples), best)

    def _average(self) -> AverageMetrics:
        chief = self.group.is_chief  # the others have no weights of epochs, but arrays of the same names and shapes
        own = average_weights(self.run, self.epochs_to_average) if chief else weights_of(self.state.model)
        weights = self.group.broadcast(own)
        result = self._quality(weights)
        self.saver.save_weights(weights, "average")
        return AverageMetrics(epochs=self.epochs_to_average, step=self.state.position.step, **result.fields())

    def _tell(self, call: Callable[[Listener], None]) -> None:
        for listener in self.listeners:
            call(listener)

    def _save(self, epoch_weights: Arrays | None = None) -> None:
        """Save a checkpoint in the background; before it the weights of an epoch that has ended."""
        self._read_totals()
        if not self.saver.writes:
            return
        self.saver.wait()
        # Steps change the model's own weights; the weights of an epoch are their averages, if there are any.
        own = epoch_weights if epoch_weights and not self.state.has_averages else None
        weights = own or self._finite(weights_of(self.state.model))
        metrics = self.run.metrics_path.read_bytes()
        checkpoint = Checkpoint(self.state.loop_state, metrics, weights, self.state.train_step.state())
        best = best_of(self.validations, self.config.training.best_by)
        # Listed now: weights saved while the checkpoint is written must stay.
        superfluous = weights_to_delete(self.run, self.epoch, self.weights_to_keep, weights_id(best) if best else None)
        self.saver.save(checkpoint, epoch_weights, superfluous)

    def _read_totals(self) -> Sums:
        """Return the epoch's totals so far; raises NmtError if training has diverged."""
        if failure := failed_step(self.state):
            raise self._diverged(failure)
        return self.state.totals.read()

    def _finite(self, weights: Arrays) -> Arrays:
        """Return weights; raises NmtError if some are not finite."""
        if failure := not_finite(weights, self.state):
            raise self._diverged(failure)
        return weights

    def _diverged(self, what: str) -> NmtError:
        return diverged(what, self.saver.saved, self.config.training)
