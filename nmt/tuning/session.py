"""Start and resume of a tuning: its folder, base configuration and dataset, checked before anything is trained."""

import contextlib
import math
import shutil
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.config.loading import find_config, load_config
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, find_dataset
from nmt.errors import ConfigError, ConflictError, DataError
from nmt.recipes.recipe import recipe_for
from nmt.runs.directory import run_exists
from nmt.storage.atomic import atomic_folder, refuse_existing
from nmt.storage.file_lock import locked
from nmt.storage.names import check_name
from nmt.tuning.record import RECORD, TuningFolder, TuningRecord

DEFAULT_MINUTES = 60.0
MOST_SENTENCES = 1000
"""Validation sentences that a trial translates, at most."""


class Request(NamedTuple):
    """What a command asks for. None leaves it to the record of the tuning, or to the default of a new one."""

    name: str | None = None
    """Name of the tuning; None: "tune-" and the name of the dataset."""
    minutes: float | None = None
    """Budget M."""
    config: str | None = None
    """Configuration file to start from; None: the recipe for the dataset."""
    overrides: Sequence[str] = ()
    """Settings ``section.key=value`` of the base."""
    dataset: str | None = None
    """Name of the dataset."""


class Tuning(NamedTuple):
    """A tuning that is ready to go on."""

    folder: TuningFolder
    record: TuningRecord
    dataset: Dataset
    is_new: bool
    """Whether it has no folder yet."""
    reasons: list[str]
    """What the recipe was chosen by, a line each; empty for a configuration file and a resumed tuning."""

    @contextlib.contextmanager
    def held(self) -> Iterator[TuningRecord]:
        """Hold the lock of the tuning within the block, and yield its record.

        The folder of a new tuning is created, and removed again if the block fails before there is a plan.

        Raises:
            ConflictError: if another process holds it.
        """
        if self.is_new:
            with atomic_folder(self.folder.folder) as temporary:
                (temporary / RECORD).write_text(self.record.model_dump_json(), encoding="utf-8")
        with locked(self.folder.lock_path, f"Tuning {self.folder.name!r}"):
            try:
                yield self.folder.read()  # another process may have ended meanwhile
            except BaseException:
                if self.is_new and not self.folder.read().shape:
                    shutil.rmtree(self.folder.folder)
                raise


def open_tuning(request: Request) -> Tuning:
    """Return the tuning that a command asks for, new or to be resumed; nothing is written.

    Raises:
        ConflictError: if the name is taken, or a tuning of that name has other settings.
        DataError: if its record is damaged, or the dataset has no validation pairs.
        ConfigError, NotFoundError: if configuration or dataset are missing or wrong.
    """
    if request.minutes is not None and not 0 < request.minutes < math.inf:
        raise ConfigError(
            f"--minutes is {request.minutes:g}. It is the time of all trials, more than 0. Change the value."
        )
    loaded = load_config(find_config(request.config), list(request.overrides)) if request.config else None
    named = request.dataset or (loaded.data.dataset if loaded else None)
    folder = TuningFolder(check_name(request.name or f"tune-{find_dataset(named).name}", "tuning"))
    if folder.record_path.is_file():
        return _resumed(folder, request, loaded, named)
    if run_exists(folder.name):
        raise ConflictError(f"{folder.folder} is a run. A tuning has a folder of its own. Give another --name.")
    refuse_existing(folder.folder)
    dataset = find_dataset(named)
    pairs = dataset.manifest.splits["validation"].pairs
    if not pairs:
        raise DataError(
            f"Dataset {dataset.name!r} has no validation pairs. Tuning decides by translations of them. Prepare the "
            "corpus again with --set data.validation_share=0.1, or with --validation FILE."
        )
    config, origin, reasons = _base(request, loaded, dataset)
    record = TuningRecord(
        dataset=dataset.name, fingerprint=dataset.manifest.fingerprint, origin=origin,
        base=config.model_dump(mode="json"), minutes=request.minutes or DEFAULT_MINUTES,
        sentences=min(pairs, MOST_SENTENCES),
    )  # fmt: skip
    return Tuning(folder, record, dataset, True, reasons)


def _base(request: Request, loaded: Config | None, dataset: Dataset) -> tuple[Config, str, list[str]]:
    """Return the base, where it comes from, and reasons."""
    if loaded:
        return loaded, f"configuration {request.config}", []
    recipe = recipe_for(dataset, overrides=request.overrides)
    return recipe.config, "the recipe", recipe.reasons


def _resumed(folder: TuningFolder, request: Request, loaded: Config | None, named: str | None) -> Tuning:
    record = folder.read()
    asked = {"minutes": (record.minutes, request.minutes), "dataset": (record.dataset, named)}
    differences = [
        f"{what} {_shown(before)} before, {_shown(now)} now"
        for what, (before, now) in asked.items() if now not in (None, before)
    ]  # fmt: skip
    dataset = find_dataset(record.dataset)
    if dataset.manifest.fingerprint != record.fingerprint:
        differences.append(f"dataset {record.dataset} has new content")
    if not differences and (loaded or request.overrides) and _base(request, loaded, dataset)[0] != record.config:
        differences.append(f"another configuration to start from than {record.origin}")
    if differences:
        raise ConflictError(
            f"Tuning {folder.name!r} was started with other settings or data: {'; '.join(differences)}. A tuning keeps "
            "those that it was started with. Start another one with --name NAME, or leave the options out to go on."
        )
    return Tuning(folder, record, dataset, False, [])


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
