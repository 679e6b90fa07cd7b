"""Listeners: observers of training. They are called after steps, validations and epochs, and change nothing."""

from typing import NamedTuple

from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Metrics, Sample, SampleMetrics, StepMetrics, StepValidation
from nmt.training.optimization.totals import TokenTotals


class StepEvent(NamedTuple):
    """A step that training has taken."""

    totals: TokenTotals | None
    """Totals of the epoch so far, if a listener needs them at this step."""
    seconds: float
    """Training time of the epoch so far, in seconds."""
    metrics: StepMetrics | None
    """Record of the steps since the last record; None unless ``training.log_every`` asks for it now."""


class ValidationEvent(NamedTuple):
    """A validation that training has made."""

    metrics: StepValidation | EpochMetrics
    """Record of the validation; at the end of an epoch it has the means of training too."""
    samples: list[Sample]
    """Translations of sample sentences."""
    best: bool
    """Whether it is the best validation so far."""
    beats_guessing: bool = True
    """Whether the loss is below the loss of a model that only knows the token frequencies."""

    @property
    def records(self) -> list[Metrics]:
        """Lines of the validation in the metrics file."""
        metrics = self.metrics
        if not self.samples:
            return [metrics]
        return [metrics, SampleMetrics(epoch=metrics.epoch, step=metrics.step, samples=self.samples)]


class Listener:
    """Base class of listeners. Its methods do nothing."""

    def on_start(self) -> None:
        """Training begins. The metrics file is cut back to the checkpoint, and the configuration is stored."""

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Epoch ``epoch`` with a number of ``steps`` begins, or resumes after ``done`` steps."""

    def needs_totals(self) -> bool:
        """Return whether the event of the current step must have totals. Reading them waits for the device."""
        return False

    def on_step(self, event: StepEvent) -> None:
        """A step was taken."""

    def on_validation_start(self, batches: int) -> None:
        """A validation with a number of ``batches`` begins; batches to be translated are not counted."""

    def on_validation_batch(self) -> None:
        """A batch was validated or translated."""

    def on_validation(self, event: ValidationEvent) -> None:
        """A validation within an epoch has ended."""

    def on_epoch(self, event: ValidationEvent) -> None:
        """An epoch and its validation have ended, and its weights are being written in the background.

        By default it is handled like a validation within an epoch.
        """
        self.on_validation(event)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Training has ended; ``average`` is the record of the averaged weights of the last epochs, if any."""

    def close(self) -> None:
        """Training is over, however it ended. It may be called more than once."""


class MetricsFile(Listener):
    """Listener that writes the metrics file of a run: a line for each record."""

    def __init__(self, run: Run) -> None:
        """Open nothing yet: each record opens the file of ``run``."""
        self.run = run

    def on_step(self, event: StepEvent) -> None:
        """Append the record of steps."""
        if event.metrics:
            self.run.append_metrics(event.metrics)

    def on_validation(self, event: ValidationEvent) -> None:
        """Append the record of the validation and its samples."""
        for record in event.records:
            self.run.append_metrics(record)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Append the record of the average."""
        if average:
            self.run.append_metrics(average)
