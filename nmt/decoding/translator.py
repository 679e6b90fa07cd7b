"""Translation from text to text, with the files of a run directory alone.

Shapes: B batch, S source length, T target length, n translations of a sentence.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nmt import runtime
from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches, pad_rows
from nmt.data.token_arrays import Sequences
from nmt.decoding.alignment import AttentionMaps, CrossAttention
from nmt.decoding.model_search import FEW_STEPS, ModelSearch
from nmt.decoding.search_options import GREEDY, SearchOptions
from nmt.decoding.text_ids import (
    check_lengths,
    check_target_length,
    encode_prefix,
    encode_sources,
    encode_target,
    max_lengths,
    unknown_words,
)
from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.registry import count_weights
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

MOST_AT_ONCE = 8
"""Batches that are translated at the same time, for their memory."""


class Translator:
    """A trained model with its tokenizers: raw text in, raw text out. Several threads may use it."""

    def __init__(
        self,
        model: Seq2SeqModel,
        source: Tokenizer,
        target: Tokenizer,
        config: Config,
        epoch: WeightsId,
        few_steps: int = FEW_STEPS,
    ) -> None:
        """Take the parts; ``load`` reads them from a run. A search of at most ``few_steps`` steps is not compiled."""
        self.model, self.source, self.target, self.config, self.epoch = model, source, target, config, epoch
        self._few_steps = few_steps
        self.search = ModelSearch(model, config.decoding)

    @property
    def precision(self) -> str:
        """Number format that the layers compute in."""
        return str(self.model.compute_dtype)

    @classmethod
    def load(
        cls,
        run: Run,
        epoch: str | None = None,
        decoding: DecodingConfig | None = None,
        weights: WeightsFile | None = None,
    ) -> "Translator":
        """Return the translator of a run.

        Args:
            run: a run with weights.
            epoch: weights to use: the number of an epoch, "last", "best" or "average"; by default the average if the
                run has one, else the best.
            decoding: settings of search instead of the run's own.
            weights: the file of these weights, if reading it has begun.

        Raises:
            NotFoundError: if there are no such weights.
            DataError: if a part of the run is damaged.
        """
        weights = weights or WeightsFile(run, choose_epoch(run, epoch))
        config = run.config()
        if decoding is not None:
            config = config.model_copy(update={"decoding": decoding})
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        # A configuration that asks for a giant model is refused before the model is built.
        weights.check_size(count_weights(config.model, {"source": source.size, "target": target.size}))
        precision = runtime.resolve_precision(config.decoding.precision)
        model = build_model(config.model, source.size, target.size, precision, trained=True)
        weights.load(model)
        return cls(model, source, target, config, weights.epoch)

    def reconfigured(self, decoding: DecodingConfig) -> "Translator":
        """Return a translator of the same weights with other settings of decoding, which compiles every search."""
        config = self.config.model_copy(update={"decoding": decoding})
        return Translator(self.model, self.source, self.target, config, self.epoch, few_steps=0)

    def translate(
        self,
        texts: list[str],
        names: list[str] | None = None,
        options: SearchOptions = GREEDY,
        prefix: str = "",
    ) -> list[Translation]:
        """Return the translations of raw sentences, in their order; that of an empty sentence is empty.

        Args:
            texts: sentences.
            names: name of each sentence for error messages, such as "line 7".
            options: kind of search.
            prefix: beginning of every translation, raw text.

        Raises:
            DataError: for a sentence longer than the model reads, and for a prefix with unknown words.
        """
        return [n_best[0] for n_best in self.translate_n_best(texts, names, options, prefix)]

    def translate_n_best(
        self, texts: list[str], names: list[str] | None = None, options: SearchOptions = GREEDY, prefix: str = ""
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each sentence, the best first.

        Args, raises: as of ``translate``.
        """
        encoded = self.encode(texts, names)
        unknown = [unknown_words(self.source, text, ids) for text, ids in zip(texts, encoded, strict=True)]
        forced = encode_prefix(self.target, prefix)
        found = [[Translation("", words, True, [], 0.0 if options.scored else None)] for words in unknown]
        batches = [(batch, self._rows(encoded, batch)) for batch in self._batches(encoded)]
        limits = [max_lengths(self.config, (source != PAD).sum(axis=1), len(forced)) for _, source in batches]
        compiled = sum(int(limit.max()) for limit in limits) > self._few_steps

        def search(number: int) -> tuple[np.ndarray, np.ndarray]:
            batch, source = batches[number]
            hypotheses = self.search.find(
                source, limits[number], options, prefix=forced, compiled=compiled, numbers=batch
            )
            return hypotheses.tokens.numpy(), hypotheses.scores.numpy()

        results = _at_once(search, len(batches)) if compiled else map(search, range(len(batches)))
        for (batch, _), (tokens, scores) in zip(batches, results, strict=True):
            for index, rows, values in zip(batch, tokens, scores, strict=True):
                found[index] = [
                    self._translation(row, unknown[index], value if options.scored else None)
                    for row, value in zip(rows.tolist(), values.tolist(), strict=True)
                    if value > float("-inf")
                ]
        return found

    def encode(self, texts: list[str], names: list[str] | None = None) -> list[list[int]]:
        """Return the ids of raw sentences. Args, raises: as of ``translate``."""
        return encode_sources(self.source, self.config, texts, names)

    def score(self, sources: list[str], targets: list[str], names: list[str] | None = None) -> list[float]:
        """Return log P(target | source), natural, eos included, of each pair of raw sentences.

        Raises:
            DataError: for a sentence longer than the model reads, or a translation longer than it writes.
        """
        encoded = [self.source.encode(text) for text in sources]
        translations = [[*self.target.encode(text), EOS] for text in targets]
        names = names or [f"pair {n}" for n in range(1, len(sources) + 1)]
        check_lengths(self.config, encoded, names)
        for ids, name in zip(translations, names, strict=True):
            check_target_length(self.config, len(ids) - 1, f"the translation of {name}")
        scores = np.zeros(len(sources))
        lengths = [source + target for source, target in zip(encoded, translations, strict=True)]
        for batch in self._batches(lengths):
            source, target = self._rows(encoded, batch), _padded([translations[index] for index in batch])
            scores[batch] = self._log_probabilities(tf.constant(source), tf.constant(target)).numpy()
        return scores.tolist()

    def attention(self, sources: list[str], translations: list[Translation]) -> list[CrossAttention]:
        """Return the cross-attention of the decoder on these translations of raw sentences.

        Raises:
            DataError: for a model without attention.
        """
        encoded = [self.source.encode(text) for text in sources]
        targets = [translation.ids for translation in translations]
        found = [CrossAttention([], [], np.zeros([1, 1, 0, 0], np.float32)) for _ in sources]
        for batch in self._batches(targets):
            source, target = self._rows(encoded, batch), _padded([targets[index] for index in batch])
            shifted = tf.pad(tf.constant(target)[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
            weights = self._present(self.model.cross_attention(tf.constant(source), shifted))
            for row, index in enumerate(batch):
                ids, length = [id_ for id_ in source[row].tolist() if id_ != PAD], len(targets[index])
                found[index] = CrossAttention(ids, targets[index], weights[:, :, row, :length, : len(ids)])
        return found

    def attention_maps(self, source: str, target: list[int]) -> AttentionMaps:
        """Return all attention of the model on a raw sentence and the ids of a translation of it.

        Args:
            source: sentence with a word at least.
            target: T ids from the first word on, such as ``Translation.ids``, at least one.

        Raises:
            DataError: for a model without attention.
        """
        read = self._rows([self.source.encode(source)], [0])
        shifted = tf.constant([[BOS, *target[:-1]]], tf.int32)
        weights = self.model.attention_weights(tf.constant(read), shifted)
        encoder, decoder = (
            None if part is None else part.numpy()[:, :, 0] for part in (weights.encoder, weights.decoder)
        )
        return AttentionMaps(read[0].tolist(), target, encoder, decoder, self._present(weights.cross)[:, :, 0])

    def _present(self, weights: tf.Tensor | None) -> np.ndarray:
        """Return cross-attention weights as an array.

        Raises:
            DataError: if there are none.
        """
        if weights is None:
            raise DataError(
                f"This model of architecture {self.config.model.architecture!r} has no attention. Alignments and "
                "figures of attention need it. Choose a run whose model has attention."
            )
        return np.asarray(weights)

    def given_translation(self, text: str) -> Translation:
        """Return a raw translation that a person wrote as one that the model finished; ``unknown`` is empty.

        Raises:
            DataError: if it has no words, or more than the model writes.
        """
        return Translation(text, [], True, encode_target(self.target, self.config, text))

    def _translation(self, row: list[int], unknown: list[str], score: float | None) -> Translation:
        ids = [id_ for id_ in row if id_ != PAD]
        return Translation(self.target.decode(ids), unknown, EOS in ids, ids, score)

    def _batches(self, encoded: list[list[int]]) -> Iterator[list[int]]:
        """Yield indices of the sentences with words, those of like length together."""
        for batch in length_batches([len(ids) for ids in encoded], self.config.decoding.batch_size):
            yield batch.tolist()

    def _rows(self, encoded: list[list[int]], batch: list[int]) -> np.ndarray:
        """Return the sentences of a batch as the encoder reads them: int32 [B, S]."""
        rows = Sequences.from_rows([encoded[index] for index in batch], self.source.size)
        return pad_rows(rows, np.arange(len(batch)), bos=self.config.model.reads_bos)

    def _log_probabilities(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Source [B, S] and target [B, T] to eos, int32 -> log P float32 [B]."""
        whole = tf.pad(target, [[0, 0], [1, 0]], constant_values=BOS)
        states, expected = self.model.teacher_forcing(source, whole, remove_padding=False)
        logits = tf.cast(self.model.output_projection().logits(states), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=logits)
        return -tf.reduce_sum(tf.where(tf.not_equal(expected, PAD), losses, 0.0), axis=1)


def _at_once(search: Callable[[int], tuple[np.ndarray, np.ndarray]], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the results of searches 0 .. count - 1, on CPUs as many at once as there are cores.

    A search has many small operations, which one core computes as fast as two; two searches fill both.
    """
    threads = 1 if runtime.GPUS else min(count, runtime.threads(), MOST_AT_ONCE)
    if threads < 2:
        return [search(number) for number in range(count)]
    pool = ThreadPoolExecutor(threads, "translate")
    try:
        # The last batch has the longest sentences; begun first, it is not waited for alone.
        return [*pool.map(search, reversed(range(count)))][::-1]
    finally:
        pool.shutdown(cancel_futures=True)


def _padded(rows: list[list[int]]) -> np.ndarray:
    """Return rows of ids padded to the longest: int32 [B, T]."""
    padded = np.full([len(rows), max(map(len, rows))], PAD, np.int32)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded
