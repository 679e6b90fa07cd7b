"""Several runs in a figure: a metric over training, scores of an evaluation by source length."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.errors import NotFoundError
from nmt.plotting import style
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, Measure, Metrics, StepMetrics, StepValidation, measures

if TYPE_CHECKING:
    from nmt.evaluation.scoring import LengthBucket  # at run time, figures do not wait for sacrebleu

AXES = {"steps": "step", "epochs": "epoch", "tokens": "target tokens trained on", "minutes": "minutes of training"}


class Metric(NamedTuple):
    """A metric to compare runs by."""

    heading: str
    measure: Measure
    of_epochs: str | None
    """Field in the records of validations and epochs."""
    of_steps: str | None
    """Field in the records of steps."""


def _metrics() -> dict[str, Metric]:
    """Return the metrics of the metrics file: "loss" of the validation, "train-loss", "learning-rate"."""
    epochs, steps, found = measures(EpochMetrics), measures(StepMetrics), dict[str, Metric]()
    for field, measure in [*epochs.items(), *steps.items()]:
        in_steps = field.removeprefix("train_")
        if field in epochs or f"train_{field}" not in epochs:
            words = {"validation": "validation ", "train": "training "}.get(field.partition("_")[0], "")
            heading = f"{words}{measure.label}"
            found[field.removeprefix("validation_").replace("_", "-")] = Metric(
                heading[:1].upper() + heading[1:], measure, field if field in epochs else None,
                in_steps if in_steps in steps else None,
            )  # fmt: skip
    return found


METRICS = _metrics()


def draw_comparison(figure: Figure, runs: Sequence[Run], metric: str = "loss", by: str = "epochs") -> None:
    """Draw a curve for each run.

    Args:
        figure: empty figure. It becomes higher for a long legend.
        runs: R runs, R > 0.
        metric: name in ``METRICS``.
        by: name in ``AXES``.

    Raises:
        NotFoundError: if there is no such metric, or a run has no such values.
    """
    if metric not in METRICS:
        raise NotFoundError(f"--metric is {metric!r}, but must be one of {', '.join(METRICS)}. Choose one of these.")
    chosen, label = METRICS[metric], AXES[by]
    curves = [values_of(run, chosen, by) for run in runs]
    names, datasets = [run.name for run in runs], [style.dataset_of(run) for run in runs]
    if len(set(datasets)) > 1:
        when = [f", prepared {date[:16].replace('T', ' ')}" if date else "" for _, date in datasets]
        names = [f"{name} ({data}{date})" for name, (data, _), date in zip(names, datasets, when, strict=True)]
    if best := {"min": min, "max": max}.get(str(chosen.measure.best)):
        names = [f"{name}: {best(values):.4g}" for name, (_, values) in zip(names, curves, strict=True)]
    axes = style.add_axes(figure, label, chosen.measure.axis or chosen.measure.label)
    for number, (name, (places, values)) in enumerate(zip(names, curves, strict=True)):
        axes.plot(places, values, label=name, **style.curve(number, len(places)))
    if by != "minutes":
        style.count(axes.xaxis)
    longest = max(places[-1] for places, _ in curves)
    axes.set_xlim(left=0, right=longest * 1.02 if longest > 1 or by == "minutes" else 2)
    style.add_legend(figure, axes.get_lines(), [style.shortened(name, style.LONGEST_NAME) for name in names])
    dates, known = sorted({style.last_training(run) for run in runs}), {name for name, _ in datasets}
    details = [
        f"run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs",
        f"data {known.pop()}" if len(known) == 1 else f"{len(known)} datasets",
        dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        *(["best value beside each name"] if best else []),
    ]
    style.add_title(figure, f"{chosen.heading} by {label}", " · ".join(details))


def values_of(run: Run, metric: Metric, axis: str) -> tuple[list[float], list[float]]:
    """Return the places on the axis and the values of the metric at these, [N] each, N > 0.

    The training metrics have a point for each record of steps, but on the axis of epochs a point for each epoch.

    Raises:
        NotFoundError: if N is 0.
    """
    records = run.metrics()
    in_steps = metric.of_steps is not None and (axis != "epochs" or metric.of_epochs is None)
    field = str(metric.of_steps if in_steps else metric.of_epochs)
    kinds = (StepMetrics,) if in_steps else (EpochMetrics, StepValidation)
    found = [(record.step, getattr(record, field, None)) for record in records if isinstance(record, kinds)]
    measured = sorted((step, float(value)) for step, value in found if value is not None)
    places = steps_to(axis, records)([step for step, _ in measured])
    points = [(float(place), value) for place, (_, value) in zip(places, measured, strict=True) if np.isfinite(place)]
    if not points:
        name = f"{metric.heading[:1].lower()}{metric.heading[1:]}"
        raise NotFoundError(
            f"Run {run.name!r} has no {name} by {axis} to draw. The first point of a curve comes after the "
            "first epoch, and BLEU and chrF need training.decode_validation. Leave the run out, or train another run "
            "with --set training.decode_validation=500"
        )
    return [place for place, _ in points], [value for _, value in points]


def steps_to(axis: str, records: Sequence[Metrics]) -> Callable[[Sequence[int]], np.ndarray]:
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


def draw_by_length(figure: Figure, title: str, buckets: Sequence["LengthBucket"], metrics: Sequence[str] = ()) -> None:
    """Draw the scores of systems in buckets of source length, a panel for each metric.

    Args:
        figure: empty figure. It becomes higher for a long legend.
        title: test set and date.
        buckets: buckets in rising order.
        metrics: names of scores; none for all.
    """
    scores = [bucket.scores for bucket in buckets]
    ticks = [f"{bucket.lengths}\n({bucket.scores.sentences:,})" for bucket in buckets]
    metrics, systems = metrics or [*scores[0].signatures], [*scores[0].systems]
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        for number, system in enumerate(systems):
            values = [of_bucket.systems[system][metric].score for of_bucket in scores]
            axes.plot(range(len(ticks)), values, **style.curve(number, len(ticks)))
        style.style_curves(axes, "source length in words (number of sentences)", title=metric)
        axes.xaxis.label.set_fontsize(style.SMALL)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.margins(x=0.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    names = [style.shortened(name, style.LONGEST_NAME) for name in systems]
    style.add_legend(figure, panels[0].get_lines(), names)
    style.add_title(figure, "Scores by source length", title)
