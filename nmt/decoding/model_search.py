"""Search with a model: token ids in, hypotheses out.

Shapes: B sentences, K beams of each, S source length, P length of forced prefixes, T longest limit.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import beam_search
from nmt.decoding.sampling import sample, step_search
from nmt.decoding.search import Hypotheses, SearchLimits, SpecialIds
from nmt.decoding.search_options import GREEDY, SearchOptions
from nmt.models.base import Seq2SeqModel
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

IDS = SpecialIds(PAD, BOS, EOS)
FEW_STEPS = 25
"""Search steps that take less time eagerly than compiling them first, as measured with base.yaml's model on 2 cores."""


class ModelState(NamedTuple):
    """Search state of a model: the encoder's output, which all beams share, and the decoder's state."""

    encoded: Any
    """``EncoderOutput`` of B sentences."""
    decoder: Any
    """``DecoderState`` of K beams of each."""

    def reorder(self, parents: tf.Tensor) -> "ModelState":
        """See ``nmt.decoding.search.SearchState``."""
        return self._replace(decoder=self.decoder.reorder(parents))

    def select(self, rows: tf.Tensor) -> "ModelState":
        """See ``nmt.decoding.search.SearchState``."""
        return ModelState(self.encoded.select(rows), self.decoder.select(rows))


class ModelSearch:
    """Search with a model by the settings of a decoding section. Several threads may use it."""

    def __init__(self, model: Seq2SeqModel, config: DecodingConfig) -> None:
        """Take the model, whose weights may change later, and the settings."""
        self.model, self.config = model, config
        self._compiled: dict[tuple[SearchOptions, bool], Callable[..., Hypotheses]] = {}
        self._compiling = threading.Lock()

    def find(
        self,
        source: np.ndarray,
        max_lengths: np.ndarray,
        options: SearchOptions = GREEDY,
        *,
        prefix: list[int] | None = None,
        numbers: list[int] | None = None,
        compiled: bool = True,
    ) -> Hypotheses:
        """Return the hypotheses of B sentences.

        Args:
            source: int32 [B, S].
            max_lengths: most tokens of each hypothesis, eos included: int32 [B].
            options: kind of search.
            prefix: ids that every hypothesis begins with.
            numbers: number of each sentence, which decides with the seed what sampling draws; 0 .. B - 1 by default.
            compiled: whether to compile the search, which pays for more than ``FEW_STEPS`` steps.
        """
        random = np.zeros([len(source), 0], np.float32)
        if options.sampled:
            seed, count = self.config.seed, int(max_lengths.max())
            random = np.stack([random_numbers(seed, number, count) for number in numbers or range(len(source))])
        prefixes = np.tile(np.array([prefix or []], np.int32), [len(source), 1])
        search = self._search_function(options, bool(prefix), compiled=compiled)
        return search(*(tf.constant(array) for array in (source, max_lengths, prefixes, random)))

    def _search_function(self, options: SearchOptions, prefixed: bool, *, compiled: bool) -> Callable[..., Hypotheses]:
        search = functools.partial(self.search, options, prefixed)
        if not compiled:
            return search
        rows, numbers = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
        signature = [rows, numbers, rows, tf.TensorSpec([None, None], tf.float32)]
        with self._compiling:
            if (options, prefixed) not in self._compiled:
                # Nothing in it is for autograph to convert.
                self._compiled[options, prefixed] = tf.function(search, input_signature=signature, autograph=False)
            return self._compiled[options, prefixed]

    def search(
        self,
        options: SearchOptions,
        prefixed: bool,
        source: tf.Tensor,
        max_lengths: tf.Tensor,
        prefixes: tf.Tensor,
        random: tf.Tensor,
    ) -> Hypotheses:
        """Search for source [B, S], limits [B] and prefixes [B, P], int32 each, by random numbers float32 [B, T].

        ``find`` calls it eagerly or compiled; an export traces it.
        """
        config = self.config
        limits = SearchLimits(max_lengths, prefixes if prefixed else None)
        beams = 1 if options.sampled else config.beam_size
        covering = config.coverage_penalty > 0 and beams > 1
        encoded = self.model.encode(source)
        state = ModelState(encoded, self.model.initial_state(encoded, beams))

        def step(tokens: tf.Tensor, state: ModelState) -> tuple[tf.Tensor, tf.Tensor | None, ModelState]:
            output = self.model.step(tokens, state.encoded, state.decoder, attention=covering)
            return output.logits, output.attention, state._replace(decoder=output.state)

        if options.sampled:
            return sample(
                step, state, limits, IDS, random,
                temperature=config.temperature, top_k=config.top_k, top_p=config.top_p, scored=options.scored,
            )  # fmt: skip
        if beams == 1:
            return step_search(step, state, limits, IDS, scored=options.scored)
        words = tf.reduce_all(tf.not_equal(source[..., tf.newaxis], [PAD, BOS, EOS]), axis=-1)
        return beam_search(
            step, state, limits, IDS, beams=beams, n_best=options.n_best, alpha=config.length_penalty,
            beta=config.coverage_penalty, covered=words,
        )  # fmt: skip


def random_numbers(seed: int, number: int, count: int) -> np.ndarray:
    """Return numbers from [0, 1) that depend on the seed and the number of a sentence alone: float32 [count]."""
    generator = np.random.Generator(np.random.Philox(key=[seed, number]))
    return generator.random(count, dtype=np.float32)
