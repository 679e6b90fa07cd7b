"""Record of a tuning, ``tuning.json``: what was asked for, measured and decided so far.

A tuning that was interrupted goes on from its record. Choices depend on the record alone.
"""

import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from nmt.config.record import Record
from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.runs.directory import RUNS
from nmt.storage.atomic import write_text
from nmt.storage.format_number import check_format
from nmt.tuning.plan import Score
from nmt.tuning.space import Candidate

FORMAT: Literal[1] = 1
RECORD = "tuning.json"
MAX_BYTES = 16 * 2**20


class Speed(Record):
    """Speed of a candidate on this machine."""

    step_seconds: float = Field(gt=0)
    """Time of a step, with its share of the validation after each epoch."""
    epoch_steps: int = Field(ge=1)
    """Number of steps of an epoch."""


class Trial(Record):
    """Training of a candidate in a rung."""

    candidate: int = Field(ge=0)
    """Number of the candidate."""
    steps: int | None = Field(None, ge=1)
    """Number of its steps; None before it starts."""
    seconds: float = 0.0
    """Time spent on it, with building, measuring and scoring."""
    step_seconds: float | None = None
    """Time of a step in it; None until it ends."""
    bleu: float | None = None
    """BLEU of greedy translations of the validation sentences, 0 to 100; None until it ends, or if it failed."""
    chrf: float | None = None
    """Their chrF, 0 to 100."""
    failure: str | None = None
    """Why it failed, in words; None if it did not."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.bleu is not None or self.failure is not None

    @property
    def score(self) -> Score | None:
        """BLEU and chrF; None until it ends, or if it failed."""
        return None if self.bleu is None or self.chrf is None else Score(self.bleu, self.chrf)


class Rung(Record):
    """A rung: trials of equal training time."""

    training_seconds: float
    """Training time of each trial, as planned."""
    trials: list[Trial]
    """Trials in their order, that of the base first."""

    @property
    def scores(self) -> dict[int, Score]:
        """Scores by candidate, without those that failed."""
        return {trial.candidate: trial.score for trial in self.trials if trial.score}


class Verdict(Record):
    """Comparison of the best candidate with the base, in the last rung."""

    candidate: int
    """Best candidate besides the base by BLEU in the last rung; 0 if none is left."""
    p_value: float | None = None
    """Two-sided p-value of the difference in BLEU, by paired bootstrap resampling; None without both scores."""
    is_better: bool
    """Whether the candidate is better, with p below 0.05."""
    epochs: int
    """Epochs of the configuration that is written."""


class TuningRecord(Record):
    """Content of ``tuning.json``."""

    format: Literal[1] = FORMAT
    """Number of this format."""
    dataset: str
    """Name of the dataset."""
    fingerprint: str
    """Fingerprint of the dataset."""
    origin: str
    """Where the base comes from, such as "configuration small.yaml"."""
    base: dict[str, Any]
    """Base configuration, as sections of keys."""
    minutes: float
    """Budget M."""
    sentences: int
    """Number of validation sentences that are translated, the first of the split."""
    spent: float = 0.0
    """Seconds spent so far."""
    overhead: float = 0.0
    """Time in seconds that a trial takes besides training; at first an estimate."""
    shape: list[int] = Field(default_factory=list)
    """Number of candidates besides the base by rung; empty before the plan is made."""
    candidates: list[Candidate] = Field(default_factory=list)
    """All candidates by number."""
    speeds: dict[str, Speed] = Field(default_factory=dict)
    """Speeds by number of the candidate."""
    rungs: list[Rung] = Field(default_factory=list)
    """Rungs that have begun."""
    verdict: Verdict | None = None
    """Comparison at the end; None before."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.candidates)
        numbers = [trial.candidate for rung in self.rungs for trial in rung.trials]
        numbers += [self.verdict.candidate] if self.verdict else []
        if (
            [candidate.number for candidate in self.candidates] != list(range(count))
            or any(number >= count for number in numbers)
            or not all(rung.trials for rung in self.rungs)
            or len(self.rungs) > len(self.shape)
            or (self.shape and "0" not in self.speeds)
            or (self.verdict and not self.rungs)
        ):
            raise ValueError("candidates, rungs and verdict contradict each other")
        return self

    @property
    def config(self) -> Config:
        """Base configuration."""
        return Config.model_validate(self.base)

    def trial(self, candidate: int, rung: int) -> Trial | None:
        """Return the trial of a candidate in rung r, from 0; None if it was not in that rung."""
        return next((trial for trial in self.rungs[rung].trials if trial.candidate == candidate), None)


class TuningFolder:
    """Folder ``checkpoints/<name>/`` of a tuning. All of its paths are defined here."""

    def __init__(self, name: str) -> None:
        """Take the name, which is checked."""
        self.name, self.folder = name, RUNS / name

    @property
    def record_path(self) -> Path:
        """The record."""
        return self.folder / RECORD

    @property
    def lock_path(self) -> Path:
        """Lock file, held by the process that tunes."""
        return self.folder / "lock"

    @property
    def best_path(self) -> Path:
        """Configuration to train with, as YAML."""
        return self.folder / "best.yaml"

    def trial_path(self, rung: int, candidate: int) -> Path:
        """Run directory of a candidate in rung r, from 0."""
        return self.folder / "trials" / f"rung-{rung + 1}-candidate-{candidate:02d}"

    def write(self, record: TuningRecord) -> None:
        """Write the record atomically."""
        write_text(self.record_path, json.dumps(record.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")

    def read(self) -> TuningRecord:
        """Return the record. Raises as ``read_record``."""
        return read_record(self.record_path)


def read_record(path: Path) -> TuningRecord:
    """Return the record in a file.

    Raises:
        DataError: if it is damaged, or of an unknown format.
    """
    remedy = "Restore a copy, or start another tuning with --name NAME."
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DataError(f"{path} is too long. The record of a tuning has at most {MAX_BYTES:,} bytes. {remedy}")
        values = json.loads(content.decode("utf-8"))
        check_format(values["format"], [FORMAT], str(path))
        record = TuningRecord.model_validate(values)
        record.config  # noqa: B018 - checks it
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        problem = " ".join(reason.split())[:120]
        raise DataError(f"{path} is damaged: {problem}. nmt tune writes it. {remedy}") from None
    return record
