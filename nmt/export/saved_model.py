"""Export format ``saved-model``: a TensorFlow SavedModel, for TensorFlow and TensorFlow Serving without nmt.

The folder ``1`` holds version 1 of the model as TensorFlow Serving expects it, with search from ids to ids in
TensorFlow's own operations.

Shapes: B sentences, S source ids, T target ids, K beams.
"""

import json
from pathlib import Path
from typing import ClassVar

from nmt.config.schema import Config, DecodingConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.search import Hypotheses
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.export import process
from nmt.export.base import Exporter, TrainedModel
from nmt.export.vocabulary import has_sentencepiece, write_sentencepiece
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weight_name
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK

VERSION = "1"
"""Folder of the model, which TensorFlow Serving takes for its version."""
DEFAULT_BEAMS = 5
"""K of the signature with beam search, for a run that is configured for greedy search."""
Outputs = dict[str, tf.Tensor]

# Translates batches with TensorFlow alone, without nmt and PyTorch, for ``nmt.export.process.run_python``.
_TRANSLATE = """
import json, sys
import tensorflow as tf

folder, signature, batches = json.load(sys.stdin)
translate = tf.saved_model.load(folder).signatures[signature]
padded = [tf.ragged.constant(batch, tf.int32, ragged_rank=1).to_tensor() for batch in batches]
try:
    results = [translate(source_ids=ids)["target_ids"].numpy().tolist() for ids in padded]
except tf.errors.OpError as error:  # its last line names a node only
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
rows = tf.ragged.constant([source.encode(line.rstrip("\\n")) for line in sys.stdin], tf.int32, ragged_rank=1)
found = translate(source_ids=rows.to_tensor())
for ids, length in zip(found["target_ids"].numpy().tolist(), found["target_lengths"].numpy()):
    print(target.decode(ids[:length]))
```"""


class SavedModelExporter(Exporter):
    """SavedModel with greedy and beam search, from ids to ids."""

    name: ClassVar[str] = "saved-model"
    consumer: ClassVar[str] = "TensorFlow"
    modules: ClassVar[tuple[str, ...]] = ("tensorflow",)
    settings: ClassVar[str] = "the SavedModel"

    def check(self, model: TrainedModel) -> None:
        """Accept every model: a traced function holds any architecture, and ids stand for any tokenizer."""

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the SavedModel, and sentencepiece models where they can normalize text.

        Raises:
            DataError: if the weights are damaged.
        """
        network = build_model(model.config.model, model.source.size, model.target.size, trained=True)
        set_weights(network, model.weights())
        module = TranslationModule(network, model.config, model.source.size)
        ids = tf.TensorSpec([None, None], tf.int32, name="source_ids")
        # Nothing in it is for autograph to convert.
        greedy, beam = (
            tf.function(search, input_signature=[ids], autograph=False) for search in (module.greedy, module.beam)
        )
        # The gradients that layers define themselves are of no use in translation.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False, save_debug_info=False)
        signatures = {"serving_default": greedy, "greedy": greedy, "beam": beam}
        tf.saved_model.save(module, str(folder / VERSION), signatures=signatures, options=options)
        if has_sentencepiece(model.source, model.target):
            write_sentencepiece(model.source, model.target, folder)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Return greedy translations, by TensorFlow in another process that does not import nmt.

        Raises:
            DataError: for a sentence longer than the model reads, and if TensorFlow cannot use the files.
        """
        return _translations(model, folder, texts, "greedy")

    def translate_with_beams(self, model: TrainedModel, folder: Path, texts: list[str]) -> tuple[int, list[str]]:
        """Return K and the best translations of the signature with beam search."""
        return beams_of(model.config.decoding), _translations(model, folder, texts, "beam")

    def carried(self, decoding: DecodingConfig) -> dict[str, str]:
        """Return those of beam search too, which every export has."""
        return super().carried(decoding.model_copy(update={"beam_size": beams_of(decoding)}))

    def usage(self, model: TrainedModel) -> str:
        """Return the signatures, a script with TensorFlow alone, and a request to TensorFlow Serving."""
        name = model.run.name
        ids = (
            "Ids are those of the sentencepiece models beside the folder, which normalize text as in training. This "
            f"translates the lines of its standard input:\n\n{_SCRIPT}"
            if has_sentencepiece(model.source, model.target)
            else f"Ids are those of the tokenizers in `run`, after the normalization of text: of a word or character, "
            f"{FIRST_WORD} + its place in `words`, {UNK} if it is unknown; of a subword, that of sentencepiece."
        )
        request = json.dumps({"signature_name": "beam", "inputs": {"source_ids": [[6, 5, 4], [4, 0, 0]]}})
        return (
            "The folder `1` is a TensorFlow SavedModel in float32, which TensorFlow loads without nmt. It takes "
            f"`source_ids` int32 [B, S], padded with {PAD}, with or without bos ({BOS}) and eos ({EOS}).\n\n"
            "| signature | search | outputs |\n|---|---|---|\n"
            f"| `greedy`, `serving_default` | greedy | {_outputs('B')} |\n"
            f"| `beam` | {beams_of(model.config.decoding)} beams, the best hypothesis first | {_outputs('B, K')} |\n\n"
            f"Target lengths count the ids before eos ({EOS}); {PAD} fills the rest. Scores are natural "
            "log-probabilities with penalties (Wu et al. 2016, equation 14), -infinity in a place without a "
            "hypothesis. A translation has at most `max_length_ratio` N + `max_length_extra` ids, N those of the "
            f"sentence with eos{' and bos' if model.config.model.reads_bos else ''}.\n\n"
            f"{ids}\n\nTensorFlow Serving takes this folder as the base path of the model:\n\n"
            f'```console\ndocker run --rm -p 8501:8501 -v "$PWD:/models/{name}" -e MODEL_NAME={name} '
            f"tensorflow/serving\ncurl http://localhost:8501/v1/models/{name}:predict -d '{request}'\n```"
        )


class TranslationModule(tf.Module):
    """Weights of a model, and the functions that translate with them."""

    def __init__(self, model: Seq2SeqModel, config: Config, vocabulary: int) -> None:
        """Take a model with trained weights, the configuration of its run, and the number of source ids."""
        super().__init__(name="translation")
        # Variables without their Keras layers: loading then needs no Keras.
        self.weights = {weight_name(weight): weight.value for weight in model.weights}
        self._config, self._vocabulary = config, vocabulary
        engine = TensorFlowEngine(model, config)
        self._engines = {
            beams: engine.reconfigured(config.decoding.model_copy(update={"beam_size": beams}))
            for beams in (1, beams_of(config.decoding))
        }

    def greedy(self, source_ids: tf.Tensor) -> Outputs:
        """Greedy search: ids int32 [B, S] -> ids [B, T], lengths [B], scores [B]."""
        return {name: part[:, 0] for name, part in self._search(source_ids, 1).items()}

    def beam(self, source_ids: tf.Tensor) -> Outputs:
        """Beam search: ids int32 [B, S] -> ids [B, K, T], lengths [B, K], scores [B, K]."""
        return self._search(source_ids, beams_of(self._config.decoding))

    def _search(self, source_ids: tf.Tensor, beams: int) -> Outputs:
        sentences = self._sentences(source_ids)
        # The search takes no batch of 0 sentences; it skips an empty sentence.
        sentences = tf.concat([sentences, tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])], axis=0)
        limits = _max_lengths(self._config, sentences)
        special = tf.ones([sentences.nrows(), 1], tf.int32)
        first = [special * BOS] if self._config.model.reads_bos else []
        rows = tf.concat([*first, sentences, special * EOS], axis=1).to_tensor(PAD)
        options = SearchOptions(n_best=beams, scored=True)
        found = self._engines[beams].search_tensors(options, False, rows, limits, rows[:, :0], tf.zeros([0, 0]))
        return _results(found, tf.equal(limits, 0))

    def _sentences(self, source_ids: tf.Tensor) -> tf.RaggedTensor:
        """Ids int32 [B, S], with or without bos and eos -> ids without them and without padding, ragged [B, S']."""
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
    """Return K, the number of beams of the signature with beam search."""
    return decoding.beam_size if decoding.beam_size > 1 else DEFAULT_BEAMS


def _max_lengths(config: Config, sentences: tf.RaggedTensor) -> tf.Tensor:
    """Ids without bos and eos, ragged int32 [B, S'] -> most ids of each translation, 0 for no ids: int32 [B]."""
    settings, limit = config.decoding, config.model.limits.target
    lengths = sentences.row_lengths()
    # In float64, as ``nmt.decoding.lengths.max_lengths``: a ratio such as 1.1 rounds differently in float32.
    read = tf.cast(lengths + 1 + int(config.model.reads_bos), tf.float64)
    limits = tf.cast(tf.constant(settings.max_length_ratio, tf.float64) * read, tf.int32) + settings.max_length_extra
    limits = limits if limit is None else tf.minimum(limits, limit)
    return tf.where(tf.equal(lengths, 0), 0, limits)


def _results(found: Hypotheses, empty: tf.Tensor) -> Outputs:
    """Return the outputs of a signature: ids [B, K, T] up to the longest, numbers of ids before eos, scores [B, K].

    The last sentence is left out. The first hypothesis of an empty sentence, bool [B], has the score 0.
    """
    first = tf.equal(tf.range(tf.shape(found.scores)[1]), 0)
    scores = tf.where(empty[:, tf.newaxis] & first, 0.0, found.scores)[:-1]
    tokens = found.tokens[:-1]
    real = tf.not_equal(tokens, PAD)
    columns = tf.reduce_sum(tf.cast(tf.reduce_any(real, axis=[0, 1]), tf.int32))
    lengths = tf.reduce_sum(tf.cast(real & tf.not_equal(tokens, EOS), tf.int32), axis=-1)
    return {"target_ids": tokens[:, :, :columns], "target_lengths": lengths, "scores": scores}


def _outputs(shape: str) -> str:
    return f"`target_ids` int32 [{shape}, T], `target_lengths` int32 [{shape}], `scores` float32 [{shape}]"


def _translations(model: TrainedModel, folder: Path, texts: list[str], signature: str) -> list[str]:
    """Return the best translations by a signature, from a process with TensorFlow alone."""
    encoded = [model.source.encode(text) for text in texts]
    batches = length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size)
    rows = [[encoded[index] for index in batch] for batch in batches]
    request = [str((folder / VERSION).resolve()), signature, rows]
    answers = process.run_python(SavedModelExporter, ["-I", "-c", _TRANSLATE], request)
    translations = [""] * len(texts)
    for batch, results in zip(batches, answers, strict=True):
        for index, ids in zip(batch.tolist(), results, strict=True):
            translations[index] = model.target.decode(ids if signature == "greedy" else ids[0])
    return translations
