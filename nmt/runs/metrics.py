"""Metrics file: its records, how metrics are shown, the parser, and the comparison of validations.

A metric is a field that is annotated with a ``Measure``. Console, TensorBoard, tables and figures show every such field
as its measure says. So a new metric is declared here, gets its value where it is measured, and is named nowhere else.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.config.training import BestBy
from nmt.errors import DataError
from nmt.storage.json_file import check_format, parse_json

CURRENT_FORMAT = 2
FIRST_FORMAT = 1  # files of this format have no header


@dataclass(frozen=True)
class Measure:
    """Display of a metric in all places: its name, format and unit, and whether larger values are better."""

    label: str
    """Name, such as "loss"."""
    form: str = ".3f"
    """Format of a value."""
    best: Literal["min", "max"] | None = None
    """Better end of the range: "min" or "max"; None if neither is better."""
    axis: str = ""
    """Label for the axis of a figure; if empty, the heading is the label."""
    unit: str = ""
    """Unit that is written after a value, such as "GB"; empty for a plain number."""

    @property
    def heading(self) -> str:
        """Name with unit, such as "peak memory (GB)", for the column of a table or the axis of a figure."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def text(self, value: float) -> str:
        """Return name, value and unit, such as "loss 2.345" or "peak memory 1.2 GB"."""
        return f"{self.label} {value:{self.form}} {self.unit}".rstrip()


LOSS = Measure("loss", best="min", axis="cross-entropy of a target token (nats)")
ACCURACY = Measure("accuracy", best="max", axis="target tokens predicted right")


CHRF = Measure("chrF", ".1f", best="max")


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
    loss: Annotated[float, LOSS]
    """Mean cross-entropy per target token, in nats."""
    accuracy: Annotated[float, ACCURACY]
    """Share of target tokens predicted correctly."""
    learning_rate: Annotated[float, Measure("learning rate", ".3g")]
    """Learning rate of the last of these steps."""
    gradient_norm: Annotated[float | None, Measure("gradient norm", ".3g")] = None
    """Norm of the gradient of the last of these steps, before clipping; None if the steps do not compute it."""
    target_tokens: int | None = None
    """Number of target tokens trained on in the epoch so far; None in lines of earlier versions."""
    seconds: float | None = None
    """Duration of the epoch's training steps so far; None in lines of earlier versions."""


class Quality(Record):
    """Results on the validation split. Means are over all target tokens, with eos and without padding."""

    step: int
    """Number of training steps that led to the weights, or to the newest of the averaged weights."""
    validation_loss: Annotated[float | None, LOSS] = None
    """Mean cross-entropy per token, in nats; None without a dataset to validate on."""
    validation_accuracy: Annotated[float | None, ACCURACY] = None
    """Share of tokens predicted correctly from the reference tokens before them; None if the loss is None."""
    validation_bleu: Annotated[float | None, Measure("BLEU", ".1f", "max")] = None
    """BLEU of greedy translations of the first ``training.decode_validation`` sentences; None without translations."""
    validation_chrf: Annotated[float | None, CHRF] = None
    """chrF of the same translations; None without translations."""
    chrf_by_direction: dict[str, float] | None = None
    """chrF of each language pair, whose mean is ``validation_chrf``; None for a single pair."""
    loss_by_corpus: dict[str, float] | None = None
    """Mean cross-entropy per token of 200 training pairs of each corpus, without dropout; None for a single corpus."""


class Validation(Quality):
    """Results of a validation during training, which always has loss and accuracy."""

    validation_loss: Annotated[float, LOSS]
    validation_accuracy: Annotated[float, ACCURACY]


class StepValidation(Validation):
    """Line about a validation within an epoch."""

    kind: Literal["validation"] = "validation"
    epoch: int
    """Number of the epoch that the validation interrupts, from 1."""


class EpochMetrics(Validation):
    """Line about a finished epoch. A field ``train_NAME`` is the metric NAME of ``StepMetrics`` over the epoch."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    """Number of the epoch, from 1."""
    train_loss: Annotated[float, LOSS]
    """Mean cross-entropy per token over the steps of the epoch, with dropout, in nats."""
    train_accuracy: Annotated[float, ACCURACY]
    """Share of target tokens predicted correctly during training."""
    target_tokens: int
    """Number of target tokens trained on in this epoch."""
    seconds: float
    """Duration of the epoch's training steps, without validation and saving."""
    peak_memory: Annotated[float | None, Measure("peak memory", ".2f", unit="GB")] = None
    """Peak memory of the process until the epoch ended, in 10^9 bytes, without a GPU's; None if it is unknown."""
    pairs_by_corpus: dict[str, int] | None = None
    """Number of pairs of each corpus that the epoch used; None for a single corpus."""


class AverageMetrics(Quality):
    """Line about the mean of the weights of several epochs."""

    kind: Literal["average"] = "average"
    epochs: list[int] = Field(min_length=1)
    """Epochs whose weights are averaged. If several runs are averaged: the last finished epoch of each, or 0."""
    runs: list[str] | None = None
    """Averaged weights of several runs, in the form RUN:EPOCH; None if epochs of this run are averaged."""

    @property
    def parts(self) -> str:
        """Averaged weights in words, such as "epochs 12-16,20" or "runs a:12, b:average"."""
        return f"runs {', '.join(self.runs)}" if self.runs else f"epochs {in_ranges(self.epochs)}"


class Sample(Record):
    """Validation sentence with its reference and the model's translation."""

    source: str
    reference: str
    translation: str


class DecodedValidation(NamedTuple):
    """Translations of validation sentences."""

    scores: Mapping[str, float] = {}
    """Scores from 0 to 100 by field of ``Quality``, such as "validation_bleu"; empty if no score was asked for."""
    samples: Sequence[Sample] = ()
    """Samples to show."""
    chrf_by_direction: dict[str, float] | None = None
    """chrF of each language pair; None for a single pair."""


class SampleMetrics(Record):
    """Line with translations of validation sentences, the same sentences at each validation."""

    kind: Literal["samples"] = "samples"
    epoch: int
    """Epoch of the validation, from 1."""
    step: int
    """Number of training steps that led to the weights."""
    samples: list[Sample]


Metrics = StepMetrics | StepValidation | EpochMetrics | AverageMetrics | SampleMetrics
KINDS: dict[str, type[Metrics]] = {kind.model_fields["kind"].default: kind for kind in get_args(Metrics)}
RETIRED_KINDS = {"shortage"}
"""Kinds of lines that the parser skips. Earlier versions wrote them about batches too large for memory."""
WeightsId = int | str
"""Name of weights: the number of an epoch, "average", or "step-1500" for a validation within an epoch."""


# --- display


class Value(NamedTuple):
    """Value of a metric in a record."""

    group: str
    """Part of the run: "train" (steps), "epoch" (training of an epoch), "validation", "average", "directions" or
    "corpora"."""
    name: str
    """Name in the group: "loss" for ``validation_loss``."""
    value: float
    measure: Measure


@functools.cache
def measures(kind: type[Record]) -> dict[str, Measure]:
    """Return the measures of a record type by field."""
    fields = kind.model_fields.items()
    return {name: entry for name, field in fields for entry in field.metadata if isinstance(entry, Measure)}


def metric_values(record: Metrics) -> Iterator[Value]:
    """Yield the metrics of a record that are not None: training metrics first, then validation metrics."""
    by_field = measures(type(record))
    for field in sorted(by_field, key=lambda field: field.startswith("validation_")):
        value = getattr(record, field)
        if value is None:
            continue
        if field.startswith("validation_"):
            group = "average" if isinstance(record, AverageMetrics) else "validation"
        else:
            group = "train" if isinstance(record, StepMetrics) else "epoch"
        name = field.removeprefix("validation_").removeprefix("train_")
        yield Value(group, name, value, by_field[field])
    for name, chrf in (getattr(record, "chrf_by_direction", None) or {}).items():
        yield Value("directions", name, chrf, Measure(name, CHRF.form))
    for name, loss in (getattr(record, "loss_by_corpus", None) or {}).items():
        yield Value("corpora", name, loss, Measure(name))


def in_words(record: Metrics) -> str:
    """Return the metrics of a record, such as "loss 2.345, accuracy 0.567; validation loss 3.456, accuracy 0.456"."""
    texts: dict[str, list[str]] = {}
    heads = {
        "train": "", "epoch": "", "corpora": "training loss by corpus: ", "directions": "chrF by language pair: ",
    }  # fmt: skip
    pairs = getattr(record, "pairs_by_corpus", None) or {}
    for group, name, value, measure in metric_values(record):
        share = f" ({pairs[name] / sum(pairs.values()):.0%} of pairs)" if group == "corpora" and pairs else ""
        texts.setdefault(group, []).append(f"{measure.text(value)}{share}")
    return "; ".join(f"{heads.get(group, 'validation ')}{', '.join(texts[group])}" for group in texts)


def weights_in_words(weights: WeightsId) -> str:
    """Return "epoch 3", "step 1,500" or "average"."""
    if isinstance(weights, int):
        return f"epoch {weights}"
    kind, _, step = weights.partition("-")
    return f"{kind} {int(step):,}" if step else weights


# --- the parser


def parse_metrics(content: bytes, path: Path) -> list[Metrics]:
    """Return the records of a metrics file without its header.

    A last line without a line break may be partial, since a process can be killed while writing. It counts if it can be
    parsed. Unknown fields, which other versions wrote, are skipped.

    Raises:
        DataError: if the format is unknown or a line is damaged; names ``path`` and the first such line.
    """
    lines = content.decode(errors="replace").split("\n")
    records: list[Metrics] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            values: Any = parse_json(line)
            if number == 1 and values["kind"] == "header":
                check_format(values["format"], range(FIRST_FORMAT, CURRENT_FORMAT + 1), str(path))
            elif values["kind"] not in RETIRED_KINDS:
                kind = KINDS[values["kind"]]
                known = {name: value for name, value in values.items() if name in kind.model_fields}
                records.append(kind.model_validate(known))
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                break
            problem = " ".join(str(error).split())
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(
                f"{path}, line {number} is damaged: {problem[:120]}. Each line of a metrics file is a record that "
                "nmt train wrote. Remove the line."
            ) from None
    return records


def tokens_per_second(before: StepMetrics | None, record: StepMetrics) -> float | None:
    """Return target tokens per second between two records of steps, or since the epoch began.

    None if an earlier version wrote the record, since it recorded no times.
    """
    if record.target_tokens is None or record.seconds is None:
        return None
    tokens, seconds = record.target_tokens, record.seconds
    if before is not None and before.epoch == record.epoch:
        tokens, seconds = tokens - (before.target_tokens or 0), seconds - (before.seconds or 0.0)
    return tokens / seconds if seconds > 0 else None


# --- validations


def weights_id(validation: StepValidation | EpochMetrics) -> WeightsId:
    """Return the name of the weights that were validated."""
    return validation.epoch if isinstance(validation, EpochMetrics) else f"step-{validation.step}"


AnyValidation = TypeVar("AnyValidation", bound=Validation)


LEAST_BLEU = 5.0
"""BLEU below which a model translates too little right for BLEU to compare validations."""


def measure_in_force(validations: Sequence[Validation], by: BestBy) -> BestBy:
    """Return the measure that compares validations: ``by``, but chrF while no BLEU reaches ``LEAST_BLEU``.

    Lower scores of BLEU depend on a few 4-grams, while chrF already rises.
    """
    highest = max((validation.validation_bleu or 0.0 for validation in validations), default=0.0)
    has_chrf = any(validation.validation_chrf is not None for validation in validations)
    return "chrf" if by == "bleu" and highest < LEAST_BLEU and has_chrf else by


NOISE = 1.0
"""Points of BLEU or chrF by which two validations of some 200 sentences differ by chance."""


def best_of(validations: Iterable[AnyValidation], by: BestBy) -> AnyValidation | None:
    """Return the best validation, or the first of several equally good validations; None without validations.

    Each validation is compared with the best before it, so a later validation never makes an earlier one the best,
    whose weights may be deleted by then.

    Args:
        validations: the validations of a run so far, in order.
        by: ``training.best_by``; see ``is_better``.
    """
    best = None
    for validation in validations:
        if best is None or is_better(validation, best, by):
            best = validation
    return best


def is_better(validation: Validation, best: Validation, by: BestBy) -> bool:
    """Return whether a validation is better than the best before it.

    The default of ``training.best_by`` is accuracy. It counts the most likely token, which greedy search takes, while
    the loss also depends on the confidence in wrong predictions. BLEU and chrF come from few sentences: if they differ
    by no more than ``NOISE``, the accuracy decides, which all validation sentences determine. Between equal values the
    lower loss decides.
    """
    by = measure_in_force([best, validation], by)
    margin = NOISE if by in {"bleu", "chrf"} else 0.0
    score, best_score = _score(validation, by), _score(best, by)
    if score > best_score + margin:
        return True
    if score < best_score - margin:
        return False
    own = validation.validation_accuracy, -validation.validation_loss
    return own > (best.validation_accuracy, -best.validation_loss)


def _score(validation: Validation, by: BestBy) -> float:
    """Return a measure of a validation as a number that is higher for better validations."""
    name = f"validation_{by}"
    value = getattr(validation, name)
    if value is None:
        return -math.inf
    return -value if measures(Quality)[name].best == "min" else value


def validations_since_best(validations: Sequence[StepValidation | EpochMetrics], by: BestBy) -> int:
    """Return the number of validations after the best; 0 without validations."""
    best = best_of(validations, by)
    return 0 if best is None else len(validations) - 1 - validations.index(best)


def in_ranges(numbers: list[int]) -> str:
    """Return ascending whole numbers without repetition as ranges, such as "12-16,20"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
