"""Progress of a tuning for people: a line for each trial that has ended, and on a terminal a live line below."""

import os
import sys
import time
from typing import TextIO

from nmt.errors import printable
from nmt.training.progress.live import LiveLines, is_live_terminal
from nmt.training.progress.text import bar, clock, columns_of, fitted
from nmt.tuning.record import Trial, TuningRecord
from nmt.tuning.space import Candidate

REFRESH_SECONDS = 0.5
SMALLEST_BAR = 8


class TuningConsole:
    """Observer that writes to a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Take the stream; None: standard error."""
        self.stream = stream if stream is not None else sys.stderr
        self.live = LiveLines(self.stream) if is_live_terminal(self.stream) else None
        if self.live:
            self.live.capture()
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        self._is_unicode = encoding.lower().replace("-", "").startswith("utf")
        self._drawn = 0.0
        self._trial = self._rung = ""
        self._counted: tuple[int, int] = (0, 0)  # trials that have ended, of all of the rung

    def announce(self, text: str) -> None:
        """Write a line from a signal handler."""
        if self.live:
            self.live.print_from_signal(text)
        else:
            os.write(2, f"\n{text}\n".encode())

    def on_measure(self) -> None:
        """Show that nothing is trained yet."""
        if self.live:
            self.live.draw([fitted("measuring the speed of the recipe", self.live.columns)])

    def on_plan(self, record: TuningRecord) -> None:
        """Write what lies ahead."""
        trials = ", ".join(f"{1 + count}" for count in record.shape)
        of_rungs = "1 rung" if len(record.shape) == 1 else f"{len(record.shape)} rungs"
        left = 60 * record.minutes - record.spent
        self._line(f"Ahead: {clock(left)} in {of_rungs} of {trials} trials; the recipe is in all of them")

    def on_rung(self, record: TuningRecord) -> None:
        """Write which rung begins."""
        rung = record.rungs[-1]
        self._rung = f"rung {len(record.rungs)}/{len(record.shape)}"
        self._counted = sum(trial.is_done for trial in rung.trials), len(rung.trials)
        self._line(f"{self._rung}: {len(rung.trials)} trials, each trains for {clock(rung.training_seconds)}")

    def on_trial(self, record: TuningRecord, candidate: Candidate) -> None:
        """Show which trial begins."""
        self._trial = candidate.text
        self._draw(0, 0, 60 * record.minutes - record.spent)

    def on_step(self, step: int, steps: int, left: float) -> None:
        """Show how far the trial is."""
        if self.live and time.perf_counter() - self._drawn >= REFRESH_SECONDS:
            self._draw(step, steps, left)

    def on_trial_end(self, record: TuningRecord, trial: Trial) -> None:
        """Write a line about a trial."""
        done, all_ = self._counted
        self._counted = done + 1, all_
        text = record.candidates[trial.candidate].text
        left = clock(60 * record.minutes - record.spent)
        if trial.score:
            came = f"BLEU {trial.score.bleu:.1f}, chrF {trial.score.chrf:.1f}; {trial.steps:,} steps"
        else:
            came = f"failed: {trial.failure}"
        self._line(f"{self._rung}, trial {done + 1}/{all_}: {text}: {came}; {clock(trial.seconds)}, {left} left")

    def close(self) -> None:
        """Remove the live line."""
        if self.live:
            self.live.close()

    def _line(self, text: str) -> None:
        if self.live:
            self.live.print(printable(text))
        else:
            self.stream.write(printable(text) + "\n")
            self.stream.flush()

    def _draw(self, step: int, steps: int, left: float) -> None:
        if not self.live:
            return
        self._drawn = time.perf_counter()
        columns = min(self.live.columns, 120)
        done, all_ = self._counted
        doing = "measuring" if not steps else "translating" if step >= steps else ""
        head = f"{self._rung}, trial {done + 1}/{all_}: {self._trial}"
        tail = f"{doing or f'{step:,}/{steps:,}'}  {clock(left)} left"
        room = columns - columns_of(head) - columns_of(tail) - 4
        if room < SMALLEST_BAR:
            head = fitted(head, max(1, columns - columns_of(tail) - 2), "…" if self._is_unicode else "...")
            self.live.draw([fitted(f"{head}  {tail}", columns)])
            return
        signs = ("━", "─") if self._is_unicode else ("#", "-")
        full, rest = bar(step / steps if steps else 0.0, min(room, 30), *signs)
        self.live.draw([f"{head}  {full}{rest}  {tail}"])
