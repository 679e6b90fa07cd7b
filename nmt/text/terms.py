"""Search for translations that keep the terms of a glossary.

If a translation lacks a term, the search starts again with a forced prefix: the words before the place that attends to
the term, and then a form of the term. Loads no TensorFlow.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt.config.schema import DecodingConfig
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import BEST, Translation
from nmt.text.glossary import Glossary, Term, TermMatch
from nmt.text.inline import CLOSING
from nmt.text.rewriting import Alignment, align, babbles
from nmt.tokenizers.base import EOS
from nmt.tokenizers.letter_case import capitalize, has_case
from nmt.tokenizers.scripts import Word, join_words, space_between, split_words

VARIANTS, BEFORE, TOKENS = 8, 2, 6
"""Beam, words and tokens of the search for other words right before a term, such as an article of its gender."""
MOST_PREFIXES = 3
"""Most forced prefixes for a place in a translation. The likeliest are searched further."""
MOST_ROUNDS = 8
"""Most searches for a sentence. Each adds at least one term."""


def variant_settings(decoding: DecodingConfig) -> DecodingConfig:
    """Return the settings of the search for other words before a term."""
    beam = max(VARIANTS, decoding.beam_size)
    return decoding.model_copy(update={"beam_size": beam, "length_penalty": 0.0, "coverage_penalty": 0.0})


def keep_terms(
    translator: SentenceTranslator,
    glossary: Glossary,
    texts: Sequence[str],
    candidates: Sequence[list[Translation]],
    settings: DecodingConfig | None = None,
) -> list[list[Translation]]:
    """Return translations of sentences with the terms of a glossary, best first. A changed translation is scored anew.

    Args:
        translator: searches for, aligns and scores translations.
        glossary: terms that the translations keep.
        texts: sentences as the model reads them.
        candidates: translations of each sentence.
        settings: settings of the search that returned the candidates; None if they are the translator's own.
    """
    sentences = [text for text, translations in zip(texts, candidates, strict=True) for _ in translations]
    flat = [translation for translations in candidates for translation in translations]
    changed = iter(_TermSearch(translator, glossary, sentences, settings).run(flat))
    result = []
    for translations in candidates:
        by_text = {translation.text: translation for translation in itertools.islice(changed, len(translations))}
        result.append(sorted(by_text.values(), key=lambda translation: -(translation.score or 0.0)))
    return result


class _Spot(NamedTuple):
    """A place in a translation for a missing term."""

    sentence: int
    """Index of the sentence."""
    begin: int
    """Index of the first word that the term replaces."""
    end: int
    """Index after the last replaced word; equal to ``begin`` if the term replaces none."""
    term: Term
    """The missing term."""


class _Attempt(NamedTuple):
    """A forced prefix of a translation, which ends with a form of a missing term."""

    sentence: int
    """Index of the sentence."""
    spot: int
    """Number of the spot of this round."""
    prefix: str
    """Words up to the form of the term, inclusive."""
    whole: str
    """The prefix and the previous words after the spot."""


@dataclass(frozen=True)
class _TermSearch:
    """Search for translations of N sentences with the terms of a glossary."""

    translator: SentenceTranslator
    glossary: Glossary
    texts: Sequence[str]
    """N sentences as the model reads them."""
    settings: DecodingConfig | None
    """Settings of the searches after a prefix; None if they are the translator's own."""

    def run(self, translations: Sequence[Translation]) -> list[Translation]:
        """Return the translations of the N sentences with as many terms as the search adds."""
        decoding = self.translator.config.decoding
        alpha = decoding.length_penalty if decoding.beam_size > 1 else 0.0
        kept, failures = list(translations), Counter[int]()
        for _ in range(MOST_ROUNDS):
            missing = self._missing(kept, failures)
            failures.update(missing.keys())
            # The first round of a term tries the place that attends to it; after a failure, all places are tried.
            spots = self._spots(kept, missing, failures)
            attempts = self._likeliest(self._attempts(kept, spots))
            if not attempts:
                break
            indices = [attempt.sentence for attempt in attempts] * 2
            texts = [self.texts[index] for index in indices]
            proposals = self._continued(attempts) + self._replaced(attempts, kept)
            scores = self.translator.token_scores(texts, [proposal.ids for proposal in proposals])
            lacking, ranks = list[int](), list[tuple[int, bool, float]]()
            for text, proposal, values in zip(texts, proposals, scores, strict=True):
                count = len(self.glossary.missing(text, proposal.text))
                is_babble = babbles(proposal.ids, text, may_repeat=self.translator.may_repeat)
                lacking.append(count)
                ranks.append((count, is_babble, -values.mean()))
            for index, (best, *_) in _ranked(indices, ranks).items():
                if lacking[best] < len(missing[index]):
                    penalty = ((5 + len(scores[best])) / 6) ** alpha
                    kept[index] = proposals[best]._replace(score=float(scores[best].sum()) / penalty)
                    failures[index] = 0
        return kept

    def _missing(self, translations: list[Translation], failures: Mapping[int, int]) -> dict[int, list[TermMatch]]:
        """Return the missing terms of each translation that lacks any; not after two failures in a row."""
        missing = {}
        for index, (text, translation) in enumerate(zip(self.texts, translations, strict=True)):
            if not translation.text or failures[index] >= 2:
                continue
            terms = self.glossary.missing(text, translation.text)
            if terms:
                missing[index] = terms
        return missing

    def _spots(
        self, translations: list[Translation], missing: dict[int, list[TermMatch]], failures: Mapping[int, int]
    ) -> list[_Spot]:
        """Return the places for missing terms. Alignments give them, except after a failure."""
        if not missing:
            return []
        incomplete = [translations[index] for index in missing]
        alignments = align(self.translator, [self.texts[index] for index in missing], incomplete)
        spots = list[_Spot]()
        for index, alignment in itertools.zip_longest(missing, alignments):
            words = len(split_words(translations[index].text))
            spots += _spots_for(index, missing[index], alignment if failures[index] == 1 else None, words)
        return spots

    def _attempts(self, translations: list[Translation], spots: list[_Spot]) -> list[_Attempt]:
        """Return the forced prefixes for all spots, with the previous words before a term and with other words."""
        if not spots:
            return []
        target, settings = self.translator.target, variant_settings(self.translator.config.decoding)
        split = {spot.sentence: split_words(translations[spot.sentence].text) for spot in spots}
        texts = [self.texts[spot.sentence] for spot in spots]
        prefixes = [target.encode(join_words(split[spot.sentence][: max(0, spot.begin - BEFORE)])) for spot in spots]
        options = BEST._replace(n_best=settings.beam_size)
        variants = self.translator.search(texts, options, prefixes, settings=settings, max_tokens=TOKENS)
        attempts = []
        for number, (spot, candidates) in enumerate(zip(spots, variants, strict=True)):
            beginnings = [split_words(candidate.text) for candidate in candidates]
            for prefix, whole in _prefixes(split[spot.sentence], spot, beginnings, self.translator.languages[1]):
                tokens = max(len(target.encode(prefix)), len(target.encode(whole)))
                if tokens < self.translator.longest:
                    attempts.append(_Attempt(spot.sentence, number, prefix, whole))
        return attempts

    def _likeliest(self, attempts: list[_Attempt]) -> list[_Attempt]:
        """Return the ``MOST_PREFIXES`` attempts of each spot with the most probable prefixes."""
        if not attempts:
            return []
        texts = [self.texts[attempt.sentence] for attempt in attempts]
        prefixes = [self.translator.target.encode(attempt.prefix) for attempt in attempts]
        scores = self.translator.token_scores(texts, prefixes)
        ranked = _ranked([attempt.spot for attempt in attempts], [-values.sum() for values in scores])
        return [attempts[number] for numbers in ranked.values() for number in numbers[:MOST_PREFIXES]]

    def _continued(self, attempts: list[_Attempt]) -> list[Translation]:
        """Return the best translation that begins with the prefix of each attempt."""
        texts = [self.texts[attempt.sentence] for attempt in attempts]
        prefixes = [self.translator.target.encode(attempt.prefix) for attempt in attempts]
        return [best for best, *_ in self.translator.search(texts, BEST, prefixes, settings=self.settings)]

    def _replaced(self, attempts: list[_Attempt], translations: list[Translation]) -> list[Translation]:
        """Return the previous translation of each attempt with the term in its spot."""
        target = self.translator.target
        replaced = []
        for attempt in attempts:
            ids = target.encode(attempt.whole)
            previous = translations[attempt.sentence]
            replaced.append(previous._replace(text=target.decode(ids), ids=[*ids, EOS], finished=True))
        return replaced


def _spots_for(sentence: int, terms: list[TermMatch], alignment: Alignment | None, words: int) -> Iterator[_Spot]:
    """Yield the places for the first missing term of a translation of J words.

    With an alignment, they are the words that attend to the term, in runs to their ends; else all gaps between words.
    """
    if alignment is None:
        for gap in range(words + 1):
            yield _Spot(sentence, gap, gap, terms[0].term)
        return
    attending = []
    for match in terms:
        targets = {target for word in match.words for target in alignment.targets_of(word)}
        attending.append(sorted(targets))
    first = min(range(len(terms)), key=attending.__getitem__)
    for begin in attending[first]:
        end = begin + 1
        while end in attending[first]:
            end += 1
        yield _Spot(sentence, begin, end, terms[first].term)


def _prefixes(
    words: list[Word], spot: _Spot, variants: list[list[Word]], language: str
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield prefixes that end with a form of a term, and with each the same prefix with the words after the spot.

    Args:
        words: words of the translation.
        spot: place of the term.
        variants: words of other translations up to the spot.
        language: code of the target language, for a capital at the beginning.
    """
    replaced = join_words(words[spot.begin : spot.end])
    mark = replaced[len(replaced.rstrip(CLOSING)) :]
    beginnings = [tuple(variant[: spot.begin]) for variant in [words, *variants] if len(variant) >= spot.begin]
    starts_with_capital = not words[0].text.islower() and has_case(_first_letter(words))
    for beginning in dict.fromkeys(map(join_words, beginnings)):
        for form in spot.term.forms:
            cased = capitalize(form, language) if starts_with_capital and not beginning else form
            prefix = _joined(beginning, cased)
            yield prefix, _joined(prefix + mark, join_words(words[spot.end :]))


def _first_letter(words: list[Word]) -> str:
    """Return the first letter of words; empty if there is none."""
    return next((letter for word in words for letter in word.text if letter.isalpha()), "")


def _joined(before: str, after: str) -> str:
    """Return two parts of a text, with the space that their script has between words."""
    return before + space_between(before, after) + after if before and after else before + after


def _ranked(indices: Sequence[int], ranks: Sequence[Any]) -> dict[int, list[int]]:
    """Return the positions of each index in ``indices``, lowest rank first. The best index is the first key."""
    ranked: dict[int, list[int]] = {}
    for position in sorted(range(len(indices)), key=ranks.__getitem__):
        ranked.setdefault(indices[position], []).append(position)
    return ranked
