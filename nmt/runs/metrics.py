"""Records of the metrics file, how each metric is shown, the parser, and the comparison of validations.

A metric is a field that is annotated with a ``Measure``. Console, TensorBoard, tables and figures show every such field
by its measure, so a new metric is declared here and measured somewhere, and named nowhere else.
"""

import functools
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
FIRST_FORMAT = 1  # its files begin without a header


@dataclass(frozen=True)
class Measure:
    """How a metric is shown, wherever its record is."""

    label: str
    """Name, such as "loss"."""
    form: str = ".3f"
    """Format of a value."""
    best: Literal["min", "max"] | None = None
    """Which of two values is the better; None for neither."""
    axis: str = ""
    """Quantity and unit, for the axis of a figure; empty for the name."""

    def text(self, value: float) -> str:
        """Return name and value, such as "loss 2.345"."""
        return f"{self.label} {value:{self.form}}"


LOSS = Measure("loss", best="min", axis="cross-entropy of a target token (nats)")
ACCURACY = Measure("accuracy", best="max", axis="target tokens predicted right")


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
    """Norm of the gradient of the last of these steps, before it is clipped; None where no step needs it."""
    target_tokens: int | None = None
    """Number of target tokens trained on in the epoch so far; None in lines of earlier versions."""
    seconds: float | None = None
    """Duration of the epoch's training steps so far; None in lines of earlier versions."""


class Quality(Record):
    """Results on the validation split. Means are over all target tokens, with eos and without padding."""

    step: int
    """Number of training steps behind the validated weights, or behind the newest of averaged weights."""
    validation_loss: Annotated[float | None, LOSS] = None
    """Mean cross-entropy per token, in nats; None without a dataset to validate on."""
    validation_accuracy: Annotated[float | None, ACCURACY] = None
    """Share of tokens predicted correctly, each from the reference tokens before it; None as the loss."""
    validation_bleu: Annotated[float | None, Measure("BLEU", ".1f", "max")] = None
    """BLEU of greedy translations of the first ``training.decode_validation`` sentences; None without translations."""
    validation_chrf: Annotated[float | None, Measure("chrF", ".1f", "max")] = None
    """chrF of these translations; None without translations."""
    loss_by_corpus: dict[str, float] | None = None
    """Mean cross-entropy per token of 200 training pairs of each corpus, without dropout; None for one corpus."""


class Validation(Quality):
    """Results of weights that training has validated."""

    validation_loss: Annotated[float, LOSS]
    validation_accuracy: Annotated[float, ACCURACY]


class StepValidation(Validation):
    """Line about a validation within an epoch."""

    kind: Literal["validation"] = "validation"
    epoch: int
    """Epoch that the validation interrupts, from 1."""


class EpochMetrics(Validation):
    """Line about a finished epoch. A field ``train_...`` is the metric of ``StepMetrics`` over the epoch."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    """Number of the epoch, from 1."""
    train_loss: Annotated[float, LOSS]
    """Mean cross-entropy per token during training, with dropout and with weights as they changed, in nats."""
    train_accuracy: Annotated[float, ACCURACY]
    """Share of target tokens predicted correctly during training."""
    target_tokens: int
    """Number of target tokens trained on in this epoch."""
    seconds: float
    """Duration of the epoch's training steps, without validation and saving."""
    pairs_by_corpus: dict[str, int] | None = None
    """Number of pairs that the epoch saw of each corpus; None if there is one corpus."""


class AverageMetrics(Quality):
    """Line about the mean of the weights of several epochs."""

    kind: Literal["average"] = "average"
    epochs: list[int] = Field(min_length=1)
    """Epochs whose weights are averaged; of several runs the last that each has finished, or 0."""
    runs: list[str] | None = None
    """Weights of several runs that are averaged, each RUN:EPOCH; None: those of this run's epochs."""

    @property
    def parts(self) -> str:
        """What is averaged, as "epochs 12-16,20" or "runs a:12, b:average"."""
        return f"runs {', '.join(self.runs)}" if self.runs else f"epochs {in_ranges(self.epochs)}"


class Sample(Record):
    """Validation sentence with its translation by the model."""

    source: str
    reference: str
    translation: str


class DecodedValidation(NamedTuple):
    """Translations of validation sentences."""

    scores: Mapping[str, float] = {}
    """Scores, 0 to 100, by their fields of ``Quality``, such as "validation_bleu"; none if not asked for."""
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
KINDS: dict[str, type[Metrics]] = {kind.model_fields["kind"].default: kind for kind in get_args(Metrics)}
RETIRED_KINDS = {"shortage"}
"""Lines of earlier versions, which are passed over: about batches that memory did not hold."""
WeightsId = int | str
"""Weights of a run: number of an epoch; "average", a mean over epochs; "step-1500", best validation in an epoch."""


# --- how metrics are shown


class Value(NamedTuple):
    """A metric of a record."""

    group: str
    """ "train" of steps, "epoch" of the training of an epoch; "validation", "average"; "corpora" of their losses."""
    name: str
    """Name in the group: "loss" for ``validation_loss``."""
    value: float
    measure: Measure


@functools.cache
def measures(kind: type[Record]) -> dict[str, Measure]:
    """Return the measure of each metric of a kind of record, by its field."""
    fields = kind.model_fields.items()
    return {name: entry for name, field in fields for entry in field.metadata if isinstance(entry, Measure)}


def metric_values(record: Metrics) -> Iterator[Value]:
    """Yield the metrics that a record has, those of training before those of validation."""
    found = measures(type(record))
    for field in sorted(found, key=lambda field: field.startswith("validation_")):
        value, name = getattr(record, field), field.removeprefix("validation_")
        if name != field:
            group = "average" if isinstance(record, AverageMetrics) else "validation"
        else:
            group, name = "train" if isinstance(record, StepMetrics) else "epoch", field.removeprefix("train_")
        if value is not None:
            yield Value(group, name, value, found[field])
    for name, loss in (getattr(record, "loss_by_corpus", None) or {}).items():
        yield Value("corpora", name, loss, Measure(name))


def in_words(record: Metrics) -> str:
    """Return the metrics of a record, such as "loss 2.345, accuracy 0.567; validation loss 3.456, accuracy 0.456"."""
    texts: dict[str, list[str]] = {}
    heads = {"train": "", "epoch": "", "corpora": "training loss by corpus: "}
    seen = getattr(record, "pairs_by_corpus", None) or {}
    for group, _, value, measure in metric_values(record):
        share = f" ({seen[measure.label] / sum(seen.values()):.0%} of pairs)" if group == "corpora" and seen else ""
        texts.setdefault(group, []).append(f"{measure.text(value)}{share}")
    parts = {group: ", ".join(of_group) for group, of_group in texts.items()}
    return "; ".join(f"{heads.get(group, 'validation ')}{text}" for group, text in parts.items())


def weights_in_words(weights: WeightsId) -> str:
    """Return "epoch 3", "step 1,500" or "average"."""
    if isinstance(weights, int):
        return f"epoch {weights}"
    kind, _, step = weights.partition("-")
    return f"{kind} {int(step):,}" if step else weights


# --- the parser


def parse_metrics(content: bytes, path: Path) -> list[Metrics]:
    """Return the records of a metrics file without its header.

    A last line without a line break may be partial: the process that wrote it was killed. It counts if it parses.
    Fields of other versions are passed over.

    Raises:
        DataError: if the format is unknown or a line is damaged; the message names ``path`` and the first such line.
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
    """Return target tokens a second between two records of steps; of the first in an epoch, since the epoch began.

    None if a record of an earlier version does not tell.
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


def best_of(validations: Iterable[AnyValidation], by: BestBy) -> AnyValidation | None:
    """Return the best validation, the first among equals; None without validations.

    Accuracy is the default of ``by``: it counts the most likely token, which greedy search takes. The loss also depends
    on the confidence in wrong predictions; between equal scores the lower loss decides.
    """

    def rank(validation: Validation) -> tuple[float, float]:
        score = getattr(validation, f"validation_{by}")
        less = measures(Quality)[f"validation_{by}"].best == "min"
        return float("-inf") if score is None else -score if less else score, -validation.validation_loss

    return max(validations, key=rank, default=None)


def validations_since_best(validations: Sequence[StepValidation | EpochMetrics], by: BestBy) -> int:
    """Return the number of validations after the best; 0 without validations."""
    best = best_of(validations, by)
    return 0 if best is None else len(validations) - 1 - validations.index(best)


def in_ranges(numbers: list[int]) -> str:
    """Return ascending whole numbers without repetition as "12-16,20"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
