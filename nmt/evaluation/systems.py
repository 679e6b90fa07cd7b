"""Systems that are evaluated: runs, ensembles and exports, with their weights and decoding settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nmt.config.loading import change_decoding
from nmt.config.schema import DecodingConfig
from nmt.data.manifest import Direction, Manifest, read_manifest
from nmt.decoding.exported import BERGAMOT, GREEDY_ONLY, ExportedModel, choose_export, find_exports
from nmt.errors import NmtError
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import find_members
from nmt.text.translator import Translator


@dataclass(frozen=True)
class RunSystem:
    """A run to evaluate, with its weights and decoding settings."""

    name: str
    """Name as it was given: RUN or RUN:EPOCH."""
    run: Run
    """Run directory."""
    manifest: Manifest
    """Manifest of the dataset that the run was trained on."""
    epoch: str | None
    """Weights: a number, "best", "last" or "average"; None for the run's default."""
    decoding: DecodingConfig
    """Decoding settings."""
    exported: ExportedModel | None = None
    """Export that is used instead of the run's weights; None for the weights."""
    partners: tuple[tuple[Run, str | None], ...] = ()
    """Further runs of an ensemble, with their weights."""
    glossary: str | None = None
    """Path of a glossary whose terms translations must use; None for none."""

    @property
    def members(self) -> list[tuple[Run, str | None]]:
        """All runs with their weights."""
        return [(self.run, self.epoch), *self.partners]

    def open(self, direction: Direction | None = None) -> Translator:
        """Return the translator of a direction (None: the one that ``decoding`` chooses).

        Raises the errors of ``Translator.open``.
        """
        epoch = None if self.exported else self.epoch
        decoding = self.decoding if direction is None else towards(self.decoding, direction)
        return Translator.open(self.exported or self.run, epoch, decoding, self.partners)


def towards(decoding: DecodingConfig, direction: Direction) -> DecodingConfig:
    """Return search settings that choose a direction."""
    chosen = {"source_language": direction.source, "target_language": direction.target}
    return decoding.model_copy(update=chosen)


def find_systems(
    runs: Sequence[str],
    exports: Sequence[str],
    *,
    teacher: str | None,
    only_files: bool,
    epoch: str | None,
    decoding: Mapping[str, Any],
    glossary: str | None,
) -> list[RunSystem]:
    """Return the systems of an evaluation, in the order of the table; for the arguments see ``evaluate``.

    Args:
        runs: runs or ensembles; empty for the run that trained last, unless there are exports.
        exports: exports of the first run, or folders.
        teacher: the run that the first run has learned from, or None.
        only_files: whether translations in files are scored, so that a run is not needed.
        epoch: weights of the runs without an epoch.
        decoding: values for keys of section decoding.
        glossary: path of a glossary, with which each system is scored once more.

    Raises: the errors of ``find_system``.
    """
    student = runs[0] if runs else None
    if teacher is not None:
        student = student or find_run(None).name
        runs = [teacher, *(runs or [student])]
        exports = exports or newest_export(student)
    find = partial(find_system, epoch=epoch, decoding=decoding)
    names: list[str | None] = [*runs] if runs or only_files or exports else [None]
    systems = [find(name) for name in names]
    owners = [student if Path(export).name == export else None for export in exports]
    systems += [find(name, export=export) for name, export in zip(owners, exports, strict=True)]
    if glossary is None:
        return systems
    return [
        variant
        for system in systems
        for variant in (system, replace(system, name=f"{system.name}+terms", glossary=glossary))
    ]


def check_distinct(names: Sequence[str]) -> None:
    """Check that no system was given twice; raises NmtError."""
    for name in names:
        if names.count(name) > 1:
            raise NmtError(
                f"System {name!r} was given {names.count(name)} times. Each system is compared once. Leave out its "
                "repeats."
            )


def newest_export(student: str) -> list[str]:
    """Return the name of the newest export of a run to Bergamot; empty if there is none."""
    exports = find_exports(find_run(student.partition(":")[0]), BERGAMOT)
    return [folder.name for folder in [*exports][:1]]


def find_system(
    name: str | None,
    epoch: str | None,
    decoding: Mapping[str, Any],
    export: str | None = None,
) -> RunSystem:
    """Return the system of a run, or of an export to CTranslate2 or Bergamot; the latter is always greedy.

    Args:
        name: RUN, RUN:EPOCH, or RUN+RUN for an ensemble; None for the run that trained last.
        epoch: the epoch, if ``name`` has none. An export must be of this epoch.
        decoding: values for keys of the run's section decoding; None leaves a key unchanged.
        export: name of an export of the run, or a folder; None for the weights of the run.

    Raises:
        NotFoundError: if there is no such run or export, or its program is not installed.
        NmtError: if the export is of a different epoch.
        ConfigError: for a value that the section decoding does not allow.
        DataError: if the run or the export is damaged.
    """
    model: ExportedModel | None = None
    partners: list[tuple[Run, str | None]] = []
    if export is None:
        (run, epoch), *partners = [(find_run(None), epoch)] if name is None else find_members(name, epoch)
        owner = run
    else:
        chosen, _, own_epoch = (name or "").partition(":")
        run, model = choose_export(None if name is None else chosen, own_epoch or epoch, export)
        model.require()
        name, epoch, owner = f"{model.description.run}/{model.folder.name}", str(model.description.epoch), model.run
    own = model.decoding() if model else owner.config().decoding
    if model and model.description.to == BERGAMOT:
        decoding = {key: value for key, value in decoding.items() if key not in GREEDY_ONLY}
    settings = change_decoding(own, decoding, exported=model is not None)
    return RunSystem(name or run.name, run, read_manifest(owner.dataset_path), epoch, settings, model, tuple(partners))
