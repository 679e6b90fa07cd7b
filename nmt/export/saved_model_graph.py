"""Signatures of a SavedModel: translation from ids to ids, and from text to text, in TensorFlow's own operations.

Shapes: B sentences, S source ids, T target ids, K beams.
"""

from collections.abc import Callable
from pathlib import Path

from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.decoding.search import Hypotheses
from nmt.decoding.tensorflow_engine import ModelSearch
from nmt.decoding.translation import SearchOptions
from nmt.export.saved_model_text import TextDecoder, TextEncoder
from nmt.models.base import Seq2SeqModel
from nmt.models.weights import weight_name
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.tokenizers.word import WordTokenizer

Outputs = dict[str, tf.Tensor]


class TranslationModule(tf.Module):
    """Weights of a model, and the functions that translate with them."""

    def __init__(
        self,
        model: Seq2SeqModel,
        config: Config,
        beams: int,
        vocabulary: int,
        text: tuple[WordTokenizer, WordTokenizer] | None,
    ) -> None:
        """Take the parts.

        Args:
            model: model with trained weights.
            config: configuration of the run.
            beams: K of the signatures with beam search.
            vocabulary: number of ids of the source side.
            text: tokenizers of source and target for the signatures from text to text; None: without these.
        """
        super().__init__(name="translation")
        # Variables without their Keras layers: loading then needs no Keras.
        self.weights = {weight_name(weight): weight.value for weight in model.weights}
        self.text = None if text is None else (TextEncoder(text[0]), TextDecoder(text[1]))
        self._config, self._vocabulary = config, vocabulary
        self._searches = {number: ModelSearch(model, _with_beams(config.decoding, number)) for number in (1, beams)}
        self._beams = beams

    def signatures(self) -> dict[str, Callable[..., Outputs]]:
        """Return the signatures by name."""
        ids = tf.TensorSpec([None, None], tf.int32, name="source_ids")
        texts = tf.TensorSpec([None], tf.string, name="source_texts")
        greedy, beam = (_traced(function, ids) for function in (self._greedy, self._beam))
        signatures = {"serving_default": greedy, "greedy": greedy, "beam": beam}
        if self.text is not None:
            encode, decode = self.text

            def translate(source_texts: tf.Tensor) -> Outputs:
                found = greedy(source_ids=encode(source_texts).to_tensor(PAD))
                return {"target_texts": decode(found["target_ids"]), "scores": found["scores"]}

            def translate_beam(source_texts: tf.Tensor) -> Outputs:
                found = beam(source_ids=encode(source_texts).to_tensor(PAD))
                rows = tf.reshape(found["target_ids"], [-1, tf.shape(found["target_ids"])[2]])
                texts = tf.reshape(decode(rows), tf.shape(found["scores"]))
                return {"target_texts": texts, "scores": found["scores"]}

            signatures |= {"translate": _traced(translate, texts), "translate_beam": _traced(translate_beam, texts)}
        return signatures

    def _greedy(self, source_ids: tf.Tensor) -> Outputs:
        """Greedy search: ids int32 [B, S] -> ids [B, T], lengths [B], scores [B]."""
        return {name: part[:, 0] for name, part in self._search(source_ids, 1).items()}

    def _beam(self, source_ids: tf.Tensor) -> Outputs:
        """Beam search: ids int32 [B, S] -> ids [B, K, T], lengths [B, K], scores [B, K]."""
        return self._search(source_ids, self._beams)

    def _search(self, source_ids: tf.Tensor, beams: int) -> Outputs:
        sentences = self._sentences(source_ids)
        # The search takes no batch of 0 sentences; it skips an empty sentence.
        sentences = tf.concat([sentences, tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])], axis=0)
        limits = max_lengths(self._config, sentences)
        rows = self._rows(sentences)
        options = SearchOptions(n_best=beams, scored=True)
        found = self._searches[beams].search(options, False, rows, limits, rows[:, :0], tf.zeros([0, 0]))
        return _outputs(_without_last(found, tf.equal(limits, 0)))

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

    def _rows(self, sentences: tf.RaggedTensor) -> tf.Tensor:
        """Ids, ragged [B, S'] -> ids as the encoder reads them, int32 [B, S], padding 0."""
        special = tf.ones([sentences.nrows(), 1], tf.int32)
        first = [special * BOS] if self._config.model.reads_bos else []
        return tf.concat([*first, sentences, special * EOS], axis=1).to_tensor(PAD)


def write_saved_model(module: TranslationModule, folder: Path) -> None:
    """Write a module with its signatures as a SavedModel."""
    # The gradients that layers define themselves are of no use in translation.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False, save_debug_info=False)
    tf.saved_model.save(module, str(folder), signatures=module.signatures(), options=options)


def max_lengths(config: Config, sentences: tf.RaggedTensor) -> tf.Tensor:
    """Return the most ids of each translation, 0 for a sentence without ids: int32 [B].

    Args:
        config: configuration of the run.
        sentences: ids without bos and eos, ragged int32 [B, S'].
    """
    settings, limit = config.decoding, config.model.limits.target
    lengths = sentences.row_lengths()
    # In float64, as ``nmt.decoding.text_ids.max_lengths``: a ratio such as 1.1 rounds differently in float32.
    read = tf.cast(lengths + 1 + int(config.model.reads_bos), tf.float64)
    limits = tf.cast(tf.constant(settings.max_length_ratio, tf.float64) * read, tf.int32) + settings.max_length_extra
    limits = limits if limit is None else tf.minimum(limits, limit)
    return tf.where(tf.equal(lengths, 0), 0, limits)


def _with_beams(settings: DecodingConfig, beams: int) -> DecodingConfig:
    return settings.model_copy(update={"beam_size": beams})


def _traced(function: Callable[..., Outputs], argument: tf.TensorSpec) -> Callable[..., Outputs]:
    # Nothing in it is for autograph to convert.
    return tf.function(function, input_signature=[argument], autograph=False)


def _without_last(found: Hypotheses, empty: tf.Tensor) -> Hypotheses:
    """Return hypotheses without the last sentence; the first of an empty sentence, bool [B], has the score 0."""
    first = tf.equal(tf.range(tf.shape(found.scores)[1]), 0)
    scores = tf.where(empty[:, tf.newaxis] & first, 0.0, found.scores)
    return Hypotheses(found.tokens[:-1], scores[:-1])


def _outputs(found: Hypotheses) -> Outputs:
    """Hypotheses -> ids [B, K, T] up to the longest of them, numbers of ids before eos [B, K], scores [B, K]."""
    real = tf.not_equal(found.tokens, PAD)
    columns = tf.reduce_sum(tf.cast(tf.reduce_any(real, axis=[0, 1]), tf.int32))
    lengths = tf.reduce_sum(tf.cast(real & tf.not_equal(found.tokens, EOS), tf.int32), axis=-1)
    return {"target_ids": found.tokens[:, :, :columns], "target_lengths": lengths, "scores": found.scores}
