"""Calibration of confidence: fitted on the validation split of a run, measured on a test set."""

from collections import Counter

import numpy as np

from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import read_manifest
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.evaluation.scoring import sentence_scores
from nmt.runs.calibration import Calibration, Reliability, probability, sentence_features, word_features
from nmt.runs.directory import Run
from nmt.text.confidence import word_scores

BAD, BINS, RIDGE, STEPS = 22.5, 10, 0.1, 50
"""Percentage of validation sentences that are bad, bins of ``Reliability``, constants of the fit (Newton's method)."""


def fit(run: Run, translator: SentenceTranslator, sources: list[str], references: list[list[str]]) -> Calibration:
    """Return the calibration of a run, fitted on its validation split and measured on sources with their references.

    Raises:
        NotFoundError, ConflictError: as ``dataset_of_run``.
    """
    dataset = dataset_of_run(run.name, read_manifest(run.dataset_path))
    fitted, *of_fitted = (read_lines(TextFile(dataset.text("validation", side))) for side in ("source", "target"))
    features, chrf, words, right = _judge(translator, fitted, of_fitted)
    good = round(float(np.percentile(chrf, BAD)))
    sentence, word = _fit(features, chrf >= good), _fit(words, right)
    features, chrf, words, right = _judge(translator, sources, references)
    probabilities, bad = probability(sentence, features), chrf < good
    least = np.argsort(probabilities, kind="stable")[: len(bad) // 10]
    return Calibration(
        epoch=translator.epoch,
        weights=translator.weights,
        good=good,
        sentence=sentence.tolist(),
        word=word.tolist(),
        sentences=_reliability(probabilities, ~bad),
        words=_reliability(probability(word, words), right),
        found=float(bad[least].sum() / max(1, bad.sum())),
    )


def _judge(
    translator: SentenceTranslator, sources: list[str], references: list[list[str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return features and chrF of N translations [N, 3] and [N], features of their W words [W, 3], and which are right.

    A word is right that stands in a reference, as often as it does there at most.
    """
    found = translator.search(sources, skip_too_long=True)
    read = [index for index, each in enumerate(found) if each[0].text]
    texts, lines = [found[index][0].text for index in read], [[side[index] for index in read] for side in references]
    ids = [found[index][0].ids for index in read]
    scores = translator.token_scores([sources[index] for index in read], ids)
    words = [word_scores(translator.target, *each) for each in zip(ids, scores, strict=True)]
    right = [max((_right(text, one) for one in several), key=sum) for text, *several in zip(texts, *lines, strict=True)]
    features = np.array([sentence_features(*each) for each in zip(scores, words, strict=True)])
    return features, sentence_scores(texts, lines), word_features(np.concatenate(words)), np.concatenate(right)


def _right(translation: str, reference: str) -> list[bool]:
    left, right = Counter(reference.split()), []
    for word in translation.split():
        right.append(left[word] > 0)
        left[word] -= 1
    return right


def _fit(features: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return the weights of a logistic regression, float [F + 1], of features [N, F] and what is true, bool [N]."""
    inputs = np.insert(features, 0, 1, axis=1)
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        predicted = probability(weights, features)
        curvature = inputs.T @ (inputs * (predicted * (1 - predicted))[:, np.newaxis]) + RIDGE * np.eye(len(weights))
        weights += np.linalg.solve(curvature, inputs.T @ (true - predicted) - RIDGE * weights)
    return weights


def _reliability(probabilities: np.ndarray, true: np.ndarray) -> Reliability:
    bins = [each for each in np.array_split(np.argsort(probabilities, kind="stable"), BINS) if len(each)]
    predicted, observed = (np.array([float(values[each].mean()) for each in bins]) for values in (probabilities, true))
    error = np.average(abs(predicted - observed), weights=[*map(len, bins)])
    return Reliability(predicted=predicted.tolist(), observed=observed.tolist(), error=float(error))
