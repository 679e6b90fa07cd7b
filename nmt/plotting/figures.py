"""Figures from the metrics file and from arrays. No TensorFlow: a plot appears at once."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from nmt.errors import DataError, NmtError, NotFoundError
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.runs.directory import Run
from nmt.runs.epoch_ranges import in_ranges
from nmt.runs.metrics import EpochMetrics, best_of
from nmt.storage.arrays import read_arrays
from nmt.storage.atomic import atomic_file
from nmt.storage.names import did_you_mean
from nmt.training.optimization.schedules import ends_with_run, learning_rate

LEARNED_POSITIONS = "source_positions/matrix"
TRAINING, VALIDATION, MARK = "#1f6fb4", "#d1495b", "#444444"


def draw(name: str, run: Run) -> Figure:
    """Return the figure of that name for a run.

    Raises:
        NotFoundError: if there is no such figure, or the run has no metrics to draw yet.
    """
    if name not in FIGURES:
        raise NotFoundError(f"There is no figure {name!r}{did_you_mean(name, FIGURES)}. Known: {', '.join(FIGURES)}.")
    figure = Figure(figsize=(8, 5), layout="constrained", dpi=120)
    FIGURES[name](figure, run)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the suffix of ``path`` names.

    Raises:
        NmtError: for a format that matplotlib does not write, or a path that cannot be written.
    """
    known = figure.canvas.get_supported_filetypes() if figure.canvas else {}
    if path.suffix.removeprefix(".").lower() not in known:
        raise NmtError(
            f"The suffix of a figure names its format; received {str(path)!r}. Known: {', '.join(sorted(known))}."
        )
    with atomic_file(path) as aside:
        try:
            figure.savefig(aside)
        except RuntimeError as error:  # a format that needs another program
            raise NmtError(
                f"matplotlib cannot write {path} here: {error}. Choose another suffix, such as .png."
            ) from None


def show(figure: Figure) -> None:
    """Open a window with the figure and wait until it is closed.

    Raises:
        NmtError: where no window can be opened.
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - only a window needs it, and it looks for a screen when imported

    if mpl.get_backend().lower() in {"agg", "template"}:
        raise NmtError(
            "--show needs a screen and a matplotlib backend for it; there is none here. Open the file instead."
        )
    manager = plt.figure().canvas.manager
    if manager is not None:
        manager.canvas.figure = figure
        figure.set_canvas(manager.canvas)
    plt.show()


def _axes(figure: Figure, title: str, x: str, y: str) -> Any:
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _epochs(run: Run) -> list[EpochMetrics]:
    epochs = run.epochs()
    if not epochs:
        raise NotFoundError(
            f"The first point of a curve comes after an epoch; run {run.name!r} has not finished one. Go on with: "
            f"nmt train --run {run.name}"
        )
    return epochs


def _curves(figure: Figure, run: Run, training: str, validation: str, label: str) -> None:
    epochs = _epochs(run)
    axes = _axes(figure, f"Run {run.name}", "epoch", label)
    numbers = [one.epoch for one in epochs]
    style = {"marker": "o", "markersize": 4, "linewidth": 1.8}
    axes.plot(
        numbers, [getattr(one, training) for one in epochs], color=TRAINING, label="training (with dropout)", **style
    )
    axes.plot(numbers, [getattr(one, validation) for one in epochs], color=VALIDATION, label="validation", **style)
    best = best_of(epochs, run.config().training.best_by) or epochs[-1]
    axes.axvline(best.epoch, color=MARK, linewidth=1, linestyle=":")
    axes.plot(
        best.epoch, getattr(best, validation), "o", markersize=10, markerfacecolor="none", markeredgecolor=MARK,
        label=f"best epoch: {best.epoch} (validation accuracy {best.validation_accuracy:.3f}, "
        f"loss {best.validation_loss:.3f})",
    )  # fmt: skip
    average = run.average()
    if average and average.validation_loss is not None:
        axes.plot(
            average.epochs[-1], getattr(average, validation), "D", markersize=7, color=VALIDATION,
            label=f"average of epochs {in_ranges(average.epochs)} (validation accuracy "
            f"{average.validation_accuracy:.3f}, loss {average.validation_loss:.3f})",
        )  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)


def _losses(figure: Figure, run: Run) -> None:
    _curves(figure, run, "train_loss", "validation_loss", "cross-entropy of a target token (nats)")


def _accuracy(figure: Figure, run: Run) -> None:
    _curves(figure, run, "train_accuracy", "validation_accuracy", "target tokens predicted right")


def _bleu(figure: Figure, run: Run) -> None:
    """BLEU and chrF of validation translations against the minutes of training."""
    minutes = np.cumsum([one.seconds for one in _epochs(run)]) / 60
    scored = [(when, one) for when, one in zip(minutes, run.epochs(), strict=True) if one.validation_bleu is not None]
    if not scored:
        raise NotFoundError(
            f"BLEU is measured in training if training.decode_validation is not 0; run {run.name!r} has none. Train "
            "with --set training.decode_validation=500, or score the run with nmt evaluate."
        )
    axes = _axes(figure, f"Run {run.name}", "minutes of training", "score of validation translations")
    times = [when for when, _ in scored]
    for name, key, color in (("BLEU", "validation_bleu", VALIDATION), ("chrF", "validation_chrf", TRAINING)):
        scores = [getattr(one, key) for _, one in scored]
        axes.plot(times, scores, color=color, marker="o", markersize=4, linewidth=1.8, label=name)
        average = run.average()
        if average and getattr(average, key) is not None:
            axes.plot(
                times[-1], getattr(average, key), "D", markersize=7, color=color,
                label=f"{name} of the average of epochs {in_ranges(average.epochs)}: {getattr(average, key):.1f}",
            )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _schedule(figure: Figure, run: Run) -> None:
    config = run.config()
    training, warmup = config.training, config.training.warmup_steps
    epochs = _epochs(run) if ends_with_run(training) else run.epochs()
    end = epochs[0].step * training.epochs if epochs else 0  # as schedules count (see schedules.steps_of_run)
    last = max(end, 2 * warmup, warmup + (training.decay_steps or 0))  # far enough to see the rise and the fall

    def rate(step: int) -> float:
        return learning_rate(step, config.model.schedule_width, training, end)

    steps = np.unique(np.linspace(1, last, 1000).astype(int))
    axes = _axes(figure, f"Run {run.name}", "step", "learning rate")
    axes.plot(steps, [rate(int(step)) for step in steps], color=TRAINING, linewidth=1.8)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    axes.axvline(warmup, color=MARK, linewidth=1, linestyle=":", label=f"warm-up ends: step {warmup:,}")
    if epochs:
        axes.axvline(end, color=MARK, linewidth=1, linestyle="--", label=f"the run's last epoch ends: step {end:,}")
        now = epochs[-1].step
        axes.plot(now, rate(now), "o", color=VALIDATION, label=f"trained so far: {now:,} steps")
    axes.legend(frameon=False, loc="upper right" if training.schedule in {"cosine", "linear"} else "lower right")


def _positions(figure: Figure, run: Run) -> None:
    config = run.config()
    learned = config.model.positions == "learned"
    matrix = _learned_positions(run) if learned else sinusoidal_encoding(100, config.model.d_model)
    length, d_model = matrix.shape
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    bound = float(np.abs(matrix).max())
    image = above.imshow(matrix, aspect="auto", cmap="RdBu", vmin=-bound, vmax=bound, interpolation="nearest")
    above.set_title(f"{config.model.positions.capitalize()} position embedding of run {run.name}", loc="left")
    above.set_xlabel("dimension")
    above.set_ylabel("position")
    figure.colorbar(image, ax=above)
    for column in dict.fromkeys((0, 1, d_model // 8 // 2 * 2, d_model // 4 // 2 * 2, d_model // 2 // 2 * 2)):
        below.plot(range(length), matrix[:, column], label=f"dimension {column}", linewidth=1.3)
    below.set_xlabel("position")
    below.set_ylabel("value")
    below.grid(alpha=0.25)
    below.spines[["top", "right"]].set_visible(False)
    below.legend(frameon=False, ncols=5, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _learned_positions(run: Run) -> np.ndarray:
    """The trained matrix of the encoder, read from the best epoch's weights."""
    best = run.best()
    if best is None or not run.weights_path(best).exists():
        raise NotFoundError(
            f"Learned positions are drawn from a run's weights; run {run.name!r} has none. Go on with: "
            f"nmt train --run {run.name}"
        )
    weights = read_arrays(run.weights_path(best))
    if LEARNED_POSITIONS not in weights:
        raise DataError(f"{run.weights_path(best)} holds no learned positions. Train that epoch again.")
    return weights[LEARNED_POSITIONS]


FIGURES = {"losses": _losses, "accuracy": _accuracy, "bleu": _bleu, "schedule": _schedule, "positions": _positions}
