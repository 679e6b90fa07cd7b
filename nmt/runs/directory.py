"""The run directory ``checkpoints/<run>/``: every path in it, and what its configuration and metrics say."""

import itertools
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.errors import DataError, NotFoundError
from nmt.runs.metrics import (
    AverageMetrics,
    Epoch,
    EpochMetrics,
    Metrics,
    SampleMetrics,
    StepMetrics,
    StepValidation,
    best_of,
    parse_metrics,
    weights_name,
)
from nmt.storage.atomic import append_line, atomic_folder, write_bytes, write_text
from nmt.storage.names import check_name, did_you_mean

RUNS = Path("checkpoints")
WEIGHTS_SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Run:
    """A run directory. Nothing else in the house puts one of its paths together."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def config_path(self) -> Path:
        """The configuration as resolved."""
        return self.folder / "config.yaml"

    @property
    def dataset_path(self) -> Path:
        """A copy of the dataset's manifest."""
        return self.folder / "dataset.json"

    def tokenizer_path(self, side: str) -> Path:
        """The tokenizer of "source" or "target", so that the run translates without ``data/``."""
        return self.folder / f"tokenizer.{side}.json"

    @property
    def tokenizer_files(self) -> list[Path]:
        """The files that the tokenizers are made of."""
        return sorted(self.folder.glob("tokenizer.*"))

    @property
    def metrics_path(self) -> Path:
        """One JSON object a line."""
        return self.folder / "metrics.jsonl"

    def weights_path(self, epoch: Epoch) -> Path:
        """The model's weights after an epoch, the mean of those of several, or the best amid an epoch."""
        name = f"epoch-{epoch:04d}" if isinstance(epoch, int) else epoch
        return self.folder / "weights" / f"{name}{WEIGHTS_SUFFIX}"

    @property
    def weights_epochs(self) -> list[int]:
        """The epochs whose weights are kept, in order."""
        return sorted(int(name) for name in self._weights("epoch"))

    @property
    def weights_amid_epochs(self) -> list[str]:
        """The weights kept that are not those after an epoch, by their names such as "step-1500", in order."""
        return [f"step-{step}" for step in sorted(int(name) for name in self._weights("step"))]

    def _weights(self, kind: str) -> list[str]:
        files = [file.name for file in (self.folder / "weights").glob(f"{kind}-*{WEIGHTS_SUFFIX}")]
        names = [name.removeprefix(f"{kind}-").removesuffix(WEIGHTS_SUFFIX) for name in files]
        return [name for name in names if name.isdecimal()]  # what else is there is none of ours

    def state_path(self, step: int) -> Path:
        """The folder with what it takes to go on after a step."""
        return self.folder / "state" / f"step-{step:08d}"

    @property
    def state_steps(self) -> list[int]:
        """The steps that training can go on after, in order."""
        names = [folder.name.removeprefix("step-") for folder in (self.folder / "state").glob("step-*")]
        return sorted(int(name) for name in names if name.isdecimal())

    @property
    def lock_path(self) -> Path:
        """The file that the process which writes to the run holds locked."""
        return self.folder / "lock"

    @property
    def plots_path(self) -> Path:
        """The folder for figures."""
        return self.folder / "plots"

    def config(self) -> Config:
        """Return the configuration that the run was started or last resumed with."""
        return load_config(self.config_path)

    def write_config(self, config: Config) -> None:
        """Replace the stored configuration."""
        write_text(self.config_path, config.to_yaml())

    def append_metrics(self, metrics: Metrics) -> None:
        """Add a line to the metrics file."""
        append_line(self.metrics_path, metrics.model_dump_json(exclude_none=True))

    def mend_metrics(self) -> None:
        """Take off what a process that was killed has left of a last line, so that lines can be added after it."""
        try:
            content = self.metrics_path.read_bytes()
        except FileNotFoundError:
            return
        if not content.endswith(b"\n"):
            whole = content + b"\n"
            try:
                parse_metrics(whole, self.metrics_path)
            except DataError:
                whole = content[: content.rfind(b"\n") + 1]
            self.restore_metrics(whole)

    def metrics(self) -> list[Metrics]:
        """Return the lines of the metrics file; none if there is no file yet.

        Raises:
            DataError: naming the first damaged line.
        """
        try:
            content = self.metrics_path.read_bytes()
        except FileNotFoundError:
            return []
        return parse_metrics(content, self.metrics_path)

    def epochs(self) -> list[EpochMetrics]:
        """Return the lines about epochs."""
        return [record for record in self.metrics() if isinstance(record, EpochMetrics)]

    def average(self) -> AverageMetrics | None:
        """Return what is known of the averaged weights; None if there are none, or of before training went on."""
        averages = self.averages()
        return averages[-1] if averages else None

    def averages(self) -> list[AverageMetrics]:
        """Return the lines about averages since training last went on, in order; none if the weights are gone."""
        if not self.weights_path("average").exists():
            return []
        backwards = (record for record in reversed(self.metrics()) if not isinstance(record, StepMetrics))
        since = itertools.takewhile(lambda record: isinstance(record, AverageMetrics), backwards)
        return [record for record in since if isinstance(record, AverageMetrics)][::-1]

    def validations(self) -> list[StepValidation | EpochMetrics]:
        """Return the lines about validations, averages left out, in order."""
        return [record for record in self.metrics() if isinstance(record, StepValidation | EpochMetrics)]

    def best(self) -> Epoch | None:
        """Return which weights did best in validation, by ``training.best_by``; None before the first."""
        best = best_of(self.validations(), self.config().training.best_by)
        return weights_name(best) if best else None

    def samples(self) -> list[SampleMetrics]:
        """Return the lines with translations, in order."""
        return [record for record in self.metrics() if isinstance(record, SampleMetrics)]

    def restore_metrics(self, content: bytes) -> None:
        """Make the metrics file what it was when a state was saved: lines after it are about steps taken again."""
        write_bytes(self.metrics_path, content)


def create_run(name: str, config: Config, dataset_files: Iterable[Path]) -> Run:
    """Make ``checkpoints/<name>`` with the configuration and copies of the dataset's manifest and tokenizers.

    Raises:
        ConflictError: if it exists.
    """
    run = Run(RUNS / check_name(name, "run"))
    with atomic_folder(run.folder) as aside:
        (aside / run.config_path.name).write_text(config.to_yaml(), encoding="utf-8")
        for file in dataset_files:
            name_in_run = run.dataset_path.name if file.name == "manifest.json" else file.name
            shutil.copyfile(file, aside / name_in_run)
    return run


def run_exists(name: str) -> bool:
    """Return whether ``checkpoints/<name>`` holds a run."""
    return Run(RUNS / check_name(name, "run")).config_path.is_file()


def find_run(name: str | None) -> Run:
    """Return the named run, or without a name the one that trained last.

    Raises:
        NotFoundError: if there is none; the nearest name is given.
    """
    runs = [Run(path.parent) for path in sorted(RUNS.glob("*/config.yaml")) if not path.parent.name.startswith(".")]
    if not runs:
        raise NotFoundError(f"No run is in {RUNS}/ yet. Train first, for example: nmt train --config base.yaml")
    if name is None:
        return max(runs, key=_last_written)
    by_name = {run.name: run for run in runs}
    if name not in by_name:
        raise NotFoundError(
            f"There is no run {name!r} in {RUNS}/{did_you_mean(name, by_name)}. There are: {', '.join(by_name)}."
        )
    return by_name[name]


def _last_written(run: Run) -> int:
    files = [path for path in (run.metrics_path, run.config_path) if path.exists()]
    return max(path.stat().st_mtime_ns for path in files)
