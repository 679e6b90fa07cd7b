"""The learning-rate schedule of a run, from its first step to its last."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from nmt.plotting.curves import finished_epochs
from nmt.plotting.style import MARK, VERMILLION, add_axes, add_legend, add_title, count, curve, run_title
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
    last = max(end, 2 * warmup)  # far enough to see the rise and the fall

    def rate(step: int) -> float:
        return learning_rate(step, config.model.schedule_width, training, end)

    steps = np.unique(np.linspace(1, last, POINTS).astype(int))
    rates = [rate(int(step)) for step in steps]
    add_title(figure, f"Learning rate by step ({training.schedule} schedule)", run_title(run))
    axes = add_axes(figure, "step", "learning rate")
    axes.plot(steps, rates, **curve(0) | {"marker": "none"})
    marks: dict[str, Artist] = {}
    if warmup <= last:
        name = f"warm-up ends: step {warmup:,}, rate {rate(warmup):.3g}"
        marks[name] = axes.axvline(warmup, color=MARK, linewidth=1, linestyle=":", zorder=1)
    if epochs:
        reached = epochs[-1].step
        name = f"trained so far: {reached:,} steps, rate {rate(reached):.3g}"
        (marks[name],) = axes.plot(
            reached, rate(reached), "D", color=VERMILLION, markersize=8, linestyle="none", clip_on=False
        )
        name = f"the run's last epoch ends: step {end:,}"
        marks[name] = axes.axvline(end, color=MARK, linewidth=1.2, linestyle="--", zorder=1)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
    count(axes.xaxis)
    add_legend(figure, list(marks.values()), list(marks))
