"""Terms of a glossary in translations: a missing term replaces the words of the translation that attend to it.

The model does not search again. Loads no TensorFlow.

Shapes: J words of a translation, I words of the model input.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import Translation
from nmt.text.glossary import Glossary, TermMatch
from nmt.text.inline import edges_of, shares_of
from nmt.text.rewriting import align, proportional_weights
from nmt.tokenizers.base import EOS, UNK, UNKNOWN, Tokenizer
from nmt.tokenizers.letter_case import capitalize, upper
from nmt.tokenizers.scripts import Word, join_words, space_between, split_words

MOSTLY, HARDLY = 0.5, 0.1
"""Least share of the source words of a term in a word that translates the term, and in a word that may."""
LETTER = 0.01
"""Share that a letter of a word is worth."""
FEWEST_LETTERS = 4
"""Fewest letters of a translation of a term that a longer word may begin with. Shorter ones begin words by chance."""


class _Place(NamedTuple):
    """A translation that lacks terms."""

    sentence: int
    """Index of the sentence."""
    rank: int
    """Index of the translation among those of the sentence."""


@dataclass
class _Replacement:
    """Words of a translation, and the terms that replace them."""

    begin: int
    """Index of the first word."""
    end: int
    """Index after the last word."""
    forms: list[str] = field(default_factory=list)
    """Translations of the terms, in the order of the source."""


def keep_terms(
    translator: SentenceTranslator,
    glossary: Glossary,
    texts: Sequence[str],
    candidates: Sequence[list[Translation]],
    alpha: float = 0.0,
    prefix: str = "",
) -> list[list[Translation]]:
    """Return translations of sentences with the terms of a glossary, best first.

    A changed translation has the ids of its new words. If translations have scores, its score is the model's score of
    these ids.

    Args:
        translator: aligns and scores translations.
        glossary: terms that the translations keep.
        texts: sentences as the model reads them.
        candidates: translations of each sentence.
        alpha: length penalty of the search that returned the candidates, for their scores.
        prefix: text that every translation begins with, which does not change.
    """
    results = [[*translations] for translations in candidates]
    places = [
        _Place(sentence, rank)
        for sentence, translations in enumerate(candidates)
        for rank, translation in enumerate(translations)
        if translation.text.split() and glossary.missing(texts[sentence], translation.text)
    ]
    if not places:
        return results
    sources = [texts[place.sentence] for place in places]
    previous = [candidates[place.sentence][place.rank] for place in places]
    alignments = align(translator, sources, previous)
    fixed = len(split_words(prefix))
    changed = list[Translation]()
    for index, (source, translation) in enumerate(zip(sources, previous, strict=True)):
        weights = alignments[index].weights if alignments else None
        text = with_terms(glossary, translator.target, source, translation.text, weights, fixed)
        ids = _encode(translator.target, text)
        if len(ids) < translator.longest:
            text = translator.target.decode(ids)
            changed.append(translation._replace(text=text, ids=[*ids, EOS] if translation.finished else ids))
        else:
            changed.append(translation)
    if previous[0].score is not None:
        changed = _scored(translator, sources, changed, alpha)
    for place, translation in zip(places, changed, strict=True):
        results[place.sentence][place.rank] = translation
    for sentence in {place.sentence for place in places}:
        by_text = {translation.text: translation for translation in results[sentence]}
        results[sentence] = sorted(by_text.values(), key=lambda translation: -(translation.score or 0.0))
    return results


def with_terms(
    glossary: Glossary, target: Tokenizer, source: str, translation: str, weights: np.ndarray | None, fixed: int = 0
) -> str:
    """Return a translation with the terms that it lacks, each in the place of the words that attend to it.

    Args:
        glossary: terms that the translation keeps.
        target: tokenizer of the target side.
        source: sentence as the model reads it, I words.
        translation: its translation, J words.
        weights: attention of translation words to source words: float [J, I]; None for a model without attention.
        fixed: number of words at the beginning of the translation that do not change.
    """
    words, source_words = split_words(translation), split_words(source)
    if weights is None or weights.shape != (len(words), len(source_words)):
        weights = proportional_weights(len(words), len(source_words))
    shares, matches = shares_of(weights), glossary.terms_of(source)
    is_free = np.arange(len(words)) >= fixed
    is_free[[*glossary.form_words(source, translation)]] = False
    begins_with_capital = edges_of(words[0].text)[1][:1].isupper()
    replacements, owners = list[_Replacement](), np.full(len(words), -1)
    for match in glossary.missing(source, translation):
        # It is not known which occurrence of a term that stands twice is missing, so all of them count.
        columns = [word for other in matches if other.term is match.term for word in other.words]
        # A plural or a compound with the term, such as "Hundeleine" for "Hund", translates it whatever it attends to.
        is_longer_form = np.array([_begins_with_form(word.text, match) for word in words])
        share = np.where(is_longer_form, len(columns), shares[:, columns].sum(axis=1))
        share = np.where(is_free, share, 0)
        unreplaced = np.where(owners < 0, share, 0)
        best = int((unreplaced if unreplaced.max() > MOSTLY else share).argmax())
        replacement = _Replacement(best, best + 1)
        if share[best] < HARDLY:  # the translation leaves the term out, which then comes at the end
            best = len(words) - 1
            replacement = _Replacement(best, best + 1, [edges_of(words[best].text)[1]])
        elif owners[best] < 0:
            replacement = _words_of_term(words, unreplaced, best, match)
        if owners[best] < 0:
            owners[replacement.begin : replacement.end] = len(replacements)
            replacements.append(replacement)
            best = replacement.begin
        forms = replacements[owners[best]].forms
        occurrence = join_words(source_words[match.words.start : match.words.stop])
        form = _cased(match, occurrence, glossary.languages[1])
        if begins_with_capital and replacements[owners[best]].begin == 0 and not forms and form.islower():
            form = capitalize(form, glossary.languages[1])
        forms.append(match.term.first_form if target.unknown(form) else form)
    for replacement in sorted(replacements, key=lambda other: other.begin, reverse=True):
        _replace(words, replacement)
    return join_words(words)


def _begins_with_form(word: str, match: TermMatch) -> bool:
    """Return whether a word begins with a translation of a term, and goes on."""
    text = edges_of(word)[1]
    return any(len(form) >= FEWEST_LETTERS and text.startswith(form) for form in match.term.forms)


def _words_of_term(words: Sequence[Word], share: np.ndarray, best: int, match: TermMatch) -> _Replacement:
    """Return the words that a term replaces: those in a row that attend to it, but not the article of a noun.

    Args:
        words: J words of the translation.
        share: share of the term in each word; 0 for a word that must not be replaced: float [J].
        best: index of the word with the largest share.
        match: the term.
    """
    begin, end = best, best + 1
    while begin > 0 and share[begin - 1] > MOSTLY:
        begin -= 1
    while end < len(words) and share[end] > MOSTLY:
        end += 1
    if not space_between(words[best].text, "a"):
        return _Replacement(begin, end)  # the words of a script without spaces are characters
    # Articles and prepositions attend to their noun, too, though less. With equal shares, they are the shorter words,
    # and the first.
    weights = share + LETTER * np.array([len(word.text) for word in words])
    size = min(end - begin, max(len(match.words), len(split_words(match.term.first_form))))
    starts = reversed(range(begin, end - size + 1))
    begin = max(starts, key=lambda first: float(weights[first : first + size].sum()))
    return _Replacement(begin, begin + size)


def _cased(match: TermMatch, occurrence: str, language: str) -> str:
    """Return the first form of a term, with the capitals of its occurrence in a source text."""
    form = match.term.first_form
    if match.term.has_capitals:
        return form
    _, text, _ = edges_of(occurrence)
    if text.isupper() and sum(map(str.isalpha, text)) > 1:
        return upper(form, language)
    if match.words.start > 0 and text[:1].isupper():
        return capitalize(form, language)
    return form


def _replace(words: list[Word], replacement: _Replacement) -> None:
    """Replace words by the forms of terms, with the punctuation around them."""
    begin, end = replacement.begin, replacement.end
    before, *_ = edges_of(words[begin].text)
    *_, after = edges_of(words[end - 1].text)
    text = replacement.forms[0]
    for form in replacement.forms[1:]:
        text += space_between(text, form) + form
    text = before + text + ("" if text.endswith(after) else after)
    if begin > 0:
        words[begin - 1] = words[begin - 1]._replace(space=space_between(words[begin - 1].text, text))
    space = space_between(text, words[end].text) if end < len(words) else ""
    words[begin:end] = [Word(text, space)]


def _encode(target: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text in which ``UNKNOWN`` stands for an unknown word."""
    first, *others = map(target.encode, text.split(UNKNOWN))
    return first + [id_ for ids in others for id_ in (UNK, *ids)]


def _scored(
    translator: SentenceTranslator, texts: Sequence[str], translations: Sequence[Translation], alpha: float
) -> list[Translation]:
    """Return translations of texts with the scores of their ids, with the length penalty of beam search."""
    scores = translator.token_scores(texts, [translation.ids for translation in translations])
    return [
        translation._replace(score=float(values.sum()) / ((5 + len(values)) / 6) ** alpha)
        for translation, values in zip(translations, scores, strict=True)
    ]
