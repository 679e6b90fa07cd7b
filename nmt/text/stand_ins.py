"""Words that stand in for pieces of a sentence, which are words of its grammar.

Without its subject, the model invents another for "{0} is running". It translates "Michael is running" well, and copies
the name. Where a piece is no word of the sentence, as in "Hello {0}!", the translation without it is likelier. A piece
at the beginning, before a small letter, is a word of it in any case.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import Translation
from nmt.text.reading import Parts, Reader, Reading, Text
from nmt.text.rewriting import babbles, keeps_pieces
from nmt.tokenizers.scripts import space_between

STAND_INS = (
    (("Michael", "Boston", "Maria"), ("6", "15", "8")),
    (("Boston", "Paris", "John"), ("15", "8", "11")),
    (("Paris",), ("8",), ("1",)),
)
"""Names and numbers that are tried for the pieces of a sentence, until a translation has each of them once. At last,
only the first piece has a stand-in."""

Search = Callable[[list[str]], list[list[Translation]]]
"""Function that translates sentences as they stand."""


class _Trial(NamedTuple):
    """A sentence with stand-ins for its pieces."""

    number: int
    """Index of its reading."""
    text: Text
    kept: tuple[str, ...]
    """Pieces that the model is to copy by itself."""

    def succeeds(self, translation: Translation, *, may_repeat: bool) -> bool:
        """Return whether a translation has all stand-ins and pieces once, and does not babble."""
        is_complete = keeps_stand_ins(translation.text, self.text) and keeps_pieces(translation.text, self.kept)
        return is_complete and not babbles(translation.ids, self.text.text, may_repeat=may_repeat)


def replace_with_stand_ins(
    translator: SentenceTranslator, reader: Reader, search: Search, readings: list[Reading], inputs: list[Text],
    candidates: list[list[Translation]],
) -> None:  # fmt: skip
    """Replace translations of sentences without pieces by those with stand-ins, where these are likelier.

    Args:
        translator: scores translations.
        reader: reads sentences with stand-ins.
        search: translates them.
        readings: the sentences.
        inputs: what the model has read of each sentence. Changed with the translations.
        candidates: translations of each sentence.
    """
    waiting = dict[int, Parts]()
    for index, reading in enumerate(readings):
        has_translation = bool(candidates[index][0].ids) and not inputs[index].is_upper
        if reading.parts and reading.parts.removed and has_translation:
            waiting[index] = reading.parts
    without = {index: (inputs[index], candidates[index][0]) for index in waiting}
    likelihoods = dict(zip(waiting, _likelihoods(translator, [*without.values()]), strict=True))
    for index, parts in waiting.items():
        if inputs[index].text[:1].islower() and not parts.sentence[:1].islower():
            likelihoods[index] = -math.inf
    for variants in STAND_INS:
        trials = list[_Trial]()
        for (index, parts), words in itertools.product(waiting.items(), variants):
            has_lost = inputs[index] is readings[index].bare
            text = reader.with_stand_ins(parts, words, has_lost=has_lost)
            if text is not None:
                trials.append(_Trial(index, text, () if has_lost else readings[index].kept))
        if not trials:
            return
        results = search([trial.text.text for trial in trials])
        complete = [
            (trial, translations) for trial, translations in zip(trials, results, strict=True)
            if trial.succeeds(translations[0], may_repeat=translator.may_repeat)
        ]  # fmt: skip
        found = _likelihoods(translator, [(trial.text, translations[0]) for trial, translations in complete])
        for (trial, translations), likelihood in zip(complete, found, strict=True):
            waiting.pop(trial.number, None)
            if likelihood > likelihoods[trial.number]:
                likelihoods[trial.number] = likelihood
                inputs[trial.number], candidates[trial.number] = trial.text, translations


def _likelihoods(translator: SentenceTranslator, pairs: list[tuple[Text, Translation]]) -> list[float]:
    """Return the mean log-probability of the tokens of translations."""
    if not pairs:
        return []
    texts, translations = [text.text for text, _ in pairs], [translation.ids for _, translation in pairs]
    return [float(scores.mean()) for scores in translator.token_scores(texts, translations)]


def keeps_stand_ins(translation: str, text: Text) -> bool:
    """Return whether a translation has each stand-in of its source once, as a word of its own."""
    for word, _ in text.stand_ins:
        before, _, after = translation.partition(word)
        neighbours = before[-1:], after[:1]
        is_within = any(sign.isalnum() and space_between(sign, word) for sign in neighbours)
        is_ordinal = word.isdigit() and after.startswith(". ")
        if translation.count(word) != 1 or is_within or is_ordinal:
            return False
    return True
