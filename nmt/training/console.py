"""What a person sees while training: a bar on a terminal, plain lines in a pipe or a log."""

import sys
import time
from collections.abc import Iterable
from typing import TextIO

from tqdm import tqdm

from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Sample, StepValidation, Validation

REFRESH_SECONDS = 0.5
SHORT = 100  # characters of a sample that go on one line
BAR = "{desc} {percentage:3.0f}% |{bar}| {n}/{total} [{remaining} left{postfix}]"


class TrainingProgress:
    """Reports steps and epochs as they pass."""

    def __init__(self, epochs: int, log_every: int, stream: TextIO | None = None) -> None:
        """Take the number of epochs, and how many steps lie between two lines where there is no terminal."""
        self.stream = stream if stream is not None else sys.stderr
        self.on_terminal = self.stream.isatty()
        self.epochs = epochs
        self.log_every = log_every
        self.bar: tqdm | None = None
        self.shown: list[Sample] = []

    def start_epoch(self, epoch: int, steps: int, done: int = 0) -> None:
        """Begin an epoch of so many steps, or go on with it after ``done`` of them."""
        self.epoch, self.steps, self.done = epoch, steps, done
        self.refreshed = time.perf_counter()
        if self.on_terminal:
            self.bar = tqdm(
                total=steps, initial=done, desc=f"epoch {epoch}/{self.epochs}", unit="step", file=self.stream,
                leave=False, dynamic_ncols=True, bar_format=BAR,
            )  # fmt: skip

    def is_due(self) -> bool:
        """Return whether the next ``step`` will show figures; only then need they be read."""
        if self.on_terminal:
            return time.perf_counter() - self.refreshed >= REFRESH_SECONDS
        return (self.done + 1) % self.log_every == 0

    def step(self, figures: tuple[float, float, float] | None, seconds: float) -> None:
        """Count a step.

        Args:
            figures: the epoch's summed loss, right tokens and tokens so far, if they were due.
            seconds: that its steps took so far.
        """
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        if figures is None or not figures[2]:
            return
        loss_sum, right, tokens = figures
        loss, accuracy = loss_sum / tokens, right / tokens
        rate = tokens / seconds
        self.refreshed = time.perf_counter()
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.3f}, {rate:,.0f} tokens/s")
        else:
            left = seconds / self.done * (self.steps - self.done)
            self._line(
                f"epoch {self.epoch}/{self.epochs}, step {self.done}/{self.steps}: loss {loss:.3f}, "
                f"accuracy {accuracy:.3f}, {rate:,.0f} tokens/s, {left:.0f} s left"
            )

    def end_epoch(self, metrics: EpochMetrics, samples: Iterable[Sample] = (), *, best: bool) -> None:
        """Say in a line what the epoch brought, and show the samples whose translations are new."""
        self.close()
        self._line(
            f"epoch {metrics.epoch}/{self.epochs}: loss {metrics.train_loss:.3f}, accuracy "
            f"{metrics.train_accuracy:.3f}; {_validated(metrics)}{' (best so far)' if best else ''}; "
            f"{metrics.seconds:.1f} s, {metrics.target_tokens / metrics.seconds:,.0f} tokens/s"
        )
        self._show(samples)

    def end_validation(self, metrics: StepValidation, samples: Iterable[Sample] = (), *, best: bool) -> None:
        """Say in a line what a validation amid an epoch brought, and show the samples whose translations are new."""
        if self.bar is not None:
            self.bar.clear()
        self._line(f"step {metrics.step}: {_validated(metrics)}{' (best so far)' if best else ''}")
        self._show(samples)

    def end_average(self, metrics: AverageMetrics) -> None:
        """Say in a line what the mean of several epochs' weights brought."""
        self._line(f"average of epochs {in_ranges(metrics.epochs)}: {_validated(metrics)}")

    def _show(self, samples: Iterable[Sample]) -> None:
        samples = list(samples)
        changed = [one for one in samples if one not in self.shown]
        self.shown = samples
        for one in changed:
            parts = [one.source, f"->  {one.translation}"]
            if one.translation != one.reference:
                parts.append(f"(reference: {one.reference})")
            joint = "  " if sum(map(len, parts)) < SHORT else "\n        "
            self._line("    " + joint.join(parts))

    def close(self) -> None:
        """Take the bar away, as an interrupt must."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


def _validated(metrics: Validation | AverageMetrics) -> str:
    if metrics.validation_loss is None:
        return "not validated"
    text = f"validation loss {metrics.validation_loss:.3f}, accuracy {metrics.validation_accuracy:.3f}"
    if metrics.validation_bleu is None:
        return text
    return f"{text}, BLEU {metrics.validation_bleu:.1f}, chrF {metrics.validation_chrf:.1f}"
