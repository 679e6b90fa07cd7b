"""Confidence of a run's translations: probabilities of sentences and words, fitted by ``nmt evaluate --calibrate``."""

from typing import Literal

import numpy as np
from pydantic import ValidationError

from nmt.config.record import Record
from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.message import Argument, Command
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.storage.json_file import check_format, read_json

CHECK_BELOW = 0.5
"""Default threshold: a translation with a lower confidence should be checked."""
CALIBRATE = Command("evaluate", Argument("calibrate", True))
FIT = ("Fit it with ", CALIBRATE, ", then repeat exports of the run.")
OF_UNKNOWN_WEIGHTS = (
    "the confidence was fitted by an older version of nmt, which did not record the weights. If the weights have "
    "changed since then, the confidence is wrong. Fit it again with ",
    CALIBRATE,
    ".",
)


class Reliability(Record):
    """Reliability diagram on a test set: predicted and observed probabilities in ten equal-count bins, lowest first."""

    predicted: list[float]
    """Mean predicted probability of each bin."""
    observed: list[float]
    """Share of positive cases in each bin: good translations, or words that stand in the reference."""
    error: float
    """Expected calibration error: mean absolute difference of predicted and observed probabilities over the bins."""


class Calibration(Record):
    """Content of ``confidence.json``."""

    format: Literal[1, 2] = 2
    epoch: WeightsId
    """Name of the weights whose translations the calibration was fitted to."""
    weights: str | None = None
    """SHA-256 of these weights; None in format 1."""
    good: int
    """Lowest chrF of a good translation. About a fifth of the validation sentences are below it."""
    sentence: list[float]
    """Logistic regression for the probability that a translation is good: bias, then weights of
    ``sentence_features``."""
    word: list[float]
    """Logistic regression for the probability that a word stands in the reference: bias, then weights of
    ``word_features``."""
    sentences: Reliability
    """Reliability of the probabilities of sentences."""
    words: Reliability
    """Reliability of the probabilities of words."""
    found: float
    """Share of the bad translations that are among the tenth with the lowest probability."""

    @property
    def in_words(self) -> str:
        """Summary of the calibration in words."""
        return (
            f"Confidence: a translation counts as good if its chrF is {self.good} or more. Expected calibration error "
            f"(10 bins): {self.sentences.error:.3f} for sentences, {self.words.error:.3f} for words. Of the bad "
            f"translations, {self.found:.0%} are among the 10% with the lowest confidence."
        )


def sentence_features(tokens: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the features of a translation, float [3], from log-probabilities of its tokens [T] and words [J]."""
    return np.array([tokens.mean(), words.min(initial=0), np.log(len(tokens))])


def word_features(words: np.ndarray) -> np.ndarray:
    """Return the features of words, float [J, 3], from their log-probabilities [J]."""
    return np.stack([words, np.exp(words), np.exp(2 * words)], axis=-1)


def probability(weights: list[float] | np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the probabilities of a logistic regression, float [...], from its F + 1 weights and features [..., F]."""
    return 1 / (1 + np.exp(-np.clip(weights[0] + features @ np.array(weights[1:]), -30, 30)))


def read_calibration(run: Run, epoch: WeightsId | None = None, weights: str | None = None) -> Calibration:
    """Return the calibration of a run, after checking that it was fitted to the weights that translate.

    Args:
        run: a run, or the run's files in an export.
        epoch: name of the weights that translate; None: no check.
        weights: SHA-256 of these weights; None if unknown. Then, and for a calibration of format 1, which does not
            contain the SHA-256, only the epoch is compared.

    Raises:
        NotFoundError: if the run has no calibration.
        ConflictError: if the calibration was fitted to other weights.
        DataError: if the file is damaged.
    """
    path = run.confidence_path
    if not path.is_file():
        raise NotFoundError(f"Confidence needs {path}, which does not exist. ", *FIT)
    values = read_json(path, "A calibration")
    check_format(values["format"] if isinstance(values, dict) and "format" in values else None, [1, 2], str(path))
    try:
        calibration = Calibration.model_validate(values)
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. ", *FIT) from None
    if epoch not in (None, calibration.epoch):
        raise ConflictError(f"{path} was fitted to epoch {calibration.epoch}; received epoch {epoch}. ", *FIT)
    if weights and calibration.weights not in (None, weights):
        raise ConflictError(
            f"{path} was fitted to other weights: the SHA-256 of epoch {calibration.epoch} has changed since. A "
            "confidence holds only for the weights that it was fitted to. ",
            *FIT,
        )
    return calibration
