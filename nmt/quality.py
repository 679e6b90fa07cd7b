"""Benchmark of minutes to quality: a recipe trained with several seeds, as a user runs it, timed by the clock.

Steps per second say how fast a machine computes. What a user waits for is a translator of some quality, and that also
depends on the number of steps, and on the start, validation and saving.
"""

import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from nmt.config.record import DocumentedRecord
from nmt.errors import NmtError
from nmt.message import Argument, Command
from nmt.runs.directory import RUNS, Run
from nmt.runs.metrics import EpochMetrics
from nmt.storage.atomic import refuse_existing


class QualityRun(DocumentedRecord):
    """What a run took, and its scores."""

    name: str
    """Name of the run, which stays in checkpoints/; "median" for the medians of all runs."""
    minutes: float
    """Minutes from the start of ``nmt train`` to its end."""
    minutes_of_steps: float
    """Minutes of the training steps alone."""
    steps: float
    """Number of training steps."""
    target_tokens: float
    """Number of target tokens that were trained on, in all epochs together."""
    scores: dict[str, float]
    """Scores of greedy translations of the test split, by metric."""


def measure_quality(
    config: str, overrides: Sequence[str], dataset: str | None, seeds: int, report: Callable[[str], None]
) -> list[QualityRun]:
    """Train a recipe with the seeds 1 to N, one after another, and score it.

    Args:
        config: configuration, as for ``nmt train``.
        overrides: settings that override it.
        dataset: dataset to train on; None: the one that the configuration names.
        seeds: number of seeds, N.
        report: function that is called with each step of the measurement.

    Returns:
        The runs, then their medians if there are several.

    Raises:
        ConflictError: if a run of that name exists, which would be resumed instead of trained.
        NmtError: if a command fails; the message is that of the command.
    """
    stem = config.rpartition("/")[2].rpartition(".")[0] or config
    runs = [Run(RUNS / f"{stem}-seed-{seed}") for seed in range(1, seeds + 1)]
    for run in runs:
        refuse_existing(run.folder)
    chosen = [Argument("config", config), *([Argument("dataset", dataset)] if dataset else [])]
    measured = []
    for seed, run in enumerate(runs, start=1):
        report(f"training {run.name}")
        started = time.monotonic()
        settings = Argument("set", [*overrides, f"training.seed={seed}"])
        _run(Command("train", *chosen, settings, Argument("run", run.name)))
        minutes = (time.monotonic() - started) / 60
        report(f"scoring {run.name} after {minutes:.1f} minutes")
        scoring = Command("evaluate", Argument("run", run.name), Argument("resamples", "0"), Argument("json", True))
        evaluation = json.loads(_run(scoring))
        [scores] = evaluation["scores"]["systems"].values()
        epochs = [record for record in run.metrics() if isinstance(record, EpochMetrics)]
        measured.append(
            QualityRun(
                name=run.name,
                minutes=minutes,
                minutes_of_steps=sum(epoch.seconds for epoch in epochs) / 60,
                steps=epochs[-1].step,
                target_tokens=sum(epoch.target_tokens for epoch in epochs),
                scores={metric: value["score"] for metric, value in scores.items()},
            )
        )
    return [*measured, _median(measured)] if seeds > 1 else measured


def _run(command: Command) -> str:
    """Run a command in a process of its own, and return its output."""
    _, *arguments = shlex.split(command.on_command_line())
    done = subprocess.run([sys.executable, "-m", "nmt", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NmtError(done.stderr.rpartition("nmt: ")[2].strip() or done.stdout.strip())
    return done.stdout


def _median(runs: Sequence[QualityRun]) -> QualityRun:
    """Return the median of each number of some runs."""
    numbers = {
        field: statistics.median(getattr(run, field) for run in runs)
        for field in ("minutes", "minutes_of_steps", "steps", "target_tokens")
    }
    scores = {metric: statistics.median(run.scores[metric] for run in runs) for metric in runs[0].scores}
    return QualityRun(name="median", scores=scores, **numbers)
