"""Export format ``saved-model``: a TensorFlow SavedModel, for TensorFlow and TensorFlow Serving without nmt.

The folder holds version 1 of the model as TensorFlow Serving expects it, and the tokenizers of the run:

    1/saved_model.pb, 1/variables/   signatures and weights
    source.json, target.json         tokenizers; those of subwords with a sentencepiece model beside them
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.decoding.text_ids import encode_sources
from nmt.errors import DataError
from nmt.export.base import Exporter, TrainedModel
from nmt.export.saved_model_usage import usage
from nmt.models.registry import count_weights
from nmt.runs.weights import WeightsFile
from nmt.tokenizers.base import PAD
from nmt.tokenizers.word import WordTokenizer

VERSION = "1"
"""Folder of the model, which TensorFlow Serving takes for its version."""
DEFAULT_BEAMS = 5
"""K of the signatures with beam search, for a run that is configured for greedy search."""
TEXT_NORMALIZATIONS = ("none", "ascii-words")
"""Normalizations that map single code points; NFKC composes and reorders sequences of them."""

# Translates batches with TensorFlow alone, without the packages of this process: JSON in, JSON out.
_TRANSLATE = """
import json, sys
import tensorflow as tf

folder, signature, batches = json.load(sys.stdin)
translate = tf.saved_model.load(folder).signatures[signature]
results = []
for batch in batches:
    if signature == "translate":
        texts = translate(source_texts=tf.constant(batch, tf.string))["target_texts"]
        results.append([text.decode("utf-8") for text in texts.numpy()])
    else:
        results.append(translate(source_ids=tf.constant(batch, tf.int32))["target_ids"].numpy().tolist())
if "nmt" in sys.modules:
    sys.exit("nmt was imported.")
json.dump(results, sys.stdout)
"""


class SavedModelExporter(Exporter):
    """SavedModel with greedy and beam search, from ids to ids and where possible from text to text."""

    name: ClassVar[str] = "saved-model"
    consumer: ClassVar[str] = "TensorFlow"
    modules: ClassVar[tuple[str, ...]] = ("tensorflow",)

    def check(self, model: TrainedModel) -> None:
        """Accept every model: a traced function holds any architecture, and ids stand for any tokenizer."""

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the SavedModel and the tokenizers.

        Raises:
            DataError: if the weights are damaged.
        """
        from nmt.export.saved_model_graph import (  # noqa: PLC0415 - loads TensorFlow
            TranslationModule,
            write_saved_model,
        )
        from nmt.models.build import build_model  # noqa: PLC0415 - loads TensorFlow

        weights = WeightsFile(model.run, model.epoch)
        sizes = {"source": model.source.size, "target": model.target.size}
        weights.check_size(count_weights(model.config.model, sizes))
        network = build_model(model.config.model, model.source.size, model.target.size, trained=True)
        weights.load(network)
        module = TranslationModule(network, model.config, beams_of(model.config), model.source.size, text_of(model))
        write_saved_model(module, folder / VERSION)
        for side, tokenizer in (("source", model.source), ("target", model.target)):
            tokenizer.save(folder / f"{side}.json")

    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Return greedy translations, by TensorFlow in another process that does not import nmt.

        Raises:
            DataError: for a sentence longer than the model reads, and if TensorFlow cannot use the files.
        """
        encoded = encode_sources(model.source, model.config, texts)
        as_text = text_of(model) is not None
        batches = length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size)
        inputs = [[texts[i] for i in batch] if as_text else _padded([encoded[i] for i in batch]) for batch in batches]
        results = _run(folder / VERSION, "translate" if as_text else "greedy", inputs)
        translations = [""] * len(texts)
        for batch, result in zip(batches, results, strict=True):
            for index, found in zip(batch.tolist(), result, strict=True):
                translations[index] = found if isinstance(found, str) else model.target.decode(found)
        return translations

    def usage(self, model: TrainedModel) -> str:
        """Return the signatures, a script with TensorFlow alone, and a request to TensorFlow Serving."""
        return usage(model, beams_of(model.config), text=text_of(model) is not None)


def beams_of(config: Config) -> int:
    """Return K, the number of beams of the signatures with beam search."""
    return config.decoding.beam_size if config.decoding.beam_size > 1 else DEFAULT_BEAMS


def text_of(model: TrainedModel) -> tuple[WordTokenizer, WordTokenizer] | None:
    """Return the tokenizers if TensorFlow's own operations can do what they do; None if not."""
    source, target = model.source, model.target
    if not (isinstance(source, WordTokenizer) and isinstance(target, WordTokenizer)):
        return None
    return (source, target) if source.normalization in TEXT_NORMALIZATIONS else None


def _padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(map(len, rows))
    return [row + [PAD] * (width - len(row)) for row in rows]


def _run(folder: Path, signature: str, batches: list[list[str]] | list[list[list[int]]]) -> list[list[str | list[int]]]:
    """Return the results of a signature for batches of inputs, from a process with TensorFlow alone."""
    if not batches:
        return []
    done = subprocess.run(
        [sys.executable, "-I", "-c", _TRANSLATE],
        input=json.dumps([str(folder.resolve()), signature, batches]),
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise DataError(
            f"TensorFlow could not translate with {folder}: {' '.join(done.stderr.split())[-300:]}. An export is "
            "complete when TensorFlow translates with it. Check memory and disk, and export again."
        )
    results: list[list[str | list[int]]] = json.loads(done.stdout)
    return results
