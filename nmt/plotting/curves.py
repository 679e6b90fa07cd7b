"""Figures of a training run: loss, accuracy, BLEU and chrF over training, learning-rate schedule, training speed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from nmt.errors import NotFoundError, counted
from nmt.message import Argument, Command, Settings
from nmt.plotting.style import (
    FAINT_INK,
    INK,
    ORANGE,
    SMALL,
    VERMILLION,
    add_axes,
    add_legend,
    add_title,
    count,
    curve,
    run_title,
    style_curves,
)
from nmt.runs.directory import Run
from nmt.runs.metrics import ACCURACY, LOSS, EpochMetrics, Measure, Metrics, Quality, StepMetrics, best_of, in_ranges
from nmt.training.optimization.schedules import ends_with_run, learning_rate

RING: dict[str, Any] = {
    "marker": "o", "markersize": 12, "markerfacecolor": "none", "markeredgecolor": FAINT_INK, "linestyle": "none",
    "clip_on": False,
}  # fmt: skip
STAR: dict[str, Any] = {
    "marker": "*", "markersize": 14, "color": ORANGE, "markeredgecolor": INK, "markeredgewidth": 0.8,
    "linestyle": "none", "clip_on": False, "zorder": 3,
}  # fmt: skip
BOUND: dict[str, Any] = {"color": FAINT_INK, "linestyle": ":", "linewidth": 1.1, "zorder": 1}
SCHEDULE_POINTS = 1000
SLOWEST = 4  # larger multiples of the median, of the first steps or after a pause, are drawn at the edge of the axis


def _draw_by_epoch(figure: Figure, run: Run, measure: Measure) -> None:
    """Draw loss or accuracy of training and validation by epoch; mark the best epoch and the averaged weights.

    Raises:
        NotFoundError: if the run has not finished an epoch.
    """
    epochs, metric = _finished_epochs(run), measure.label
    axes = add_axes(figure, "epoch", measure.axis)
    numbers = [epoch.epoch for epoch in epochs]
    for number, (split, name) in enumerate((("validation", "validation"), ("train", "training (with dropout)"))):
        values = [getattr(epoch, f"{split}_{metric}") for epoch in epochs]
        axes.plot(numbers, values, label=name, **curve(number, len(epochs)))

    def mark(words: str, quality: Quality, epoch: int, symbol: dict[str, Any]) -> None:
        if quality.validation_loss is not None:
            name = f"{words} (accuracy {quality.validation_accuracy:.3f}, loss {quality.validation_loss:.3f})"
            axes.plot(epoch, getattr(quality, f"validation_{metric}"), label=name, **symbol)

    best = best_of(epochs, run.config().training.best_by) or epochs[-1]
    axes.axvline(best.epoch, **BOUND)
    mark(f"best epoch: {best.epoch}", best, best.epoch, RING)
    average = run.average()
    if average:
        mark(f"average of epochs {in_ranges(average.epochs)}", average, average.epochs[-1], STAR)
    count(axes.xaxis)
    if len(epochs) == 1:
        axes.set_xlim(0, 2)
    add_legend(figure, *axes.get_legend_handles_labels())
    add_title(figure, f"{metric.capitalize()} of training and validation", run_title(run))


draw_losses = partial(_draw_by_epoch, measure=LOSS)
draw_accuracy = partial(_draw_by_epoch, measure=ACCURACY)


def draw_bleu(figure: Figure, run: Run) -> None:
    """Draw BLEU and chrF of the validation translations by minutes of training.

    Raises:
        NotFoundError: if the run has not finished an epoch, or its training translated no validation sentences.
    """
    epochs, average = _finished_epochs(run), run.average()
    minutes = np.cumsum([epoch.seconds for epoch in epochs]) / 60
    axes = add_axes(figure, "minutes of training", "score")
    for number, metric in enumerate(("BLEU", "chrF")):
        key = f"validation_{metric.lower()}"
        points = [(time, epoch) for time, epoch in zip(minutes, epochs, strict=True) if getattr(epoch, key) is not None]
        if not points:
            continue
        times = [time for time, _ in points]
        scores = [getattr(epoch, key) for _, epoch in points]
        axes.plot(times, scores, label=metric, **curve(number, len(times)))
        best = int(np.argmax(scores))
        name = f"best {metric}: {scores[best]:.1f}, epoch {points[best][1].epoch}"
        axes.plot(times[best], scores[best], label=name, **RING)
        score = getattr(average, key, None)
        if average and score is not None:
            name = f"{metric} of the average of epochs {in_ranges(average.epochs)}: {score:.1f}"
            axes.plot(times[-1], score, label=name, **STAR)
    if not axes.get_lines():
        raise NotFoundError(
            f"Run {run.name!r} has no BLEU to draw. Training measures it if training.decode_validation is not 0. Train "
            "another run with ",
            Settings({"training.decode_validation": 500}),
            ", or score the run with nmt evaluate.",
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    add_legend(figure, *axes.get_legend_handles_labels())
    add_title(figure, "BLEU and chrF of validation translations", run_title(run))


def draw_corpora(figure: Figure, run: Run) -> None:
    """Draw the training loss of each corpus by step.

    Raises:
        NotFoundError: if the run has not been validated, or has one corpus.
    """
    records = [record for record in run.validations() if record.loss_by_corpus]
    if not records:
        raise NotFoundError(f"Run {run.name!r} has no losses by corpus. Validations of several corpora measure them.")
    axes = add_axes(figure, "step", LOSS.axis)
    for number, name in enumerate(records[-1].loss_by_corpus or {}):
        losses = [(record.step, (record.loss_by_corpus or {}).get(name)) for record in records]
        points = [(step, loss) for step, loss in losses if loss is not None]
        axes.plot(*zip(*points, strict=True), label=name, **curve(number, len(points)))
    count(axes.xaxis)
    add_legend(figure, *axes.get_legend_handles_labels())
    add_title(figure, "Training loss by corpus", run_title(run))


def draw_schedule(figure: Figure, run: Run) -> None:
    """Draw the learning rate by step; mark the end of the warm-up, the step reached and the last step.

    Raises:
        NotFoundError: if the schedule ends with the run, whose number of steps is unknown before the first epoch ends.
    """
    config = run.config()
    training, warmup = config.training, config.training.warmup_steps
    epochs = _finished_epochs(run) if ends_with_run(training) else run.epochs()
    end = epochs[0].step * training.epochs if epochs else 0  # number of steps of the schedule, see steps_of_run
    last = max(end, 2 * warmup)  # the axis shows both the rise and the fall

    def rate(step: int) -> float:
        return learning_rate(step, config.model.schedule_width, training, end)

    steps = np.unique(np.linspace(1, last, SCHEDULE_POINTS).astype(int))
    axes = add_axes(figure, "step", "learning rate")
    axes.plot(steps, [rate(int(step)) for step in steps], **curve(0) | {"marker": "none"})
    if warmup <= last:
        axes.axvline(warmup, **BOUND, label=f"warm-up ends: step {warmup:,}, rate {rate(warmup):.3g}")
    if epochs:
        reached = epochs[-1].step
        axes.plot(
            reached, rate(reached), "D", color=VERMILLION, markersize=8, linestyle="none", clip_on=False,
            label=f"trained so far: {counted(reached, 'step')}, rate {rate(reached):.3g}",
        )  # fmt: skip
        axes.axvline(end, **BOUND | {"linestyle": "--"}, label=f"the run's last epoch ends: step {end:,}")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
    count(axes.xaxis)
    add_legend(figure, *axes.get_legend_handles_labels())
    add_title(figure, f"Learning rate by step ({training.schedule} schedule)", run_title(run))


def _finished_epochs(run: Run) -> Sequence[EpochMetrics]:
    """Return the metrics of the finished epochs.

    Raises:
        NotFoundError: if no epoch has finished.
    """
    epochs = run.epochs()
    if not epochs:
        raise NotFoundError(
            f"Run {run.name!r} has not finished an epoch. The first point of a curve comes after the first epoch. "
            "Continue with: ",
            Command("train", Argument("run", run.name)),
        )
    return epochs


# --- speed


def draw_speed(figure: Figure, run: Run) -> None:
    """Draw target tokens per second above and the mean time of a step below, both with their medians.

    There is a point for each record of steps. Runs of earlier versions have no times there, so they have a point for
    each epoch.

    Raises:
        NotFoundError: if the run has no record with a time yet.
    """
    records = run.metrics()
    timed = intervals(records)
    if not timed:
        raise NotFoundError(
            f"Run {run.name!r} has no times to draw. Training records them every training.log_every steps, and at the "
            "end of an epoch. Continue with: ",
            Command("train", Argument("run", run.name)),
        )
    by_step = any(isinstance(record, StepMetrics) and record.seconds is not None for record in records)
    unit = "" if by_step else " · means of epochs: its records of steps have no times"
    add_title(figure, "Speed of training", f"{run_title(run)}{unit}")
    steps, speeds, times = zip(*timed, strict=True)
    panels = figure.subplots(2, 1, sharex=True)
    series = ((speeds, "target tokens a second"), (times, "milliseconds a step"))
    for number, (axes, (values, label)) in enumerate(zip(panels, series, strict=True)):
        median = float(np.median(values))
        highest = min(max(values), SLOWEST * median)
        axes.plot(steps, values, **curve(number, len(steps)) | {"linestyle": "-"})
        axes.axhline(median, color=INK, linewidth=1.2, linestyle="--")
        title = f"{label}, median {median:,.{1 if median < 100 else 0}f} (broken line)"
        beyond = [step for step, value in zip(steps, values, strict=True) if value > highest]
        if beyond:
            axes.plot(beyond, [1.08 * highest] * len(beyond), "^", color=INK, markersize=7, clip_on=False)
            title += f", beyond the axis up to {max(values):,.0f} (triangles)"
        style_curves(axes, title=title, size=SMALL)
        axes.set_ylim(0, 1.08 * highest)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.set_xlabel("step", color=INK)
    axes.set_xlim(0, 1.02 * steps[-1])
    count(axes.xaxis)


def intervals(records: Sequence[Metrics]) -> list[tuple[int, float, float]]:
    """Return the last step, target tokens per second, and milliseconds per step of each interval between records.

    A record holds the tokens and seconds of its epoch so far. The record of an epoch ends the epoch's last interval.
    """
    measured = []
    step, epoch = 0, 0  # of the previous record
    tokens, seconds = 0, 0.0
    for record in records:
        if not isinstance(record, StepMetrics | EpochMetrics) or record.target_tokens is None or record.seconds is None:
            continue
        if record.epoch != epoch:
            epoch, tokens, seconds = record.epoch, 0, 0.0
        new_steps = record.step - step
        new_tokens = record.target_tokens - tokens
        time = record.seconds - seconds
        if new_steps > 0 and new_tokens > 0 and time > 0:
            measured.append((record.step, new_tokens / time, 1000 * time / new_steps))
        step, tokens, seconds = record.step, record.target_tokens, record.seconds
    return measured
