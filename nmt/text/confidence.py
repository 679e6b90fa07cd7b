"""Confidence in translations: probabilities of sentences and of words, by a run's calibration.

Shapes: J words and T tokens of a translation.
"""

from collections.abc import Collection, Sequence

import numpy as np

from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import Translation
from nmt.runs.calibration import Calibration, probability, sentence_features, word_features
from nmt.text.glossary import Glossary
from nmt.text.inline import CLOSING
from nmt.text.rewriting import words_of
from nmt.tokenizers.base import Tokenizer


def word_scores(target: Tokenizer, ids: Sequence[int], scores: np.ndarray) -> np.ndarray:
    """Return the log-probability of each word of a translation, float [J], from those of its tokens, float [T]."""
    words = words_of(target, ids)
    return np.bincount(words, scores[: len(words)])


def with_confidence(
    translator: SentenceTranslator,
    calibration: Calibration,
    glossary: Glossary | None,
    texts: Sequence[str],
    found: Sequence[list[Translation]],
) -> list[list[Translation]]:
    """Return translations of texts with the probabilities of sentences and words.

    Glossary words were given by the user, so their probability is set to 1.

    Args:
        translator: scores the tokens of translations.
        calibration: turns log-probabilities into probabilities.
        glossary: terms that the translations keep.
        texts: what the model read.
        found: translations of each text.
    """
    sources = [text for text, translations in zip(texts, found, strict=True) for _ in translations]
    targets = [translation.ids for translations in found for translation in translations]
    scores = iter(translator.token_scores(sources, targets) if sources else [])
    result = []
    for text, translations in zip(texts, found, strict=True):
        certain = glossary.words_of(text) if glossary else ()
        result.append([
            _with_confidence(calibration, translator.target, translation, next(scores), certain)
            for translation in translations
        ])  # fmt: skip
    return result


def _with_confidence(
    calibration: Calibration, target: Tokenizer, translation: Translation, scores: np.ndarray, certain: Collection[str]
) -> Translation:
    if not translation.text:
        return translation
    written, places = translation.text.split(), words_of(target, translation.ids)
    doubted = np.array([word.strip(CLOSING).casefold() not in certain for word in written])
    scores = np.append(scores[: len(places)] * doubted[places], scores[len(places) :])
    words = word_scores(target, translation.ids, scores)
    probabilities = probability(calibration.word, word_features(words)).round(4).tolist()
    confidence = round(float(probability(calibration.sentence, sentence_features(scores, words))), 4)
    return translation._replace(confidence=confidence, words=tuple(zip(written, probabilities, strict=True)))
