"""Records of the metrics file, its parser, and the comparison of validations."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.config.training import BestBy
from nmt.errors import DataError, NmtError
from nmt.storage.json_file import check_format

CURRENT_FORMAT = 2
FIRST_FORMAT = 1  # its files begin without a header


class Header(Record):
    """First line of the metrics file."""

    kind: Literal["header"] = "header"
    format: int = CURRENT_FORMAT
    """Format number of the file."""


class StepMetrics(Record):
    """Line about the training steps since the previous line of this kind."""

    kind: Literal["step"] = "step"
    epoch: int
    """Epoch of the last of these steps, from 1."""
    step: int
    """Number of the last of these steps since the run began, from 1."""
    loss: float
    """Mean cross-entropy per target token, in nats."""
    accuracy: float
    """Share of target tokens predicted correctly."""
    learning_rate: float
    """Learning rate of the last of these steps."""
    target_tokens: int | None = None
    """Number of target tokens trained on in the epoch so far; None in lines of earlier versions."""
    seconds: float | None = None
    """Duration of the epoch's training steps so far; None in lines of earlier versions."""


class Validation(Record):
    """Results on the validation split. Means are over all target tokens, with eos and without padding."""

    step: int
    """Number of training steps behind the validated weights."""
    validation_loss: float
    """Mean cross-entropy per token, in nats."""
    validation_accuracy: float
    """Share of tokens predicted correctly, each from the reference tokens before it."""
    validation_bleu: float | None = None
    """BLEU of greedy translations of the first ``training.decode_validation`` sentences; None without translations."""
    validation_chrf: float | None = None
    """chrF of these translations; None without translations."""


class StepValidation(Validation):
    """Line about a validation within an epoch."""

    kind: Literal["validation"] = "validation"
    epoch: int
    """Epoch that the validation interrupts, from 1."""


class EpochMetrics(Validation):
    """Line about a finished epoch."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    """Number of the epoch, from 1."""
    train_loss: float
    """Mean cross-entropy per token during training, with dropout and with weights as they changed, in nats."""
    train_accuracy: float
    """Share of target tokens predicted correctly during training."""
    target_tokens: int
    """Number of target tokens trained on in this epoch."""
    seconds: float
    """Duration of the epoch's training steps, without validation and saving."""


class AverageMetrics(Record):
    """Line about the mean of the weights of several epochs. The fields are those of ``Validation``."""

    kind: Literal["average"] = "average"
    epochs: list[int] = Field(min_length=1)
    """Epochs whose weights are averaged."""
    step: int
    """Number of training steps behind the newest of the averaged weights."""
    validation_loss: float | None = None
    """Mean cross-entropy per token, in nats; None without a dataset to validate on."""
    validation_accuracy: float | None = None
    """Share of tokens predicted correctly; None without a dataset to validate on."""
    validation_bleu: float | None = None
    validation_chrf: float | None = None


class Sample(Record):
    """Validation sentence with its translation by the model."""

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
    """Line with translations of validation sentences, the same sentences at each validation."""

    kind: Literal["samples"] = "samples"
    epoch: int
    """Epoch of the validation, from 1."""
    step: int
    """Number of training steps behind the validated weights."""
    samples: list[Sample]


Metrics = StepMetrics | StepValidation | EpochMetrics | AverageMetrics | SampleMetrics
KINDS: dict[str, type[Metrics]] = {
    "step": StepMetrics,
    "validation": StepValidation,
    "epoch": EpochMetrics,
    "average": AverageMetrics,
    "samples": SampleMetrics,
}
RETIRED_KINDS = {"shortage"}
"""Lines of earlier versions, which are passed over: about batches that memory did not hold."""
WeightsId = int | str
"""Weights of a run: number of an epoch; "average", a mean over epochs; "step-1500", best validation in an epoch."""


def parse_metrics(content: bytes, path: Path) -> list[Metrics]:
    """Return the records of a metrics file without its header.

    A last line without a line break may be partial: the process that wrote it was killed. It counts if it parses.

    Raises:
        DataError: if the format is unknown or a line is damaged; the message names ``path`` and the first such line.
    """
    lines = content.decode(errors="replace").split("\n")
    records: list[Metrics] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            values: Any = json.loads(line)
            if number == 1 and values["kind"] == "header":
                check_format(values["format"], [FIRST_FORMAT, CURRENT_FORMAT], str(path))
                Header.model_validate(values)
                continue
            if values["kind"] not in RETIRED_KINDS:
                kind = KINDS[values["kind"]]
                values.pop("energy_joules", None)  # older versions measured it
                records.append(kind.model_validate(values))
        except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
            if number == len(lines):
                break
            raise DataError(
                f"{path}, line {number} is damaged: {_problem(error)}. Each line of a metrics file is a record that "
                "nmt train wrote. Remove the line."
            ) from None
    return records


def tokens_per_second(before: StepMetrics | None, record: StepMetrics) -> float | None:
    """Return target tokens a second between two records of steps; of the first in an epoch, since the epoch began.

    None if a record of an earlier version does not tell.
    """
    if record.target_tokens is None or record.seconds is None:
        return None
    tokens, seconds = record.target_tokens, record.seconds
    if before is not None and before.epoch == record.epoch:
        tokens, seconds = tokens - (before.target_tokens or 0), seconds - (before.seconds or 0.0)
    return tokens / seconds if seconds > 0 else None


def _problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:120]
    return " ".join(str(error).split())[:120]


def weights_id(validation: StepValidation | EpochMetrics) -> WeightsId:
    """Return the name of the weights that were validated."""
    return validation.epoch if isinstance(validation, EpochMetrics) else f"step-{validation.step}"


def is_better(candidate: Validation, best: Validation, by: BestBy) -> bool:
    """Return whether a validation beats the best one so far. Between equal scores the lower loss decides.

    Accuracy is the default: it counts the most likely token, which greedy search takes. The loss also depends on the
    confidence in wrong predictions.
    """

    def rank(validation: Validation) -> tuple[float, float]:
        score = getattr(validation, f"validation_{by}")
        score = float("-inf") if score is None else score
        return (-score if by == "loss" else score), -validation.validation_loss

    return rank(candidate) > rank(best)


AnyValidation = TypeVar("AnyValidation", bound=Validation)


def best_of(validations: Iterable[AnyValidation], by: BestBy) -> AnyValidation | None:
    """Return the best validation, the first among equals; None without validations."""
    best: AnyValidation | None = None
    for validation in validations:
        if best is None or is_better(validation, best, by):
            best = validation
    return best


def validations_since_best(validations: Sequence[StepValidation | EpochMetrics], by: BestBy) -> int:
    """Return the number of validations after the best; 0 without validations."""
    best = best_of(validations, by)
    return 0 if best is None else len(validations) - 1 - validations.index(best)


def parse_epochs(text: str, available: list[int], owner: str) -> list[int]:
    """Return the epochs that a text of numbers and ranges names, in order and without repetition.

    Args:
        text: Numbers and ranges, such as "12-16,20".
        available: Epochs with weights.
        owner: Owner of the epochs in messages, such as "run 'base'".

    Raises:
        NmtError: if the text is no such list, or names an epoch without weights.
    """
    epochs: set[int] = set()
    for part in text.split(","):
        first, dash, last = (bound.strip() for bound in part.partition("-"))
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
            raise NmtError(f"{text!r} names no epochs of {owner}. Give numbers and ranges, such as 12-16,20.")
        if int(last) > max(available, default=0):  # before a huge range is written out
            raise _missing(_in_words(part.strip()), available, owner)
        epochs |= set(range(int(first), int(last) + 1))
    missing = sorted(epochs.difference(available))
    if missing:
        raise _missing(_in_words(in_ranges(missing)), available, owner)
    return sorted(epochs)


def last_epochs(count: int, available: list[int], owner: str) -> list[int]:
    """Return the last ``count`` epochs.

    Raises:
        NmtError: if one of them has no weights.
    """
    end = max(available, default=0)
    epochs = range(end - count + 1, end + 1)
    if count > end or not set(available).issuperset(epochs):
        raise _missing(f"the last {count} epochs", available, owner)
    return list(epochs)


def _in_words(epochs: str) -> str:
    return f"epoch{'' if epochs.isdecimal() else 's'} {epochs}"


def _missing(epochs: str, available: list[int], owner: str) -> NmtError:
    start = owner[:1].upper() + owner[1:]
    if not available:
        return NmtError(
            f"{start} has no weights yet. The weights of an epoch are saved at its end. Continue with nmt train first."
        )
    return NmtError(
        f"{start} does not have the weights of {epochs}. An average needs the weights of each of its epochs. Choose "
        f"from {in_ranges(available)} with --epochs."
    )


def in_ranges(numbers: list[int]) -> str:
    """Return ascending whole numbers without repetition as "12-16,20"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
