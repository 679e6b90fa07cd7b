"""Figures that compare runs: a metric over training, and scores of an evaluation by source length."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.errors import NotFoundError
from nmt.message import Argument, Settings
from nmt.plotting import style
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, Measure, Metrics, StepMetrics, StepValidation, measures

if TYPE_CHECKING:
    from nmt.evaluation.scoring import LengthBucket  # at run time, figures do not wait for sacrebleu

AXES = {"steps": "step", "epochs": "epoch", "tokens": "target tokens trained on", "minutes": "minutes of training"}


class Metric(NamedTuple):
    """A metric to compare runs by."""

    heading: str
    """Title of the figure, such as "Validation loss"."""
    measure: Measure
    epoch_field: str | None
    """Field of the records of validations and epochs; None if they lack it."""
    step_field: str | None
    """Field of the records of steps; None if they lack it."""


def _metrics() -> dict[str, Metric]:
    """Return the metrics of the metrics file by name, such as "loss" (of the validation) or "train-loss"."""
    of_epochs, of_steps = measures(EpochMetrics), measures(StepMetrics)
    metrics: dict[str, Metric] = {}
    for field, measure in [*of_epochs.items(), *of_steps.items()]:
        if field not in of_epochs and f"train_{field}" in of_epochs:
            continue  # the epochs have named this metric already
        part = {"validation": "validation ", "train": "training "}.get(field.partition("_")[0], "")
        heading = f"{part}{measure.label}"
        epoch_field = field if field in of_epochs else None
        step_field = field.removeprefix("train_")
        metrics[field.removeprefix("validation_").replace("_", "-")] = Metric(
            heading[:1].upper() + heading[1:], measure, epoch_field, step_field if step_field in of_steps else None
        )
    return metrics


METRICS = _metrics()


def draw_comparison(figure: Figure, runs: Sequence[Run], metric: str = "loss", by: str = "epochs") -> None:
    """Draw a metric of several runs over training, a curve for each run.

    Args:
        figure: empty figure. It becomes higher for a long legend.
        runs: R runs, R > 0.
        metric: name in ``METRICS``.
        by: name in ``AXES``.

    Raises:
        NotFoundError: if there is no such metric, or a run has no value of it.
    """
    if metric not in METRICS:
        raise NotFoundError(
            Argument("metric"), f" is {metric!r}, but must be one of {', '.join(METRICS)}. Choose one of these."
        )
    chosen, label = METRICS[metric], AXES[by]
    curves = [values_of(run, chosen, by) for run in runs]
    names = [run.name for run in runs]
    datasets = [style.dataset_of(run) for run in runs]
    if len(set(datasets)) > 1:
        dates = [f", prepared {date[:16].replace('T', ' ')}" if date else "" for _, date in datasets]
        names = [f"{name} ({data}{date})" for name, (data, _), date in zip(names, datasets, dates, strict=True)]
    best = {"min": min, "max": max}.get(str(chosen.measure.best))
    if best:
        names = [f"{name}: {best(values):.4g}" for name, (_, values) in zip(names, curves, strict=True)]
    axes = style.add_axes(figure, label, chosen.measure.axis or chosen.measure.heading)
    for number, (name, (places, values)) in enumerate(zip(names, curves, strict=True)):
        axes.plot(places, values, label=name, **style.curve(number, len(places)))
    if by != "minutes":
        style.count(axes.xaxis)
    longest = max(places[-1] for places, _ in curves)
    axes.set_xlim(left=0, right=longest * 1.02 if longest > 1 or by == "minutes" else 2)
    style.add_legend(figure, axes.get_lines(), [style.shortened(name, style.LONGEST_NAME) for name in names])
    days = sorted({style.last_training(run) for run in runs})
    dataset_names = {name for name, _ in datasets}
    details = [
        f"run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs",
        f"data {dataset_names.pop()}" if len(dataset_names) == 1 else f"{len(dataset_names)} datasets",
        days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
    ]
    if best:
        details.append("best value beside each name")
    style.add_title(figure, f"{chosen.heading} by {label}", " · ".join(details))


def values_of(run: Run, metric: Metric, axis: str) -> tuple[list[float], list[float]]:
    """Return N places on the axis, and the values of the metric there, [N] each, N > 0.

    Training metrics have a point for each record of steps; on the axis of epochs they have a point for each epoch.

    Raises:
        NotFoundError: if N is 0.
    """
    records = run.metrics()
    by_step = metric.step_field is not None and (axis != "epochs" or metric.epoch_field is None)
    field = str(metric.step_field if by_step else metric.epoch_field)
    kinds = (StepMetrics,) if by_step else (EpochMetrics, StepValidation)
    values = [(record.step, getattr(record, field, None)) for record in records if isinstance(record, kinds)]
    measured = sorted((step, float(value)) for step, value in values if value is not None)
    places = steps_to(axis, records)([step for step, _ in measured])
    points = [(float(place), value) for place, (_, value) in zip(places, measured, strict=True) if np.isfinite(place)]
    if not points:
        name = f"{metric.heading[:1].lower()}{metric.heading[1:]}"
        raise NotFoundError(
            f"Run {run.name!r} has no {name} by {axis} to draw. The first point of a curve comes after the "
            "first epoch, and BLEU and chrF need training.decode_validation. Leave the run out, or train another "
            "run with ",
            Settings({"training.decode_validation": 500}),
        )
    return [place for place, _ in points], [value for _, value in points]


def steps_to(axis: str, records: Sequence[Metrics]) -> Callable[[Sequence[int]], np.ndarray]:
    """Return a function from steps [N] to places on an axis, float64 [N]; NaN for steps after the last known place.

    Records of epochs, and records of steps that hold times and tokens, give the places of their steps. Places between
    them are interpolated.
    """
    known: dict[int, float] = {0: 0.0}
    epoch, last, length = 0, 0, 0  # the newest finished epoch, its last step, its number of steps
    tokens, seconds = 0, 0.0  # in all finished epochs
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


def draw_by_length(figure: Figure, title: str, buckets: Sequence["LengthBucket"], metrics: Sequence[str] = ()) -> None:
    """Draw the scores of systems in buckets of source length, a panel for each metric.

    Args:
        figure: empty figure. It becomes higher for a long legend.
        title: test set and date.
        buckets: scores by source length, in rising order.
        metrics: names of scores; all if empty.
    """
    scores = [bucket.scores for bucket in buckets]
    ticks = [f"{bucket.lengths}\n({bucket.scores.sentences:,})" for bucket in buckets]
    metrics = metrics or [*scores[0].signatures]
    systems = [*scores[0].systems]
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        for number, system in enumerate(systems):
            values = [bucket_scores.systems[system][metric].score for bucket_scores in scores]
            axes.plot(range(len(ticks)), values, **style.curve(number, len(ticks)))
        style.style_curves(axes, f"source length in {buckets[0].unit} (number of sentences)", title=metric)
        axes.xaxis.label.set_fontsize(style.SMALL)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.margins(x=0.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    names = [style.shortened(name, style.LONGEST_NAME) for name in systems]
    style.add_legend(figure, panels[0].get_lines(), names)
    style.add_title(figure, "Scores by source length", title)
