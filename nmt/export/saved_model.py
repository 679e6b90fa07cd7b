"""Export format ``saved-model``: a TensorFlow SavedModel, for TensorFlow and TensorFlow Serving without nmt.

The folder ``1`` holds version 1 of the model, as TensorFlow Serving expects. The model has search built in, so it
translates from ids to ids.

Shapes: B sentences, S source ids, T target ids, K beams.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from nmt.config.schema import Config, DecodingConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.search import Hypotheses
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.export import process
from nmt.export.base import Exporter, Tags, TrainedModel
from nmt.export.vocabulary import has_sentencepiece, write_sentencepiece
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weight_name
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK

VERSION = "1"
"""Name of the folder of the model. TensorFlow Serving reads it as the version of the model."""
DEFAULT_BEAMS = 5
"""Number of beams K of the signature ``beam`` if the run is configured for greedy search."""
Outputs = dict[str, tf.Tensor]
"""Outputs of a signature by name."""

# This code for ``nmt.export.process.run_python`` translates batches with TensorFlow alone, without nmt and PyTorch.
_TRANSLATE = """
import json, sys
import tensorflow as tf

folder, signature, batches = json.load(sys.stdin)
translate = tf.saved_model.load(folder).signatures[signature]
padded = [tf.ragged.constant(batch, tf.int32, ragged_rank=1).to_tensor() for batch in batches]
try:
    results = [translate(source_ids=ids)["target_ids"].numpy().tolist() for ids in padded]
except tf.errors.OpError as error:  # the last line of the message only names a node
    sys.exit(" ".join(error.message.split()))
if {"nmt", "torch"} & sys.modules.keys():
    sys.exit("nmt or torch was imported.")
with open(sys.argv[1], "w") as file:
    json.dump(results, file)
"""
_SCRIPT = """```python
import sys
import sentencepiece, tensorflow as tf

source, target = (sentencepiece.SentencePieceProcessor(model_file=f"{side}.spm") for side in ("source", "target"))
translate = tf.saved_model.load("1").signatures["greedy"]
rows = tf.ragged.constant([TAGSsource.encode(line.rstrip("\\n")) for line in sys.stdin], tf.int32, ragged_rank=1)
outputs = translate(source_ids=rows.to_tensor())
for ids, length in zip(outputs["target_ids"].numpy().tolist(), outputs["target_lengths"].numpy()):
    print(target.decode(ids[:length]))
```"""


class SavedModelExporter(Exporter):
    """A SavedModel with greedy search and beam search from ids to ids."""

    name: ClassVar[str] = "saved-model"
    consumer: ClassVar[str] = "TensorFlow"
    modules: ClassVar[tuple[str, ...]] = ("tensorflow",)
    settings: ClassVar[str] = "the SavedModel"

    def check(self, model: TrainedModel) -> None:
        """Accept every model: SavedModel holds any architecture, and ids work with any tokenizer."""

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the SavedModel, and sentencepiece models if they can normalize text as the run does.

        Raises:
            DataError: if the weights are damaged.
        """
        network = build_model(model.config.model, model.source.size, model.target.size, trained=True)
        set_weights(network, model.weights())
        module = TranslationModule(network, model.config, model.source.size)
        ids = tf.TensorSpec([None, None], tf.int32, name="source_ids")
        # The functions have no Python control flow on tensors, so autograph has nothing to convert.
        greedy, beam = (
            tf.function(search, input_signature=[ids], autograph=False) for search in (module.greedy, module.beam)
        )
        # Translation does not need the custom gradients of layers.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False, save_debug_info=False)
        signatures = {"serving_default": greedy, "greedy": greedy, "beam": beam}
        tf.saved_model.save(module, str(folder / VERSION), signatures=signatures, options=options)
        if has_sentencepiece(model.source, model.target):
            write_sentencepiece(model.source, model.target, folder)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return greedy translations by TensorFlow, in a process that does not import nmt.

        Raises:
            DataError: for a sentence longer than the model reads, and if TensorFlow cannot use the files.
        """
        return _translations(model, folder, texts, tags, "greedy")

    def translate_with_beams(
        self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()
    ) -> tuple[int, list[str]]:
        """Return K and the best translations of the signature ``beam``."""
        return beams_of(model.config.decoding), _translations(model, folder, texts, tags, "beam")

    def written_tags(self, model: TrainedModel, tags: Sequence[int]) -> str | None:
        """Return the ids of tags."""
        return ", ".join(map(str, tags))

    def exported_keys(self, decoding: DecodingConfig) -> dict[str, str]:
        """Return the keys of beam search, which every SavedModel has."""
        return super().exported_keys(decoding.model_copy(update={"beam_size": beams_of(decoding)}))

    def usage(self, model: TrainedModel) -> str:
        """Return a table of the signatures, a script with TensorFlow alone, and a request to TensorFlow Serving."""
        name, beams = model.run.name, beams_of(model.config.decoding)
        tags = model.tags(model.directions[0])
        before = f"[{', '.join(map(str, tags))}] + " if tags else ""
        script = _SCRIPT.replace("TAGS", before)
        ids = (
            "The sentencepiece models `source.spm` and `target.spm` convert text to ids and back. They normalize text "
            f"as in training. This script translates the lines of its standard input:\n\n{script}"
            if has_sentencepiece(model.source, model.target)
            else "The tokenizers in `run` define the ids. Normalize text first. The id of a word or character is "
            f"{FIRST_WORD} plus its index in `words`, or {UNK} if it is unknown. The id of a subword is its id in the "
            "sentencepiece model."
        )
        request = json.dumps({"signature_name": "beam", "inputs": {"source_ids": [[*tags, 6, 5, 4], [*tags, 4, 0, 0]]}})
        return (
            "The folder `1` is a TensorFlow SavedModel in float32, which TensorFlow loads without nmt. It takes "
            f"`source_ids` int32 [B, S], padded with {PAD}, with or without bos ({BOS}) and eos ({EOS}).\n\n"
            "| signature | search | outputs |\n|---|---|---|\n"
            f"| `greedy`, `serving_default` | greedy | {_describe_outputs('B')} |\n"
            f"| `beam` | {beams} beams, the best hypothesis first | {_describe_outputs('B, K')} |\n\n"
            f"`target_lengths` counts the ids before eos ({EOS}), and the id {PAD} fills the rest of a row. `scores` "
            "has natural log-probabilities with penalties (Wu et al. 2016, equation 14), or -infinity for a missing "
            "hypothesis. The translation of a sentence has at most `max_length_ratio` N + `max_length_extra` ids. "
            f"N is the length of the sentence with eos{' and bos' if model.config.model.reads_bos else ''}.\n\n"
            f"{ids}\n\nTensorFlow Serving takes this folder as the base path of the model:\n\n"
            f'```console\ndocker run --rm -p 8501:8501 -v "$PWD:/models/{name}" -e MODEL_NAME={name} '
            f"tensorflow/serving\ncurl http://localhost:8501/v1/models/{name}:predict -d '{request}'\n```"
        )


class TranslationModule(tf.Module):
    """Module that a SavedModel is written from: the weights of a model, and the functions that translate with them."""

    def __init__(self, model: Seq2SeqModel, config: Config, vocabulary: int) -> None:
        """Take a model with trained weights, the configuration of its run, and the number of source ids."""
        super().__init__(name="translation")
        # The module holds variables without their Keras layers, so that loading needs no Keras.
        self.weights = {weight_name(weight): weight.value for weight in model.weights}
        self._config, self._vocabulary = config, vocabulary
        engine = TensorFlowEngine(model, config)
        self._engines = {
            beams: engine.reconfigured(config.decoding.model_copy(update={"beam_size": beams}))
            for beams in (1, beams_of(config.decoding))
        }

    def greedy(self, source_ids: tf.Tensor) -> Outputs:
        """Return the outputs of greedy search: ids int32 [B, S] -> ids [B, T], lengths [B], scores [B]."""
        return {name: part[:, 0] for name, part in self._search(source_ids, 1).items()}

    def beam(self, source_ids: tf.Tensor) -> Outputs:
        """Return the outputs of beam search: ids int32 [B, S] -> ids [B, K, T], lengths [B, K], scores [B, K]."""
        return self._search(source_ids, beams_of(self._config.decoding))

    def _search(self, source_ids: tf.Tensor, beams: int) -> Outputs:
        sentences = self._sentences(source_ids)
        # Search needs at least one sentence, so an empty sentence is added, which search skips.
        sentences = tf.concat([sentences, tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])], axis=0)
        limits = _max_lengths(self._config, sentences)
        special = tf.ones([sentences.nrows(), 1], tf.int32)
        first = [special * BOS] if self._config.model.reads_bos else []
        rows = tf.concat([*first, sentences, special * EOS], axis=1).to_tensor(PAD)
        options = SearchOptions(n_best=beams, scored=True)
        engine = self._engines[beams]
        hypotheses = engine.search_tensors(options, False, rows, limits, rows[:, :0], tf.zeros([0, 0]))
        return _outputs_of(hypotheses, tf.equal(limits, 0))

    def _sentences(self, source_ids: tf.Tensor) -> tf.RaggedTensor:
        """Return ids without special ids: int32 [B, S], padded -> ragged [B, S'], without pad, bos and eos."""
        with tf.control_dependencies([
            tf.debugging.assert_non_negative(source_ids, "An id is negative."),
            tf.debugging.assert_less(source_ids, self._vocabulary, "An id is past the end of the source vocabulary."),
        ]):  # fmt: skip
            special = tf.reduce_any(tf.equal(source_ids[..., tf.newaxis], [PAD, BOS, EOS]), axis=-1)
        sentences = tf.ragged.boolean_mask(source_ids, ~special)
        limit = self._config.model.limits.source
        if limit is None:
            return sentences
        most = limit - 1 - int(self._config.model.reads_bos)
        lengths = tf.cast(sentences.row_lengths(), tf.int32)
        message = f"A sentence has more than {most} ids, the most that this model reads."
        with tf.control_dependencies([tf.debugging.assert_less_equal(lengths, most, message)]):
            return sentences.with_flat_values(tf.identity(sentences.flat_values))


def beams_of(decoding: DecodingConfig) -> int:
    """Return K, the number of beams of the signature ``beam``."""
    return decoding.beam_size if decoding.beam_size > 1 else DEFAULT_BEAMS


def _max_lengths(config: Config, sentences: tf.RaggedTensor) -> tf.Tensor:
    """Return the most ids of each translation, int32 [B], for ids without bos and eos, ragged [B, S']; 0 for no ids."""
    settings, limit = config.decoding, config.model.limits.target
    lengths = sentences.row_lengths()
    # ``nmt.decoding.lengths.max_lengths`` uses float64 too. A ratio such as 1.1 rounds differently in float32.
    source_lengths = tf.cast(lengths + 1 + int(config.model.reads_bos), tf.float64)
    limits = tf.cast(tf.constant(settings.length_ratio, tf.float64) * source_lengths, tf.int32)
    limits += settings.max_length_extra
    limits = limits if limit is None else tf.minimum(limits, limit)
    return tf.where(tf.equal(lengths, 0), 0, limits)


def _outputs_of(hypotheses: Hypotheses, is_empty: tf.Tensor) -> Outputs:
    """Return the outputs of a signature for all sentences except the last one.

    Args:
        hypotheses: hypotheses of B + 1 sentences.
        is_empty: whether a sentence has no ids, bool [B + 1]. Its first hypothesis gets the score 0.

    Returns:
        Ids [B, K, T] with T of the longest hypothesis, numbers of ids before eos [B, K], and scores [B, K].
    """
    is_first = tf.equal(tf.range(tf.shape(hypotheses.scores)[1]), 0)
    scores = tf.where(is_empty[:, tf.newaxis] & is_first, 0.0, hypotheses.scores)[:-1]
    tokens = hypotheses.tokens[:-1]
    is_token = tf.not_equal(tokens, PAD)
    columns = tf.reduce_sum(tf.cast(tf.reduce_any(is_token, axis=[0, 1]), tf.int32))
    lengths = tf.reduce_sum(tf.cast(is_token & tf.not_equal(tokens, EOS), tf.int32), axis=-1)
    return {"target_ids": tokens[:, :, :columns], "target_lengths": lengths, "scores": scores}


def _describe_outputs(shape: str) -> str:
    """Return the outputs of a signature in words, for ids of a shape such as "B, K"."""
    return f"`target_ids` int32 [{shape}, T], `target_lengths` int32 [{shape}], `scores` float32 [{shape}]"


def _translations(model: TrainedModel, folder: Path, texts: list[str], tags: Tags, signature: str) -> list[str]:
    """Return the best translations by a signature, computed in a process with TensorFlow alone."""
    encoded = [model.source.encode(text) for text in texts]
    encoded = [[*own, *ids] if ids else [] for own, ids in zip(tags or [()] * len(texts), encoded, strict=True)]
    batches = length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size)
    rows = [[encoded[index] for index in batch] for batch in batches]
    request = [str((folder / VERSION).resolve()), signature, rows]
    answers = process.run_python(SavedModelExporter, ["-I", "-c", _TRANSLATE], request)
    translations = [""] * len(texts)
    for batch, results in zip(batches, answers, strict=True):
        for index, ids in zip(batch.tolist(), results, strict=True):
            translations[index] = model.target.decode(ids if signature == "greedy" else ids[0])
    return translations
