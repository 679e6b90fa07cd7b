"""Import of a model: read, written as a run, compared with the original, then given its name."""

import datetime
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST_FORMAT, SIDES, SPLITS, Manifest, SourceFile, SplitCounts
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.errors import DataError, NotFoundError
from nmt.importing.marian_npz import read_npz
from nmt.importing.original import our_weights
from nmt.importing.proof import compare, expected_of, sentences_to_compare
from nmt.importing.transformers_folder import read_folder
from nmt.message import Argument
from nmt.runs.directory import RUNS, Run
from nmt.runs.origin import Origin, read_origin
from nmt.runs.weights import WeightsFile, save_weights
from nmt.storage.atomic import atomic_folder, refuse_existing, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import check_name

TOLERANCE = 1e-3
"""Largest difference of a logit."""


def import_model(
    folder: Path, name: str, *, licence: str | None = None, languages: tuple[str, str] | None = None,
    sentences: Sequence[str] = (), expected: Path | None = None, most_different: int = 0,
) -> tuple[Run, Origin]:  # fmt: skip
    """Make a model of transformers or Marian the run ``checkpoints/NAME``.

    A licence not given is that of README.md in the folder. ``sentences`` of the source language, or random pieces, are
    compared; ``expected`` is import.json of the same model, imported where transformers is installed.

    Raises:
        ConflictError: if the run exists.
        NotFoundError: if the folder or a file is missing.
        DataError: for a model that is damaged, of another kind, or not equal to the original. Nothing is written then.
    """
    run = Run(RUNS / check_name(name, "run"))
    refuse_existing(run.folder)
    is_transformers = (folder / "config.json").is_file()
    if not is_transformers and not any(folder.glob("*.npz")):
        raise NotFoundError(f"{folder} has neither config.json, of a model of transformers, nor a *.npz, of Marian.")
    original = read_folder(folder) if is_transformers else read_npz(folder)
    weights, file = our_weights(original), original.files[0]
    source, target = original.source.tokenizer("source.spm"), original.target.tokenizer("target.spm")
    files = {path.name: sha256(path) for path in [*original.files, *(folder / f"{side}.spm" for side in SIDES)]}
    known = read_origin(expected) if expected else None
    if expected and (known is None or not known.expected):
        raise DataError(f"{expected} is not the import.json of a model that was compared. Give that.")
    first, second = languages or (None, None)
    data = DataConfig(dataset=name, tokenizer="subword", normalization="none", source_language=first,
                      target_language=second, joint_vocabulary=original.config.shares_embeddings)  # fmt: skip
    decoding = original.decoding.model_copy(update={"ordinary_text": "none"})
    config = Config(data=data, model=original.config, decoding=decoding)
    with atomic_folder(run.folder) as temporary:
        writing = Run(temporary)
        source.save(writing.tokenizer_path("source"))
        target.save(writing.tokenizer_path("target"))
        save_weights(writing, weights, 1)
        writing.write_config(config)
        none = {"source": 0, "target": 0}
        counts = SplitCounts(pairs=0, tokens=none, longest=none, unknown=none, sources_in_training=0)
        manifest = Manifest(
            format=MANIFEST_FORMAT, prepared_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            settings=data,
            corpus=SourceFile(name=file.name, bytes=file.stat().st_size, sha256=files[file.name]), read=0, dropped={},
            vocabulary={"source": source.size, "target": target.size}, splits=dict.fromkeys(SPLITS, counts),
            unit=source.unit, files={path.name: sha256(path) for path in writing.tokenizer_files},
        )  # fmt: skip
        write_json(writing.dataset_path, manifest.to_json())
        engine = TensorFlowEngine.load(config, source.size, target.size, WeightsFile(writing, 1))
        found, logits, by = known.expected if known else [], None, str(expected)
        if not known and is_transformers and all(map(importlib.util.find_spec, ("torch", "transformers"))):
            texts = sentences_to_compare(source, sentences)
            (found, logits), by = expected_of(folder, original, engine, source, texts, temporary), "transformers"
        origin = Origin(
            source=folder.resolve().name, kind=original.kind, licence=licence or _licence(folder), files=files,
            compared_with=by if found else None, different=compare(engine, source, found) if found else {},
            logits=logits, expected=found,
        )  # fmt: skip
        if max(origin.different.values(), default=0) > most_different or not (logits or 0) < TOLERANCE:
            raise DataError(
                f"The import is not equal to the original: {origin.comparison}. At most {most_different:,} may, and "
                f"logits by {TOLERANCE:g}. Nothing was written. Translations that only rounding makes different are "
                "accepted with ",
                Argument("allow_different", "N"),
                ".",
            )
        write_json(writing.origin_path, origin.model_dump())
    return run, origin


def _licence(folder: Path) -> str | None:
    """Return the licence in the header of a model card, as hubs have it."""
    card = folder / "README.md"
    text = card.read_text("utf-8", "replace") if card.is_file() else ""
    found = re.match(r"---\n(?:(?!---).*\n)*?license: *['\"]?([\w.+-]+)", text)
    return found and found[1]
