"""TensorBoard: event files in the run's folder ``events/``, written by TensorFlow's own writer.

The event files are rewritten whenever training starts: first the metrics file, cut back to the checkpoint, then each
new record. So no step occurs twice, however often the run was killed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from nmt.message import Argument, Command
from nmt.runs.directory import Run
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    Metrics,
    Sample,
    SampleMetrics,
    StepMetrics,
    metric_values,
    tokens_per_second,
)
from nmt.runtime import tf
from nmt.training.listeners import Listener, StepEvent, ValidationEvent

EVENT_FILES = "events.out.tfevents.*"
FLUSH_MILLISECONDS = 20_000


class TensorBoard(Listener):
    """Listener that records a run for TensorBoard. An error switches it off, and training goes on."""

    def __init__(self, run: Run, warn: Callable[[str], None]) -> None:
        """Write nothing yet. ``warn`` is called with a message if recording fails."""
        self._run, self._warn = run, warn
        self._writer: Any = None
        self._size, self._is_flushed = -1, True

    def on_start(self) -> None:
        """Delete older event files of the run, and record its metrics file."""
        self._last_step: StepMetrics | None = None
        try:
            for path in self._files():
                path.unlink()
            self._writer = tf.summary.create_file_writer(str(self._run.events_path), flush_millis=FLUSH_MILLISECONDS)
        except Exception as error:
            self._fail(error)
        self._record(*self._run.metrics())

    def on_step(self, event: StepEvent) -> None:
        """Record the metrics of steps, every ``training.log_every`` steps."""
        if event.metrics is not None:
            self._record(event.metrics, flush=False)

    def on_validation(self, event: ValidationEvent) -> None:
        """Record a validation and its samples."""
        self._record(*event.records)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Record the scores of the averaged weights."""
        if average is not None:
            self._record(average)

    def close(self) -> None:
        """Write pending records to disk, and close the files."""
        if not self._is_flushed:
            self._record()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _record(self, *records: Metrics, flush: bool = True) -> None:
        if self._writer is None:
            return
        self._is_flushed = flush
        try:
            for record in records:
                with self._writer.as_default(step=record.step):
                    if isinstance(record, SampleMetrics):
                        tf.summary.text("samples", samples_as_markdown(record.samples))
                    for name, value in scalars(record, self._last_step).items():
                        tf.summary.scalar(name, value)
                if isinstance(record, StepMetrics):
                    self._last_step = record
            if flush:
                self._flush()
        except Exception as error:
            self._fail(error)

    def _flush(self) -> None:
        """Write the records to disk.

        Raises:
            NmtError: if the files have not grown: TensorFlow's writer silently drops what a full disk refuses.
        """
        self._writer.flush()
        size = sum(path.stat().st_size for path in self._files())
        if size <= self._size:
            raise NmtError(f"{self._run.events_path} does not grow any more; the disk may be full")
        self._size = size

    def _files(self) -> list[Path]:
        return sorted(self._run.events_path.glob(EVENT_FILES))

    def _fail(self, error: Exception) -> None:
        """Switch recording off, with a warning."""
        self._writer = None
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        again = Command("train", Argument("run", self._run.name), Argument("tensorboard", True))
        self._warn(
            f"Recording for TensorBoard is switched off: {reason}. Training goes on. To record the run again from its "
            f"metrics file: {again}"
        )


def scalars(record: Metrics, before: StepMetrics | None) -> dict[str, float]:
    """Return the values of a record by the names of their series.

    - train/...: the steps since the previous record of steps, ``before``, with target tokens per second
    - epoch/...: the training of a whole epoch
    - validation/..., average/...: a validation, and averaged weights
    """
    values = {f"{metric.group}/{metric.name}": metric.value for metric in metric_values(record)}
    if isinstance(record, StepMetrics):
        speed = tokens_per_second(before, record)
        return values if speed is None else values | {"train/tokens_per_second": speed}
    if isinstance(record, EpochMetrics) and record.seconds > 0:
        values["epoch/tokens_per_second"] = record.target_tokens / record.seconds
    return values


def samples_as_markdown(samples: Sequence[Sample]) -> str:
    """Return sample sentences with their translations as a table."""
    rows = [(sample.source, sample.reference, sample.translation) for sample in samples]
    table = [("source", "reference", "translation"), ("---",) * 3, *(map(_cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def _cell(text: str) -> str:
    """Return text with the special characters of Markdown and HTML escaped."""
    escaped = "".join(f"\\{character}" if character in "\\`*_{}[]#|~$!" else character for character in text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())
