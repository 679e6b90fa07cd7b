"""Export of a run: its steps, and the model card.

The export is written into a temporary folder, compared with nmt's own translations, and then renamed.
"""

import importlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from nmt.config.schema import DecodingConfig
from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import SIDES
from nmt.decoding.exported import BERGAMOT, CTRANSLATE2, DESCRIPTION, EXPORTS, RUN_FILES, Description
from nmt.errors import ConflictError, NmtError, counted
from nmt.evaluation.scoring import Scores
from nmt.export.base import Exporter, TrainedModel
from nmt.export.verification import (
    MOST_BEAM_SENTENCES,
    OURS,
    Comparison,
    Tolerance,
    compare,
    score_parts,
    sentences_of,
    translate_ourselves,
    with_tags,
)
from nmt.extras import require
from nmt.message import Argument
from nmt.runs.directory import Run
from nmt.runs.origin import read_origin
from nmt.runs.weights import count_weights
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import did_you_mean
from nmt.version import version

EXPORTERS: dict[str, tuple[str, str]] = {
    "ctranslate2": ("nmt.export.ctranslate2", "CTranslate2Exporter"),
    "argos": ("nmt.export.argos", "ArgosExporter"),
    "saved-model": ("nmt.export.saved_model", "SavedModelExporter"),
    "huggingface": ("nmt.export.huggingface", "HuggingFaceExporter"),
    "bergamot": ("nmt.export.bergamot", "BergamotExporter"),
}
"""Module and class of each format. A module is imported only when its format is used."""


class Export(NamedTuple):
    """A finished export."""

    folder: Path
    """Folder of the export."""
    comparison: Comparison
    """Comparison with nmt's own translations of the validation split."""
    bytes: int
    """Size of all files together."""


def find_exporter(
    to: str, quantization: str | None = None, *, with_map: bool = False, with_demo: bool = False
) -> Exporter:
    """Return the exporter of a format.

    Args:
        to: name of the format.
        quantization: number format of the matrices; None: the format's default.
        with_map: whether to write a vocabulary map, which only ctranslate2 has.
        with_demo: whether to write a page that translates in the browser, which only bergamot has.

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
    if with_map and to != CTRANSLATE2:
        raise NmtError(
            Argument("vocabulary_map"), " is for ctranslate2; received it with ", Argument("to", to), ". Leave it out."
        )
    if with_demo and to != BERGAMOT:
        raise NmtError(
            Argument("demo", True), " is for bergamot; received it with ", Argument("to", to), ". Leave it out."
        )
    return kind(quantization, with_map=with_map, with_demo=with_demo)


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
        run: the run. Its dataset must be in ``data/`` for the comparison.
        exporter: the format, from ``find_exporter``.
        epoch: weights, as in ``nmt.runs.weights.choose_epoch``.
        output: folder to write. Default: a folder in ``exports/`` of the run, named by format and number format.
        overwrite: whether to replace an existing export.
        licence: licence of the model, for its card.
        languages: codes of source and target, or of the one of several language pairs that the export is for; None:
            those in the manifest of the dataset.
        tolerance: accepted differences from nmt's translations.
        report: function that is called with the name of each step.

    Raises:
        NmtError: for a model that the format cannot hold.
        NotFoundError: if the weights or the dataset are missing.
        ConflictError: if the folder exists, or another process writes it meanwhile.
        DataError: if the export translates differently. Nothing is written then.
    """
    model = TrainedModel.of(run, epoch, languages)
    for tags in map(model.tags, model.directions):
        if tags and exporter.written_tags(model, tags) is None:
            raise NmtError(
                f"Run {run.name!r} reads {' '.join(model.source.pieces(tags))} before each sentence, and "
                f"{exporter.consumer} does not put it there. Export with ",
                Argument("to", "ctranslate2"),
                " or saved-model.",
            )
    exporter.check(model)
    numbers = f"-{exporter.quantization}" if len(exporter.quantizations) > 1 else ""
    folder = output or run.folder / EXPORTS / f"{exporter.name}{numbers}{'-map' * exporter.with_map}"
    if folder.exists() and not overwrite:
        raise ConflictError(
            f"{folder} exists already. An export is not overwritten unless you ask for it. Give another ",
            Argument("output"),
            ", or ",
            Argument("overwrite", True),
            ".",
        )
    if folder.exists() and not (folder / DESCRIPTION).is_file():
        raise ConflictError(
            f"{folder} exists and is not an export. ",
            Argument("overwrite", True),
            " replaces exports alone. Give another ",
            Argument("output"),
            ".",
        )
    dataset = None
    if not model.manifest.is_imported:
        dataset = dataset_of_run(run.name, model.manifest, "An export is compared on its validation sentences.")
    most = exporter.positions(model)
    parts = sentences_of(dataset, "validation", model, most)
    with atomic_folder(folder, replace=overwrite) as temporary:
        report(f"translating {counted(sum(len(part.sources) for part in parts), 'validation sentence')} with nmt")
        ours = translate_ourselves(exporter, model, parts)
        report(f"writing the model for {exporter.consumer}")
        exporter.write(model, temporary)
        report(f"translating with {exporter.consumer}")
        theirs = exporter.translate(model, temporary, *with_tags(parts))
        tolerance = tolerance or Tolerance()
        comparison = compare(exporter, parts, ours, theirs, tolerance)
        parts = [part.chosen(range(len(part.sources))[: MOST_BEAM_SENTENCES // len(parts)]) for part in parts]
        beam_search = exporter.translate_with_beams(model, temporary, *with_tags(parts))
        if beam_search:
            beams, theirs = beam_search
            ours = translate_ourselves(exporter, model, parts, beams)
            compare(exporter, parts, ours, theirs, tolerance)
        parts = sentences_of(dataset, "test", model, most)
        theirs = exporter.translate(model, temporary, *with_tags(parts))
        card = model_card(exporter, model, comparison, score_parts(parts, {exporter.consumer: theirs}), licence)
        (temporary / "README.md").write_text(card, encoding="utf-8")
        return Export(folder, comparison, _describe(exporter, model, temporary))


def _describe(exporter: Exporter, model: TrainedModel, folder: Path) -> int:
    """Add a description, and the run's configuration, manifest and tokenizers, to an export.

    Returns:
        Size of all files except the description, in bytes.
    """
    (folder / RUN_FILES).mkdir()
    optional_files = [file for file in (model.run.origin_path, model.run.confidence_path) if file.is_file()]
    for file in [model.run.config_path, *model.run.tokenizer_files, *optional_files]:
        shutil.copyfile(file, folder / RUN_FILES / file.name)
    write_json(folder / RUN_FILES / model.run.dataset_path.name, model.manifest.to_json())
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    description = Description(
        to=exporter.name,
        run=model.run.name,
        epoch=model.epoch,
        weights=model.checksum,
        quantization=exporter.quantization,
        positions=exporter.positions(model),
        nmt=version(),
        files={file.relative_to(folder).as_posix(): sha256(file) for file in files},
    )
    write_json(folder / DESCRIPTION, description.model_dump())
    return sum(file.stat().st_size for file in files)


def model_card(
    exporter: Exporter, model: TrainedModel, comparison: Comparison, test: dict[str, Scores], licence: str | None
) -> str:
    """Return a model card (Mitchell et al. 2019) in Markdown, with a YAML header for model hubs.

    Args:
        exporter: the export format.
        model: the exported model.
        comparison: comparison of the export with nmt's translations of the validation split.
        test: scores of the export on the test split, by language pair.
        licence: licence of the model; None: not stated.
    """
    settings, consumer = model.manifest.settings, exporter.consumer
    pairs = {" to ".join(direction.languages): model.tags(direction) for direction in model.directions}
    title = counted(len(pairs), "language pair") if len(pairs) > 1 else next(iter(pairs))
    sizes = {"source": model.source.size, "target": model.target.size}
    epoch = f"epoch {model.epoch}" if isinstance(model.epoch, int) else model.epoch
    most, origin = exporter.positions(model), read_origin(model.run.origin_path)
    licence = licence or (origin.licence if origin else None)
    codes = dict.fromkeys(code for direction in model.directions for code in direction.languages)
    known = [code for code in codes if code not in SIDES]
    header = {
        "tags": ["translation"],
        **({"language": known} if known else {}),
        "license": "other" if licence is None else licence,
        "pipeline_tag": "translation",
    }
    facts = {
        "languages": ", ".join(pairs),
        "architecture": model.config.model.description,
        "weights": f"{count_weights(model.run):,} ({epoch})",
        "vocabulary": f"{sizes['source']:,} source and {sizes['target']:,} target {model.source.unit}",
        "normalization of text": settings.normalization,
        "longest sentence": "no limit" if most is None else f"{most:,} tokens, bos and eos included",
        "licence": licence or "not stated",
    }
    files = [
        (file.name, f"{file.bytes:,}", file.role, f"`{file.sha256}`")
        for file in [model.manifest.corpus, *model.manifest.more_files]
    ]
    tags = {pair: exporter.written_tags(model, before) or "" for pair, before in pairs.items()}
    scores, signatures = [], dict[str, None]()
    for split, by_pair, systems in (("validation", comparison.scores, [OURS, consumer]), ("test", test, [consumer])):
        for pair, pair_scores in by_pair.items():
            name = f"{split}, {pair}" if len(pairs) > 1 else split
            scores += [_score_row(name, pair_scores, system) for system in systems]
            signatures |= dict.fromkeys(f"- {metric}: `{text}`" for metric, text in pair_scores.signatures.items())
    equal = comparison.sentences - comparison.different
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---",
        f"# {title}: run {model.run.name}",
        f"A model trained with nmt {version()} and exported for {consumer} in {exporter.quantization}.",
        "## Model",
        _table("property value", facts.items()),
        *([f"Imported from {origin.source}, {origin.kind}, with these files:"] if origin else []),
        *([_table("file SHA-256", origin.files.items())] if origin else []),
        "## Training data",
        f"{model.manifest.splits['train'].pairs:,} sentence pairs of dataset {settings.dataset}, from these files:",
        _table("file bytes for SHA-256", files),
        "## Scores",
        "All translations come from greedy search and are detokenized. sacrebleu computes the scores.",
        _table("split sentences translated_by BLEU chrF", scores),
        "\n".join(signatures),
        f"{consumer} translates {equal:,} of {counted(comparison.sentences, 'validation sentence')} to the same text "
        "as nmt in float32.",
        "## Use",
        *(["Each sentence needs the tag of its target language before it:"] if any(tags.values()) else []),
        *([_table("languages tag", ((pair, f"`{tag}`") for pair, tag in tags.items()))] if any(tags.values()) else []),
        exporter.usage(model),
        settings_of(exporter, model.config.decoding),
    ]
    return "\n\n".join(parts) + "\n"


def settings_of(exporter: Exporter, decoding: DecodingConfig) -> str:
    """Return a paragraph with the keys of section decoding that the export holds, and the keys that it lacks.

    The card has a table of its own for tags.
    """
    names = exporter.exported_keys(decoding)
    exported = [f"{key} as `{name}`" for key, name in names.items()]
    missing = [f"{key} {value}" for key, value in decoding.model_dump(exclude={"tag"}).items() if key not in names]
    return (
        f"Decoding settings of the run in {exporter.settings}: {', '.join(exported) or 'none'}. {exporter.consumer} "
        f"does not receive {', '.join(missing)}."
    )


def _score_row(split: str, scores: Scores, system: str) -> list[str]:
    """Return the row of a system in the table of scores: split, number of sentences, system, BLEU, chrF."""
    metrics = scores.systems[system]
    return [split, f"{scores.sentences:,}", system, *(f"{metrics[name].score:.1f}" for name in ("BLEU", "chrF2"))]


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown. Spaces separate the names of its columns in ``head``; "_" stands for a space."""
    columns = [name.replace("_", " ") for name in head.split()]
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (columns, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])
