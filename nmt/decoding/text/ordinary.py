"""Translation of ordinary text: lines read, searched for, searched again where that failed, and written.

Loads no TensorFlow.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

from nmt.config.schema import DecodingConfig
from nmt.decoding.text.reading import Reader, Reading, Text
from nmt.decoding.text.rewriting import Alignment, babbles, keeps, needs_alignment, rewritten
from nmt.decoding.translation import SearchOptions, Translation, joined

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


class OrdinaryText:
    """Translates lines of ordinary text."""

    def __init__(
        self,
        reader: Reader,
        search: Callable[..., Found],
        careful_searches: Sequence[Callable[[Sequence[str], SearchOptions], Found]],
        align: Callable[[Sequence[str], Sequence[Translation]], list[Alignment]],
        may_repeat: bool = False,
    ) -> None:
        """Take the parts.

        Args:
            reader: reads lines.
            search: finds translations of sentences that the model reads as they stand, as ``Translator.find`` does.
            careful_searches: each finds others, several of each, for sentences whose translations babble.
            align: aligns translations with sentences; returns none for a model without attention.
            may_repeat: whether a translation that repeats phrases stays as it is.
        """
        self._reader, self._search, self._careful_searches, self._align = reader, search, careful_searches, align
        self._may_repeat = may_repeat

    def find(
        self, texts: Sequence[str], options: SearchOptions, names: Sequence[str] | None, skip_too_long: bool
    ) -> Found:
        """See ``Translator.find``."""
        # A sample depends on the number of its line, and N translations are of all of it.
        split = options.n_best == 1 and not options.sampled
        lines = [self._reader.read(text, split=split) for text in texts]
        if names is not None:
            names = [name for name, line in zip(names, lines, strict=True) for _ in line]
        readings = list(itertools.chain(*lines))
        read = [each.bare if each.kept and options.sampled else each.text for each in readings]
        found = self._search([each.text for each in read], options, names=names, skip_too_long=skip_too_long)
        if not options.sampled:
            self._search_lost(readings, read, found, options)
            self._search_babbling(read, found, options)
        written = iter(self._written(readings, read, found))
        results = []
        for text, line in zip(texts, lines, strict=True):
            parts = [next(written) for _ in line]
            if len(parts) > 1:
                results.append([joined([each[0] for each in parts], [each.separator for each in line])])
            else:
                results.append([each._replace(read=None) if each.read == text else each for each in parts[0]])
        return results

    def _search_lost(self, readings: list[Reading], read: list[Text], found: Found, options: SearchOptions) -> None:
        """Translate sentences without the addresses and numbers that their translations have lost."""
        lost = [index for index, each in enumerate(readings) if not keeps(found[index][0].text, each.kept)]
        if lost:
            for index, again in zip(lost, self._search([readings[i].bare.text for i in lost], options), strict=True):
                found[index], read[index] = again, readings[index].bare

    def _search_babbling(self, read: list[Text], found: Found, options: SearchOptions) -> None:
        """Replace translations that babble by others that end; a word without any is carried over.

        In a list of the N best, repeats stay: the list is what the beam found, with comparable scores.
        """
        fails = functools.partial(babbles, may_repeat=self._may_repeat or options.n_best > 1)
        for search in self._careful_searches:
            babbling = [index for index, each in enumerate(found) if fails(each[0].ids, read[index].text)]
            if not babbling:
                return
            for index, again in zip(babbling, search([read[index].text for index in babbling], options), strict=True):
                text, ended = read[index].text, [each for each in again if each.finished and each.text]
                better = [each for each in ended if not fails(each.ids, text)] or ended or found[index]
                found[index] = better[: options.n_best]
        for index, (first, *_) in enumerate(found):
            if not first.finished and " " not in read[index].text and len(first.ids) > LONGEST_WORD:
                found[index] = [first._replace(text=read[index].text, ids=[], finished=True)]

    def _written(self, readings: list[Reading], read: list[Text], found: Found) -> Found:
        """Return translations as ``rewritten`` makes them."""
        asked = [
            (index, rank) for index, translations in enumerate(found) for rank, each in enumerate(translations)
            if each.ids and needs_alignment(read[index], each.text)
        ]  # fmt: skip
        aligned = self._align([read[i].text for i, _ in asked], [found[i][rank] for i, rank in asked]) if asked else []
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
