"""Listeners: observers of training, told of steps, validations and epochs, which they do not change."""

from typing import NamedTuple

from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Metrics, Sample, SampleMetrics, StepMetrics, StepValidation
from nmt.training.optimization.gradient_sums import Sums


class StepEvent(NamedTuple):
    """A step that was taken."""

    totals: Sums | None
    """Sums over the epoch so far, if a listener needed them at this step."""
    seconds: float
    """Training time of the epoch so far."""
    metrics: StepMetrics | None
    """Record of the steps since the last one, every ``training.log_every`` steps."""


class ValidationEvent(NamedTuple):
    """A validation."""

    metrics: StepValidation | EpochMetrics
    """Its record; that of an epoch has the training's means too."""
    samples: list[Sample]
    """Translations of sample sentences."""
    best: bool
    """Whether it is the best so far, and better than guesses."""

    @property
    def records(self) -> list[Metrics]:
        """Its lines in the metrics file."""
        metrics = self.metrics
        sampled = [SampleMetrics(epoch=metrics.epoch, step=metrics.step, samples=self.samples)] if self.samples else []
        return [metrics, *sampled]


class Listener:
    """Base class of listeners; each method does nothing."""

    def on_start(self) -> None:
        """Training begins; the metrics file is that of the checkpoint, and the configuration is stored."""

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Epoch ``epoch`` of N ``steps`` begins, or goes on after ``done`` of them."""

    def needs_totals(self) -> bool:
        """Return whether the next step's event must have totals, which takes a wait for the device."""
        return False

    def on_step(self, event: StepEvent) -> None:
        """A step was taken."""

    def on_validation_start(self, batches: int) -> None:
        """A validation of N ``batches`` begins; batches that are translated come on top."""

    def on_validation_batch(self) -> None:
        """A batch was validated or translated."""

    def on_validation(self, event: ValidationEvent) -> None:
        """A validation within an epoch was made."""

    def on_epoch(self, event: ValidationEvent) -> None:
        """An epoch ended with its validation, and its weights are being written in the background.

        Unless overridden, it is treated as a validation within an epoch.
        """
        self.on_validation(event)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Training ended, with the average of the last epochs' weights if there is one."""

    def close(self) -> None:
        """Training is over, however it ended; may be called more than once."""


class MetricsFile(Listener):
    """The metrics file of a run: a line for each record."""

    def __init__(self, run: Run) -> None:
        """Take the run."""
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
