"""Interface of what runs trials."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from nmt.config.schema import Config
from nmt.tuning.plan import Score
from nmt.tuning.record import Speed


class TrialFailedError(Exception):
    """A candidate cannot be trained; the first argument says why. The others go on."""


class TrialPlan(NamedTuple):
    """What a trial is to do."""

    folder: Path
    """Its run directory."""
    config: Config
    """Configuration with the length of the trial."""
    steps: int
    """Number of steps N."""


class Outcome(NamedTuple):
    """What a trial has come to."""

    score: Score
    """Quality of its weights."""
    translations: list[str]
    """Greedy translations of the validation sentences."""
    step_seconds: float | None
    """Time of a step; None if this process took none."""


class Measured(NamedTuple):
    """What was measured of a candidate."""

    speed: Speed
    """Speed of training."""
    seconds: float
    """Time that building, measuring and, if asked for, translating took: about that of a trial besides training."""


Watch = Callable[[int], None]
"""Called after each step with the number of steps taken; raises StopRequested to break off with a checkpoint."""


class TrialRunner(Protocol):
    """Trains candidates, and scores them on the validation split."""

    @property
    def references(self) -> list[str]:
        """References of the validation sentences that are translated."""
        ...

    def measure(self, config: Config, watch: Watch, *, translate: bool = False) -> Measured:
        """Return the speed of a configuration; nothing is written.

        Args:
            config: the configuration.
            watch: is called often.
            translate: whether to translate the validation sentences too.

        Raises:
            TrialFailedError: if it cannot be trained.
        """
        ...

    def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
        """Train and score, or go on where an interrupted trial has stopped.

        Raises:
            TrialFailedError: if training fails.
        """
        ...

    def translations(self, folder: Path) -> list[str]:
        """Return the translations of a trial that has ended."""
        ...

    def clear(self, folder: Path, *, keep_weights: bool) -> None:
        """Delete what a trial that has ended needs no more."""
        ...
