"""Curves of the metrics file, loss, accuracy, BLEU and chrF over training; the learning-rate schedule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from nmt.errors import NotFoundError
from nmt.plotting.style import (
    FAINT_INK,
    INK,
    ORANGE,
    VERMILLION,
    add_axes,
    add_legend,
    add_title,
    count,
    curve,
    run_title,
)
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, best_of, in_ranges
from nmt.training.optimization.schedules import ends_with_run, learning_rate

RING: dict[str, Any] = {
    "marker": "o", "markersize": 12, "markerfacecolor": "none", "markeredgecolor": FAINT_INK, "linestyle": "none",
    "clip_on": False,
}  # fmt: skip
STAR: dict[str, Any] = {
    "marker": "*", "markersize": 14, "color": ORANGE, "markeredgecolor": INK, "markeredgewidth": 0.8,
    "linestyle": "none", "clip_on": False, "zorder": 3,
}  # fmt: skip
SCHEDULE_POINTS = 1000


def draw_losses(figure: Figure, run: Run) -> None:
    """Draw training and validation loss by epoch."""
    _draw_by_epoch(figure, run, "loss", "cross-entropy of a target token (nats)")


def draw_accuracy(figure: Figure, run: Run) -> None:
    """Draw training and validation accuracy by epoch."""
    _draw_by_epoch(figure, run, "accuracy", "target tokens predicted right")


def _draw_by_epoch(figure: Figure, run: Run, metric: str, label: str) -> None:
    """Draw "loss" or "accuracy" of training and validation; mark the best epoch and the average of epochs.

    Raises:
        NotFoundError: if the run has not finished an epoch.
    """
    epochs = _finished_epochs(run)
    axes = add_axes(figure, "epoch", label)
    numbers = [epoch.epoch for epoch in epochs]
    marks: dict[str, Artist] = {}
    for style, (split, name) in enumerate((("validation", "validation"), ("train", "training (with dropout)"))):
        values = [getattr(epoch, f"{split}_{metric}") for epoch in epochs]
        (marks[name],) = axes.plot(numbers, values, label=name, **curve(style, len(epochs)))
    best = best_of(epochs, run.config().training.best_by) or epochs[-1]
    _mark_step(axes, best.epoch)
    name = f"best epoch: {best.epoch} (accuracy {best.validation_accuracy:.3f}, loss {best.validation_loss:.3f})"
    (marks[name],) = axes.plot(best.epoch, getattr(best, f"validation_{metric}"), **RING)
    average = run.average()
    if average and average.validation_loss is not None:
        name = (
            f"average of epochs {in_ranges(average.epochs)} (accuracy {average.validation_accuracy:.3f}, "
            f"loss {average.validation_loss:.3f})"
        )
        (marks[name],) = axes.plot(average.epochs[-1], getattr(average, f"validation_{metric}"), **STAR)
    count(axes.xaxis)
    if len(epochs) == 1:
        axes.set_xlim(0, 2)
    add_legend(figure, [*marks.values()], [*marks])
    add_title(figure, f"{metric.capitalize()} of training and validation", run_title(run))


def draw_bleu(figure: Figure, run: Run) -> None:
    """Draw BLEU and chrF of the validation translations by minutes of training.

    Raises:
        NotFoundError: if the run has not finished an epoch, or its training translated no validation sentences.
    """
    epochs = _finished_epochs(run)
    minutes = np.cumsum([epoch.seconds for epoch in epochs]) / 60
    scored = [(time, epoch) for time, epoch in zip(minutes, epochs, strict=True) if epoch.validation_bleu is not None]
    if not scored:
        raise NotFoundError(
            f"Run {run.name!r} has no BLEU to draw. Training measures it if training.decode_validation is not 0. Train "
            "with --set training.decode_validation=500, or score the run with nmt evaluate."
        )
    axes = add_axes(figure, "minutes of training", "score")
    times = [time for time, _ in scored]
    average = run.average()
    marks: dict[str, Artist] = {}
    for number, metric in enumerate(("BLEU", "chrF")):
        key = f"validation_{metric.lower()}"
        # chrF may be missing where BLEU is not: a run of an earlier version.
        scores = [np.nan if (score := getattr(epoch, key)) is None else score for _, epoch in scored]
        if np.isnan(scores).all():
            continue
        (marks[metric],) = axes.plot(times, scores, label=metric, **curve(number, len(times)))
        best = int(np.nanargmax(scores))
        name = f"best {metric}: {scores[best]:.1f}, epoch {scored[best][1].epoch}"
        (marks[name],) = axes.plot(times[best], scores[best], **RING)
        average_score = getattr(average, key) if average else None
        if average and average_score is not None:
            name = f"{metric} of the average of epochs {in_ranges(average.epochs)}: {average_score:.1f}"
            (marks[name],) = axes.plot(times[-1], average_score, **STAR)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    add_legend(figure, [*marks.values()], [*marks])
    add_title(figure, "BLEU and chrF of validation translations", run_title(run))


def draw_schedule(figure: Figure, run: Run) -> None:
    """Draw the learning rate by step; mark the end of the warm-up, the step reached and the last step.

    Raises:
        NotFoundError: if the schedule ends with the run, and no epoch has finished to tell how many steps that takes.
    """
    config = run.config()
    training, warmup = config.training, config.training.warmup_steps
    epochs = _finished_epochs(run) if ends_with_run(training) else run.epochs()
    end = epochs[0].step * training.epochs if epochs else 0  # the steps that schedules count, see steps_of_run
    last = max(end, 2 * warmup)  # far enough to see the rise and the fall

    def rate(step: int) -> float:
        return learning_rate(step, config.model.schedule_width, training, end)

    steps = np.unique(np.linspace(1, last, SCHEDULE_POINTS).astype(int))
    axes = add_axes(figure, "step", "learning rate")
    axes.plot(steps, [rate(int(step)) for step in steps], **curve(0) | {"marker": "none"})
    marks: dict[str, Artist] = {}
    if warmup <= last:
        marks[f"warm-up ends: step {warmup:,}, rate {rate(warmup):.3g}"] = _mark_step(axes, warmup)
    if epochs:
        reached = epochs[-1].step
        name = f"trained so far: {reached:,} steps, rate {rate(reached):.3g}"
        (marks[name],) = axes.plot(
            reached, rate(reached), "D", color=VERMILLION, markersize=8, linestyle="none", clip_on=False
        )
        marks[f"the run's last epoch ends: step {end:,}"] = _mark_step(axes, end, "--")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
    count(axes.xaxis)
    add_legend(figure, [*marks.values()], [*marks])
    add_title(figure, f"Learning rate by step ({training.schedule} schedule)", run_title(run))


def _mark_step(axes: Axes, place: int, line: str = ":") -> Artist:
    """Draw a vertical line."""
    return axes.axvline(place, color=FAINT_INK, linewidth=1.1, linestyle=line, zorder=1)


def _finished_epochs(run: Run) -> Sequence[EpochMetrics]:
    """Return the metrics of the epochs that a run has finished.

    Raises:
        NotFoundError: if it has finished none.
    """
    epochs = run.epochs()
    if not epochs:
        raise NotFoundError(
            f"Run {run.name!r} has not finished an epoch. The first point of a curve comes after the first epoch. "
            f"Continue with: nmt train --run {run.name}"
        )
    return epochs
