"""The run directory ``checkpoints/<run>/``: every path in it, the resolved configuration, the metrics file."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from nmt.config import Config, Section, load_config
from nmt.errors import DataError, NotFoundError
from nmt.files import check_name, nearest, whole_folder, write_text

RUNS = Path("checkpoints")


class StepMetrics(Section):
    """A line of the metrics file about the training steps since the previous such line."""

    kind: Literal["step"] = "step"
    epoch: int
    step: int
    """Steps since the run began, from 1."""
    loss: float
    """Mean cross-entropy of a target token, in nats."""
    accuracy: float
    """Share of target tokens predicted right."""
    learning_rate: float


class EpochMetrics(Section):
    """A line of the metrics file about an epoch. Means are over all target tokens, eos counted, padding not."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    step: int
    """Steps since the run began, at the end of the epoch."""
    train_loss: float
    """Mean cross-entropy of a token as training saw it, dropout on and weights moving, in nats."""
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    target_tokens: int
    """Trained on in this epoch."""
    seconds: float
    """Of training, validation and saving left out."""


class AverageMetrics(Section):
    """A line of the metrics file about the mean of the weights of several epochs."""

    kind: Literal["average"] = "average"
    epochs: list[int]
    step: int
    """Steps since the run began, at the end of the last of them."""
    validation_loss: float
    validation_accuracy: float


Metrics = StepMetrics | EpochMetrics | AverageMetrics
KINDS: dict[str, type[Metrics]] = {"step": StepMetrics, "epoch": EpochMetrics, "average": AverageMetrics}
# Which weights: those after an epoch, or the mean of several.
Epoch = int | Literal["average"]


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
    def metrics_path(self) -> Path:
        """One JSON object a line."""
        return self.folder / "metrics.jsonl"

    def weights_path(self, epoch: Epoch) -> Path:
        """The model's weights after an epoch, or the mean of those of several, in Keras's format."""
        name = epoch if epoch == "average" else f"epoch-{epoch:04d}"
        return self.folder / "weights" / f"{name}.weights.h5"

    @property
    def weights_epochs(self) -> list[int]:
        """The epochs whose weights are kept, in order."""
        files = (self.folder / "weights").glob("epoch-*.weights.h5")
        return sorted(int(file.name.removeprefix("epoch-").removesuffix(".weights.h5")) for file in files)

    def state_path(self, epoch: int) -> Path:
        """The folder with what it takes, beside the weights, to go on after an epoch."""
        return self.folder / "state" / f"epoch-{epoch:04d}"

    @property
    def state_epochs(self) -> list[int]:
        """The epochs that training can go on after, in order."""
        folders = (self.folder / "state").glob("epoch-*")
        return sorted(int(folder.name.removeprefix("epoch-")) for folder in folders)

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
        with self.metrics_path.open("a", encoding="utf-8") as file:
            file.write(metrics.model_dump_json() + "\n")

    def metrics(self) -> list[Metrics]:
        """Return the lines of the metrics file; none if there is no file yet.

        Raises:
            DataError: naming the first damaged line.
        """
        try:
            lines = self.metrics_path.read_text(encoding="utf-8", errors="replace").split("\n")
        except FileNotFoundError:
            return []
        records: list[Metrics] = []
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                values: Any = json.loads(line)
                records.append(KINDS[values["kind"]].model_validate(values))
            except (ValueError, KeyError, TypeError, ValidationError) as error:
                if number == len(lines):
                    break  # a line without its end: the process died while writing it
                raise DataError(
                    f"Each line of a metrics file is as nmt train writes it; {self.metrics_path}, line {number} is "
                    f"damaged: {' '.join(str(error).split())[:120]}. Remove the line."
                ) from None
        return records

    def epochs(self) -> list[EpochMetrics]:
        """Return the lines about epochs."""
        return [record for record in self.metrics() if isinstance(record, EpochMetrics)]

    def average(self) -> AverageMetrics | None:
        """Return what is known of the averaged weights; None if there are none, or of before training went on."""
        records = [record for record in self.metrics() if not isinstance(record, StepMetrics)]
        last = records[-1] if records else None
        return last if isinstance(last, AverageMetrics) and self.weights_path("average").exists() else None

    def best_epoch(self) -> int | None:
        """Return the epoch with the highest validation accuracy; None before the first ended.

        Greedy search takes the likeliest token, and that is what accuracy counts; the loss also counts how sure the
        model is of what it gets wrong. Equals: the lowest validation loss, then the earliest.
        """
        epochs = self.epochs()
        if not epochs:
            return None
        return max(epochs, key=lambda one: (one.validation_accuracy, -one.validation_loss, -one.epoch)).epoch

    def drop_metrics_after(self, step: int) -> None:
        """Forget lines about steps after ``step``: those that a resumed run takes again."""
        kept = [record for record in self.metrics() if record.step <= step]
        write_text(self.metrics_path, "".join(record.model_dump_json() + "\n" for record in kept))


def create_run(name: str, config: Config, dataset_files: Iterable[Path]) -> Run:
    """Make ``checkpoints/<name>`` with the configuration and copies of the dataset's manifest and tokenizers.

    Raises:
        ConflictError: if it exists.
    """
    run = Run(RUNS / check_name(name, "run"))
    with whole_folder(run.folder) as aside:
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
            f"There is no run {name!r} in {RUNS}/{nearest(name, by_name)}. There are: {', '.join(by_name)}."
        )
    return by_name[name]


def _last_written(run: Run) -> int:
    files = [path for path in (run.metrics_path, run.config_path) if path.exists()]
    return max(path.stat().st_mtime_ns for path in files)
