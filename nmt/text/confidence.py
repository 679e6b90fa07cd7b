"""Confidence in translations: probabilities of sentences and words, computed with a run's calibration.

Shapes: J words and T tokens of a translation.
"""

from collections.abc import Collection, Sequence

import numpy as np

from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import Translation
from nmt.runs.calibration import Calibration, probability, sentence_features, word_features
from nmt.text.glossary import Glossary
from nmt.text.rewriting import target_words
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.scripts import split_words


def word_scores(target: Tokenizer, ids: Sequence[int], scores: np.ndarray) -> np.ndarray:
    """Return the log-probability of each word, float [J]: the sum of the scores of its tokens, float [T].

    In a script without spaces, a token may have several words. Each of them gets its score.
    """
    text = target.decode(ids)
    by_word = np.zeros(len(split_words(text)))
    for words, score in zip(target_words(target, ids), scores, strict=False):
        by_word[words.start : words.stop] += score
    return by_word


def add_confidence(
    translator: SentenceTranslator,
    calibration: Calibration,
    glossary: Glossary | None,
    texts: Sequence[str],
    candidates: Sequence[list[Translation]],
) -> list[list[Translation]]:
    """Return translations of texts with the probabilities of sentences and words.

    Glossary words were given by the user, so their probability is set to 1.

    Args:
        translator: scores the tokens of translations.
        calibration: turns log-probabilities into probabilities.
        glossary: terms that the translations keep.
        texts: sentences as the model reads them.
        candidates: translations of each text.
    """
    sources = [
        "" if translation.is_skipped else text  # which is longer than the model reads
        for text, translations in zip(texts, candidates, strict=True)
        for translation in translations
    ]
    targets = [translation.ids for translations in candidates for translation in translations]
    scores = iter(translator.token_scores(sources, targets) if sources else [])
    result = []
    for text, translations in zip(texts, candidates, strict=True):
        result.append([
            _with_probabilities(
                calibration, translator.target, translation, next(scores),
                glossary.form_words(text, translation.text) if glossary else (),
            )
            for translation in translations
        ])  # fmt: skip
    return result


def _with_probabilities(
    calibration: Calibration, target: Tokenizer, translation: Translation, scores: np.ndarray, certain: Collection[int]
) -> Translation:
    """Return a translation with probabilities, from the scores of its tokens and the indices of certain words."""
    if not translation.text:
        return translation
    words = [word.text for word in split_words(translation.text)]
    scores = scores.copy()
    for token, word_range in enumerate(target_words(target, translation.ids)):
        if all(word in certain for word in word_range):
            scores[token] = 0
    by_word = word_scores(target, translation.ids, scores)
    by_word[[*certain]] = 0
    probabilities = probability(calibration.word, word_features(by_word)).round(4).tolist()
    confidence = round(float(probability(calibration.sentence, sentence_features(scores, by_word))), 4)
    return translation._replace(confidence=confidence, words=tuple(zip(words, probabilities, strict=True)))
