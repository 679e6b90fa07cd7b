"""Progress of training for people: a bar of tqdm on a terminal, plain lines in a pipe or a log."""

import os
import sys
import time
from collections import deque
from typing import TextIO

from rich.cells import cell_len
from tqdm import tqdm

from nmt.errors import printable
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    Sample,
    StepMetrics,
    in_words,
    tokens_per_second,
)
from nmt.training.listeners import Listener, StepEvent, ValidationEvent
from nmt.training.optimization.totals import TokenTotals

REFRESH_SECONDS = 0.5
READINGS = 20
"""Number of readings from which the shown speed is computed; they span ten seconds."""
ONE_LINE = 100  # columns of a sample that fit on one line
LINE = "{desc} |{bar}| {n_fmt}/{total_fmt}{postfix}"


class Console(Listener):
    """Listener that writes progress to a stream."""

    def __init__(self, epochs: int, stream: TextIO | None = None) -> None:
        """Take the number of epochs, and the stream (stderr)."""
        self.stream = stream if stream is not None else sys.stderr
        self.epochs = epochs
        self.on_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.bar: tqdm | None = None
        self.shown: list[Sample] = []
        self.epoch = self.steps = self.done = 0
        self._record: StepMetrics | None = None  # the last one
        self._readings: deque[tuple[int, float, TokenTotals]] = deque(maxlen=READINGS)  # steps, seconds, totals
        self.refreshed = time.perf_counter()

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Begin an epoch."""
        self.epoch, self.steps, self.done = epoch, steps, done
        self._readings.clear()
        self._begin("", steps)

    def needs_totals(self) -> bool:
        """Return whether the next step refreshes the figures of the bar."""
        return self.on_terminal and time.perf_counter() - self.refreshed >= REFRESH_SECONDS

    def on_step(self, event: StepEvent) -> None:
        """Count the step; show metrics, speed and time left: on the bar, or in a line for each record of steps."""
        self.done += 1
        if self.bar is None:  # after a validation
            self._begin("", self.steps)
        if record := event.metrics:
            before, self._record = self._record, record
            if not self.on_terminal:
                left = event.seconds / self.done * (self.steps - self.done)
                self._line(
                    f"epoch {self.epoch}/{self.epochs}, step {self.done}/{self.steps}: {in_words(record)}, "
                    f"{tokens_per_second(before, record) or 0:,.0f} tokens/s, {left:.0f} s left"
                )
        if event.totals and event.totals.tokens and self.bar is not None:
            self.refreshed = time.perf_counter()
            self.bar.set_postfix_str(self._figures(event.seconds, event.totals), refresh=False)
            self.bar.update(self.done - self.bar.n)

    def _figures(self, seconds: float, totals: TokenTotals) -> str:
        """Return loss, speed and time left, as of the last readings."""
        done, before, sums = self._readings[0] if self._readings else (0, 0.0, TokenTotals())
        self._readings.append((self.done, seconds, totals))
        recent, passed = totals.since(sums), max(seconds - before, 1e-9)
        per_step = passed / max(1, self.done - done)
        left = per_step * (self.steps - self.done)
        parts = [
            f"loss {recent.means[0]:.3f}",
            f"{recent.tokens / passed:,.0f} tokens/s",
            f"{tqdm.format_interval(left)} left",
        ]
        if self.epochs > 1:
            parts.append(f"run {tqdm.format_interval(left + per_step * self.steps * (self.epochs - self.epoch))}")
        return ", ".join(parts)

    def on_validation_start(self, batches: int) -> None:
        """Show that a validation of N batches begins."""
        self._begin(", validating", batches)

    def on_validation_batch(self) -> None:
        """Show the progress of the validation; after its own batches the validation sentences are translated."""
        if self.bar is not None and self.bar.n == self.bar.total:
            self._begin(", translating", None)
        if self.bar is not None:
            self.bar.update()

    def on_validation(self, event: ValidationEvent) -> None:
        """Write a line about a validation, with the epoch that it ends, and the samples that changed."""
        metrics, speed, place = event.metrics, "", f"step {event.metrics.step}"
        if isinstance(metrics, EpochMetrics):
            place = f"epoch {metrics.epoch}/{self.epochs}"
            speed = f"; {metrics.seconds:.1f} s, {metrics.target_tokens / metrics.seconds:,.0f} tokens/s"
        self._line(
            f"{place}: {in_words(metrics)}{' (best so far)' if event.best and event.beats_guessing else ''}{speed}"
        )
        for sample in event.samples:
            if sample not in self.shown:
                parts = [printable(sample.source), f"->  {printable(sample.translation)}"]
                if sample.translation != sample.reference:
                    parts.append(f"(reference: {printable(sample.reference)})")
                self._line("    " + ("  " if sum(map(cell_len, parts)) < ONE_LINE else "\n        ").join(parts))
        self.shown = event.samples

    def on_end(self, average: AverageMetrics | None) -> None:
        """Write a line about the average."""
        if average:
            self._line(f"average of {average.parts}: {in_words(average) or 'not validated'}")

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _begin(self, doing: str, total: int | None) -> None:
        """Show a new bar on a terminal, for the steps of an epoch or for the batches of a validation."""
        self.close()
        if self.on_terminal:
            self.bar = tqdm(
                desc=f"epoch {self.epoch}/{self.epochs}{doing}", total=total, initial=0 if doing else self.done,
                unit=" batches", file=self.stream, leave=False, dynamic_ncols=True, bar_format=LINE if total else None,
            )  # fmt: skip

    def _line(self, text: str) -> None:
        self.close()
        self.stream.write(text + "\n")
        self.stream.flush()
