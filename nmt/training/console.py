"""Progress of training for people: a live display on a terminal, plain lines in a pipe or a log."""

import os
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from nmt.errors import printable
from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Sample, Validation
from nmt.training.listeners import Listener, StepEvent, ValidationEvent
from nmt.training.progress.live import LiveLines, is_live_terminal
from nmt.training.progress.pace import Pace, resident_bytes
from nmt.training.progress.text import bar, clock, columns_of, fitted, joined, sparkline

REFRESH_SECONDS = 0.5
SAMPLE_SECONDS = 6  # between two sample sentences on a terminal
ONE_LINE = 100  # characters of a sample that fit on one line
WIDEST = 120  # columns of the display
CURVE = 12  # columns of the curve of the loss
SMALLEST_BAR = 8
DIM, BRIGHT, PLAIN = "\x1b[2m", "\x1b[36m", "\x1b[0m"


class Console(Listener):
    """Listener that writes progress to a stream."""

    def __init__(self, epochs: int, log_every: int, stream: TextIO | None = None) -> None:
        """Take the number of epochs, the steps between two lines without a terminal, and the stream (stderr)."""
        self.stream = stream if stream is not None else sys.stderr
        self.epochs = epochs
        self.log_every = log_every
        self.live = LiveLines(self.stream) if is_live_terminal(self.stream) else None
        self.shown: list[Sample] = []
        self.pace = Pace(epochs)
        self.epoch = self.steps = self.done = 0
        self.refreshed = time.perf_counter()
        self._rate: float | None = None
        self._doing = ""  # what is done between two steps
        self._part: tuple[int, int] = (0, 0)  # batches validated, of all
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        self._is_unicode = encoding.lower().replace("-", "").startswith("utf")
        self._has_colours = not os.environ.get("NO_COLOR")

    def on_start(self) -> None:
        """Take over the terminal."""
        if self.live:
            self.live.capture()

    def on_epoch_start(self, epoch: int, steps: int, done: int) -> None:
        """Begin an epoch."""
        self.epoch, self.steps, self.done, self._doing = epoch, steps, done, ""
        self.pace.begin_epoch(epoch, steps, done)
        self.refreshed = time.perf_counter()
        self._draw()

    def needs_totals(self) -> bool:
        """Return whether the next step refreshes the figures."""
        if self.live:
            return time.perf_counter() - self.refreshed >= REFRESH_SECONDS
        return (self.done + 1) % self.log_every == 0

    def on_step(self, event: StepEvent) -> None:
        """Count the step; show loss, accuracy and speed if the event has totals."""
        self.done += 1
        if event.metrics is not None:
            self._rate = event.metrics.learning_rate
        if event.totals is None or not event.totals.tokens:
            return
        self.refreshed = time.perf_counter()
        if self.live:
            self._doing = ""
            self.pace.read(self.done, event.seconds, event.totals)
            self._draw()
            return
        loss, accuracy = event.totals.means
        rate, left = event.totals.tokens / event.seconds, event.seconds / self.done * (self.steps - self.done)
        self._line(
            f"epoch {self.epoch}/{self.epochs}, step {self.done}/{self.steps}: loss {loss:.3f}, "
            f"accuracy {accuracy:.3f}, {rate:,.0f} tokens/s, {left:.0f} s left"
        )

    def on_validation_start(self, batches: int) -> None:
        """Show that a validation of N batches begins."""
        self.pace.begin_pause()
        self._doing, self._part = "validating", (0, batches)
        self.refreshed = time.perf_counter()
        self._draw()

    def on_validation_batch(self) -> None:
        """Show the progress of the validation; after its own batches the validation sentences are translated."""
        done, batches = self._part
        self._part = (done + 1, batches)
        if self.live and time.perf_counter() - self.refreshed >= REFRESH_SECONDS:
            self.refreshed = time.perf_counter()
            self._draw()

    def on_epoch(self, event: ValidationEvent) -> None:
        """Write a line about the epoch, and in a log the samples whose translations changed."""
        metrics = event.metrics
        self._doing = ""
        if isinstance(metrics, EpochMetrics):
            self._line(
                f"epoch {metrics.epoch}/{self.epochs}: loss {metrics.train_loss:.3f}, accuracy "
                f"{metrics.train_accuracy:.3f}; {_validated(metrics)}{_best(event)}; {metrics.seconds:.1f} s, "
                f"{metrics.target_tokens / metrics.seconds:,.0f} tokens/s"
            )
        self._take_samples(event.samples)

    def on_validation(self, event: ValidationEvent) -> None:
        """Write a line about a validation within an epoch, and in a log the samples whose translations changed."""
        self._doing = ""
        self.pace.end_pause()
        self._line(f"step {event.metrics.step}: {_validated(event.metrics)}{_best(event)}")
        self._take_samples(event.samples)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Write a line about the average, and on a terminal the last samples."""
        self._doing = ""
        if average:
            self._line(f"average of epochs {in_ranges(average.epochs)}: {_validated(average)}")
        if self.live:
            self.live.erase()
            self._print_samples(self.shown)

    def close(self) -> None:
        """Remove the display."""
        if self.live:
            self.live.close()

    def announce(self, text: str) -> None:
        """Write a line from a signal handler."""
        if self.live:
            self.live.print_from_signal(text)
        else:
            os.write(2, f"\n{text}\n".encode())

    # --- lines

    def _take_samples(self, samples: Iterable[Sample]) -> None:
        samples = list(samples)
        changed = [sample for sample in samples if sample not in self.shown]
        self.shown = samples
        if self.live:
            self._draw()
        else:
            self._print_samples(changed)

    def _print_samples(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            parts = [sample.source, f"->  {sample.translation}"]
            if sample.translation != sample.reference:
                parts.append(f"(reference: {sample.reference})")
            joint = "  " if sum(map(len, parts)) < ONE_LINE else "\n        "
            self._line("    " + joint.join(parts))

    def _line(self, text: str) -> None:
        if self.live:
            self.live.print(text)
        else:
            self.stream.write(text + "\n")
            self.stream.flush()

    # --- the display

    def _draw(self) -> None:
        if self.live:
            columns = min(self.live.columns, WIDEST)
            lines = [self._position(columns), self._figures(columns), *self._sample(columns)]
            self.live.draw([line for line in lines if line])

    def _position(self, columns: int) -> str:
        """Return the line with epoch, bar and time left."""
        done, all_ = self._part if self._doing else (self.done, self.steps)
        name = f"epoch {self.epoch}/{self.epochs}"
        if self._doing and done > all_:
            return fitted(f"{name}  translating validation sentences, batch {done - all_}", columns, self._ellipsis)
        left = self.pace.left()
        head = f"{name}  {self._doing}".rstrip()
        tail = joined([
            (0, f"{done:,}/{all_:,}"),
            (1, f"{clock(left[0])} left" if left and not self._doing else ""),
            (2, f"run {clock(left[1])}" if left and self.epochs > 1 and not self._doing else ""),
        ], columns - columns_of(head) - 2)  # fmt: skip
        room = columns - columns_of(head) - columns_of(tail) - 4
        if room < SMALLEST_BAR:
            return fitted(f"{head}  {tail}", columns, self._ellipsis)
        signs = ("━", "─") if self._is_unicode else ("#", "-")
        full, rest = bar(done / all_ if all_ else 1.0, room, *signs)
        if self._has_colours:
            full, rest = f"{BRIGHT}{full}{PLAIN}", f"{DIM}{rest}{PLAIN}"
        return f"{head}  {full}{rest}  {tail}"

    def _figures(self, columns: int) -> str:
        """Return the line with loss, accuracy, speed, learning rate and memory."""
        recent = self.pace.recent()
        if recent is None:
            return ""
        loss, accuracy, rate = recent
        memory = resident_bytes()
        curve = sparkline(self.pace.losses[len(self.pace.losses) // 3 :], CURVE) if self._is_unicode else ""
        return joined([
            (0, f"loss {loss:.3f}"), (3, curve), (1, f"accuracy {accuracy:.3f}"), (2, f"{rate:,.0f} tokens/s"),
            (5, f"lr {self._rate:.1e}" if self._rate is not None else ""),
            (4, f"{memory / 1e9:.1f} GB" if memory else ""),
        ], columns)  # fmt: skip

    def _sample(self, columns: int) -> list[str]:
        """Return a sample sentence with its translation, in one line or two; another one every few seconds."""
        if not self.shown:
            return []
        sample = self.shown[int(time.monotonic() / SAMPLE_SECONDS) % len(self.shown)]
        arrow = "→" if self._is_unicode else "->"
        source, translation = (self._encodable(text) for text in (sample.source, sample.translation))
        whole = f"{source}  {arrow}  {translation}"
        if columns_of(whole) <= columns:
            return [whole]
        return [fitted(text, columns, self._ellipsis) for text in (source, f"{arrow} {translation}")]

    @property
    def _ellipsis(self) -> str:
        return "…" if self._is_unicode else "..."

    def _encodable(self, text: str) -> str:
        """Return text as one printable line in the encoding of the terminal."""
        line = printable(" ".join(text.split()))
        return line if self._is_unicode else line.encode("ascii", "replace").decode("ascii")


def _best(event: ValidationEvent) -> str:
    return " (best so far)" if event.best else ""


def _validated(metrics: Validation | AverageMetrics) -> str:
    if metrics.validation_loss is None:
        return "not validated"
    text = f"validation loss {metrics.validation_loss:.3f}, accuracy {metrics.validation_accuracy:.3f}"
    if metrics.validation_bleu is None:
        return text
    return f"{text}, BLEU {metrics.validation_bleu:.1f}, chrF {metrics.validation_chrf:.1f}"
