"""Text to ids, search, ids to text: what a run directory needs to translate, and nothing of ``data/``.

Shapes: B batch, S source length, T target length, N longest limit, P longest prefix, n translations of a sentence.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nmt import runtime
from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.data.batch_plan import pad_rows
from nmt.data.token_arrays import Sequences
from nmt.decoding.alignment import Attention
from nmt.decoding.beam import beam
from nmt.decoding.sampling import greedy, sample
from nmt.decoding.search import Found, Ids, Task
from nmt.errors import DataError
from nmt.models.build import build_model, fewest_weights, teacher_forced
from nmt.models.transformer.model import Cache, Memory, Transformer
from nmt.runs.directory import Run
from nmt.runs.metrics import Epoch
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

IDS = Ids(PAD, BOS, EOS)
FEW_STEPS = 25
"""If all limits together allow no more steps of search, running them operation by operation takes less time than to
compile them first: about as much as so many steps, for base.yaml's model on two cores."""


class Translation(NamedTuple):
    """A translated sentence."""

    text: str
    unknown: list[str]
    """Words of the source that the model does not know; the whole of it if normalization leaves nothing."""
    is_whole: bool
    """Whether the model ended it, rather than the limit on its length."""
    ids: list[int]
    """Its tokens, with eos if the model ended it."""
    score: float | None = None
    """Log-probability, with the penalties of beam search; None where nobody asked for it."""


class Sentences(NamedTuple):
    """The cache of search over sentences: their memories, which all beams share, and what each beam keeps."""

    memory: Memory
    cache: Cache

    def reorder(self, parents: tf.Tensor) -> "Sentences":
        """See ``nmt.search_loop.Cache``."""
        return self._replace(cache=self.cache.reorder(parents))

    def keep(self, sentences: tf.Tensor, room: tf.Tensor) -> "Sentences":
        """See ``nmt.search_loop.Cache``."""
        return Sentences(self.memory.keep(sentences), self.cache.keep(sentences, room))


class How(NamedTuple):
    """What kind of search; its figures are in the decoding section."""

    sampled: bool = False
    """Draw tokens instead of looking for the likeliest."""
    n_best: int = 1
    """Translations for each sentence; more than one come of a beam."""
    scored: bool = False
    """Whether scores are wanted."""


GREEDY = How()


class Translator:
    """A trained model with its tokenizers: raw text in, raw text out."""

    def __init__(self, model: Transformer, source: Tokenizer, target: Tokenizer, config: Config, epoch: Epoch) -> None:
        """Take the parts; ``load`` gets them from a run."""
        self.model, self.source, self.target, self.config, self.epoch = model, source, target, config, epoch
        self._compiled: dict[tuple[How, bool], Callable[..., Found]] = {}

    @classmethod
    def load(
        cls,
        run: Run,
        epoch: str | None = None,
        decoding: DecodingConfig | None = None,
        weights: WeightsFile | None = None,
    ) -> "Translator":
        """Return the translator of a run at an epoch: a number, "last", or by default the best.

        Args:
            run: a run with weights.
            epoch: which of them.
            decoding: other settings of search than the run's own.
            weights: those of that epoch, if somebody has begun to read them.

        Raises:
            NotFoundError: if that epoch's weights are not there.
            DataError: if a part of the run is damaged.
        """
        weights = weights or WeightsFile(run, choose_epoch(run, epoch))
        config = run.config()
        if decoding is not None:
            config = config.model_copy(update={"decoding": decoding})
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        weights.check_size(fewest_weights(config.model, target.size))
        precision = runtime.resolve_precision(config.decoding.precision)
        model = build_model(config.model, source.size, target.size, precision, trained=True)
        weights.load(model)
        return cls(model, source, target, config, weights.epoch)

    def translate(
        self, texts: list[str], names: list[str] | None = None, how: How = GREEDY, prefix: str = ""
    ) -> list[Translation]:
        """Return the translations of raw sentences, in their order; an empty sentence has an empty one.

        Args:
            texts: sentences, one each.
            names: what an error calls each of them, such as "line 7".
            how: what kind of search.
            prefix: what every translation must begin with, raw text.

        Raises:
            DataError: for a sentence longer than learned positions reach.
        """
        return [several[0] for several in self.translate_n_best(texts, names, how, prefix)]

    def translate_n_best(
        self, texts: list[str], names: list[str] | None = None, how: How = GREEDY, prefix: str = ""
    ) -> list[list[Translation]]:
        """Return for each sentence its ``how.n_best`` translations, or what fewer there are, the best first.

        Args, raises: as for ``translate``.
        """
        encoded = [self.source.encode(text) for text in texts]
        self._check_lengths(encoded, names or [f"sentence {n}" for n in range(1, len(texts) + 1)])
        unknown = [self._unknown(*one) for one in zip(texts, encoded, strict=True)]
        forced = self.target.encode(prefix)
        if self.target.unknown(prefix):
            raise DataError(
                f"A prefix is made of words that the model can say; {prefix!r} has {self.target.unknown(prefix)[0]!r}, "
                "which it never saw in training. Leave that word out."
            )
        found = [[Translation("", words, True, [], 0.0 if how.scored else None)] for words in unknown]
        batches = list(self._batches(encoded))
        limits = [self._limits(self._rows([encoded[index] for index in batch]), forced) for batch in batches]
        few = sum(int(one.max()) for one in limits) <= FEW_STEPS
        for batch in batches:
            tokens, scores = self._search([encoded[index] for index in batch], batch, how, forced, compiled=not few)
            for index, rows, values in zip(batch, tokens, scores, strict=True):
                found[index] = [
                    self._translation(row, unknown[index], value if how.scored else None)
                    for row, value in zip(rows.tolist(), values.tolist(), strict=True)
                    if value > float("-inf")
                ]
        return found

    def score(self, sources: list[str], targets: list[str], names: list[str] | None = None) -> list[float]:
        """Return log P(target | source), natural and with that of eos, of each pair of raw sentences.

        Raises:
            DataError: for a sentence longer than learned positions reach.
        """
        encoded = [self.source.encode(text) for text in sources]
        wanted = [[*self.target.encode(text), EOS] for text in targets]
        self._check_lengths(encoded, names or [f"pair {n}" for n in range(1, len(sources) + 1)])
        scores = np.zeros(len(sources))
        for batch in self._batches([source + target for source, target in zip(encoded, wanted, strict=True)]):
            source, target = self._rows([encoded[index] for index in batch]), _padded([wanted[i] for i in batch])
            scores[batch] = self._log_probabilities(tf.constant(source), tf.constant(target)).numpy()
        return scores.tolist()

    def attention(self, sources: list[str], translations: list[Translation]) -> list[Attention]:
        """Return where the decoder looks while it writes these translations of raw sentences."""
        encoded = [self.source.encode(text) for text in sources]
        layers, heads = self.config.model.decoder_layers, self.config.model.heads
        found = [Attention([], [], np.zeros([layers, heads, 0, 0], np.float32)) for _ in sources]
        targets = [translation.ids for translation in translations]
        for batch in self._batches(targets):
            source, target = self._rows([encoded[index] for index in batch]), _padded([targets[i] for i in batch])
            weights = np.stack([part.numpy() for part in self._attend(tf.constant(source), tf.constant(target))])
            for row, index in enumerate(batch):
                ids, length = [id_ for id_ in source[row].tolist() if id_ != PAD], len(targets[index])
                found[index] = Attention(ids, targets[index], weights[:, row, :, :length, : len(ids)])
        return found

    def _translation(self, row: list[int], unknown: list[str], score: float | None) -> Translation:
        ids = [id_ for id_ in row if id_ != PAD]
        return Translation(self.target.decode(ids), unknown, EOS in ids, ids, score)

    def _unknown(self, text: str, ids: list[int]) -> list[str]:
        return self.source.unknown(text) if ids or not text.strip() else [text.strip()]

    def _check_lengths(self, encoded: list[list[int]], names: list[str]) -> None:
        if self.config.model.positions != "learned":
            return
        longest = self.config.model.max_positions - 1 - int(self.config.model.source_bos)
        for ids, name in zip(encoded, names, strict=True):
            if len(ids) > longest:
                raise DataError(
                    f"This model was trained with learned positions for at most {longest} tokens of source; {name} "
                    f"has {len(ids)}. Split it, or train with model.positions=sinusoidal."
                )

    def _batches(self, encoded: list[list[int]]) -> Iterator[list[int]]:
        """Indices of sentences that have words, those of like length together."""
        order = sorted((index for index, ids in enumerate(encoded) if ids), key=lambda index: len(encoded[index]))
        size = self.config.decoding.batch_size
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def _rows(self, encoded: list[list[int]]) -> np.ndarray:
        """Ids as the encoder reads them: int32 [B, S]."""
        rows = Sequences.from_rows(encoded, self.source.size)
        return pad_rows(rows, np.arange(len(encoded)), bos=self.config.model.source_bos)

    # --- search

    def _search(
        self, encoded: list[list[int]], numbers: list[int], how: How, prefix: list[int], *, compiled: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids int32 [B, n, N] and scores float32 [B, n] for sentences with these numbers."""
        source = self._rows(encoded)
        limits = self._limits(source, prefix)
        random = np.zeros([len(encoded), 0], np.float32)
        if how.sampled:
            random = np.stack([random_numbers(self.config.decoding.seed, number, limits.max()) for number in numbers])
        prefixes = np.tile(np.array([prefix], np.int32), [len(encoded), 1])
        arguments = [tf.constant(array) for array in (source, limits, prefixes, random)]
        search: Callable[..., Found] = functools.partial(self._find, how, bool(prefix))
        if compiled:
            search = self._compiled.setdefault((how, bool(prefix)), _compiled(search))
        found = search(*arguments)
        return found.tokens.numpy(), found.scores.numpy()

    def _limits(self, source: np.ndarray, prefix: list[int]) -> np.ndarray:
        """Most tokens of the translation of each row of source [B, S], a prefix included: int32 [B]."""
        settings = self.config.decoding
        lengths = (source != PAD).sum(axis=1)
        limits = (settings.max_length_ratio * lengths).astype(np.int32) + settings.max_length_extra + len(prefix)
        learned = self.config.model.positions == "learned"
        return np.minimum(limits, self.config.model.max_positions) if learned else limits

    def _find(
        self, how: How, forced: bool, source: tf.Tensor, limits: tf.Tensor, prefixes: tf.Tensor, random: tf.Tensor
    ) -> Found:
        """Search for source [B, S], limits [B] and prefixes [B, P], int32 each, by random numbers float32 [B, N]."""
        settings = self.config.decoding
        task = Task(limits, prefixes if forced else None)
        beams = 1 if how.sampled else settings.beam_size
        covering = settings.coverage_penalty > 0 and beams > 1
        sentences = Sentences(self.model.encode(source), self.model.new_cache(tf.shape(source)[0], 0, beams))

        def step(tokens: tf.Tensor, past: Sentences) -> tuple[tf.Tensor, tf.Tensor | None, Sentences]:
            logits, cache, attention = self.model.decode_with_attention(tokens, past.memory, past.cache)
            last = tf.reduce_mean(tf.cast(attention[-1], tf.float32), axis=1) if covering else None
            return logits, last, past._replace(cache=cache)

        if how.sampled:
            return sample(
                step, sentences, task, IDS, random,
                temperature=settings.temperature, top_k=settings.top_k, top_p=settings.top_p, scored=how.scored,
            )  # fmt: skip
        if beams == 1:
            return greedy(step, sentences, task, IDS, scored=how.scored)
        words = tf.reduce_all(tf.not_equal(source[..., tf.newaxis], [PAD, BOS, EOS]), axis=-1)
        return beam(
            step, sentences, task, IDS, beams=beams, n_best=how.n_best, alpha=settings.length_penalty,
            beta=settings.coverage_penalty, covered=words,
        )  # fmt: skip

    def _log_probabilities(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Source [B, S] and target [B, T] to eos, int32 -> log P float32 [B]."""
        whole = tf.pad(target, [[0, 0], [1, 0]], constant_values=BOS)
        logits, expected = teacher_forced(self.model, source, whole, packed=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=tf.cast(logits, tf.float32))
        return -tf.reduce_sum(tf.where(tf.not_equal(expected, PAD), losses, 0.0), axis=1)

    def _attend(self, source: tf.Tensor, target: tf.Tensor) -> list[tf.Tensor]:
        """Source [B, S] and target [B, T], int32 -> float32 [B, H, T, S] for each layer."""
        read = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
        _, _, attention = self.model.decode_with_attention(read, self.model.encode(source))
        return [tf.cast(part, tf.float32) for part in attention]


def random_numbers(seed: int, number: int, count: int) -> np.ndarray:
    """Return numbers from [0, 1) that hang on the seed and the number of a sentence alone: float32 [count]."""
    generator = np.random.Generator(np.random.Philox(key=[seed, number]))
    return generator.random(count, dtype=np.float32)


def _padded(rows: list[list[int]]) -> np.ndarray:
    out = np.full([len(rows), max(map(len, rows))], PAD, np.int32)
    for padded, row in zip(out, rows, strict=True):
        padded[: len(row)] = row
    return out


def _compiled(search: Callable[..., Found]) -> Any:
    rows, numbers = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
    signature = [rows, numbers, rows, tf.TensorSpec([None, None], tf.float32)]
    return tf.function(search, input_signature=signature, autograph=False)  # nothing in it for autograph to convert
