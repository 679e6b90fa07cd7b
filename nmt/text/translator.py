"""Translation from text to text: preprocessing of lines, search sentence by sentence, and postprocessing.

Lines of ordinary text may be unlike the training data: in capitals, with quotes, emoji or addresses, with several
sentences or with tags. Loads no TensorFlow.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.decoding import BEAM
from nmt.config.schema import DecodingConfig
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import BEST, SearchOptions, Translation, join_translations
from nmt.errors import ConflictError, NmtError, NotFoundError, counted
from nmt.interface import public
from nmt.message import Argument, Settings
from nmt.runs.calibration import Calibration, read_calibration
from nmt.runs.directory import Run
from nmt.text.confidence import add_confidence
from nmt.text.endings import Endings
from nmt.text.glossary import Entry, Glossary, glossary_of, read_glossary
from nmt.text.reading import Reader, Reading, Text
from nmt.text.rewriting import (
    align,
    babbles,
    keeps_pieces,
    needs_alignment,
    postprocess,
    writes_as_words,
)
from nmt.text.stand_ins import replace_with_stand_ins
from nmt.text.terms import keep_terms
from nmt.tokenizers.base import FIRST_WORD
from nmt.tokenizers.icu import read_message
from nmt.tokenizers.marks import MARK
from nmt.tokenizers.scripts import split_words

LONGEST_WORD = 8
"""Most tokens in the translation of a single word."""

MOST_TOKENS, MOST_CHARACTERS = 250, 1_000
"""Most tokens of a sentence of ordinary text; for models of characters."""

CAREFUL_BEAM, CAREFUL_NGRAM = 5, 2
"""Beam, and length of phrases that may not repeat, when a sentence is searched again because its translation babbles.

With a wider beam than this, repeats stay: whoever sets it asks for the most probable translation."""

Candidates = list[list[Translation]]
"""Translations of each sentence, best first."""
Terms = Mapping[str, str | Sequence[str]] | str | Path
"""Translation of each term, or a list of its translation and other forms of it; or a glossary file."""


def careful_settings(decoding: DecodingConfig) -> Iterator[DecodingConfig]:
    """Yield search settings that keep a translation from babbling: first with the same beam, then with a wider one."""
    size = min(decoding.no_repeat_ngram_size or CAREFUL_NGRAM, CAREFUL_NGRAM)
    first = decoding.model_copy(update={"no_repeat_ngram_size": size})
    yield first
    if decoding.beam_size < CAREFUL_BEAM:
        # Scores of greedy search are log-probabilities. Without penalties, the scores of the beam are too.
        penalties = {"length_penalty": 0.0, "coverage_penalty": 0.0} if decoding.beam_size == 1 else {}
        yield first.model_copy(update={"beam_size": CAREFUL_BEAM, **penalties})


class TextOptions(NamedTuple):
    """Options for the translation of text."""

    search: SearchOptions = BEST
    """Kind of search."""
    glossary: Glossary | None = None
    """Terms that translations keep."""
    confident: bool = False
    """Whether to compute the probabilities of sentences and words."""


USUAL = TextOptions()


class Translator(SentenceTranslator):
    """A trained model with its tokenizers: raw text in, raw text out. Several threads may use it.

    ``nmt.load`` returns it. The end of a ``with`` block, or ``close``, releases the model and its threads.
    """

    @public
    def translate(
        self,
        texts: Sequence[str],
        *,
        prefix: str = "",
        sample: bool = False,
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        glossary: Glossary | Terms | None = None,
    ) -> list[str]:
        """Return the translations of raw sentences, in order. An empty sentence has an empty translation.

        Args:
            texts: raw sentences.
            prefix: text that every translation begins with.
            sample: whether to sample words by their probabilities instead of searching for the most probable
                translation.
            names: name of each sentence in error messages, such as "line 7".
            skip_too_long: whether to return an empty translation for a sentence that is longer than the model reads,
                instead of raising.
            glossary: terms that translations keep, as ``glossary`` takes or returns them.

        Raises:
            TooLongError: if a sentence exceeds the learned positions.
            DataError: if the prefix has an unknown word, or the glossary breaks a rule.
            OutOfMemoryError: if memory does not hold a batch. The message names its longest sentence.

        >>> translator = nmt.load("base")
        >>> translator.translate(["im thirsty"])
        ['ich bin durstig']
        >>> translator.translate(["im one two three"], glossary={"two": "sieben"})
        ['ich bin eins sieben drei']
        """
        details = self.translate_details(
            texts, prefix=prefix, sample=sample, names=names, skip_too_long=skip_too_long, scored=False,
            glossary=glossary,
        )  # fmt: skip
        return [translation.text for translation in details]

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
        glossary: Glossary | Terms | None = None,
        confident: bool = False,
    ) -> list[Translation]:
        """Return the translations of raw sentences with their scores, token ids and unknown words.

        Args, Raises: as for ``translate``. Scores are None unless ``scored``. If ``confident``, the results have
        ``confidence``, the probability that the translation is good, and ``words`` with their probabilities. This needs
        a run after ``nmt.evaluate(..., calibrate=True)``, else NotFoundError or ConflictError is raised.

        >>> [details] = nmt.load("base").translate_details(["im thirsty xylophone"])
        >>> details.unknown, details.score < 0
        (['xylophone'], True)
        """
        terms = None if glossary is None else self.glossary(glossary)
        options = TextOptions(SearchOptions(sample, scored=scored), terms, confident)
        candidates = self.find(texts, options, prefix, names, skip_too_long)
        return [translations[0] for translations in candidates]

    @public
    def translate_n_best(
        self,
        texts: Sequence[str],
        n: int,
        *,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        glossary: Glossary | Terms | None = None,
        confident: bool = False,
    ) -> list[list[Translation]]:
        """Return the ``n`` best translations of each raw sentence with their scores, best first.

        All texts of a sentence differ: if hypotheses with different tokens have the same text, only the best is
        returned. So a beam may have fewer than ``n`` texts; a wider beam has more.

        Args, Raises: as for ``translate_details``, and NmtError if ``n`` exceeds the beam size.

        >>> translator = nmt.load("base", decoding={"beam_size": 5})
        >>> [[best, second]] = translator.translate_n_best(["im thirsty"], 2)
        >>> best.text, best.score > second.score
        ('ich bin durstig', True)
        """
        if n < 1:
            raise NmtError(Argument("n"), f" is {n}. It is a number of translations, 1 or more. Change the value.")
        terms = None if glossary is None else self.glossary(glossary)
        options = TextOptions(SearchOptions(n_best=n, scored=True), terms, confident)
        return self.find(texts, options, prefix, names, skip_too_long)

    @public
    def glossary(self, terms: Glossary | Terms) -> Glossary:
        """Return a glossary for the argument ``glossary`` of many translations; each alone reads its terms anew.

        Args:
            terms: translation of each term, or a list of its translation and other forms of it. Or a file, in which a
                line has a term, a TAB, its translation, and other forms after TABs.

        Raises:
            NotFoundError: if the file does not exist.
            DataError: if a term breaks a rule. The message names it, or its file and line.

        >>> translator = nmt.load("base")
        >>> glossary = translator.glossary({"two": ["sieben", "sechs"]})
        >>> translator.translate(["im one two three"], glossary=glossary)
        ['ich bin eins sieben drei']
        """
        if isinstance(terms, Glossary):
            return terms
        if isinstance(terms, Mapping):
            entries = [
                Entry(f"glossary[{source!r}]", source, [forms] if isinstance(forms, str) else forms)
                for source, forms in terms.items()
            ]
            return glossary_of(entries, self.target, self.languages)
        return read_glossary(str(terms), self.target, self.languages)

    def find(
        self,
        texts: Sequence[str],
        options: TextOptions = USUAL,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
    ) -> Candidates:
        """Return at most ``options.n_best`` translations of each raw sentence, all with different texts, best first."""
        if (n := options.search.n_best) > (beams := self.config.decoding.beam_size):
            raise NmtError(
                Argument("n", n),
                f" needs a beam of at least {n}; received a beam of {beams}. Give ",
                Settings({"decoding.beam_size": n}),
                " or more.",
            )
        if names is not None and len(names) != len(texts):
            received = f"{counted(len(texts), 'sentence')}, and names of length {len(names)}"
            raise NmtError(f"Received {received}. Give as many names as sentences, or leave them out.")
        # With a prefix, the model reads a text as it stands, tags included: else a tag could come before the prefix.
        if prefix or (self.config.decoding.ordinary_text == "none" and not any(map(MARK.search, texts))):
            return self._search(texts, options, prefix, names, skip_too_long)
        messages = [read_message(text.strip()) for text in texts]
        if not any(messages):
            return self._find_lines(texts, options, names, skip_too_long)
        parts = [
            [sentence.text for sentence in message.sentences] if message else [text]
            for text, message in zip(texts, messages, strict=True)
        ]
        if names is not None:
            names = [name for name, sentences in zip(names, parts, strict=True) for _ in sentences]
        found = iter(self._find_lines([*itertools.chain(*parts)], options, names, skip_too_long))
        results = []
        for message in messages:
            if message is None:
                results.append(next(found))
                continue
            best = [next(found)[0] for _ in message.sentences]
            rendered = message.render([translation.text for translation in best])
            joined = join_translations(best, [""] * len(best), self.languages)
            results.append([joined if joined.is_skipped else joined._replace(text=rendered)])
        return results

    @functools.cached_property
    def calibration(self) -> Calibration:
        """Calibration of the confidence in translations.

        Raises: the errors of ``read_calibration``.
        """
        return read_calibration(self._run or Run(Path()), self.epoch, self.weights)

    @property
    def is_calibrated(self) -> bool:
        """Whether the confidence, which needs scores, is calibrated for these weights."""
        if self.engine.only_greedy:
            return False
        try:
            return bool(self.calibration)
        except (NotFoundError, ConflictError):
            return False

    def _search(
        self,
        texts: Sequence[str],
        options: TextOptions,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        settings: DecodingConfig | None = None,
    ) -> Candidates:
        """Return translations of sentences that the model reads as they stand, with terms and confidence."""
        candidates = self.search(texts, options.search, prefix, names, skip_too_long, settings)
        if options.glossary is not None:
            decoding = settings or self.config.decoding
            is_beam = decoding.search(sampled=options.search.sampled) == BEAM
            alpha = decoding.length_penalty if is_beam else 0.0
            candidates = keep_terms(self, options.glossary, texts, candidates, alpha, prefix)
        if options.confident:
            candidates = add_confidence(self, self.calibration, options.glossary, texts, candidates)
        return candidates

    @functools.cached_property
    def _reader(self) -> Reader:
        is_split = self.config.decoding.ordinary_text != "lines"
        known_words = None if self._manifest is None else self._manifest.known_words
        return Reader(
            self.source, self.languages[0], split=is_split, most_tokens=self.most_tokens, known_words=known_words
        )

    @functools.cached_property
    def _endings(self) -> Endings:
        written = set[str]().union(*self.target.pieces(range(FIRST_WORD, self.target.size)))
        return Endings(self._reader.characters, written, self.languages)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a sentence of ordinary text, without words that are too long to be read."""
        return self._reader.count_tokens(text)

    @property
    def most_tokens(self) -> int:
        """Most tokens of a sentence of ordinary text. Longer ones are cut: their translation is slow and poor."""
        limit = MOST_CHARACTERS if self.source.unit == "characters" else MOST_TOKENS
        special = 1 + int(self.config.model.reads_bos)
        bounds = (self.config.model.limits.source, self.engine.positions)
        return max(1, min([limit, *(bound - special for bound in bounds if bound is not None)]))

    def _find_lines(
        self, texts: Sequence[str], options: TextOptions, names: Sequence[str] | None, skip_too_long: bool
    ) -> Candidates:
        """Return translations of lines of ordinary text, as ``find`` does."""
        is_sampled = options.search.sampled
        # The index of a line selects the random numbers of its sample. N best translations are of the whole line.
        split = options.search.n_best == 1 and not is_sampled
        lines = [self._reader.read(text, split=split, cut=not skip_too_long) for text in texts]
        if names is not None:
            names = [name for name, line in zip(names, lines, strict=True) for _ in line]
        readings = list(itertools.chain(*lines))
        inputs = [reading.bare if reading.kept and is_sampled else reading.text for reading in readings]
        candidates = self._search([text.text for text in inputs], options, "", names, skip_too_long)
        if not is_sampled:
            self._search_carefully(inputs, candidates, options)
            self._search_without_pieces(readings, inputs, candidates, options)
            if options.search.n_best == 1 and not self.engine.only_greedy:  # stand-ins are chosen by scores
                search = functools.partial(self._search, options=options)
                replace_with_stand_ins(self, self._reader, search, readings, inputs, candidates)
        processed = iter(self._postprocess(readings, inputs, candidates))
        results = []
        for text, line in zip(texts, lines, strict=True):
            sentences = [next(processed) for _ in line]
            if len(line) > 1:
                best = [translations[0] for translations in sentences]
                results.append([join_translations(best, [reading.separator for reading in line], self.languages)])
            else:
                results.append([
                    translation._replace(read=None) if translation.read == text else translation
                    for translation in sentences[0]
                ])  # fmt: skip
        return results

    def _search_without_pieces(
        self, readings: list[Reading], inputs: list[Text], candidates: Candidates, options: TextOptions
    ) -> None:
        """Replace translations that have lost addresses or numbers by translations of the sentences without these."""
        lost = [
            index for index, reading in enumerate(readings)
            if not keeps_pieces(candidates[index][0].text, reading.kept) and not candidates[index][0].is_skipped
        ]  # fmt: skip
        written = self._written_as_words(readings, candidates, lost, options)
        lost = [index for index in lost if index not in written]
        if not lost:
            return
        texts = [readings[index].bare for index in lost]
        results = self._search([text.text for text in texts], options)
        self._search_carefully(texts, results, options)
        for index, text, translations in zip(lost, texts, results, strict=True):
            inputs[index], candidates[index] = text, translations

    def _written_as_words(
        self, readings: list[Reading], candidates: Candidates, lost: list[int], options: TextOptions
    ) -> set[int]:
        """Return the indices of translations that have lost digits only because they write them as words."""
        others = {index: self._reader.with_other_digits(readings[index]) for index in lost}
        texts = {index: text.text for index, text in others.items() if text is not None}
        results = self._search([*texts.values()], options) if texts else []
        return {
            index for index, (other, *_) in zip(texts, results, strict=True)
            if writes_as_words(candidates[index][0].text, other.text, readings[index].kept)
        }  # fmt: skip

    def _fails(self, translation: Translation, text: Text, options: TextOptions) -> bool:
        """Return whether a translation babbles. N best lists keep their repeats: they show the beam."""
        may_repeat = self.may_repeat or self.config.decoding.beam_size > CAREFUL_BEAM or options.search.n_best > 1
        return babbles(translation.ids, text.text, may_repeat=may_repeat)

    def _search_carefully(self, inputs: list[Text], candidates: Candidates, options: TextOptions) -> None:
        """Replace translations that babble by translations that end. If a single word has none, the word is copied."""
        for settings in () if self.engine.only_greedy else careful_settings(self.config.decoding):
            failed = [
                index for index, translations in enumerate(candidates)
                if self._fails(translations[0], inputs[index], options)
            ]  # fmt: skip
            if not failed:
                return
            texts = [inputs[index] for index in failed]
            whole_beam = options._replace(search=options.search._replace(n_best=settings.beam_size))
            results = self._search([text.text for text in texts], whole_beam, settings=settings)
            for index, text, translations in zip(failed, texts, results, strict=True):
                ended = [translation for translation in translations if translation.finished and translation.text]
                good = [translation for translation in ended if not self._fails(translation, text, options)]
                better = good or ended or candidates[index]
                candidates[index] = better[: options.search.n_best]
        for index, (best, *_) in enumerate(candidates):
            word = inputs[index].text
            if not best.finished and len(best.ids) > LONGEST_WORD and len(split_words(word)) == 1:
                candidates[index] = [best._replace(text=word, ids=[], finished=True)]

    def _postprocess(self, readings: list[Reading], inputs: list[Text], candidates: Candidates) -> Candidates:
        """Return translations after ``postprocess``, with the alignments that it needs."""
        aligned = [
            (index, rank)
            for index, translations in enumerate(candidates)
            for rank, translation in enumerate(translations)
            if translation.ids and needs_alignment(inputs[index], translation.text)
        ]
        sources = [inputs[index].text for index, _ in aligned]
        targets = [candidates[index][rank] for index, rank in aligned]
        alignments = dict(zip(aligned, align(self, sources, targets) if aligned else [], strict=False))
        results, language = [], self.languages[1]
        for index, (reading, text, translations) in enumerate(zip(readings, inputs, candidates, strict=True)):
            processed = list(translations)
            for rank, translation in enumerate(translations):
                if not translation.is_skipped:
                    alignment = alignments.get((index, rank))
                    ended = self._endings.match(text.text, translation.text)
                    written = postprocess(reading, text, ended, alignment, language)
                    processed[rank] = translation._replace(text=written, read=text.text)
            results.append(processed)
        return results
