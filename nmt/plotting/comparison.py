"""A metric of several runs against steps, epochs, tokens or minutes of training."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from matplotlib.figure import Figure

from nmt.errors import NmtError, NotFoundError
from nmt.plotting.style import (
    DIFFERENT_CURVES,
    LONGEST_NAME,
    add_axes,
    add_legend,
    add_legend_beside,
    add_title,
    count,
    curve,
    dataset_of,
    last_training,
    make_room_for_legend,
    name_curves,
)
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, Metrics, StepMetrics, StepValidation, Validation
from nmt.storage.json_file import read_json

Axis = Literal["steps", "epochs", "tokens", "minutes"]
AXES: dict[Axis, str] = {
    "steps": "step",
    "epochs": "epoch",
    "tokens": "target tokens trained on",
    "minutes": "minutes of training",
}
MOST_BESIDE = 14  # curves named beside the axes; the legend of more is below


class Metric(NamedTuple):
    """A metric to compare runs by."""

    heading: str
    """Name of the metric, which begins the title."""
    label: str
    """Label of the axis."""
    of_epochs: str | None
    """Field in the records of validations and epochs."""
    of_steps: str | None
    """Field in the records of steps."""
    best: Callable[[Sequence[float]], float] | None
    """Function that chooses the best value; None if none is better than another."""
    missing: str = "The first point of its curve comes after the first epoch."
    """What a run without the metric lacks."""


LOSS, ACCURACY = "cross-entropy of a target token (nats)", "target tokens predicted right"
NOT_DECODED = "Training measures it if training.decode_validation is not 0."
NOT_LOGGED = "Training records it every training.log_every steps."
METRICS: dict[str, Metric] = {
    "loss": Metric("Validation loss", LOSS, "validation_loss", None, min),
    "accuracy": Metric("Validation accuracy", ACCURACY, "validation_accuracy", None, max),
    "bleu": Metric("BLEU of validation translations", "BLEU", "validation_bleu", None, max, NOT_DECODED),
    "chrf": Metric("chrF of validation translations", "chrF", "validation_chrf", None, max, NOT_DECODED),
    "train-loss": Metric("Training loss", LOSS, "train_loss", "loss", min),
    "train-accuracy": Metric("Training accuracy", ACCURACY, "train_accuracy", "accuracy", max),
    "learning-rate": Metric("Learning rate", "learning rate", None, "learning_rate", None, NOT_LOGGED),
}


def check_choice(option: str, value: str, choices: Sequence[str]) -> str:
    """Return the value of an option if it is one of its choices.

    Raises:
        NmtError: if not; lists the choices.
    """
    if value not in choices:
        raise NmtError(f"{option} must be one of {', '.join(choices)}; received {value[:60]!r}. Choose one of these.")
    return value


def draw_comparison(figure: Figure, runs: Sequence[Run], metric: str = "loss", by: str = "epochs") -> None:
    """Draw a curve for each run.

    Args:
        figure: empty figure. It becomes higher for a long legend.
        runs: R runs, R <= ``DIFFERENT_CURVES``.
        metric: name in ``METRICS``.
        by: name in ``AXES``.

    Raises:
        NmtError: for an unknown metric or axis, and for more runs than there are curves.
        NotFoundError: if a run has no such values.
    """
    check_choice("--metric", metric, list(METRICS))
    axis: Axis = next(name for name in get_args(Axis) if name == check_choice("--by", by, get_args(Axis)))
    if len(runs) > DIFFERENT_CURVES:
        raise NmtError(
            f"{len(runs)} runs were given. A comparison has at most {DIFFERENT_CURVES}, whose curves differ without "
            "colour. Give fewer runs."
        )
    chosen = METRICS[metric]
    curves = [values_of(run, chosen, axis) for run in runs]
    names = _names(runs)
    if chosen.best is not None:
        names = [f"{name}: {chosen.best(values):.4g}" for name, (_, values) in zip(names, curves, strict=True)]
    beside = len(runs) <= MOST_BESIDE and max(map(len, names)) <= LONGEST_NAME
    if not beside:
        make_room_for_legend(figure, names)
    best = "" if chosen.best is None else " · best value beside each name"
    add_title(figure, f"{chosen.heading} by {AXES[axis]}", f"{_origin(runs)}{best}")
    axes = add_axes(figure, AXES[axis], chosen.label)
    for number, (name, (places, values)) in enumerate(zip(names, curves, strict=True)):
        axes.plot(places, values, label=name, **curve(number, len(places)))
    if axis != "minutes":
        count(axes.xaxis)
    longest = max(places[-1] for places, _ in curves)
    axes.set_xlim(left=0, right=longest * 1.02 if longest > 1 or axis == "minutes" else 2)
    lines = axes.get_lines()
    if beside and min(places[-1] for places, _ in curves) > 0.97 * longest:
        name_curves(axes, lines)
    elif beside:  # in the order of their ends, from top to bottom
        order = sorted(range(len(runs)), key=lambda index: -curves[index][1][-1])
        add_legend_beside(axes, [lines[index] for index in order], [names[index] for index in order])
    else:
        add_legend(figure, lines, names)


def values_of(run: Run, metric: Metric, axis: Axis) -> tuple[list[float], list[float]]:
    """Return the places on the axis and the values of the metric at these, [N] each, N > 0.

    The training metrics have a point for each record of steps, but on the axis of epochs a point for each epoch.

    Raises:
        NotFoundError: if N is 0.
    """
    records = run.metrics()
    in_steps = metric.of_steps if axis != "epochs" or metric.of_epochs is None else None
    measured = []
    for record in records:
        value = None
        if isinstance(record, StepMetrics) and in_steps:
            value = getattr(record, in_steps)
        elif isinstance(record, EpochMetrics | StepValidation) and metric.of_epochs and not in_steps:
            value = getattr(record, metric.of_epochs, None)  # a validation within an epoch has no mean of the training
        if isinstance(record, StepMetrics | Validation) and value is not None:
            measured.append((record.step, float(value)))
    measured.sort()
    places = steps_to(axis, records)([step for step, _ in measured])
    points = [(float(place), value) for place, (_, value) in zip(places, measured, strict=True) if np.isfinite(place)]
    if not points:
        raise NotFoundError(
            f"Run {run.name!r} has no {metric.heading} by {axis} to draw. {metric.missing} Leave it out, or continue "
            f"with: nmt train --run {run.name}"
        )
    return [place for place, _ in points], [value for _, value in points]


def steps_to(axis: Axis, records: Sequence[Metrics]) -> Callable[[Sequence[int]], np.ndarray]:
    """Return a function from steps [N] to places on an axis, float64 [N]; NaN where the records do not tell.

    Records of epochs, and of steps if they hold times and tokens, give the places of their steps. Places of steps
    between these are interpolated.
    """
    known: dict[int, float] = {0: 0.0}
    epoch, last, length, tokens, seconds = 0, 0, 0, 0, 0.0  # of the finished epochs; of the last, its steps
    for record in records:
        if isinstance(record, EpochMetrics):
            epoch, last, length = record.epoch, record.step, record.step - last
            tokens, seconds = tokens + record.target_tokens, seconds + record.seconds
            known[last] = epoch if axis == "epochs" else tokens if axis == "tokens" else seconds / 60
        elif isinstance(record, StepMetrics) and record.target_tokens is not None and record.seconds is not None:
            if axis == "tokens":
                known[record.step] = tokens + record.target_tokens
            elif axis == "minutes":
                known[record.step] = (seconds + record.seconds) / 60
    if axis == "epochs" and length:  # an epoch that has not finished is as long as the one before it
        known[last + length] = epoch + 1
    if axis == "steps":
        return lambda steps: np.asarray(steps, float)
    places = np.array(sorted(known.items()), float)
    return lambda steps: np.interp(steps, places[:, 0], places[:, 1], right=np.nan)


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the names of runs, with their datasets if these differ."""
    datasets = [dataset_of(run) or "unknown data" for run in runs]
    contents = [_content(run) for run in runs]
    if len(set(contents)) == 1 and len(set(datasets)) == 1:
        return [run.name for run in runs]
    return [
        f"{run.name} ({dataset}{f', prepared {when}' if _is_ambiguous(dataset, datasets, contents) else ''})"
        for run, dataset, (when, _) in zip(runs, datasets, contents, strict=True)
    ]


def _is_ambiguous(dataset: str, datasets: Sequence[str], contents: Sequence[tuple[str, str]]) -> bool:
    """Return whether several datasets have a name."""
    return len({content for name, content in zip(datasets, contents, strict=True) if name == dataset}) > 1


def _content(run: Run) -> tuple[str, str]:
    """Return when the dataset of a run was prepared, and the checksums of its files."""
    if not run.dataset_path.exists():
        return "", ""
    match read_json(run.dataset_path, "A dataset's manifest"):
        case {"prepared_at": str(when), "files": dict(files)}:
            return when[:16].replace("T", " "), repr(sorted(files.items()))
    return "", ""


def _origin(runs: Sequence[Run]) -> str:
    """Return number, dataset and dates of runs for a title."""
    dates = sorted({last_training(run) for run in runs})
    datasets = {dataset_of(run) for run in runs} - {None}
    data = f"data {next(iter(datasets))}" if len(datasets) == 1 else f"{len(datasets)} datasets"
    count_of_runs = f"{len(runs)} runs" if len(runs) > 1 else f"run {runs[0].name}"
    return " · ".join([count_of_runs, data, dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"])
