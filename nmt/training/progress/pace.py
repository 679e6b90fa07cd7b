"""Pace of training: recent loss, accuracy and speed, and the time that is left."""

import sys
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from nmt.training.optimization.accumulators import Sums

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

WINDOW = 20
"""Readings behind the recent figures; with one every half second, those of ten seconds."""
MOST_LOSSES = 256
"""Points of the loss curve that are kept; beyond them two become one."""


class Reading(NamedTuple):
    """Position in an epoch."""

    done: int
    """Number of steps in the epoch."""
    seconds: float
    """Training time of the epoch."""
    totals: Sums
    """Sums over the epoch."""


class Pace:
    """Figures of the last seconds, and estimates from them."""

    def __init__(self, epochs: int) -> None:
        """Take the number of epochs of the run."""
        self._epochs = epochs
        self._readings: deque[Reading] = deque(maxlen=WINDOW)
        self._between = 0.0  # seconds of validation and saving in the last epoch
        self._paused = 0.0
        self._pause_began: float | None = None
        self.losses: list[float] = []
        """Mean loss between two readings, since this process began; old ones are merged."""

    def begin_epoch(self, epoch: int, steps: int, done: int) -> None:
        """Begin epoch ``epoch`` of N ``steps``, of which ``done`` are done."""
        self.end_pause()
        if self._paused:
            self._between, self._paused = self._paused, 0.0
        self._epoch, self._steps, self._begun = epoch, steps, done
        self._readings.clear()

    def begin_pause(self) -> None:
        """Steps wait for a validation."""
        if self._pause_began is None:
            self._pause_began = time.perf_counter()

    def end_pause(self) -> None:
        """Steps go on."""
        if self._pause_began is not None:
            self._paused += time.perf_counter() - self._pause_began
            self._pause_began = None

    def read(self, done: int, seconds: float, totals: Sums) -> None:
        """Take the sums over the epoch after a step."""
        self.end_pause()
        if self._readings and (since := totals.since(self._readings[-1].totals)).tokens:
            self.losses.append(since.means[0])
        elif not self._readings and totals.tokens:
            self.losses.append(totals.means[0])
        if len(self.losses) > MOST_LOSSES:
            pairs = zip(self.losses[::2], self.losses[1::2], strict=False)
            self.losses = [(first + second) / 2 for first, second in pairs]
        self._readings.append(Reading(done, seconds, totals))

    def recent(self) -> tuple[float, float, float] | None:
        """Return loss, accuracy and target tokens per second of the last readings; None before the first."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        since, seconds = last.totals.since(first.totals), last.seconds - first.seconds
        if not since.tokens or seconds <= 0:
            since, seconds = last.totals, last.seconds
        loss, accuracy = since.means
        return loss, accuracy, since.tokens / seconds if seconds > 0 else 0.0

    def left(self) -> tuple[float, float] | None:
        """Return the seconds until the end of the epoch's steps and of the run; None before the first reading."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        steps, seconds = last.done - first.done, last.seconds - first.seconds
        if steps <= 0 or seconds <= 0:  # the first step compiles; it counts until there is another reading
            steps, seconds = last.done, last.seconds
        per_step = seconds / max(1, steps)
        of_epoch = (self._steps - last.done) * per_step
        epochs = self._epochs - self._epoch
        return of_epoch, of_epoch + epochs * self._steps * per_step + (epochs + 1) * self._between


def resident_bytes() -> int | None:
    """Return the memory of this process, resident now or at most so far; None where the system does not say."""
    if resource is None:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
