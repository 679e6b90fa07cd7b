"""Progress of training for people: a bar of tqdm on a terminal, plain lines in a pipe or a log."""

import os
import sys
import time
from collections import deque
from typing import TextIO

from tqdm import tqdm

from nmt.errors import printable
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Sample, Validation, in_ranges
from nmt.training.listeners import Listener, StepEvent, ValidationEvent
from nmt.training.optimization.gradient_sums import Sums

REFRESH_SECONDS = 0.5
READINGS = 20
"""Readings behind the figures: those of ten seconds."""
ONE_LINE = 100  # characters of a sample that fit on one line
LINE = "{desc} |{bar}| {n_fmt}/{total_fmt}{postfix}"


class Console(Listener):
    """Listener that writes progress to a stream."""

    def __init__(self, epochs: int, log_every: int, stream: TextIO | None = None) -> None:
        """Take the number of epochs, the steps between two lines without a terminal, and the stream (stderr)."""
        self.stream = stream if stream is not None else sys.stderr
        self.epochs = epochs
        self.log_every = log_every
        self.on_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.bar: tqdm | None = None
        self.shown: list[Sample] = []
        self.epoch = self.steps = self.done = 0
        self._readings: deque[tuple[int, float, Sums]] = deque(maxlen=READINGS)  # steps, seconds, sums of the epoch
        self.refreshed = time.perf_counter()

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Begin an epoch."""
        self.epoch, self.steps, self.done = epoch, steps, done
        self._readings.clear()
        self._begin("", steps)

    def needs_totals(self) -> bool:
        """Return whether the next step refreshes the figures."""
        if self.on_terminal:
            return time.perf_counter() - self.refreshed >= REFRESH_SECONDS
        return (self.done + 1) % self.log_every == 0

    def on_step(self, event: StepEvent) -> None:
        """Count the step; show loss, speed and time left if the event has totals."""
        self.done += 1
        if self.bar is None:  # after a validation
            self._begin("", self.steps)
        if event.totals is None or not event.totals.tokens:
            return
        if not self.on_terminal:
            loss, accuracy = event.totals.means
            rate, left = event.totals.tokens / event.seconds, event.seconds / self.done * (self.steps - self.done)
            self._line(
                f"epoch {self.epoch}/{self.epochs}, step {self.done}/{self.steps}: loss {loss:.3f}, "
                f"accuracy {accuracy:.3f}, {rate:,.0f} tokens/s, {left:.0f} s left"
            )
        elif self.bar is not None:
            self.refreshed = time.perf_counter()
            self.bar.set_postfix_str(self._figures(event.seconds, event.totals), refresh=False)
            self.bar.update(self.done - self.bar.n)

    def _figures(self, seconds: float, totals: Sums) -> str:
        """Return loss, speed and time left, as of the last readings."""
        done, before, sums = self._readings[0] if self._readings else (0, 0.0, Sums())
        self._readings.append((self.done, seconds, totals))
        recent, passed = totals.since(sums), max(seconds - before, 1e-9)
        per_step = passed / max(1, self.done - done)
        left = per_step * (self.steps - self.done)
        run = f", run {_clock(left + per_step * self.steps * (self.epochs - self.epoch))}" if self.epochs > 1 else ""
        return f"loss {recent.means[0]:.3f}, {recent.tokens / passed:,.0f} tokens/s, {_clock(left)} left{run}"

    def on_validation_start(self, batches: int) -> None:
        """Show that a validation of N batches begins."""
        self._begin(", validating", batches)

    def on_validation_batch(self) -> None:
        """Show the progress of the validation; after its own batches the validation sentences are translated."""
        if self.bar is not None and self.bar.n == self.bar.total:
            self._begin(", translating", None)
        if self.bar is not None:
            self.bar.update()

    def on_epoch(self, event: ValidationEvent) -> None:
        """Write a line about the epoch, and the samples whose translations changed."""
        metrics = event.metrics
        if isinstance(metrics, EpochMetrics):
            self._line(
                f"epoch {metrics.epoch}/{self.epochs}: loss {metrics.train_loss:.3f}, accuracy "
                f"{metrics.train_accuracy:.3f}; {_validated(metrics)}{_best(event)}; {metrics.seconds:.1f} s, "
                f"{metrics.target_tokens / metrics.seconds:,.0f} tokens/s"
            )
        self._show(event.samples)

    def on_validation(self, event: ValidationEvent) -> None:
        """Write a line about a validation within an epoch, and the samples whose translations changed."""
        self._line(f"step {event.metrics.step}: {_validated(event.metrics)}{_best(event)}")
        self._show(event.samples)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Write a line about the average."""
        if average:
            self._line(f"average of epochs {in_ranges(average.epochs)}: {_validated(average)}")

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _begin(self, doing: str, total: int | None) -> None:
        """Show another bar on a terminal: that of steps, or of batches of a validation."""
        self.close()
        if self.on_terminal:
            self.bar = tqdm(
                desc=f"epoch {self.epoch}/{self.epochs}{doing}", total=total, initial=0 if doing else self.done,
                unit=" batches", file=self.stream, leave=False, dynamic_ncols=True, bar_format=LINE if total else None,
            )  # fmt: skip

    def _show(self, samples: list[Sample]) -> None:
        for sample in samples:
            if sample not in self.shown:
                parts = [printable(sample.source), f"->  {printable(sample.translation)}"]
                if sample.translation != sample.reference:
                    parts.append(f"(reference: {printable(sample.reference)})")
                self._line("    " + ("  " if sum(map(len, parts)) < ONE_LINE else "\n        ").join(parts))
        self.shown = samples

    def _line(self, text: str) -> None:
        self.close()
        self.stream.write(text + "\n")
        self.stream.flush()


def _clock(seconds: float) -> str:
    return str(tqdm.format_interval(seconds))


def _best(event: ValidationEvent) -> str:
    return " (best so far)" if event.best else ""


def _validated(metrics: Validation | AverageMetrics) -> str:
    if metrics.validation_loss is None:
        return "not validated"
    text = f"validation loss {metrics.validation_loss:.3f}, accuracy {metrics.validation_accuracy:.3f}"
    if metrics.validation_bleu is None:
        return text
    return f"{text}, BLEU {metrics.validation_bleu:.1f}, chrF {metrics.validation_chrf:.1f}"
