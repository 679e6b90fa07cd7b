"""Records of the metrics file as series of numbers, texts and hyper-parameters."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.schema import Config
from nmt.config.training import BestBy
from nmt.runs.metrics import (
    AverageMetrics,
    EpochMetrics,
    Metrics,
    Sample,
    StepMetrics,
    StepValidation,
    is_better,
    tokens_per_second,
)
from nmt.tracking.base import Value

SCORES = ("loss", "accuracy", "bleu", "chrf")


class Series:
    """Values of each record, given in the order of the metrics file."""

    def __init__(self, best_by: BestBy) -> None:
        """Take the measure of the best validation."""
        self._best_by = best_by
        self._best: StepValidation | EpochMetrics | None = None
        self._last_step: StepMetrics | None = None

    def scalars(self, record: Metrics) -> dict[str, float]:
        """Return the values of a record by the names of their series.

        - train/...: of the steps since the last record, with the learning rate and target tokens per second
        - epoch/...: of the training of a whole epoch
        - validation/...: of each validation
        - best/..., average/...: scores of the best validation so far, and of averaged weights
        """
        if isinstance(record, StepMetrics):
            return self._of_steps(record)
        if isinstance(record, AverageMetrics):
            return _scores("average", record)
        if not isinstance(record, StepValidation | EpochMetrics):
            return {}
        values = _scores("validation", record)
        if isinstance(record, EpochMetrics):
            values |= {"epoch/loss": record.train_loss, "epoch/accuracy": record.train_accuracy}
            if record.seconds > 0:
                values["epoch/tokens_per_second"] = record.target_tokens / record.seconds
        if self._best is None or is_better(record, self._best, self._best_by):
            self._best = record
        return values | _scores("best", self._best)

    def _of_steps(self, record: StepMetrics) -> dict[str, float]:
        values = {
            "train/loss": record.loss, "train/accuracy": record.accuracy, "train/learning_rate": record.learning_rate,
        }  # fmt: skip
        last, self._last_step = self._last_step, record
        speed = tokens_per_second(last, record)
        return values if speed is None else values | {"train/tokens_per_second": speed}


def _scores(group: str, record: StepValidation | EpochMetrics | AverageMetrics) -> dict[str, float]:
    values = {name: getattr(record, f"validation_{name}") for name in SCORES}
    return {f"{group}/{name}": value for name, value in values.items() if value is not None}


def samples_as_markdown(samples: Sequence[Sample]) -> str:
    """Return sample sentences with their translations as a table."""
    rows = [(sample.source, sample.reference, sample.translation) for sample in samples]
    table = [("source", "reference", "translation"), ("---",) * 3, *(map(_cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def _cell(text: str) -> str:
    """Return text as it reads, whatever characters of Markdown and HTML it has."""
    escaped = "".join(f"\\{character}" if character in "\\`*_{}[]#|~$!" else character for character in text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def hyperparameters(config: Config) -> dict[str, Value]:
    """Return the configuration by full keys; null and lists become text."""
    sections: Mapping[str, Mapping[str, Any]] = config.model_dump(mode="json")
    return {
        f"{section}.{key}": value if isinstance(value, bool | int | float | str) else json.dumps(value)
        for section, keys in sections.items()
        for key, value in keys.items()
    }
