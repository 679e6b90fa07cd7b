"""A clock and an observer for tunings whose trials are made up."""

from nmt.tuning.record import Trial, TuningRecord
from nmt.tuning.space import Candidate


class Clock:
    """Seconds that pass when a trial says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Silent:
    """Observer that counts."""

    def __init__(self) -> None:
        self.ended: list[Trial] = []
        self.left: list[float] = []

    def on_measure(self) -> None: ...
    def on_plan(self, record: TuningRecord) -> None: ...
    def on_rung(self, record: TuningRecord) -> None: ...
    def on_trial(self, record: TuningRecord, candidate: Candidate) -> None: ...

    def on_step(self, step: int, steps: int, left: float) -> None:
        self.left.append(left)

    def on_trial_end(self, record: TuningRecord, trial: Trial) -> None:
        self.ended.append(trial)
