"""Run directory ``checkpoints/<run>/``: paths, configuration, metrics file; functions that create and find runs."""

import contextlib
import itertools
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nmt.config.loading import CURRENT_FORMAT as CONFIG_FORMAT
from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.data.manifest import Manifest, read_manifest
from nmt.errors import DataError, NotFoundError
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    Header,
    Metrics,
    StepMetrics,
    StepValidation,
    WeightsId,
    best_of,
    parse_metrics,
    weights_id,
)
from nmt.storage.atomic import append_line, atomic_folder, sha256, write_bytes, write_text
from nmt.storage.names import check_name, did_you_mean

RUNS = Path("checkpoints")
WEIGHTS_SUFFIX = ".safetensors"


class Inside:
    """Attribute of ``Run``: the path of a file or folder inside the run directory."""

    def __init__(self, name: str) -> None:
        """Store the name of the file or folder."""
        self.name = name

    def __get__(self, run: "Run", owner: type) -> Path:
        """Return the path."""
        return run.folder / self.name


@dataclass(frozen=True)
class Run:
    """A run directory. All of its paths are defined here."""

    folder: Path

    config_path = Inside("config.yaml")
    """Configuration with all keys, in which every "auto" is resolved."""
    recipe_path = Inside("recipe.yaml")
    """Recipe that the dataset chose; only in runs without a configuration file of their own."""
    dataset_path = Inside("dataset.json")
    """Copy of the dataset's manifest."""
    origin_path = Inside("import.json")
    """Origin of the weights; only in imported runs, and in runs that started from their weights."""
    confidence_path = Inside("confidence.json")
    """Calibration of the confidence in translations; only in runs that have been calibrated."""
    metrics_path = Inside("metrics.jsonl")
    """Metrics file, with a JSON object on each line."""
    lock_path = Inside("lock")
    """Lock file, which the process that writes to the run holds."""
    plots_path = Inside("plots")
    """Folder of figures."""
    events_path = Inside("events")
    """Folder of TensorBoard's event files."""

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    def tokenizer_path(self, side: str) -> Path:
        """Return the tokenizer file of side "source" or "target". With both, a run translates without ``data/``."""
        return self.folder / f"tokenizer.{side}.json"

    @property
    def tokenizer_files(self) -> list[Path]:
        """All files of the tokenizers."""
        return sorted(self.folder.glob("tokenizer.*"))

    def weights_path(self, weights_id: WeightsId) -> Path:
        """Return the weights file of an epoch, of the average, or of a validation within an epoch."""
        name = f"epoch-{weights_id:04d}" if isinstance(weights_id, int) else weights_id
        return self.folder / "weights" / f"{name}{WEIGHTS_SUFFIX}"

    def state_path(self, step: int) -> Path:
        """Return the folder of the checkpoint after a step, from which training resumes."""
        return self.folder / "state" / f"step-{step:08d}"

    def _numbers(self, start: str, end: str = "") -> list[int]:
        """Return the numbers between ``start`` and ``end`` in paths of the run, ascending."""
        names = [str(path.relative_to(self.folder)) for path in self.folder.glob(f"{start}*{end}")]
        numbers = [name.removeprefix(start).removesuffix(end) for name in names]
        return sorted(int(number) for number in numbers if number.isdecimal())

    @property
    def weights_epochs(self) -> list[int]:
        """Epochs whose weights are kept, ascending."""
        return self._numbers("weights/epoch-", WEIGHTS_SUFFIX)

    @property
    def saved_weights(self) -> list[WeightsId]:
        """Kept weights: epochs, then validations within epochs, such as "step-1500"; both ascending."""
        return [*self.weights_epochs, *(f"step-{step}" for step in self._numbers("weights/step-", WEIGHTS_SUFFIX))]

    @property
    def state_steps(self) -> list[int]:
        """Steps with a checkpoint, ascending."""
        return self._numbers("state/step-")

    def config(self) -> Config:
        """Return the configuration with which training last started or resumed."""
        return load_config(self.config_path)

    def digest(self) -> str | None:
        """Return a digest of the stored configuration and manifest; None if the run does not exist."""
        try:
            return f"{sha256(self.config_path)} {sha256(self.dataset_path)}"
        except FileNotFoundError:
            return None

    def open(self) -> "StoredRun":
        """Read the configuration and the manifest of the run.

        Raises:
            NotFoundError, ConfigError, DataError: if one of the two is missing or damaged.
        """
        # The digest comes first: if the files change meanwhile, the run counts as changed.
        digest = self.digest()
        return StoredRun(self, self.config(), read_manifest(self.dataset_path), digest or "")

    def write_config(self, config: Config) -> None:
        """Replace the stored configuration."""
        write_text(self.config_path, _with_format(config))

    def update(self, config: Config, manifest: Path) -> None:
        """Store a configuration and a copy of a dataset's manifest where they differ from the stored files."""
        if self.config_path.read_bytes() != _with_format(config).encode():
            self.write_config(config)
        manifest_content = manifest.read_bytes()
        if self.dataset_path.read_bytes() != manifest_content:
            write_bytes(self.dataset_path, manifest_content)

    def append_metrics(self, metrics: Metrics) -> None:
        """Add a line to the metrics file; a new file first gets a header."""
        line = metrics.model_dump_json(exclude_none=True)
        is_empty = not self.metrics_path.exists() or self.metrics_path.stat().st_size == 0
        append_line(self.metrics_path, f"{Header().model_dump_json()}\n{line}" if is_empty else line)

    def repair_metrics(self) -> None:
        """Complete or remove a partial last line, which a process leaves if it is killed while writing."""
        try:
            content = self.metrics_path.read_bytes()
        except FileNotFoundError:
            return
        if not content.endswith(b"\n"):
            repaired = content + b"\n"
            try:
                parse_metrics(repaired, self.metrics_path)
            except DataError:
                repaired = content[: content.rfind(b"\n") + 1]
            self.restore_metrics(repaired)

    def metrics(self) -> list[Metrics]:
        """Return the records of the metrics file; an empty list without a file.

        Raises:
            DataError: if the format is unknown or a line is damaged; names the first such line.
        """
        try:
            content = self.metrics_path.read_bytes()
        except FileNotFoundError:
            return []
        return parse_metrics(content, self.metrics_path)

    def epochs(self) -> list[EpochMetrics]:
        """Return the records of epochs."""
        return [record for record in self.metrics() if isinstance(record, EpochMetrics)]

    def average(self) -> AverageMetrics | None:
        """Return the record of the averaged weights; None without a valid average (see ``averages``)."""
        return next(reversed(self.averages()), None)

    def averages(self) -> list[AverageMetrics]:
        """Return the records of averages since training last continued, in order; empty without averaged weights.

        When training continues, earlier averages are out of date.
        """
        if not self.weights_path("average").exists():
            return []
        newest_first = (record for record in reversed(self.metrics()) if not isinstance(record, StepMetrics))
        valid = itertools.takewhile(lambda record: isinstance(record, AverageMetrics), newest_first)
        return [record for record in valid if isinstance(record, AverageMetrics)][::-1]

    def validations(self) -> list[StepValidation | EpochMetrics]:
        """Return the records of validations in order, without validations of averages."""
        return [record for record in self.metrics() if isinstance(record, StepValidation | EpochMetrics)]

    def best(self, config: Config | None = None) -> WeightsId | None:
        """Return the name of the weights with the best validation by ``training.best_by``; None before a validation.

        Args:
            config: the configuration of the run if it has been read already.
        """
        training = (config or self.config()).training
        best = best_of(self.validations(), training.best_by)
        return weights_id(best) if best else None

    def restore_metrics(self, content: bytes) -> None:
        """Replace the metrics file with its copy in a checkpoint, since training repeats the steps after it."""
        write_bytes(self.metrics_path, content)


class StoredRun(NamedTuple):
    """A run with its configuration and manifest, which are read once and then handed on."""

    run: Run
    """Directory of the run."""
    config: Config
    """Configuration with which training last started or resumed."""
    manifest: Manifest
    """Copy of the dataset's manifest."""
    digest: str
    """Digest of the two files, as of ``Run.digest``."""


def _with_format(config: Config) -> str:
    return f"format: {CONFIG_FORMAT}\n{config.to_yaml()}"


@contextlib.contextmanager
def new_run(name: str, config: Config, dataset_files: Iterable[Path], recipe: str | None = None) -> Iterator[Run]:
    """Create ``checkpoints/<name>`` with the configuration and copies of the dataset's manifest and tokenizers.

    Yields the run in its temporary folder, so that the caller can add more files. The run appears complete.

    Args:
        name: name of the run.
        config: configuration of the run.
        dataset_files: files to copy.
        recipe: content of the recipe file, if the dataset chose the configuration.

    Raises:
        ConflictError: if the folder exists.
    """
    with atomic_folder(RUNS / check_name(name, "run")) as temporary:
        run = Run(temporary)
        run.config_path.write_text(_with_format(config), encoding="utf-8")
        if recipe is not None:
            run.recipe_path.write_text(recipe, encoding="utf-8")
        for file in dataset_files:
            name_in_run = run.dataset_path.name if file.name == "manifest.json" else file.name
            shutil.copyfile(file, temporary / name_in_run)
        yield run


def create_run(name: str, config: Config, dataset_files: Iterable[Path], recipe: str | None = None) -> Run:
    """Create a run without further files. Args, Raises: as for ``new_run``."""
    with new_run(name, config, dataset_files, recipe):
        pass
    return Run(RUNS / name)


def run_exists(name: str) -> bool:
    """Return whether ``checkpoints/<name>`` holds a run."""
    return Run(RUNS / check_name(name, "run")).config_path.is_file()


def find_run(name: str | None) -> Run:
    """Return the run with this name; for None, the run that was trained last.

    Raises:
        NotFoundError: if there is no such run; suggests the most similar name.
    """
    runs = [Run(path.parent) for path in sorted(RUNS.glob("*/config.yaml")) if not path.parent.name.startswith(".")]
    if not runs:
        raise NotFoundError(f"No run is in {RUNS}/ yet. Train first, for example: nmt train")
    if name is None:
        return max(runs, key=last_written)
    by_name = {run.name: run for run in runs}
    if name not in by_name:
        raise NotFoundError(
            f"There is no run {name!r} in {RUNS}/{did_you_mean(name, by_name)}. There are: {', '.join(by_name)}."
        )
    return by_name[name]


def last_written(run: Run) -> int:
    """Return the time when training last wrote to a run, in nanoseconds since 1970."""
    files = [path for path in (run.metrics_path, run.config_path) if path.exists()] or [run.folder]
    return max(path.stat().st_mtime_ns for path in files)
