"""Curves of the metrics file: loss, accuracy, BLEU and chrF over training."""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from nmt.errors import NotFoundError
from nmt.plotting.style import (
    INK,
    MARK,
    ORANGE,
    TRAINING,
    VALIDATION,
    add_axes,
    add_legend,
    add_title,
    count,
    curve,
    name_curves,
    run_title,
)
from nmt.runs.directory import Run
from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import EpochMetrics, best_of

RING: dict[str, Any] = {
    "marker": "o", "markersize": 12, "markerfacecolor": "none", "markeredgecolor": MARK, "linestyle": "none",
    "clip_on": False,
}  # fmt: skip
STAR: dict[str, Any] = {
    "marker": "*", "markersize": 14, "color": ORANGE, "markeredgecolor": INK, "markeredgewidth": 0.8,
    "linestyle": "none", "clip_on": False, "zorder": 3,
}  # fmt: skip


def draw_losses(figure: Figure, run: Run) -> None:
    """Draw training and validation loss by epoch.

    Raises:
        NotFoundError: if the run has not finished an epoch.
    """
    _draw_by_epoch(figure, run, "loss", "cross-entropy of a target token (nats)")


def draw_accuracy(figure: Figure, run: Run) -> None:
    """Draw training and validation accuracy by epoch.

    Raises:
        NotFoundError: if the run has not finished an epoch.
    """
    _draw_by_epoch(figure, run, "accuracy", "target tokens predicted right")


def draw_bleu(figure: Figure, run: Run) -> None:
    """Draw BLEU and chrF of the validation translations by minutes of training.

    Raises:
        NotFoundError: if the run has not finished an epoch, or its training translated no validation sentences.
    """
    epochs = finished_epochs(run)
    minutes = np.cumsum([epoch.seconds for epoch in epochs]) / 60
    scored = [(time, epoch) for time, epoch in zip(minutes, epochs, strict=True) if epoch.validation_bleu is not None]
    if not scored:
        raise NotFoundError(
            f"Run {run.name!r} has no BLEU to draw. Training measures it if training.decode_validation is not 0. Train "
            "with --set training.decode_validation=500, or score the run with nmt evaluate."
        )
    add_title(figure, "BLEU and chrF of validation translations", run_title(run))
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
        axes.plot(times, scores, label=metric, **curve(number, len(times)))
        best = int(np.nanargmax(scores))
        (mark,) = axes.plot(times[best], scores[best], **RING)
        marks[f"best {metric}: {scores[best]:.1f}, epoch {scored[best][1].epoch}"] = mark
        average_score = getattr(average, key) if average else None
        if average and average_score is not None:
            name = f"{metric} of the average of epochs {in_ranges(average.epochs)}: {average_score:.1f}"
            (marks[name],) = axes.plot(times[-1], average_score, **STAR)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    add_legend(figure, list(marks.values()), list(marks))
    name_curves(axes, [line for line in axes.get_lines() if line.get_label() in {"BLEU", "chrF"}])


def finished_epochs(run: Run) -> list[EpochMetrics]:
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


def _draw_by_epoch(figure: Figure, run: Run, metric: str, label: str) -> None:
    """Draw "loss" or "accuracy" of training and validation; mark the best epoch and the average of epochs."""
    epochs = finished_epochs(run)
    add_title(figure, f"{metric.capitalize()} of training and validation", run_title(run))
    axes = add_axes(figure, "epoch", label)
    numbers = [epoch.epoch for epoch in epochs]
    curves = []
    for split, style, name in (
        ("validation", VALIDATION, "validation"),
        ("train", TRAINING, "training\n(with dropout)"),
    ):
        values = [getattr(epoch, f"{split}_{metric}") for epoch in epochs]
        curves += axes.plot(numbers, values, label=name, **curve(style, len(epochs)))
    best = best_of(epochs, run.config().training.best_by) or epochs[-1]
    axes.axvline(best.epoch, color=MARK, linewidth=1, linestyle=":", zorder=1)
    (ring,) = axes.plot(best.epoch, getattr(best, f"validation_{metric}"), **RING)
    marks: dict[str, Artist] = {
        f"best epoch: {best.epoch} (validation accuracy {best.validation_accuracy:.3f}, "
        f"loss {best.validation_loss:.3f})": ring
    }
    average = run.average()
    if average and average.validation_loss is not None:
        (star,) = axes.plot(average.epochs[-1], getattr(average, f"validation_{metric}"), **STAR)
        marks[
            f"average of epochs {in_ranges(average.epochs)} (validation accuracy {average.validation_accuracy:.3f}, "
            f"loss {average.validation_loss:.3f})"
        ] = star
    count(axes.xaxis)
    if len(epochs) == 1:
        axes.set_xlim(0, 2)
    add_legend(figure, list(marks.values()), list(marks))
    name_curves(axes, curves)
