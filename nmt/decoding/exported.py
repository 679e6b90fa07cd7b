"""Exported models on disk: their description, and the search for them. Loads no TensorFlow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from nmt.config.record import Record
from nmt.errors import DataError, NotFoundError
from nmt.runs.directory import Run
from nmt.storage.format_number import check_format
from nmt.storage.json_file import RESTORE, read_json

EXPORTS = "exports"
"""Folder in a run directory that its exports are written to."""
DESCRIPTION = "export.json"
RUN_FILES = "run"
"""Folder in an export with the configuration, the manifest and the tokenizers of the run."""


class Description(Record):
    """Content of ``export.json``."""

    format: Literal[1] = 1
    """Format number."""
    to: str
    """Export format, as in ``nmt export --to``."""
    run: str
    """Name of the run."""
    epoch: int | str
    """Weights: an epoch number, "average", or such as "step-1500"."""
    quantization: str
    """Number format of the weights."""
    positions: int | None
    """Most tokens of a source or target sentence that the export can read, bos and eos included; None: no limit."""
    nmt: str
    """Version of nmt that wrote the export."""
    files: dict[str, int]
    """Size in bytes of each other file, by its path in the folder."""


@dataclass(frozen=True)
class ExportedModel:
    """An export, whole."""

    folder: Path
    description: Description

    @property
    def run(self) -> Run:
        """Configuration, manifest and tokenizers of the run, as a run directory without weights."""
        return Run(self.folder / RUN_FILES)


def open_export(folder: Path) -> ExportedModel:
    """Return the export in a folder.

    Raises:
        NotFoundError: if the folder holds no export.
        DataError: if a file is missing or has another size than when it was written, or the format is unknown.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise NotFoundError(
            f"{folder} holds no exported model: {DESCRIPTION} is missing. Make one with: nmt export --run RUN --to "
            f"ctranslate2 --output {folder}"
        )
    values = read_json(path, "The description of an export")
    check_format(values["format"] if isinstance(values, dict) and "format" in values else None, [1], str(path))
    try:
        description = Description.model_validate(values)
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. {RESTORE}") from None
    for name, size in description.files.items():
        file = folder / name
        if not file.is_file():
            raise DataError(f"{file} is missing. The export was written with it. Export the run again.")
        if file.stat().st_size != size:
            raise DataError(
                f"{file} has {file.stat().st_size:,} bytes. It had {size:,} when it was written. Export the run again."
            )
    return ExportedModel(folder, description)


def find_export(run: Run, to: str, name: str | None = None) -> ExportedModel:
    """Return the export of a run.

    Args:
        run: the run.
        to: export format.
        name: folder name of the export; None: the export of that format that was written last.

    Raises:
        NotFoundError: if there is none.
        DataError: if it is damaged.
    """
    folder = run.folder / EXPORTS
    found = [path.parent for path in folder.glob(f"*/{DESCRIPTION}") if not path.parent.name.startswith(".")]
    if name is not None:
        found = [path for path in found if path.name == name]
    newest_first = sorted(found, key=lambda path: (path / DESCRIPTION).stat().st_mtime_ns, reverse=True)
    for path in newest_first:
        exported = open_export(path)
        if exported.description.to == to:
            return exported
    raise NotFoundError(
        f"Run {run.name!r} has no export to {to}{f' of the name {name!r}' if name else ''}. Exports are in "
        f"{folder}. Make one with: nmt export --run {run.name} --to {to}"
    )
