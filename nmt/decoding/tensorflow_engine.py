"""TensorFlow engine: a model translates batches of ids, compiled if that pays, one batch per core at a time.

Shapes: B sentences, K beams per sentence, S source length, P length of forced prefixes, T largest length limit or
target length.
"""

import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import numpy as np

from nmt import runtime
from nmt.config.decoding import BEAM, SAMPLING
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.beam import beam_search
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.search import Hypotheses, SearchLimits, sample, step_search
from nmt.decoding.translation import BEST, AttentionMaps, Hypothesis, SearchOptions
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.runs.weights import WeightsFile
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

ROWS = tf.TensorSpec([None, None], tf.int32)
FEW_STEPS = 25
"""Search steps that take less time eagerly than compiling them, as measured with base.yaml's model on 2 cores."""
MOST_AT_ONCE = 8
"""Most batches that are computed at the same time, to limit their memory."""
LEAST_SENTENCES = 8
"""Least size of the batches into which few sentences are divided to give every core one."""


class ModelState(NamedTuple):
    """``DecoderState`` of a search: the decoder's state, and the encoder's output, which all beams share."""

    encoded: Any
    """Result of the model's ``encode`` for B sentences."""
    decoder: Any
    """``DecoderState`` with K beams for each sentence."""

    def reorder(self, parents: tf.Tensor) -> "ModelState":
        """See ``nmt.models.base.DecoderState``."""
        return self._replace(decoder=self.decoder.reorder(parents))

    def select(self, rows: tf.Tensor) -> "ModelState":
        """See ``nmt.models.base.DecoderState``."""
        encoded = tf.nest.map_structure(lambda part: tf.gather(part, rows), self.encoded)
        return ModelState(encoded, self.decoder.select(rows))


class TensorFlowEngine:
    """Engine of a model that searches with the settings of a configuration. See ``nmt.decoding.translation.Engine``."""

    positions: int | None = None
    only_greedy: bool = False

    def __init__(self, model: Seq2SeqModel | Ensemble, config: Config, few_steps: int = FEW_STEPS) -> None:
        """Take a model, whose weights may change later, and the configuration of its run.

        A search of at most ``few_steps`` steps is not compiled. Without such steps, everything is compiled.
        """
        self.model, self.config, self._few_steps = model, config, few_steps
        self._compiled: dict[Hashable, Callable[..., Any]] = {}
        """Compiled functions of the model, which engines of the same model share."""

    @classmethod
    def load(cls, config: Config, source_vocabulary: int, target_vocabulary: int, weights: WeightsFile) -> Self:
        """Return the engine of a model with saved weights, for vocabularies of these sizes.

        Raises:
            NotFoundError: if the file of weights does not exist.
            DataError: if the file is damaged, or belongs to a different model.
        """
        runtime.compute_each_operation_in_one_thread()
        precision = runtime.resolve_precision(config.decoding.precision)
        model = build_model(
            config.model, source_vocabulary, target_vocabulary, precision, trained=True,
            check_shapes=weights.check_shapes,
        )  # fmt: skip
        weights.load(model)
        return cls(model, config)

    def reconfigured(self, decoding: DecodingConfig, *, prepared: bool = True) -> "TensorFlowEngine":
        """Return an engine of the same weights with other decoding settings; if prepared, it compiles every search."""
        config = self.config.model_copy(update={"decoding": decoding})
        engine = TensorFlowEngine(self.model, config, few_steps=0 if prepared else FEW_STEPS)
        engine._compiled = self._compiled
        return engine

    @property
    def precision(self) -> str:
        """Number format that the layers compute in."""
        return str(self.model.compute_dtype)

    def search_batch(
        self,
        source: np.ndarray,
        max_lengths: np.ndarray,
        options: SearchOptions = BEST,
        *,
        prefixes: Sequence[list[int]] = (),
        numbers: list[int] | None = None,
        compiled: bool = True,
    ) -> Hypotheses:
        """Return the hypotheses of a batch of B sentences.

        Args:
            source: source ids as the encoder reads them: int32 [B, S].
            max_lengths: most tokens of each hypothesis, eos included: int32 [B].
            options: kind of search.
            prefixes: ids that the hypotheses of each sentence begin with; empty without prefixes.
            numbers: index of each sentence, which selects its random numbers with the seed; by default 0 .. B - 1.
            compiled: whether to compile the search, which pays off for more than ``FEW_STEPS`` steps.
        """
        random = np.zeros([len(source), 0], np.float32)
        if options.sampled:
            seed, count = self.config.decoding.seed, int(max_lengths.max())
            random = np.stack([random_numbers(seed, number, count) for number in numbers or range(len(source))])
        forced = _pad_rows([*prefixes]) if prefixes else np.zeros([len(source), 0], np.int32)
        search: Callable[..., Hypotheses] = functools.partial(self.search_tensors, options, bool(prefixes))
        if compiled:
            decoding = self.config.decoding
            kind = decoding.search(sampled=options.sampled)
            settings = tuple(decoding.arguments("tensorflow", kind).items())
            numbers, floats = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, None], tf.float32)
            signature = [ROWS, numbers, ROWS, floats]
            search = self._compile((options, bool(prefixes), kind, settings), search, signature)
        return search(*(tf.constant(array) for array in (source, max_lengths, forced, random)))

    def _compile(
        self, key: Hashable, function: Callable[..., Any], signature: list[tf.TensorSpec]
    ) -> Callable[..., Any]:
        """Return a compiled function, the same one for the same key. It is traced when it is first called."""
        if key not in self._compiled:
            # Models and searches have no Python control flow for autograph to convert.
            self._compiled.setdefault(key, tf.function(function, input_signature=signature, autograph=False))
        return self._compiled[key]

    def search_tensors(
        self,
        options: SearchOptions,
        prefixed: bool,
        source: tf.Tensor,
        max_lengths: tf.Tensor,
        prefixes: tf.Tensor,
        random: tf.Tensor,
    ) -> Hypotheses:
        """Search with source [B, S], limits [B] and prefixes [B, P], all int32, and random numbers float32 [B, T].

        ``search_batch`` calls this method eagerly or compiled; an export traces it.
        """
        decoding = self.config.decoding
        kind = decoding.search(sampled=options.sampled)
        settings = decoding.arguments("tensorflow", kind)
        limits = SearchLimits(max_lengths, prefixes if prefixed else None)
        covering = kind == BEAM and decoding.coverage_penalty > 0
        encoded = self.model.encode(source)
        state = ModelState(encoded, self.model.initial_state(encoded, decoding.beam_size if kind == BEAM else 1))

        def step(tokens: tf.Tensor, state: ModelState) -> tuple[tf.Tensor, tf.Tensor | None, ModelState]:
            output = self.model.step(tokens, state.encoded, state.decoder, attention=covering)
            return output.logits, output.attention, state._replace(decoder=output.state)

        if kind == BEAM:
            words = tf.reduce_all(tf.not_equal(source[..., tf.newaxis], [PAD, BOS, EOS]), axis=-1)
            return beam_search(step, state, limits, n_best=options.n_best, covered=words, **settings)
        if kind == SAMPLING:
            return sample(step, state, limits, random, scored=options.scored, **settings)
        return step_search(step, state, limits, scored=options.scored, **settings)

    def search(
        self, rows: list[list[int]], limits: np.ndarray, options: SearchOptions, prefixes: Sequence[list[int]] = ()
    ) -> list[list[Hypothesis]]:
        """See ``nmt.decoding.translation.Engine``."""
        batches = list(self._batches(rows))
        compiled = sum(int(limits[batch].max()) for batch in batches) > self._few_steps

        def search(batch: list[int]) -> tuple[list[list[list[int]]], list[list[float]]]:
            hypotheses = self.search_batch(
                self._sources(rows, batch), limits[batch], options._replace(first=0), compiled=compiled,
                prefixes=[prefixes[index] for index in batch] if prefixes else (),
                numbers=[options.first + index for index in batch],
            )  # fmt: skip
            return hypotheses.tokens.numpy().tolist(), hypotheses.scores.numpy().tolist()

        n_best: list[list[Hypothesis]] = [[] for _ in rows]
        results = _in_parallel(search, batches) if compiled else map(search, batches)
        for batch, (tokens, scores) in zip(batches, results, strict=True):
            for index, ids, values in zip(batch, tokens, scores, strict=True):
                n_best[index] = [
                    Hypothesis([id_ for id_ in row if id_ != PAD], value)
                    for row, value in zip(ids, values, strict=True)
                    if value > float("-inf")
                ]
        return n_best

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """See ``nmt.decoding.translation.Engine``."""
        batches = list(self._batches([source + target for source, target in zip(sources, targets, strict=True)]))

        def losses_of(batch: list[int]) -> np.ndarray:
            source, target = self._sources(sources, batch), _pad_rows([[BOS, *targets[index]] for index in batch])
            states, expected = self.model.teacher_forcing(
                tf.constant(source), tf.constant(target), remove_padding=False
            )
            logits = tf.cast(self.model.output_projection().logits(states), tf.float32)
            return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=logits).numpy()

        scores = [np.zeros(0)] * len(sources)
        for batch, losses in zip(batches, _in_parallel(losses_of, batches), strict=True):
            for index, row in zip(batch, losses, strict=True):
                scores[index] = -row[: len(targets[index])]
        return scores

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray] | None:
        """See ``nmt.decoding.translation.Engine``."""
        special = 1 + int(self.config.model.reads_bos)
        # The attention of an empty target has no rows.
        attention = [np.zeros([1, 1, 0, len(source) + special], np.float32) for source in sources]
        batches = list(self._batches(targets))
        attend = self.model.cross_attention
        if len(batches) > 1 or not self._few_steps:  # a single batch takes less time eagerly
            attend = self._compile("attention", attend, [ROWS, ROWS])

        def weights_of(batch: list[int]) -> np.ndarray | None:
            source, shifted = self._sources(sources, batch), _pad_rows([[BOS, *targets[index][:-1]] for index in batch])
            weights = attend(tf.constant(source), tf.constant(shifted))
            return None if weights is None else np.asarray(weights)

        for batch, weights in zip(batches, _in_parallel(weights_of, batches), strict=True):
            if weights is None:
                return None
            for row, index in enumerate(batch):
                rows, columns = len(targets[index]), len(sources[index]) + special
                attention[index] = weights[:, :, row, :rows, :columns]
        return attention

    def attention_maps(self, source: list[int], target: list[int]) -> AttentionMaps | None:
        """Return all attention on a sentence and at least one target token; None for a model without attention."""
        [encoder_ids] = self._sources([source], [0])
        weights = self.model.attention_weights(
            tf.constant(encoder_ids[np.newaxis]), tf.constant([[BOS, *target[:-1]]], tf.int32)
        )
        encoder, decoder, cross = (
            None if part is None else part.numpy()[:, :, 0]
            for part in (weights.encoder, weights.decoder, weights.cross)
        )
        return None if cross is None else AttentionMaps(encoder_ids.tolist(), target, encoder, decoder, cross)

    def _batches(self, rows: list[list[int]]) -> Iterator[list[int]]:
        """Yield batches of indices of the rows that are not empty, with rows of similar length together.

        The batches have the configured size, or a smaller one that gives every core a batch.
        """
        share = math.ceil(len(rows) / _batches_at_once())
        size = min(self.config.decoding.batch_size, max(share, LEAST_SENTENCES))
        for batch in length_batches([len(ids) for ids in rows], size):
            yield batch.tolist()

    def _sources(self, rows: list[list[int]], batch: list[int]) -> np.ndarray:
        """Return the sentences of a batch as the encoder reads them: int32 [B, S]."""
        bos = [BOS] if self.config.model.reads_bos else []
        return _pad_rows([[*bos, *rows[index], EOS] for index in batch])


def random_numbers(seed: int, number: int, count: int) -> np.ndarray:
    """Return numbers in [0, 1) that depend only on the seed and the index of a sentence: float32 [count]."""
    generator = np.random.Generator(np.random.Philox(key=[seed, number]))
    return generator.random(count, dtype=np.float32)


def _batches_at_once() -> int:
    """Return the number of batches that are computed at the same time: on CPUs, as many as there are cores."""
    return 1 if runtime.GPUS else min(runtime.cores(), MOST_AT_ONCE)


def _in_parallel(compute: Callable[[list[int]], Any], batches: list[list[int]]) -> list[Any]:
    """Return the results of all batches. Several batches are computed at the same time, each on one core.

    A search has many small operations, which one core computes as fast as two; two searches use both cores.
    """
    threads = min(len(batches), _batches_at_once())
    if threads < 2:
        return [compute(batch) for batch in batches]
    pool = ThreadPoolExecutor(threads, "translate")
    try:
        # The last batch has the longest sentences. It starts first, so that it does not run alone at the end.
        return [*pool.map(compute, reversed(batches))][::-1]
    finally:
        pool.shutdown(cancel_futures=True)


def _pad_rows(rows: list[list[int]]) -> np.ndarray:
    """Return rows of ids, padded to the longest row: int32 [B, T]."""
    padded = np.full([len(rows), max(map(len, rows))], PAD, np.int32)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def load_together(
    config: Config, parts: Sequence[tuple[ModelConfig, WeightsFile]], source: int, target: int
) -> TensorFlowEngine:
    """Return the engine of a model, or of an ensemble of several models.

    Args:
        config: configuration, with the decoding settings.
        parts: section model and weights of each model.
        source: number of source ids.
        target: number of target ids.

    Raises: the errors of ``TensorFlowEngine.load``.
    """
    engines = [
        TensorFlowEngine.load(config.model_copy(update={"model": model}), source, target, weights)
        for model, weights in parts
    ]
    return engines[0] if len(engines) == 1 else TensorFlowEngine(Ensemble([engine.model for engine in engines]), config)
