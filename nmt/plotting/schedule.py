"""The learning-rate schedule of a run, from its first step to its last."""

import numpy as np
from matplotlib.figure import Figure

from nmt.plotting.curves import finished_epochs
from nmt.plotting.style import MARK, TRAINING, VALIDATION, add_axes
from nmt.runs.directory import Run
from nmt.training.optimization.schedules import ends_with_run, learning_rate

POINTS = 1000


def draw_schedule(figure: Figure, run: Run) -> None:
    """Draw the learning rate by step; mark the end of the warm-up, the step reached and the last step.

    Raises:
        NotFoundError: if the schedule ends with the run, and no epoch has finished to tell how many steps that takes.
    """
    config = run.config()
    training, warmup = config.training, config.training.warmup_steps
    epochs = finished_epochs(run) if ends_with_run(training) else run.epochs()
    end = epochs[0].step * training.epochs if epochs else 0  # the steps that schedules count, see steps_of_run
    last = max(end, 2 * warmup, warmup + (training.decay_steps or 0))  # far enough to see the rise and the fall

    def rate(step: int) -> float:
        return learning_rate(step, config.model.schedule_width, training, end)

    steps = np.unique(np.linspace(1, last, POINTS).astype(int))
    axes = add_axes(figure, f"Run {run.name}", "step", "learning rate")
    axes.plot(steps, [rate(int(step)) for step in steps], color=TRAINING, linewidth=1.8)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    axes.axvline(warmup, color=MARK, linewidth=1, linestyle=":", label=f"warm-up ends: step {warmup:,}")
    if epochs:
        axes.axvline(end, color=MARK, linewidth=1, linestyle="--", label=f"the run's last epoch ends: step {end:,}")
        reached = epochs[-1].step
        axes.plot(reached, rate(reached), "o", color=VALIDATION, label=f"trained so far: {reached:,} steps")
    axes.legend(frameon=False, loc="upper right" if training.schedule in {"cosine", "linear"} else "lower right")
