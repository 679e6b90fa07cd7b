"""Calibration of translation confidence, fitted on the validation split of a run and measured on a test set."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import read_manifest
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.evaluation.scoring import sentence_scores
from nmt.runs.calibration import Calibration, Reliability, probability, sentence_features, word_features
from nmt.runs.directory import Run
from nmt.text.confidence import word_scores
from nmt.tokenizers.scripts import split_words

BAD = 22.5  # percentage of validation sentences that count as bad
BINS = 10  # number of bins of ``Reliability``
RIDGE, STEPS = 0.1, 50  # regularization and number of steps of the fit (Newton's method)


class _Sample(NamedTuple):
    """N translations with W words, and how good they are."""

    features: np.ndarray
    """Features of the translations, float [N, 3]."""
    chrf: np.ndarray
    """chrF of each translation, float [N]."""
    word_features: np.ndarray
    """Features of the words, float [W, 3]."""
    right: np.ndarray
    """Whether each word is in a reference, bool [W]."""


def fit(run: Run, translator: SentenceTranslator, sources: list[str], references: list[list[str]]) -> Calibration:
    """Return the calibration of a run, fitted on its validation split and measured on N sources with references.

    Raises:
        NotFoundError, ConflictError: as ``dataset_of_run``.
    """
    dataset = dataset_of_run(run.name, read_manifest(run.dataset_path))
    validation_source, validation_target = (
        read_lines(TextFile(dataset.text("validation", side))) for side in ("source", "target")
    )
    validation = _translate(translator, validation_source, [validation_target])
    good = round(float(np.percentile(validation.chrf, BAD)))
    sentence = _fit(validation.features, validation.chrf >= good)
    word = _fit(validation.word_features, validation.right)
    test = _translate(translator, sources, references)
    probabilities, bad = probability(sentence, test.features), test.chrf < good
    least = np.argsort(probabilities, kind="stable")[: len(bad) // 10]
    return Calibration(
        epoch=translator.epoch,
        weights=translator.weights,
        good=good,
        sentence=sentence.tolist(),
        word=word.tolist(),
        sentences=_reliability(probabilities, ~bad),
        words=_reliability(probability(word, test.word_features), test.right),
        found=float(bad[least].sum() / max(1, bad.sum())),
    )


def _translate(translator: SentenceTranslator, sources: list[str], references: list[list[str]]) -> _Sample:
    """Translate sources, and return features and quality of the translations that are not empty."""
    best = [hypotheses[0] for hypotheses in translator.search(sources, skip_too_long=True)]
    kept = [index for index, translation in enumerate(best) if translation.text]
    texts, ids = [best[index].text for index in kept], [best[index].ids for index in kept]
    lines = [[side[index] for index in kept] for side in references]
    token_scores = translator.token_scores([sources[index] for index in kept], ids)
    words, features, right = [], [], []
    for sentence, (text, tokens, scores) in enumerate(zip(texts, ids, token_scores, strict=True)):
        words.append(word_scores(translator.target, tokens, scores))
        features.append(sentence_features(scores, words[-1]))
        right.append(max((_right_words(text, side[sentence]) for side in lines), key=sum))
    return _Sample(
        np.array(features), sentence_scores(texts, lines), word_features(np.concatenate(words)), np.concatenate(right)
    )


def _right_words(translation: str, reference: str) -> list[bool]:
    """Return for each word of a translation whether it is in the reference, at most as often as it is there."""
    left, right = Counter(word.text for word in split_words(reference)), []
    for word, _ in split_words(translation):
        right.append(left[word] > 0)
        left[word] -= 1
    return right


def _fit(features: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return the weights, float [F + 1], of a logistic regression of labels ``true``, bool [N], on features [N, F]."""
    inputs = np.insert(features, 0, 1, axis=1)
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        predicted = probability(weights, features)
        curvature = inputs.T @ (inputs * (predicted * (1 - predicted))[:, np.newaxis]) + RIDGE * np.eye(len(weights))
        weights += np.linalg.solve(curvature, inputs.T @ (true - predicted) - RIDGE * weights)
    return weights


def _reliability(probabilities: np.ndarray, true: np.ndarray) -> Reliability:
    order = np.argsort(probabilities, kind="stable")
    bins = [indices for indices in np.array_split(order, BINS) if len(indices)]
    predicted = np.array([float(probabilities[indices].mean()) for indices in bins])
    observed = np.array([float(true[indices].mean()) for indices in bins])
    error = np.average(abs(predicted - observed), weights=[*map(len, bins)])
    return Reliability(predicted=predicted.tolist(), observed=observed.tolist(), error=float(error))
