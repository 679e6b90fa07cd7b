"""Translation of sentences as they stand, using only the files of a run directory or of an export.

``nmt.text.translator`` adds the handling of ordinary text. ``SentenceTranslator.open`` loads TensorFlow for a run, and
CTranslate2 or fxtranslate for an export.
"""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np

from nmt.config.loading import change_decoding
from nmt.config.schema import Config, DecodingConfig
from nmt.data.manifest import Direction, Manifest, read_manifest
from nmt.decoding.exported import BERGAMOT, ExportedModel
from nmt.decoding.lengths import check_length, max_lengths, memory_checked
from nmt.decoding.minimum_risk import by_expected_chrf
from nmt.decoding.translation import (
    BEST,
    AttentionMaps,
    CrossAttention,
    Engine,
    SearchOptions,
    Translation,
    check_pairs,
    require_attention,
    sentence_name,
    translations_of,
)
from nmt.errors import DataError, NmtError, TooLongError
from nmt.interface import public
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import WeightsFile, check_alike, choose_epoch
from nmt.storage.arrays import read_checksum
from nmt.tokenizers.base import BOS, EOS, Tokenizer, tag_id
from nmt.tokenizers.registry import load_tokenizer

MOST_LINES = 2**24
"""Distance between the numbers of the first lines of two samples, which select their random numbers."""
MOST_TOKENS = 2**30
"""More than any translation has."""


class SentenceTranslator(AbstractContextManager["SentenceTranslator"]):
    """A trained model with its tokenizers: sentences in, translations out. Several threads may use it.

    The model reads a sentence as it stands. The end of a ``with`` block, or ``close``, releases the model and its
    threads.

    Shapes: T target length, S source length, both in tokens.
    """

    def __init__(
        self, engine: Engine, source: Tokenizer, target: Tokenizer, config: Config, epoch: WeightsId,
        manifest: Manifest | None = None, run: Run | None = None, weights: str | None = None,
    ) -> None:  # fmt: skip
        """Create a translator from its parts; ``open`` reads them from disk."""
        self._engine: Engine | None = engine
        self._engines: dict[DecodingConfig, Engine] = {}
        self.source, self.target, self.config = source, target, config
        self._manifest, self._run = manifest, run
        self.may_repeat = manifest is not None and manifest.has_ordinary_repeats
        """Whether training targets often repeat phrases, so that translations may."""
        self.epoch, self.weights = epoch, weights
        """Weights: an epoch number, "average", or for example "step-1500"; and their SHA-256, None if unknown."""
        self.direction = chosen_direction(manifest, config.decoding)
        """Languages that it translates between."""
        self.tags = tags_before(source, config.decoding, self.direction, manifest)
        """Ids of the tags before each source."""

    @classmethod
    def open(
        cls, trained: Run | ExportedModel, epoch: str | None = None,
        decoding: DecodingConfig | Mapping[str, Any] | None = None,
        members: Sequence[tuple[Run, str | None]] = (),
    ) -> Self:  # fmt: skip
        """Return the translator of a run, which computes in TensorFlow, or of an export to CTranslate2 or Bergamot.

        Args:
            trained: a run with weights, or an export, which has weights of its own.
            epoch: weights of the run: the number of an epoch, "last", "best" or "average"; by default the average if
                the run has one, else the best.
            decoding: search settings; or some of them, by key, with the run's for the others; None uses the run's.
            members: further runs of an ensemble, with their weights. The ensemble predicts the mean of all
                probabilities.

        Raises:
            NotFoundError: if the weights do not exist, or the program of an export is not installed.
            ConflictError: if the runs of an ensemble have different vocabularies.
            ConfigError: if a value of ``decoding`` breaks the schema, or an export cannot follow it.
            DataError: if a part of the run or the export is damaged.
        """
        run = trained if isinstance(trained, Run) else trained.run
        config = run.config()
        if not isinstance(decoding, DecodingConfig):
            own = config.decoding if isinstance(trained, Run) else trained.decoding()
            decoding = change_decoding(own, decoding or {}, exported=run is not trained)
        config = config.model_copy(update={"decoding": _with_beam(decoding)})
        if isinstance(trained, Run):
            weights = WeightsFile(run, choose_epoch(run, epoch, config))
        else:
            trained.require()
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        manifest = read_manifest(run.dataset_path)
        if isinstance(trained, ExportedModel):
            export = trained.description
            exported = _exported_engine(trained, config, source, target)
            return cls(exported, source, target, config, export.epoch, manifest, run, export.weights)

        from nmt.decoding.tensorflow_engine import load_together  # noqa: PLC0415 - TensorFlow starts late

        parts = [(config.model, weights)]
        for member, member_epoch in members:
            check_alike(run, member)
            member_config = member.config()
            member_weights = WeightsFile(member, choose_epoch(member, member_epoch, member_config))
            parts.append((member_config.model, member_weights))
        checksum = None if members else read_checksum(weights.path)
        engine = load_together(config, parts, source.size, target.size)
        names = "+".join(str(file.epoch) for _, file in parts) if members else weights.epoch
        return cls(engine, source, target, config, names, manifest, run, checksum)

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of the source and the target language; "source" and "target" if they are unknown."""
        return self.direction.languages

    @property
    def engine(self) -> Engine:
        """The engine of the model.

        Raises:
            NmtError: if the translator is closed.
        """
        if self._engine is None:
            raise NmtError("The translator is closed and can no longer translate. Load the run again.")
        return self._engine

    def close(self) -> None:
        """Release the model. The threads of CTranslate2 end with the last translator of an export."""
        self._engine = None
        self._engines.clear()

    def __enter__(self) -> Self:
        """Return the translator."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the translator."""
        self.close()

    def reconfigured(self, decoding: DecodingConfig) -> Self:
        """Return a translator of the same weights with other decoding settings, prepared for many calls."""
        decoding = _with_beam(decoding)
        config = self.config.model_copy(update={"decoding": decoding})
        parts = self.source, self.target, config, self.epoch, self._manifest, self._run, self.weights
        return type(self)(self.engine.reconfigured(decoding), *parts)

    def search(
        self,
        texts: Sequence[str],
        options: SearchOptions = BEST,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        settings: DecodingConfig | None = None,
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each sentence, all with different texts, best first.

        Args:
            texts: sentences, which the model reads as they stand.
            options: kind of search.
            prefix: text that every translation begins with.
            names: name of each sentence in error messages.
            skip_too_long: return an empty translation for a sentence that is longer than the model reads, instead of
                raising.
            settings: search settings for these sentences; None uses the settings of the translator.

        Raises: the errors of ``nmt.text.translator.Translator.translate``.
        """
        decoding = settings or self.config.decoding
        count = decoding.mbr_candidates
        if not count:
            return self._search_once(texts, options, prefix, names, skip_too_long, settings)
        if options.sampled or decoding.mbr_sampled:
            firsts = [options.first + draw * MOST_LINES for draw in range(count)]
            searches = [options._replace(sampled=True, n_best=1, first=first) for first in firsts]
        else:
            searches = [options._replace(n_best=max(options.n_best, count))]
        found = [self._search_once(texts, search, prefix, names, skip_too_long, settings) for search in searches]
        candidates = [list(itertools.chain(*translations)) for translations in zip(*found, strict=True)]
        return [_least_risk(translations)[: options.n_best] for translations in candidates]

    def _search_once(
        self, texts: Sequence[str], options: SearchOptions, prefix: str, names: Sequence[str] | None,
        skip_too_long: bool, settings: DecodingConfig | None,
    ) -> list[list[Translation]]:  # fmt: skip
        """Return at most ``options.n_best`` translations of each sentence as the model prefers them; see ``search``."""
        engine = self._engine_for(settings)
        encoded = self.encode(texts, names, skip_too_long)
        if words := self.target.unknown(prefix):
            raise DataError(
                f"Prefix {prefix!r} contains the word {words[0]!r}, which the model never saw in training. The model "
                "must be able to generate every word of a prefix. Leave that word out."
            )
        prefixes = [self.target.encode(prefix)] * len(texts)
        lengths = np.array([len(ids) + 1 + int(self.config.model.reads_bos) for ids in encoded], np.int64)
        prefix_lengths = np.array([*map(len, prefixes)] or 0, np.int32)
        limits = max_lengths(self.config, lengths, prefix_lengths)
        if engine.positions is not None:
            limits = np.minimum(limits, engine.positions)
        # Request the whole beam, since some of its hypotheses may have the same text.
        beams = (settings or self.config.decoding).beam_size
        search_options = options._replace(n_best=max(options.n_best, beams) if options.n_best > 1 else 1)
        with memory_checked(encoded, names, self.config.decoding.batch_size):
            hypotheses = engine.search(encoded, limits, search_options, prefixes if any(prefixes) else ())
        return [
            translations_of(text, ids, best, options, self.source, self.target)
            for text, ids, best in zip(texts, encoded, hypotheses, strict=True)
        ]

    def _engine_for(self, settings: DecodingConfig | None) -> Engine:
        """Return the engine with search settings, prepared for few calls unless they are the translator's own."""
        if settings is None or settings == self.config.decoding:
            return self.engine
        if settings not in self._engines:
            self._engines[settings] = self.engine.reconfigured(settings, prepared=False)
        return self._engines[settings]

    @property
    def longest(self) -> int:
        """Most tokens of a translation that the model can write, eos included."""
        limits = (self.config.model.limits.target, self.engine.positions)
        return min((limit for limit in limits if limit is not None), default=MOST_TOKENS)

    def token_scores(self, texts: Sequence[str], translations: Sequence[list[int]]) -> list[np.ndarray]:
        """Return the log-probabilities of the ids of translations, whole or partial, of texts as they stand."""
        return self.engine.token_scores(self.encode(texts), [*translations])

    def encode(
        self, texts: Sequence[str], names: Sequence[str] | None = None, skip_too_long: bool = False
    ) -> list[list[int]]:
        """Return the ids of raw sentences, without bos and eos; no ids for a skipped sentence."""
        encoded = [[*self.tags, *ids] if ids else [] for ids in map(self.source.encode, texts)]
        for index, ids in enumerate(encoded):
            try:
                check_length(self.config, "source", len(ids), sentence_name(names, index), self.engine.positions)
            except TooLongError:
                if not skip_too_long:
                    raise
                encoded[index] = []
        return encoded

    @public
    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, names: Sequence[str] | None = None
    ) -> list[float]:
        """Return log P(target | source) of each pair of raw sentences, natural logarithm, eos included.

        Raises:
            DataError: if a source or a target is longer than the model reads or writes.
            NmtError: if the numbers of sources and targets differ.

        >>> good, bad = nmt.load("base").score(["im thirsty"] * 2, ["ich bin durstig", "sieben"])
        >>> 0 > good > bad
        True
        """
        check_pairs(sources, targets)
        names = names or [f"pair {number}" for number in range(1, len(sources) + 1)]
        encoded = self.encode(sources, names)
        translations = [[*self.target.encode(text), EOS] for text in targets]
        for ids, name in zip(translations, names, strict=True):
            check_length(self.config, "target", len(ids) - 1, f"the translation of {name}", self.engine.positions)
        return [float(scores.sum()) for scores in self.engine.token_scores(encoded, translations)]

    def cross_attention(
        self, texts: Sequence[str], translations: Sequence[Translation]
    ) -> list[CrossAttention] | None:  # fmt: skip
        """Return the decoder's attention to sentences as they stand; None for a model without attention."""
        encoded, targets = self.encode(texts), [translation.ids for translation in translations]
        weights = self.engine.cross_attention(encoded, targets)
        if weights is None:
            return None
        bos = [BOS] if self.config.model.reads_bos else []
        sources = [[*bos, *ids, EOS] for ids in encoded]
        return [CrossAttention(*parts) for parts in zip(sources, targets, weights, strict=True)]

    @public
    def attention(self, sources: Sequence[str], translations: Sequence[Translation]) -> list[CrossAttention]:
        """Return the decoder's attention to the source while it writes translations of raw sentences.

        The results have ``weights``, float32 [layers, heads, T, S], and ``alignment()``, pairs (source token, target
        token). The weights of an export are the mean over the heads of the last layer, [1, 1, T, S].

        Raises:
            DataError: for a model without attention.

        >>> translator = nmt.load("base")
        >>> [attention] = translator.attention(["im thirsty"], translator.translate_details(["im thirsty"]))
        >>> attention.weights.shape
        (1, 4, 4, 4)
        >>> len(attention.alignment())
        3
        """
        check_pairs(sources, translations)
        inputs = [_model_input(*pair) for pair in zip(sources, translations, strict=True)]
        return require_attention(self.cross_attention(inputs, translations), self.config)

    @public
    def attention_maps(self, source: str, translation: Translation) -> AttentionMaps:
        """Return all attention of the model on a raw sentence, which has at least one word, and its translation.

        Raises:
            DataError: for a model without attention, and for an export, which gives only cross-attention.
        """
        [ids] = self.encode([_model_input(source, translation)])
        return require_attention(self.engine.attention_maps(ids, translation.ids), self.config)

    @public
    def given_translation(self, text: str) -> Translation:
        """Return a human translation, a raw sentence, as if the model had written it; ``unknown`` is empty.

        Raises:
            DataError: if the text has no words, or is longer than the model writes.
        """
        ids = self.target.encode(text)
        if not ids:
            raise DataError(
                f"Translation {text[:60]!r} has no words after normalization. Give a translation with a word."
            )
        check_length(self.config, "target", len(ids), f"translation {text[:60]!r}", self.engine.positions)
        return Translation(text, [], True, [*ids, EOS])


def _exported_engine(exported: ExportedModel, config: Config, source: Tokenizer, target: Tokenizer) -> Engine:
    """Return the engine of an export."""
    if exported.description.to == BERGAMOT:
        from nmt.decoding.bergamot_engine import BergamotEngine  # noqa: PLC0415 - an extra

        return BergamotEngine(exported.folder, config, source, target)
    from nmt.decoding.ctranslate2_engine import CTranslate2Engine  # noqa: PLC0415 - an extra

    return CTranslate2Engine(exported.folder, config, exported.description.positions)


def _with_beam(decoding: DecodingConfig) -> DecodingConfig:
    """Return search settings with a beam that has all candidates of minimum Bayes risk decoding."""
    if decoding.mbr_sampled or decoding.mbr_candidates <= decoding.beam_size:
        return decoding
    return decoding.model_copy(update={"beam_size": decoding.mbr_candidates})


def _least_risk(translations: list[Translation]) -> list[Translation]:
    """Return the different translations of a sentence, the one that is most like all of them first.

    A translation that the model has not ended comes after those that end.
    """
    ranked = [translations[index] for index in by_expected_chrf([translation.text for translation in translations])]
    different: dict[str, Translation] = {}
    for translation in ranked:
        different.setdefault(translation.text, translation)
    return sorted(different.values(), key=lambda translation: not translation.finished)


def tags_before(
    source: Tokenizer, decoding: DecodingConfig, direction: Direction, manifest: Manifest | None
) -> list[int]:
    """Return the ids of the tags before each source: of the corpus that the settings choose, and of the language."""
    tags = [decoding.tag, direction.tag]
    if manifest and decoding.tag in {known.tag for known in manifest.directions}:
        tags = [direction.tag]  # the settings choose a language by its tag
    return [tag_id(source, tag) for tag in tags if tag is not None]


def chosen_direction(manifest: Manifest | None, decoding: DecodingConfig) -> Direction:
    """Return the direction that the settings choose.

    Raises:
        NmtError: if the model does not know a language, or has several target languages and none is chosen.
    """
    if manifest is None:
        return Direction(source=decoding.source_language or "source", target=decoding.target_language or "target")
    if decoding.tag and decoding.target_language is None:
        for direction in manifest.directions:
            if direction.tag == decoding.tag:
                return direction
    return manifest.direction(decoding.source_language, decoding.target_language)


def _model_input(source: str, translation: Translation) -> str:
    """Return the text that the model read for a translation of a source sentence."""
    return source if translation.read is None else translation.read
