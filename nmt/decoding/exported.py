"""Exported models on disk: finding, opening and checking them. Loads no TensorFlow."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from nmt.config.record import Record
from nmt.config.schema import DecodingConfig
from nmt.errors import DataError, NmtError, NotFoundError
from nmt.extras import require
from nmt.message import Argument, Command
from nmt.runs.directory import Run, find_run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import read_checksum
from nmt.storage.atomic import sha256
from nmt.storage.json_file import check_format, read_json

CTRANSLATE2, BERGAMOT = "ctranslate2", "bergamot"
PROGRAMS = {CTRANSLATE2: "CTranslate2", BERGAMOT: "fxtranslate"}
"""Programs with which nmt translates, by export format."""
GREEDY_ONLY = {"beam_size": 1, "mbr_candidates": 0}
"""Settings of greedy search, the only one of an export to Bergamot."""
_PACKAGES = {CTRANSLATE2: ("fast", "ctranslate2"), BERGAMOT: ("bergamot", "fxtranslate")}
"""Extra and module of each program."""
EXPORTS = "exports"
"""Folder in a run directory that contains its exports."""
DESCRIPTION = "export.json"
"""File in an export that describes it."""
AGAIN = "Export the run again."
VOCABULARY_MAP = "vmap.txt"
"""File with the target tokens of each source token; the name is CTranslate2's."""
RUN_FILES = "run"
"""Folder in an export with the configuration, the manifest and the tokenizers of the run."""


class Description(Record):
    """Content of ``export.json``."""

    format: Literal[1, 2] = 2
    """Format number."""
    to: str
    """Export format, as in ``nmt export --to``."""
    run: str
    """Name of the run."""
    epoch: int | str
    """Weights of the run: an epoch number, "average", or for example "step-1500"."""
    weights: str | None = None
    """SHA-256 of the run's weights; None in format 1."""
    quantization: str
    """Number format of the weights."""
    positions: int | None
    """Most tokens of a source or target sentence that the export can read, bos and eos included; None: no limit."""
    nmt: str
    """Version of nmt that wrote the export."""
    files: dict[str, str]
    """SHA-256 of the other files, by their paths in the folder."""


@dataclass(frozen=True)
class ExportedModel:
    """An export whose files are complete and unchanged."""

    folder: Path
    description: Description

    @property
    def program(self) -> str:
        """Name of the program that translates with it."""
        return PROGRAMS[self.description.to]

    def require(self) -> None:
        """Check that this program is installed; raises NotFoundError if it is not."""
        require(*_PACKAGES[self.description.to])

    def decoding(self) -> DecodingConfig:
        """Return the decoding settings of the run as the export follows them: greedy in an export to Bergamot."""
        decoding = self.run.config().decoding
        return decoding.model_copy(update=GREEDY_ONLY) if self.description.to == BERGAMOT else decoding

    @property
    def run(self) -> Run:
        """Configuration, manifest and tokenizers of the run, as a run directory without weights."""
        return Run(self.folder / RUN_FILES)


def _name_argument(run: Run, export: str) -> Argument:
    """Return the argument with which ``nmt export`` writes an export to CTranslate2 under this name."""
    if quantization := re.fullmatch(rf"{CTRANSLATE2}-(\w+)", export):
        return Argument("quantization", quantization[1])
    return Argument("output", run.folder / EXPORTS / export)


def open_export(folder: Path) -> ExportedModel:
    """Return the export in a folder.

    Raises:
        NotFoundError: if the folder holds no export.
        DataError: if a file is missing or has changed, or the format is unknown.
    """
    description = read_description(folder)
    for name, checksum in description.files.items():
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{folder / DESCRIPTION} is damaged: {name!r} is outside the folder. {AGAIN}")
        if not file.is_file():
            raise DataError(f"{file} is missing, which belongs to the export. {AGAIN}")
        if sha256(file) != checksum:
            raise DataError(f"{file} has changed: its SHA-256 differs from the recorded one. {AGAIN}")
    return ExportedModel(folder, description)


def read_description(folder: Path) -> Description:
    """Return the description of an export, without checking its other files.

    Raises:
        NotFoundError: if the folder holds no export.
        DataError: if the description is damaged, or its format is unknown.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise NotFoundError(
            f"{folder} holds no exported model: {DESCRIPTION} is missing. Make one with: ",
            Command("export", Argument("run", "RUN"), Argument("to", CTRANSLATE2), Argument("output", folder)),
        )
    values = read_json(path, "The description of an export")
    check_format(values["format"] if isinstance(values, dict) and "format" in values else None, [1, 2], str(path))
    try:
        return Description.model_validate(values)
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. {AGAIN}") from None


def find_exports(run: Run, to: str) -> dict[Path, Description]:
    """Return the folders and descriptions of a run's exports of a format, newest first.

    An export with a damaged description is left out, so that the others stay usable.
    """
    files = [path for path in (run.folder / EXPORTS).glob(f"*/{DESCRIPTION}") if not path.parent.name.startswith(".")]
    exports: dict[Path, Description] = {}
    for path in sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        with contextlib.suppress(DataError):
            description = read_description(path.parent)
            if description.to == to:
                exports[path.parent] = description
    return exports


def is_of_weights(description: Description, run: Run, epoch: WeightsId) -> bool:
    """Return whether an export was made from the current weights of a run for an epoch.

    Weights can be restored from a backup or trained again under the same name, so their SHA-256 are compared. An export
    of format 1 has no SHA-256, so its weights are unknown.
    """
    return description.epoch == epoch and description.weights == read_checksum(run.weights_path(epoch))


def choose_export(run: str | None, epoch: str | None, export: str) -> tuple[Run, ExportedModel]:
    """Return a run and its export to CTranslate2 or Bergamot.

    Args:
        run: name of the run; None for the run that trained last.
        epoch: weights that the export must have; None for any weights.
        export: name of an export of the run, or a folder, whose path contains a separator.

    Raises:
        NmtError: if the export has different weights or a format that nmt does not translate with, or if both a run and
            a folder are given.
        NotFoundError: if the run or the export does not exist.
        DataError: if the export is damaged.
    """
    if Path(export).name != export:
        if run is not None:
            raise NmtError(
                Argument("export", export),
                " is a folder with a complete model; received ",
                Argument("run", run),
                " too. Give only one of the two.",
            )
        exported = open_export(Path(export))
        selected = exported.run
    else:
        selected = find_run(run)
        folder = selected.folder / EXPORTS
        if not (folder / export / DESCRIPTION).is_file():
            names = sorted(path.parent.name for path in folder.glob(f"[!.]*/{DESCRIPTION}"))
            exports = f"Its exports: {', '.join(names)}" if names else f"Exports are in {folder}"
            raise NotFoundError(
                f"Run {selected.name!r} has no export {export!r}. {exports}. Make one with: ",
                Command(
                    "export",
                    Argument("run", selected.name),
                    Argument("to", CTRANSLATE2),
                    _name_argument(selected, export),
                ),
            )
        exported = open_export(folder / export)
    description = exported.description
    if description.to not in PROGRAMS:
        raise NmtError(
            f"{exported.folder} is an export to {description.to}, which nmt does not translate with. Export the run "
            "with ",
            Command("export", Argument("to", CTRANSLATE2)),
            ".",
        )
    export_again = Command(
        "export",
        Argument("run", description.run),
        Argument("epoch", epoch),
        Argument("to", description.to),
        Argument("overwrite", True),
    )
    if (
        epoch is not None
        and str(description.epoch) != epoch
        and (selected == exported.run or choose_epoch(selected, epoch) != description.epoch)
    ):
        raise NmtError(
            f"{exported.folder} has the weights of epoch {description.epoch}; received ",
            Argument("epoch", epoch),
            ". Leave it out, or export those weights: ",
            export_again,
        )
    if (
        epoch is not None
        and selected != exported.run
        and description.weights
        and not is_of_weights(description, selected, description.epoch)
    ):
        raise NmtError(
            f"{exported.folder} was made from weights that differ from the current weights of run {selected.name!r} "
            f"for epoch {description.epoch}: their SHA-256 differ. Leave ",
            Argument("epoch"),
            " out to translate with the weights of the export, or export the run again: ",
            export_again,
        )
    return selected, exported
