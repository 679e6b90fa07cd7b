"""Export of a run: written aside, compared with our own translations, described, then put in place."""

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import MANIFEST_FORMAT
from nmt.decoding.exported import DESCRIPTION, EXPORTS, RUN_FILES, Description
from nmt.errors import ConflictError, NmtError
from nmt.evaluation.scoring import score_systems
from nmt.export.base import Exporter, TrainedModel
from nmt.export.model_card import model_card
from nmt.export.verification import Comparison, Tolerance, compare, sentences_of, translate_ourselves
from nmt.extras import require
from nmt.runs.directory import Run
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import did_you_mean
from nmt.version import version

EXPORTERS: dict[str, tuple[str, str]] = {
    "ctranslate2": ("nmt.export.ctranslate2", "CTranslate2Exporter"),
    "argos": ("nmt.export.argos", "ArgosExporter"),
    "saved-model": ("nmt.export.saved_model", "SavedModelExporter"),
    "huggingface": ("nmt.export.huggingface", "HuggingFaceExporter"),
}
"""Module and class of each format; a module is imported when its format is asked for."""
CARD = "README.md"


class Export(NamedTuple):
    """A finished export."""

    folder: Path
    """Folder of the export."""
    comparison: Comparison
    """Comparison with our own translations."""
    bytes: int
    """Size of all files."""


def find_exporter(to: str, quantization: str | None = None, *, with_map: bool = False) -> Exporter:
    """Return the exporter of a format.

    Args:
        to: name of the format.
        quantization: number format of the matrices; None: the format's default.
        with_map: whether to write a vocabulary map, which ctranslate2 has.

    Raises:
        NmtError: for an unknown format or number format.
        NotFoundError: if the format's consumer is not installed.
    """
    if to not in EXPORTERS:
        raise NmtError(f"There is no export format {to!r}{did_you_mean(to, EXPORTERS)}. Known: {', '.join(EXPORTERS)}.")
    module, name = EXPORTERS[to]
    kind: type[Exporter] = getattr(importlib.import_module(module), name)
    if kind.extra:
        require(kind.extra, *kind.modules)
    if quantization not in (None, *kind.quantizations):
        raise NmtError(
            f"There is no number format {quantization!r}{did_you_mean(str(quantization), kind.quantizations)} in an "
            f"export to {to}. Known: {', '.join(kind.quantizations)}."
        )
    if with_map and to != "ctranslate2":
        raise NmtError(f"--vocabulary-map is for ctranslate2; received it with --to {to}. Leave it out.")
    exporter = kind(quantization)
    exporter.with_map = with_map
    return exporter


def default_folder(run: Run, exporter: Exporter) -> Path:
    """Return the folder that an export is written to unless another is given."""
    numbers = f"-{exporter.quantization}" if len(exporter.quantizations) > 1 else ""
    return run.folder / EXPORTS / f"{exporter.name}{numbers}{'-map' * exporter.with_map}"


def export_run(
    run: Run,
    exporter: Exporter,
    *,
    epoch: str | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    licence: str | None = None,
    languages: tuple[str, str] | None = None,
    tolerance: Tolerance | None = None,
    report: Callable[[str], None] = lambda step: None,
) -> Export:
    """Export a run.

    Args:
        run: the run. Its dataset must be in ``data/``, for the comparison.
        exporter: the format, from ``find_exporter``.
        epoch: weights, as in ``nmt.runs.weights.choose_epoch``.
        output: folder to write. Default: ``exports/<format>`` in the run directory.
        overwrite: replace an existing export.
        licence: licence of the model, for its card.
        languages: codes of source and target; None: those that the dataset was prepared with.
        tolerance: differences that are accepted.
        report: called with each step.

    Raises:
        NmtError: for a model that the format cannot carry.
        NotFoundError: if weights or dataset are missing.
        ConflictError: if the folder exists, or is written meanwhile.
        DataError: if the export translates differently. Nothing is written then.
    """
    model = TrainedModel.of(run, epoch, languages)
    exporter.check(model)
    folder = output or default_folder(run, exporter)
    _check_folder(folder, overwrite=overwrite)
    dataset = dataset_of_run(run.name, model.manifest, "An export is compared on its validation sentences.")
    most = exporter.positions(model)
    sources, references = sentences_of(dataset, "validation", model, most)
    with atomic_folder(folder, replace=overwrite) as temporary:
        report(f"translating {len(sources):,} validation sentences with nmt")
        ours = translate_ourselves(model, sources)
        report(f"writing the model for {exporter.consumer}")
        exporter.write(model, temporary)
        report(f"translating with {exporter.consumer}")
        theirs = exporter.translate(model, temporary, sources)
        comparison = compare(exporter, sources, references, ours, theirs, tolerance or Tolerance())
        sources, references = sentences_of(dataset, "test", model, most)
        theirs = exporter.translate(model, temporary, sources)
        scores = score_systems({exporter.consumer: theirs}, [references], ["bleu", "chrf"])
        card = model_card(exporter, model, comparison, scores, licence)
        (temporary / CARD).write_text(card, encoding="utf-8")
        _copy_run_files(model, temporary / RUN_FILES)
        size = _describe(exporter, model, temporary)
    return Export(folder, comparison, size)


def _check_folder(folder: Path, *, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not overwrite:
        raise ConflictError(
            f"{folder} exists already. An export is not overwritten unless you ask for it. Give another --output, or "
            "--overwrite."
        )
    if not (folder / DESCRIPTION).is_file():
        raise ConflictError(
            f"{folder} exists and is not an export. --overwrite replaces exports alone. Give another --output."
        )


def _copy_run_files(model: TrainedModel, folder: Path) -> None:
    """Copy what belongs to the model besides its weights: configuration, manifest, tokenizers."""
    folder.mkdir()
    for file in [model.run.config_path, *model.run.tokenizer_files]:
        shutil.copyfile(file, folder / file.name)
    manifest = model.manifest.model_copy(update={"format": MANIFEST_FORMAT})
    write_json(folder / model.run.dataset_path.name, manifest.model_dump())


def _describe(exporter: Exporter, model: TrainedModel, folder: Path) -> int:
    """Write the description of an export, and return the size of its files in bytes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    description = Description(
        to=exporter.name,
        run=model.run.name,
        epoch=model.epoch,
        quantization=exporter.quantization,
        positions=exporter.positions(model),
        nmt=version(),
        files={file.relative_to(folder).as_posix(): sha256(file) for file in files},
    )
    write_json(folder / DESCRIPTION, description.model_dump())
    return sum(file.stat().st_size for file in files)
