"""Overview of runs for ``nmt runs``: dataset, progress, best score, and differences between configurations.

An overview reads the configuration, the metrics file, file names, and the header of a weights file.
"""

import contextlib
import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from nmt.config.schema import Config
from nmt.config.training import BestBy
from nmt.data.manifest import read_manifest
from nmt.errors import NmtError
from nmt.runs import metrics
from nmt.runs.directory import RUNS, Run, find_run, last_written, run_exists
from nmt.runs.weights import count_weights
from nmt.storage.file_lock import holder

State = Literal["training", "finished", "stopped", "ended early", "new", "damaged"]
"""``training``: a process holds the run's lock. ``stopped``: not all epochs are trained. ``ended early``: by
``training.patience``. ``new``: before the first checkpoint. ``damaged``: a file is missing or cannot be read."""

Order = Literal["name", "date", "score"]
Content = TypeVar("Content")


@dataclass(frozen=True)
class Overview:
    """Overview of a run. A value that cannot be read from a damaged file is None."""

    run: Run
    state: State
    problems: list[str]
    """Damaged and missing files, in words."""
    held_by: str | None
    """Description of the process that holds the lock; None if no process holds it."""
    config: Config | None
    """Configuration."""
    weights: int | None
    """Number of weights of the model; None before the first weights are saved."""
    epochs: int | None
    """Number of finished epochs."""
    step: int
    """Number of training steps, from the newest checkpoint or the metrics file."""
    best: metrics.StepValidation | metrics.EpochMetrics | None
    """Best validation by ``training.best_by``; None before the first validation."""
    seconds: float | None
    """Training time, without validation and saving."""
    size: int
    """Size on disk, in bytes."""
    trained: float
    """Time when training last wrote to the run, in seconds since 1970."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name

    @property
    def dataset(self) -> str | None:
        """Name of the dataset."""
        return self.config.data.dataset if self.config else None

    @property
    def by(self) -> BestBy | None:
        """Measure that selects the best validation; None without a readable configuration."""
        if self.config is None:
            return None
        return metrics.measure_in_force([self.best] if self.best else [], self.config.training.best_by)

    @property
    def score(self) -> float | None:
        """Value of the measure ``by`` at the best validation."""
        return getattr(self.best, f"validation_{self.by}", None)


def run_folders() -> list[Run]:
    """Return all runs in ``checkpoints/`` sorted by name, including runs without a readable configuration."""
    names = ("config.yaml", "metrics.jsonl", "weights")
    folders = {path.parent for name in names for path in RUNS.glob(f"*/{name}")}
    return [Run(folder) for folder in sorted(folders) if not folder.name.startswith(".")]


def overview(run: Run) -> Overview:
    """Return the overview of a run. Damaged files raise no error; the overview lists them."""
    problems: list[str] = []

    def attempt(read: Callable[[], Content]) -> Content | None:
        try:
            return read()
        except NmtError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{error.filename or run.folder} cannot be read: {error.strerror or error}.")
        return None

    config = attempt(run.config)
    attempt(lambda: read_manifest(run.dataset_path))
    weights = attempt(lambda: count_weights(run))
    readable = attempt(run.metrics)
    records = readable or []
    validations = [record for record in records if isinstance(record, metrics.StepValidation | metrics.EpochMetrics)]
    epochs = sum(isinstance(record, metrics.EpochMetrics) for record in validations)
    tokenizers = [run.tokenizer_path(side) for side in ("source", "target")]
    problems += [f"{path} is missing." for path in tokenizers if not path.exists()]
    if epochs and not run.saved_weights:
        problems.append(f"{run.weights_path(1).parent} holds no weights of an epoch.")
    # A record contains the time of its epoch so far, so the last record of an epoch has the time of the whole epoch.
    timed = [record for record in records if isinstance(record, metrics.EpochMetrics | metrics.StepMetrics)]
    seconds = {record.epoch: record.seconds for record in timed if record.seconds is not None}
    held_by = holder(run.lock_path)
    return Overview(
        run=run,
        state="training" if held_by else "damaged" if problems or not config else _state(validations, config, run),
        problems=problems,
        held_by=held_by,
        config=config,
        weights=weights,
        epochs=None if readable is None else epochs,
        step=max([record.step for record in records] + run.state_steps, default=0),
        best=metrics.best_of(validations, config.training.best_by) if config else None,
        seconds=None if readable is None else sum(seconds.values()),
        size=_size(run.folder),
        trained=last_written(run) / 1e9,
    )


def _state(validations: Sequence[metrics.StepValidation | metrics.EpochMetrics], config: Config, run: Run) -> State:
    training = config.training
    if not validations and not run.state_steps:
        return "new"
    if sum(isinstance(record, metrics.EpochMetrics) for record in validations) >= training.epochs:
        return "finished"
    waited = metrics.validations_since_best(validations, training.best_by)
    return "stopped" if training.patience is None or waited < training.patience else "ended early"


def _size(folder: Path) -> int:
    """Return the size of a folder's files in bytes. A file with two names counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # training deletes files meanwhile
                status = Path(parent, name).lstat()
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


# --- differences of configurations


def flat_config(config: Config) -> dict[str, Any]:
    """Return the values of a configuration by full key, such as "training.epochs"."""
    sections = config.model_dump(mode="json")
    return {f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()}


def differences(configs: Mapping[str, Config | None]) -> dict[str, dict[str, Any]]:
    """Return the keys in which the runs' configurations differ, by run and with the run's values.

    A key that some architectures lack is compared among the runs that have it.
    """
    by_run = {name: flat_config(config) if config else {} for name, config in configs.items()}

    def differs(key: str) -> bool:
        key_values = [values[key] for values in by_run.values() if key in values]
        return any(value != key_values[0] for value in key_values)

    return {name: {key: values[key] for key in values if differs(key)} for name, values in by_run.items()}


# --- order


def sort_overviews(overviews: Sequence[Overview], by: Order) -> list[Overview]:
    """Return overviews sorted by name, by date (latest first), or by score (best first).

    Scores are only compared between runs with the same dataset and measure. Runs without a score come last.
    """

    def rank(run: Overview) -> tuple[Any, ...]:
        if by != "score":
            return (run.name if by == "name" else -run.trained,)
        if run.score is None:
            return (True,)
        lower_is_better = metrics.measures(metrics.Quality)[f"validation_{run.by}"].best == "min"
        return False, run.dataset, run.by, run.score if lower_is_better else -run.score

    return sorted(overviews, key=rank)


def overview_json(run: Overview, differing: Mapping[str, Any]) -> dict[str, Any]:
    """Return an overview as JSON values.

    Args:
        run: the overview.
        differing: keys in which the run differs from the other listed runs, with the run's values.
    """
    best, config = run.best, run.config
    values = {name: getattr(best, name, None) for name in metrics.measures(metrics.Quality)}
    scores = {name: value for name, value in values.items() if value is not None}
    return {
        "run": run.name,
        "folder": str(run.run.folder),
        "state": run.state,
        "problems": run.problems,
        "held_by": run.held_by,
        "dataset": run.dataset,
        "architecture": config.model.architecture if config else None,
        "weights": run.weights,
        "epochs": run.epochs,
        "planned_epochs": config.training.epochs if config else None,
        "step": run.step,
        "best": best and {"weights": metrics.weights_id(best), "by": run.by, "score": run.score, **scores},
        "training_seconds": run.seconds,
        "bytes": run.size,
        "last_trained": datetime.datetime.fromtimestamp(run.trained).astimezone().isoformat(timespec="seconds"),
        "differences": dict(differing),
        "configuration": flat_config(config) if config else None,
    }


def lineage(run: Run) -> tuple[list[Run], list[str]]:
    """Return a run with its ancestors, nearest first, and messages about ancestors that cannot be found.

    The parent of a run is the run whose weights it started from.
    """
    runs = [run]
    try:
        while start := runs[-1].config().training.start_from:
            name = start.partition(":")[0]
            # If a name repeats, the run was removed and trained again, starting from its own descendant.
            if not run_exists(name) or name in {ancestor.name for ancestor in runs}:
                return runs, [
                    f"run {runs[-1].name!r} started from the weights of run {name!r}, which is no longer in {RUNS}/. "
                    "The training data of those weights is unknown. Restore the run to check its training split."
                ]
            runs.append(find_run(name))
    except NmtError as error:
        return runs, [str(error)]
    return runs, []
