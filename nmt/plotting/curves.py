"""Curves of the metrics file: loss, accuracy, BLEU and chrF over training."""

import numpy as np
from matplotlib.figure import Figure

from nmt.errors import NotFoundError
from nmt.plotting.style import CURVE, MARK, TRAINING, VALIDATION, add_axes
from nmt.runs.directory import Run
from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import EpochMetrics, best_of


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
    axes = add_axes(figure, f"Run {run.name}", "minutes of training", "score of validation translations")
    times = [time for time, _ in scored]
    average = run.average()
    for metric, key, color in (("BLEU", "validation_bleu", VALIDATION), ("chrF", "validation_chrf", TRAINING)):
        scores = [getattr(epoch, key) for _, epoch in scored]
        axes.plot(times, scores, color=color, label=metric, **CURVE)
        average_score = getattr(average, key, None)
        if average and average_score is not None:
            axes.plot(
                times[-1], average_score, "D", markersize=7, color=color,
                label=f"{metric} of the average of epochs {in_ranges(average.epochs)}: {average_score:.1f}",
            )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


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
    axes = add_axes(figure, f"Run {run.name}", "epoch", label)
    numbers = [epoch.epoch for epoch in epochs]
    for split, color, name in (
        ("train", TRAINING, "training (with dropout)"),
        ("validation", VALIDATION, "validation"),
    ):
        axes.plot(numbers, [getattr(epoch, f"{split}_{metric}") for epoch in epochs], color=color, label=name, **CURVE)
    best = best_of(epochs, run.config().training.best_by) or epochs[-1]
    axes.axvline(best.epoch, color=MARK, linewidth=1, linestyle=":")
    axes.plot(
        best.epoch, getattr(best, f"validation_{metric}"), "o", markersize=10, markerfacecolor="none",
        markeredgecolor=MARK,
        label=f"best epoch: {best.epoch} (validation accuracy {best.validation_accuracy:.3f}, "
        f"loss {best.validation_loss:.3f})",
    )  # fmt: skip
    average = run.average()
    if average and average.validation_loss is not None:
        axes.plot(
            average.epochs[-1], getattr(average, f"validation_{metric}"), "D", markersize=7, color=VALIDATION,
            label=f"average of epochs {in_ranges(average.epochs)} (validation accuracy "
            f"{average.validation_accuracy:.3f}, loss {average.validation_loss:.3f})",
        )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    axes.legend(frameon=False)
