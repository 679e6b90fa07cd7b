"""TensorBoard: event files in the run's folder ``events/``, through TensorFlow's own writer.

The event files begin anew whenever training starts: they first get the metrics file, cut back to the checkpoint, then
each new record. So they have no step twice, however often the run was killed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
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
    """Listener that records a run. An error switches it off; training goes on."""

    def __init__(self, run: Run, warn: Callable[[str], None]) -> None:
        """Take the run, and what says that recording has failed."""
        self._run, self._warn = run, warn
        self._writer: Any = None
        self._size, self._is_flushed = -1, True

    def on_start(self) -> None:
        """Delete the run's older event files; record its metrics file."""
        self._last_step: StepMetrics | None = None
        try:
            for path in self._files():
                path.unlink()
            self._writer = tf.summary.create_file_writer(str(self._run.events_path), flush_millis=FLUSH_MILLISECONDS)
        except Exception as error:
            self._fail(error)
        self._record(*self._run.metrics())

    def on_step(self, event: StepEvent) -> None:
        """Record steps, every ``training.log_every`` steps."""
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
        """Write the rest."""
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
        """Write what is recorded to the disk.

        Raises:
            NmtError: if the files have not grown: TensorFlow's writer drops what a full disk refuses, and says nothing.
        """
        self._writer.flush()
        size = sum(path.stat().st_size for path in self._files())
        if size <= self._size:
            raise NmtError(f"{self._run.events_path} does not grow any more; the disk may be full")
        self._size = size

    def _files(self) -> list[Path]:
        return sorted(self._run.events_path.glob(EVENT_FILES))

    def _fail(self, error: Exception) -> None:
        """Switch the record off, and say so."""
        self._writer = None
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        self._warn(
            f"The record for TensorBoard is switched off: {reason}. Training goes on. To record the run again from its "
            f"metrics file: nmt train --run {self._run.name} --tensorboard"
        )


def scalars(record: Metrics, before: StepMetrics | None) -> dict[str, float]:
    """Return the values of a record by the names of their series.

    - train/...: of the steps since the last record of steps, ``before``, with target tokens per second
    - epoch/...: of the training of a whole epoch
    - validation/..., average/...: of each validation, and of averaged weights
    """
    values = {f"{found.group}/{found.name}": found.value for found in metric_values(record)}
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
    """Return text as it reads, whatever characters of Markdown and HTML it has."""
    escaped = "".join(f"\\{character}" if character in "\\`*_{}[]#|~$!" else character for character in text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())
