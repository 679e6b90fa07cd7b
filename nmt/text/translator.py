"""Translation from text to text: lines of ordinary text are read, translated sentence by sentence, and written.

A line is ordinary if it may be unlike those of training: in capitals, with quotes, emoji or addresses, with several
sentences or with tags. Loads no TensorFlow.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.schema import DecodingConfig
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import BEST, SearchOptions, Translation, join_translations
from nmt.errors import ConflictError, NmtError, NotFoundError, counted
from nmt.interface import public
from nmt.message import Argument, Settings
from nmt.runs.calibration import Calibration, read_calibration
from nmt.runs.directory import Run
from nmt.text.confidence import with_confidence
from nmt.text.glossary import Glossary
from nmt.text.reading import Reader, Reading, Text
from nmt.text.rewriting import align, babbles, keeps, needs_alignment, rewritten
from nmt.text.terms import keep_terms
from nmt.tokenizers.marks import MARK

LONGEST_WORD = 8
"""Tokens of the longest translation of a word."""

CAREFUL_BEAM, CAREFUL_NGRAM = 5, 2
"""Beam, and length of phrases that do not come twice, of further searches for a sentence whose translation babbles.

Repeats that a wider beam than this prefers are left to it: whoever gives one asks for the most probable translation."""

Found = list[list[Translation]]
"""Translations of each sentence, the best first."""


def careful(decoding: DecodingConfig) -> Iterator[DecodingConfig]:
    """Yield settings of search that keep a translation from babbling: with the beam as it is, then with a wider one."""
    size = min(decoding.no_repeat_ngram_size or CAREFUL_NGRAM, CAREFUL_NGRAM)
    first = decoding.model_copy(update={"no_repeat_ngram_size": size})
    yield first
    if decoding.beam_size < CAREFUL_BEAM:
        # Without penalties its scores are log-probabilities, as those of greedy search.
        penalties = {"length_penalty": 0.0, "coverage_penalty": 0.0} if decoding.beam_size == 1 else {}
        yield first.model_copy(update={"beam_size": CAREFUL_BEAM, **penalties})


class TextOptions(NamedTuple):
    """What is wanted of translations of text."""

    search: SearchOptions = BEST
    """Kind of search."""
    glossary: Glossary | None = None
    """Terms that translations keep."""
    confident: bool = False
    """Whether probabilities of sentences and words are wanted."""


USUAL = TextOptions()


class Translator(SentenceTranslator):
    """A trained model with its tokenizers: raw text in, raw text out. Several threads may use it.

    ``nmt.load`` makes it. At the end of a ``with`` block, or by ``close``, it gives up its model and threads.
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
        found = self.find(texts, TextOptions(SearchOptions(sample)), prefix, names, skip_too_long)
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
        found = self.find(texts, TextOptions(SearchOptions(sample, scored=scored)), prefix, names, skip_too_long)
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
        return self.find(texts, TextOptions(SearchOptions(n_best=n, scored=True)), prefix, names, skip_too_long)

    def find(
        self,
        texts: Sequence[str],
        options: TextOptions = USUAL,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each raw sentence with different texts, the best first."""
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
        # With a prefix the model reads a text as it stands, marks of tags too: what is cut out would come before it.
        if prefix or (self.config.decoding.ordinary_text == "none" and not any(map(MARK.search, texts))):
            return self._search(texts, options, prefix, names, skip_too_long)
        return self._find_lines(texts, options, names, skip_too_long)

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

    def _search(
        self,
        texts: Sequence[str],
        options: TextOptions,
        prefix: str = "",
        names: Sequence[str] | None = None,
        skip_too_long: bool = False,
        settings: DecodingConfig | None = None,
    ) -> Found:
        """Return translations of sentences that the model reads as they stand, with terms and confidence."""
        found = self.search(texts, options.search, prefix, names, skip_too_long, settings)
        if options.glossary is not None:
            found = keep_terms(self, options.glossary, texts, found, settings)
        if options.confident:
            found = with_confidence(self, self.calibration, options.glossary, texts, found)
        return found

    @functools.cached_property
    def _reader(self) -> Reader:
        return Reader(self.source, self.languages[0], split=self.config.decoding.ordinary_text != "lines")

    def _find_lines(
        self, texts: Sequence[str], options: TextOptions, names: Sequence[str] | None, skip_too_long: bool
    ) -> Found:
        """Translate lines of ordinary text, as ``find``."""
        # A sample depends on the number of its line, and N translations are of all of it.
        split = options.search.n_best == 1 and not options.search.sampled
        lines = [self._reader.read(text, split=split) for text in texts]
        if names is not None:
            names = [name for name, line in zip(names, lines, strict=True) for _ in line]
        readings = list(itertools.chain(*lines))
        read = [each.bare if each.kept and options.search.sampled else each.text for each in readings]
        found = self._search([each.text for each in read], options, "", names, skip_too_long)
        if not options.search.sampled:
            self._search_lost(readings, read, found, options)
            self._search_babbling(read, found, options)
        written = iter(self._written(readings, read, found))
        results = []
        for text, line in zip(texts, lines, strict=True):
            parts = [next(written) for _ in line]
            if len(parts) > 1:
                results.append([join_translations([each[0] for each in parts], [each.separator for each in line])])
            else:
                results.append([each._replace(read=None) if each.read == text else each for each in parts[0]])
        return results

    def _search_lost(self, readings: list[Reading], read: list[Text], found: Found, options: TextOptions) -> None:
        """Translate sentences without the addresses and numbers that their translations have lost."""
        lost = [index for index, each in enumerate(readings) if not keeps(found[index][0].text, each.kept)]
        if lost:
            for index, again in zip(lost, self._search([readings[i].bare.text for i in lost], options), strict=True):
                found[index], read[index] = again, readings[index].bare

    def _search_babbling(self, read: list[Text], found: Found, options: TextOptions) -> None:
        """Replace translations that babble by others that end; a word without any is carried over.

        In a list of the N best, repeats stay: the list is what the beam found, with comparable scores.
        """
        decoding = self.config.decoding
        may_repeat = self.may_repeat or decoding.beam_size > CAREFUL_BEAM or options.search.n_best > 1
        fails = functools.partial(babbles, may_repeat=may_repeat)
        for settings in careful(decoding):
            babbling = [index for index, each in enumerate(found) if fails(each[0].ids, read[index].text)]
            if not babbling:
                return
            texts = [read[index].text for index in babbling]
            several = options._replace(search=options.search._replace(n_best=settings.beam_size))
            for index, again in zip(babbling, self._search(texts, several, settings=settings), strict=True):
                text, ended = read[index].text, [each for each in again if each.finished and each.text]
                better = [each for each in ended if not fails(each.ids, text)] or ended or found[index]
                found[index] = better[: options.search.n_best]
        for index, (first, *_) in enumerate(found):
            if not first.finished and " " not in read[index].text and len(first.ids) > LONGEST_WORD:
                found[index] = [first._replace(text=read[index].text, ids=[], finished=True)]

    def _written(self, readings: list[Reading], read: list[Text], found: Found) -> Found:
        """Return translations as ``rewritten`` makes them."""
        asked = [
            (index, rank) for index, translations in enumerate(found) for rank, each in enumerate(translations)
            if each.ids and needs_alignment(read[index], each.text)
        ]  # fmt: skip
        sources, translations = [read[i].text for i, _ in asked], [found[i][rank] for i, rank in asked]
        aligned = align(self, sources, translations) if asked else []
        alignments = dict(zip(asked, aligned, strict=False))
        return [
            [
                each if each.is_skipped else each._replace(
                    text=rewritten(reading, text, each.text, alignments.get((index, rank))), read=text.text
                )
                for rank, each in enumerate(found[index])
            ]
            for index, (reading, text) in enumerate(zip(readings, read, strict=True))
        ]  # fmt: skip
