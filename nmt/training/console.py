"""Progress of training for people: a bar on a terminal, plain lines in a pipe or a log."""

import sys
import time
from collections.abc import Iterable
from typing import TextIO

from tqdm import tqdm

from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Sample, Validation
from nmt.training.listeners import Listener, StepEvent, ValidationEvent

REFRESH_SECONDS = 0.5
ONE_LINE = 100  # characters of a sample that fit on one line
BAR = "{desc} {percentage:3.0f}% |{bar}| {n}/{total} [{remaining} left{postfix}]"


class Console(Listener):
    """Listener that writes progress to a stream."""

    def __init__(self, epochs: int, log_every: int, stream: TextIO | None = None) -> None:
        """Take the number of epochs, the steps between two lines without a terminal, and the stream (stderr)."""
        self.stream = stream if stream is not None else sys.stderr
        self.on_terminal = self.stream.isatty()
        self.epochs = epochs
        self.log_every = log_every
        self.bar: tqdm | None = None
        self.shown: list[Sample] = []

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Begin a bar for the epoch."""
        self.epoch, self.steps, self.done = epoch, steps, done
        self.refreshed = time.perf_counter()
        if self.on_terminal:
            self.bar = tqdm(
                total=steps, initial=done, desc=f"epoch {epoch}/{self.epochs}", unit="step", file=self.stream,
                leave=False, dynamic_ncols=True, bar_format=BAR,
            )  # fmt: skip

    def needs_totals(self) -> bool:
        """Return whether the next step refreshes the figures."""
        if self.on_terminal:
            return time.perf_counter() - self.refreshed >= REFRESH_SECONDS
        return (self.done + 1) % self.log_every == 0

    def on_step(self, event: StepEvent) -> None:
        """Advance the bar; show loss, accuracy and speed if the event has totals."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        if event.totals is None or not event.totals.tokens:
            return
        loss, accuracy = event.totals.means
        rate = event.totals.tokens / event.seconds
        self.refreshed = time.perf_counter()
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.3f}, {rate:,.0f} tokens/s")
        else:
            left = event.seconds / self.done * (self.steps - self.done)
            self._line(
                f"epoch {self.epoch}/{self.epochs}, step {self.done}/{self.steps}: loss {loss:.3f}, "
                f"accuracy {accuracy:.3f}, {rate:,.0f} tokens/s, {left:.0f} s left"
            )

    def on_epoch(self, event: ValidationEvent) -> None:
        """Write a line about the epoch, and the samples whose translations changed."""
        self.close()
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
        if self.bar is not None:
            self.bar.clear()
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

    def _show(self, samples: Iterable[Sample]) -> None:
        samples = list(samples)
        changed = [sample for sample in samples if sample not in self.shown]
        self.shown = samples
        for sample in changed:
            parts = [sample.source, f"->  {sample.translation}"]
            if sample.translation != sample.reference:
                parts.append(f"(reference: {sample.reference})")
            joint = "  " if sum(map(len, parts)) < ONE_LINE else "\n        "
            self._line("    " + joint.join(parts))

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


def _best(event: ValidationEvent) -> str:
    return " (best so far)" if event.best else ""


def _validated(metrics: Validation | AverageMetrics) -> str:
    if metrics.validation_loss is None:
        return "not validated"
    text = f"validation loss {metrics.validation_loss:.3f}, accuracy {metrics.validation_accuracy:.3f}"
    if metrics.validation_bleu is None:
        return text
    return f"{text}, BLEU {metrics.validation_bleu:.1f}, chrF {metrics.validation_chrf:.1f}"
