"""Import of a transformers or Marian model as a run.

The model is read, written as a run into a temporary folder, and compared with the original. Then the folder gets the
name of the run.
"""

import datetime
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.directions import tags_by_code
from nmt.data.manifest import MANIFEST_FORMAT, SPLITS, Direction, Manifest, SourceFile, SplitCounts
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.errors import DataError, NotFoundError
from nmt.importing.marian_npz import read_npz
from nmt.importing.original import Original, our_weights
from nmt.importing.proof import compare, original_results, sentences_to_compare
from nmt.importing.transformers_folder import read_folder
from nmt.message import Argument
from nmt.runs.directory import RUNS, Run
from nmt.runs.origin import Expected, Origin, read_origin
from nmt.runs.weights import WeightsFile, save_weights
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import atomic_folder, refuse_existing, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import check_name
from nmt.tokenizers.base import Tokenizer

TOLERANCE = 1e-3
"""Largest accepted difference of a logit."""


class ConvertedModel(NamedTuple):
    """A model of another program, with everything that a run needs of it."""

    original: Original
    """The model as its files describe it."""
    weights: Arrays
    """Its weights by nmt's names."""
    source: Tokenizer
    """Tokenizer of the source side."""
    target: Tokenizer
    """Tokenizer of the target side."""
    checksums: dict[str, str]
    """SHA-256 of its files, by their names."""


def convert_model(folder: Path) -> ConvertedModel:
    """Return the transformers or Marian model in a folder.

    Raises:
        NotFoundError: if the folder or a file is missing.
        DataError: for a model that is damaged, or of another kind.
    """
    is_transformers = (folder / "config.json").is_file()
    if not is_transformers and not any(folder.glob("*.npz")):
        raise NotFoundError(
            f"{folder} has neither config.json, as a transformers model has, nor a *.npz file, as a Marian model has. "
            "Give the folder of a model."
        )
    original = read_folder(folder) if is_transformers else read_npz(folder)
    weights = our_weights(original)
    source, target = (side.tokenizer() for side in (original.source, original.target))
    checksums = {path.name: sha256(path) for path in original.files}
    return ConvertedModel(original, weights, source, target, checksums)


def fill_run(run: Run, model: ConvertedModel, dataset: str, languages: tuple[str | None, str | None]) -> Config:
    """Write the files of a run for a model, and return its configuration.

    Args:
        run: directory of the run, which exists.
        model: the model.
        dataset: name of the dataset that the configuration and the manifest have.
        languages: codes of source and target; None if one is unknown. Of a model with several target languages, the
            target is the one that the run translates into by default.
    """
    original, source, target = model.original, model.source, model.target
    first, second = languages
    data = DataConfig(dataset=dataset, tokenizer="subword", normalization="none", source_language=first,
                      target_language=second, joint_vocabulary=original.config.shares_embeddings)  # fmt: skip
    tags = tags_by_code(source.tags)
    decoding = original.decoding.model_copy(
        update={
            "ordinary_text": "none",
            "max_length_ratio": original.decoding.length_ratio,
            "tag": tags.get(second or ""),
        }
    )
    directions = [Direction(source=first or "source", target=code, tag=tag) for code, tag in tags.items()]
    config = Config(data=data, model=original.config, decoding=decoding)
    source.save(run.tokenizer_path("source"))
    target.save(run.tokenizer_path("target"))
    save_weights(run, model.weights, 1)
    run.write_config(config)
    manifest = _manifest(run, data, model).model_copy(update={"directions": directions})
    write_json(run.dataset_path, manifest.to_json())
    return config


def import_model(
    folder: Path, name: str, *, licence: str | None = None, languages: tuple[str, str] | None = None,
    sentences: Sequence[str] = (), expected: Path | None = None, most_different: int = 0,
) -> tuple[Run, Origin]:  # fmt: skip
    """Import a transformers or Marian model as the run ``checkpoints/NAME``.

    Args:
        folder: folder of the model.
        name: name of the run.
        licence: licence of the model; None: the licence in the folder's README.md.
        languages: codes of source and target. Of a model with several target languages, the target is the one that it
            translates into by default.
        sentences: source sentences on which run and original are compared; without any, random pieces.
        expected: import.json of the same model, from an import where transformers is installed.
        most_different: most results that may differ from the original's, for each kind of ``Origin.different``.

    Raises:
        ConflictError: if the run exists.
        NotFoundError: if the folder or a file is missing.
        DataError: for a model that is damaged, of another kind, or not equal to the original. Nothing is written then.
    """
    run = Run(RUNS / check_name(name, "run"))
    refuse_existing(run.folder)
    model = convert_model(folder)
    original, source, target = model.original, model.source, model.target
    stored = _compared_origin(expected) if expected else None
    with atomic_folder(run.folder) as temporary:
        writing = Run(temporary)
        config = fill_run(writing, model, name, languages or (None, None))
        engine = TensorFlowEngine.load(config, source.size, target.size, WeightsFile(writing, 1))
        results, logits, program = list[Expected](), None, None
        if stored:
            results, program = stored.expected, str(expected)
        elif original.kind == "transformers" and all(map(importlib.util.find_spec, ("torch", "transformers"))):
            texts = sentences_to_compare(source, sentences)
            results, logits = original_results(folder, original, engine, source, texts, temporary)
            program = "transformers" if results else None
        origin = Origin(
            source=folder.resolve().name, kind=original.kind, licence=licence or _licence(folder),
            files=model.checksums,
            compared_with=program, different=compare(engine, source, results) if results else {},
            logits=logits, expected=results,
        )  # fmt: skip
        logits_differ = logits is not None and not logits < TOLERANCE  # NaN differs
        if logits_differ or max(origin.different.values(), default=0) > most_different:
            raise DataError(
                f"The import is not equal to the original: {origin.comparison}. At most {most_different:,} may differ, "
                f"and logits by less than {TOLERANCE:g}. Nothing was written. Translations that only rounding makes "
                "different are accepted with ",
                Argument("allow_different", "N"),
                ".",
            )
        write_json(writing.origin_path, origin.model_dump())
    return run, origin


def _compared_origin(path: Path) -> Origin:
    """Return the origin in an import.json; raises DataError if that import was not compared with the original."""
    origin = read_origin(path)
    if origin is None or not origin.expected:
        raise DataError(
            f"{path} is not the import.json of a model that was compared with the original. Give the import.json of "
            "such a model."
        )
    return origin


def _manifest(run: Run, data: DataConfig, model: ConvertedModel) -> Manifest:
    """Return the manifest of a dataset without pairs, which an imported run has in place of its training data."""
    none = {"source": 0, "target": 0}
    counts = SplitCounts(pairs=0, tokens=none, longest=none, unknown=none, sources_in_training=0)
    file = model.original.files[0]
    corpus = SourceFile(name=file.name, bytes=file.stat().st_size, sha256=model.checksums[file.name])
    return Manifest(
        format=MANIFEST_FORMAT, prepared_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        settings=data, corpus=corpus, read=0, dropped={},
        vocabulary={"source": model.source.size, "target": model.target.size}, splits=dict.fromkeys(SPLITS, counts),
        unit=model.source.unit, files={path.name: sha256(path) for path in run.tokenizer_files},
    )  # fmt: skip


def _licence(folder: Path) -> str | None:
    """Return the licence in the header of a model card, as model hubs read it; None without one."""
    card = folder / "README.md"
    text = card.read_text("utf-8", "replace") if card.is_file() else ""
    match = re.match(r"---\n(?:(?!---).*\n)*?license: *['\"]?([\w.+-]+)", text)
    return match and match[1]
