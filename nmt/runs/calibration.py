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
"""Confidence below which a translation is to be checked, unless another is given."""
CALIBRATE = Command("evaluate", Argument("calibrate", True))
FIT = ("Fit it with ", CALIBRATE, ", and then export again what is exported.")
OF_UNKNOWN_WEIGHTS = (
    "the confidence was fitted by an older version of nmt, which did not note the weights. If they have changed since "
    "under the same name, it is wrong. Fit it again with ",
    CALIBRATE,
    ".",
)


class Reliability(Record):
    """Probabilities beside what they are of, on a test set: in ten bins with equally many, the least probable first."""

    predicted: list[float]
    """Mean probability of each bin."""
    observed: list[float]
    """Share of each bin for which it is true."""
    error: float
    """Expected calibration error: mean over the bins of the absolute difference of the two."""


class Calibration(Record):
    """Content of ``confidence.json``."""

    format: Literal[1, 2] = 2
    epoch: WeightsId
    """Weights whose translations it was fitted to."""
    weights: str | None = None
    """SHA-256 of these weights; None in format 1."""
    good: int
    """Least chrF of a good translation, which about a fifth of the validation sentences miss."""
    sentence: list[float]
    """Logistic regression that a translation is good: bias, then weights of ``sentence_features``."""
    word: list[float]
    """Logistic regression that a word stands in the reference: bias, then weights of ``word_features``."""
    sentences: Reliability
    """Measured probabilities of sentences."""
    words: Reliability
    """Measured probabilities of words."""
    found: float
    """Share of the bad sentences that are among the least probable tenth."""

    @property
    def in_words(self) -> str:
        """What was measured, in words."""
        return (
            f"Confidence: good is a translation with chrF {self.good} or more. Expected calibration error (10 bins): "
            f"{self.sentences.error:.3f} of sentences, {self.words.error:.3f} of words. Of the translations that are "
            f"not good, {self.found:.0%} are among the least probable 10%."
        )


def sentence_features(tokens: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return features of a translation, float [3], of log-probabilities of its tokens [T] and words [J]."""
    return np.array([tokens.mean(), words.min(initial=0), np.log(len(tokens))])


def word_features(words: np.ndarray) -> np.ndarray:
    """Return features of words, float [J, 3], of their log-probabilities [J]."""
    return np.stack([words, np.exp(words), np.exp(2 * words)], axis=-1)


def probability(weights: list[float] | np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return probabilities of a logistic regression, float [...], by its F + 1 weights and features [..., F]."""
    return 1 / (1 + np.exp(-np.clip(weights[0] + features @ np.array(weights[1:]), -30, 30)))


def read_calibration(run: Run, epoch: WeightsId | None = None, weights: str | None = None) -> Calibration:
    """Return the calibration of a run's weights; without an epoch, of whatever weights it is.

    Args:
        run: a run, or the run's files in an export.
        epoch: weights that translate.
        weights: SHA-256 of these weights; None if it is unknown. The epoch alone is compared then, and also with a
            calibration of format 1, which does not say its weights.

    Raises:
        NotFoundError: if the run has none.
        ConflictError: if it is of other weights.
        DataError: if it is damaged.
    """
    path = run.confidence_path
    if not path.is_file():
        raise NotFoundError(f"Confidence needs {path}, which does not exist. ", *FIT)
    values = read_json(path, "A calibration")
    check_format(values["format"] if isinstance(values, dict) and "format" in values else None, [1, 2], str(path))
    try:
        found = Calibration.model_validate(values)
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. ", *FIT) from None
    if epoch not in (None, found.epoch):
        raise ConflictError(f"{path} is of epoch {found.epoch}; received epoch {epoch}. ", *FIT)
    if weights and found.weights not in (None, weights):
        raise ConflictError(
            f"{path} was fitted to other weights of epoch {found.epoch} than those of today: their SHA-256 differ. "
            f"Confidence holds for the weights that it was fitted to. ",
            *FIT,
        )
    return found
