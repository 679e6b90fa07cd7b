"""The metrics file, one JSON object a line: what is noted of steps, epochs, averages and samples, and which is best."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.config.training import BestBy
from nmt.errors import DataError


class StepMetrics(Record):
    """A line of the metrics file about the training steps since the previous such line."""

    kind: Literal["step"] = "step"
    epoch: int
    step: int
    """Steps since the run began, from 1."""
    loss: float
    """Mean cross-entropy of a target token, in nats."""
    accuracy: float
    """Share of target tokens predicted right."""
    learning_rate: float


class Validation(Record):
    """What weights came to on the validation split. Means are over all target tokens, eos counted, padding not."""

    step: int
    """Steps since the run began, when they were measured."""
    validation_loss: float
    """Mean cross-entropy of a token, in nats."""
    validation_accuracy: float
    """Share of tokens predicted right, given those before them."""
    validation_bleu: float | None = None
    """Of greedy translations of the first ``training.decode_validation`` sentences; None without."""
    validation_chrf: float | None = None
    """Of the same."""


class StepValidation(Validation):
    """A line of the metrics file about a validation amid an epoch."""

    kind: Literal["validation"] = "validation"
    epoch: int


class EpochMetrics(Validation):
    """A line of the metrics file about an epoch."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    train_loss: float
    """Mean cross-entropy of a token as training saw it, dropout on and weights moving, in nats."""
    train_accuracy: float
    target_tokens: int
    """Trained on in this epoch."""
    seconds: float
    """Of training, validation and saving left out."""


class AverageMetrics(Record):
    """A line of the metrics file about the mean of the weights of several epochs; of figures see ``Validation``."""

    kind: Literal["average"] = "average"
    epochs: list[int] = Field(min_length=1)
    step: int
    validation_loss: float | None = None
    """None if there was no dataset to measure it on."""
    validation_accuracy: float | None = None
    """The same."""
    validation_bleu: float | None = None
    validation_chrf: float | None = None


class Sample(Record):
    """A sentence of the validation split, as the model translated it."""

    source: str
    reference: str
    translation: str


class DecodedValidation(NamedTuple):
    """Translations of validation sentences: scores and samples."""

    bleu: float | None = None
    """BLEU, 0 to 100; None if not asked for."""
    chrf: float | None = None
    """ChrF, 0 to 100; None if not asked for."""
    samples: Sequence[Sample] = ()
    """Sample sentences with their translations."""


class SampleMetrics(Record):
    """A line of the metrics file with translations, of the same sentences each time."""

    kind: Literal["samples"] = "samples"
    epoch: int
    step: int
    samples: list[Sample]


Metrics = StepMetrics | StepValidation | EpochMetrics | AverageMetrics | SampleMetrics
KINDS: dict[str, type[Metrics]] = {
    "step": StepMetrics,
    "validation": StepValidation,
    "epoch": EpochMetrics,
    "average": AverageMetrics,
    "samples": SampleMetrics,
}
# Which weights: those after an epoch; "average", the mean of several; or, such as "step-1500", the best amid an epoch.
Epoch = int | str


def parse_metrics(content: bytes, path: Path) -> list[Metrics]:
    """Return the lines of a metrics file; a last one without its end is left out: the process died while writing it.

    Raises:
        DataError: naming ``path`` and the first damaged line.
    """
    lines = content.decode(errors="replace").split("\n")
    records: list[Metrics] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            values: Any = json.loads(line)
            records.append(KINDS[values["kind"]].model_validate(values))
        except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
            if number == len(lines):
                break
            raise DataError(
                f"Each line of a metrics file is as nmt train writes it; {path}, line {number} is damaged: "
                f"{_problem(error)}. Remove the line."
            ) from None
    return records


def _problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:120]
    return " ".join(str(error).split())[:120]


def weights_name(validation: StepValidation | EpochMetrics) -> Epoch:
    """Return which weights a validation was about."""
    return validation.epoch if isinstance(validation, EpochMetrics) else f"step-{validation.step}"


def is_better(one: Validation, other: Validation, by: BestBy) -> bool:
    """Return whether one validation beats an earlier one; equals: by the lower loss.

    Accuracy is the default, since greedy search takes the likeliest token and that is what accuracy counts; the loss
    also counts how sure the model is of what it gets wrong.
    """

    def height(validation: Validation) -> tuple[float, float]:
        value = getattr(validation, f"validation_{by}")
        value = float("-inf") if value is None else value
        return (-value if by == "loss" else value), -validation.validation_loss

    return height(one) > height(other)


Measured = TypeVar("Measured", bound=Validation)


def best_of(validations: Iterable[Measured], by: BestBy) -> Measured | None:
    """Return the best validation, of equals the first; None if there are none."""
    best: Measured | None = None
    for one in validations:
        if best is None or is_better(one, best, by):
            best = one
    return best
