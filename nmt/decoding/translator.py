"""Translation from text to text, with the files of a run directory or of an export alone.

``Translator.open`` loads TensorFlow for a run, CTranslate2 for an export.
"""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from nmt.config.schema import Config, DecodingConfig
from nmt.data.manifest import Manifest, read_manifest
from nmt.decoding.exported import ExportedModel
from nmt.decoding.lengths import check_length, max_lengths, memory_checked
from nmt.decoding.text.ordinary import CAREFUL_BEAM, Found, OrdinaryText, careful
from nmt.decoding.text.reading import Reader
from nmt.decoding.text.rewriting import Alignment, judged
from nmt.decoding.text.terms import TOKENS, TermSearch, keep_terms, varied
from nmt.decoding.translation import (
    BEST,
    AttentionMaps,
    CrossAttention,
    Engine,
    SearchOptions,
    Translation,
    check_pairs,
    existing,
    name_of,
    translations_of,
)
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError, TooLongError, counted
from nmt.extras import require
from nmt.interface import public
from nmt.message import Argument, Settings
from nmt.runs.calibration import Calibration, read_calibration
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import WeightsFile, check_alike, choose_epoch
from nmt.storage.arrays import read_checksum
from nmt.tokenizers.base import BOS, EOS, Tokenizer, tag_id
from nmt.tokenizers.marks import MARK
from nmt.tokenizers.registry import load_tokenizer

MOST_TOKENS = 2**30
"""More than any translation has."""


class Translator(AbstractContextManager["Translator"]):
    """A trained model with its tokenizers: raw text in, raw text out. Several threads may use it.

    ``nmt.load`` makes it. At the end of a ``with`` block, or by ``close``, it gives up its model and threads.
    Shapes: T target length, S source length, both in tokens.
    """

    def __init__(
        self, engine: Engine, source: Tokenizer, target: Tokenizer, config: Config, epoch: WeightsId,
        manifest: Manifest | None = None, run: Run | None = None, weights: str | None = None,
    ) -> None:  # fmt: skip
        """Take the parts, the manifest of the dataset, the run, and its weights; ``open`` reads them from disk."""
        self._engine: Engine | None = engine
        self._careful: dict[DecodingConfig, Engine] = {}
        self.source, self.target, self.config = source, target, config
        self._manifest, self._run = manifest, run
        self._may_repeat = manifest is not None and manifest.has_ordinary_repeats
        self.epoch, self.weights = epoch, weights
        """Weights in use: an epoch number, "average", or such as "step-1500"; and their SHA-256, None if unknown."""
        tag = config.decoding.tag
        self._tag = [] if tag is None else [tag_id(source, tag)]

    @classmethod
    def open(
        cls, trained: Run | ExportedModel, epoch: str | None = None, decoding: DecodingConfig | None = None,
        others: Sequence[tuple[Run, str | None]] = (),
    ) -> "Translator":  # fmt: skip
        """Return the translator of a run, which computes in TensorFlow, or of an export to CTranslate2.

        Args:
            trained: a run with weights, or an export, whose weights are those it was made of.
            epoch: weights to use: the number of an epoch, "last", "best" or "average"; by default the average if the
                run has one, else the best.
            decoding: settings of search instead of the run's own.
            others: runs, with their weights, that translate together with a run: by the mean of their probabilities.

        Raises:
            NotFoundError: if there are no such weights, or CTranslate2 is not installed.
            ConflictError: if the runs read or write other tokens.
            DataError: if a part of the run or the export is damaged.
        """
        run = trained if isinstance(trained, Run) else trained.run
        if run is trained:
            weights = WeightsFile(run, choose_epoch(run, epoch))
        else:
            require("fast", "ctranslate2")
        config = run.config()
        if decoding is not None:
            config = config.model_copy(update={"decoding": decoding})
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        manifest = read_manifest(run.dataset_path)
        if isinstance(trained, ExportedModel):
            from nmt.decoding.ctranslate2_engine import CTranslate2Engine  # noqa: PLC0415 - an extra

            export = trained.description
            exported = CTranslate2Engine(trained.folder, config, export.positions)
            return cls(exported, source, target, config, export.epoch, manifest, run, export.weights)

        from nmt.decoding.tensorflow_engine import load_together  # noqa: PLC0415 - TensorFlow starts late

        parts = [(config.model, weights)]
        for other, own in others:
            check_alike(run, other)
            parts.append((other.config().model, WeightsFile(other, choose_epoch(other, own))))
        checksum = None if others else read_checksum(weights.path)
        engine = load_together(config, parts, source.size, target.size)
        names = "+".join(str(file.epoch) for _, file in parts) if others else weights.epoch
        return cls(engine, source, target, config, names, manifest, run, checksum)

    @property
    def engine(self) -> Engine:
        """The model; NmtError if the translator is closed."""
        if self._engine is None:
            raise NmtError("The translator is closed and translates no more. Load the run again.")
        return self._engine

    def close(self) -> None:
        """Give up the model. The threads of CTranslate2 end with the last translator of an export."""
        self._engine = None
        self._careful.clear()

    def __exit__(self, *_: object) -> None:
        """Close the translator."""
        self.close()

    def reconfigured(self, decoding: DecodingConfig) -> "Translator":
        """Return a translator of the same weights with other settings of decoding, prepared for many calls."""
        config = self.config.model_copy(update={"decoding": decoding})
        parts = self.source, self.target, config, self.epoch, self._manifest, self._run, self.weights
        return Translator(self.engine.reconfigured(decoding), *parts)

    @public
    def translate(
        self,
        texts: Sequence[str],
        *,
        prefix: str = "",
        sample: bool = False,
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
    ) -> list[str]:
        """Return the translations of raw sentences, in their order. An empty sentence has an empty translation.

        Args:
            prefix: text that every translation begins with.
            sample: draw words by their probabilities, instead of searching for the most probable translation.
            names: name of each sentence in error messages, such as "line 7".
            skip_too_long: give a sentence longer than the model reads an empty translation, instead of raising.

        Raises:
            TooLongError: if a sentence exceeds the learned positions.
            DataError: if the prefix has an unknown word.
            OutOfMemoryError: if memory does not hold a batch; names its longest sentence.

        >>> nmt.load("base").translate(["im thirsty"])
        ['ich bin durstig']
        """
        found = self.find(texts, SearchOptions(sample), prefix, names, skip_too_long)
        return [translations[0].text for translations in found]

    @public
    def translate_details(
        self,
        texts: Sequence[str],
        *,
        prefix: str = "",
        sample: bool = False,
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        scored: bool = True,
    ) -> list[Translation]:
        """Return the translations of raw sentences with their scores, token ids and unknown words.

        Args, Raises: as for ``translate``. Scores are None unless ``scored``.

        >>> [details] = nmt.load("base").translate_details(["im thirsty xylophone"])
        >>> details.unknown, details.score < 0
        (['xylophone'], True)
        """
        found = self.find(texts, SearchOptions(sample, scored=scored), prefix, names, skip_too_long)
        return [translations[0] for translations in found]

    @public
    def translate_n_best(
        self,
        texts: Sequence[str],
        n: int,
        *,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
    ) -> list[list[Translation]]:
        """Return the ``n`` best translations of each raw sentence with their scores, best first.

        Their texts differ: of equal texts, which are different tokens, the best stays. A sentence has fewer than ``n``
        where its beam has fewer different texts; a wider beam has more.

        Args, Raises: as for ``translate``, and NmtError if ``n`` exceeds the beam size.

        >>> translator = nmt.load("base", decoding={"beam_size": 5})
        >>> [[best, second]] = translator.translate_n_best(["im thirsty"], 2)
        >>> best.text, best.score > second.score
        ('ich bin durstig', True)
        """
        if n < 1:
            raise NmtError(Argument("n"), f" is {n}. It is a number of translations, 1 or more. Change the value.")
        return self.find(texts, SearchOptions(n_best=n, scored=True), prefix, names, skip_too_long)

    def find(
        self,
        texts: Sequence[str],
        options: SearchOptions = BEST,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each raw sentence with different texts, the best first."""
        if (n := options.n_best) > (beams := self.config.decoding.beam_size):
            raise NmtError(
                Argument("n", n),
                f" needs a beam of at least {n}; received a beam of {beams}. Give ",
                Settings({"decoding.beam_size": n}),
                " or more.",
            )
        if names is not None and len(names) != len(texts):
            received = f"{counted(len(texts), 'sentence')}, and names of length {len(names)}"
            raise NmtError(f"Received {received}. Give as many, or leave them out.")
        # With a prefix the model reads a text as it stands, marks of tags too: what is cut out would come before it.
        if prefix or (self.config.decoding.ordinary_text == "none" and not any(map(MARK.search, texts))):
            return self._search(texts, options, prefix, names, skip_too_long)
        return self._ordinary.find(texts, options, names, skip_too_long)

    @functools.cached_property
    def _ordinary(self) -> OrdinaryText:
        language = self._manifest.languages["source"] if self._manifest else "source"
        reader = Reader(self.source, language, split=self.config.decoding.ordinary_text != "lines")
        searches = [functools.partial(self._search_again, settings) for settings in careful(self.config.decoding)]
        may_repeat = self._may_repeat or self.config.decoding.beam_size > CAREFUL_BEAM
        return OrdinaryText(reader, self._search, searches, self._align, may_repeat)

    @functools.cached_property
    def calibration(self) -> Calibration:
        """What the confidence in translations is computed by; raises as ``read_calibration`` does."""
        return read_calibration(self._run or Run(Path()), self.epoch, self.weights)

    @property
    def is_calibrated(self) -> bool:
        """Whether confidence has been fitted for these weights."""
        try:
            return bool(self.calibration)
        except (NotFoundError, ConflictError):
            return False

    def _search_again(
        self, settings: DecodingConfig, texts: Sequence[str], options: SearchOptions,
        prefix: Sequence[list[int]] = (), most: int = MOST_TOKENS,
    ) -> Found:  # fmt: skip
        if settings not in self._careful:
            self._careful[settings] = self.engine.reconfigured(settings, prepared=False)
        options = options._replace(n_best=settings.beam_size)
        return self._search(texts, options, prefix, engine=self._careful[settings], most=most)

    def _align(self, texts: Sequence[str], translations: Sequence[Translation]) -> list[Alignment]:
        """Return the alignments of words; none for a model without attention."""
        sources, targets = self.encode(texts), [each.ids for each in translations]
        found = self.engine.cross_attention(sources, targets) or []
        return [
            Alignment.of(self._cross_attention(source, target, weights), self.source, self.target, text)
            for source, target, weights, text in zip(sources, targets, found, texts, strict=False)
        ]

    def _cross_attention(self, source: list[int], target: list[int], weights: np.ndarray) -> CrossAttention:
        bos = [BOS] if self.config.model.reads_bos else []
        return CrossAttention([*bos, *source, EOS], target, weights)

    def _search(
        self,
        texts: Sequence[str],
        options: SearchOptions = BEST,
        prefix: str | Sequence[list[int]] = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        engine: Engine | None = None,
        most: int = MOST_TOKENS,
    ) -> list[list[Translation]]:
        """Return translations of sentences that the model reads as they stand, as ``find``."""
        n, beams, engine = options.n_best, self.config.decoding.beam_size, engine or self.engine
        encoded = self.encode(texts, names, skip_too_long)
        if isinstance(prefix, str) and (words := self.target.unknown(prefix)):
            raise DataError(
                f"Prefix {prefix!r} has the word {words[0]!r}, which the model never saw in training. A prefix is made "
                "of words that the model can generate. Leave that word out."
            )
        prefixes = [self.target.encode(prefix)] * len(texts) if isinstance(prefix, str) else prefix
        lengths = np.array([len(ids) + 1 + int(self.config.model.reads_bos) for ids in encoded], np.int64)
        begun = np.array([*map(len, prefixes)] or 0, np.int32)
        limits = np.minimum(max_lengths(self.config, lengths, begun), begun + np.int32(most))
        if engine.positions is not None:
            limits = np.minimum(limits, engine.positions)
        # All of the beam: some of its hypotheses may be the same text.
        wanted = options._replace(n_best=max(n, beams) if n > 1 else 1, glossary=None, confident=False)
        with memory_checked(encoded, names, self.config.decoding.batch_size):
            found = engine.search(encoded, limits, wanted, prefixes if any(prefixes) else ())
        results = [
            translations_of(text, ids, hypotheses, options, self.source, self.target)
            for text, ids, hypotheses in zip(texts, encoded, found, strict=True)
        ]
        if options.glossary is not None:
            results = keep_terms(options.glossary, texts, results, self._terms(engine))
        if options.confident:
            results = judged(self.calibration, options.glossary, self.target, texts, results, self.token_scores)
        return results

    def _terms(self, engine: Engine) -> TermSearch:
        """Return the search for terms with an engine, which has other settings than the translator's for some."""
        search = functools.partial(self._search, engine=engine)
        vary = functools.partial(self._search_again, varied(self.config.decoding), most=TOKENS)
        bounds = [limit for limit in (self.config.model.limits.target, engine.positions) if limit is not None]
        most, decoding = min(bounds, default=MOST_TOKENS), self.config.decoding
        alpha = decoding.length_penalty if decoding.beam_size > 1 else 0.0
        return TermSearch(self.target, most, alpha, search, vary, self._align, self.token_scores, self._may_repeat)

    def token_scores(self, texts: Sequence[str], translations: Sequence[list[int]]) -> list[np.ndarray]:
        """Return the log-probabilities of the ids of translations, or of their beginnings, of texts as they stand."""
        return self.engine.token_scores(self.encode(texts), [*translations])

    def encode(
        self, texts: Sequence[str], names: Sequence[str] | None = None, skip_too_long: bool = False
    ) -> list[list[int]]:
        """Return the ids of raw sentences, without bos and eos; none of a sentence that is skipped."""
        encoded = [[*self._tag, *ids] if ids else [] for ids in map(self.source.encode, texts)]
        for number, ids in enumerate(encoded):
            try:
                check_length(self.config, "source", len(ids), name_of(names, number), self.engine.positions)
            except TooLongError:
                if not skip_too_long:
                    raise
                encoded[number] = []
        return encoded

    @public
    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, names: Sequence[str] | None = None
    ) -> list[float]:
        """Return log P(target | source) of each pair of raw sentences, natural logarithm, eos included.

        Raises:
            DataError: if a source or a target exceeds the learned positions.
            NmtError: if there are more sources than targets, or fewer.

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
        return [float(each.sum()) for each in self.engine.token_scores(encoded, translations)]

    @public
    def attention(self, sources: Sequence[str], translations: Sequence[Translation]) -> list[CrossAttention]:
        """Return the decoder's attention to the source while it writes translations of raw sentences.

        Each has weights, float32 [layers, heads, T, S], and ``alignment()``, pairs (source token, target token). Of an
        export they are the mean over the heads of the last layer, [1, 1, T, S].

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
        read = [source if each.read is None else each.read for source, each in zip(sources, translations, strict=True)]
        encoded, targets = self.encode(read), [translation.ids for translation in translations]
        found = existing(self.engine.cross_attention(encoded, targets), self.config)
        return [self._cross_attention(*each) for each in zip(encoded, targets, found, strict=True)]

    @public
    def attention_maps(self, source: str, translation: Translation) -> AttentionMaps:
        """Return all attention of the model on a raw sentence with a word at least and a translation of it.

        Raises:
            DataError: for a model without attention, and for an export, which gives cross-attention alone.
        """
        read = source if translation.read is None else translation.read
        return existing(self.engine.attention_maps(self.encode([read])[0], translation.ids), self.config)

    @public
    def given_translation(self, text: str) -> Translation:
        """Return a raw translation that a person wrote as one that the model finished; ``unknown`` is empty.

        Raises:
            DataError: if it has no words, or more than the model writes.
        """
        ids, name = self.target.encode(text), f"ranslation {text[:60]!r}"
        if not ids:
            raise DataError(f"T{name} has no words after normalization. Give a translation with a word.")
        check_length(self.config, "target", len(ids), f"t{name}", self.engine.positions)
        return Translation(text, [], True, [*ids, EOS])
