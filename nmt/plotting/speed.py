"""Speed of training: target tokens a second, and time of a step, over a run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from nmt.errors import NotFoundError
from nmt.plotting.style import FAINT_INK, INK, SMALL, TEXT, add_title, count, curve, run_title, style_curves
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, Metrics, StepMetrics

SLOWEST = 4  # times of a step beyond this multiple of the median are at the edge: the first steps, a pause
MOST_BOUNDS = 30  # of epochs; more lines would be a grey area


class Interval(NamedTuple):
    """Steps whose training was timed together."""

    last: int
    """Number of the last of them."""
    tokens_per_second: float
    """Target tokens trained on in a second."""
    step_seconds: float
    """Mean duration of a step."""


def draw_speed(figure: Figure, run: Run) -> None:
    """Draw target tokens a second above, the mean time of a step below, both with their medians.

    The points are the records of steps. Runs of earlier versions have no times there; their points are epochs.

    Raises:
        NotFoundError: if the run has no record with a time yet.
    """
    records = run.metrics()
    timed = intervals(records)
    if not timed:
        raise NotFoundError(
            f"Run {run.name!r} has no times to draw. Training records them every training.log_every steps, and at the "
            f"end of an epoch. Continue with: nmt train --run {run.name}"
        )
    by_step = any(isinstance(record, StepMetrics) and record.seconds is not None for record in records)
    unit = "" if by_step else " · means of epochs: its records of steps have no times"
    add_title(figure, "Speed of training", f"{run_title(run)}{unit}")
    above, below = figure.subplots(2, 1, sharex=True)
    steps = [part.last for part in timed]
    bounds = [record.step for record in records if isinstance(record, EpochMetrics)]
    for number, (axes, values, label) in enumerate((
        (above, [part.tokens_per_second for part in timed], "target tokens a second"),
        (below, [1000 * part.step_seconds for part in timed], "milliseconds a step"),
    )):  # fmt: skip
        median = float(np.median(values))
        highest = min(max(values), SLOWEST * median)
        axes.plot(steps, values, **curve(number, len(steps)) | {"linestyle": "-"})
        axes.axhline(median, color=INK, linewidth=1.2, linestyle="--")
        title = f"{label}, median {median:,.{1 if median < 100 else 0}f} (broken line)"
        beyond = [step for step, value in zip(steps, values, strict=True) if value > highest]
        if beyond:
            axes.plot(beyond, [1.08 * highest] * len(beyond), "^", color=INK, markersize=7, clip_on=False)
            title += f", beyond the axis up to {max(values):,.0f} (triangles)"
        axes.set_title(title, loc="left", fontsize=SMALL, color=INK)
        axes.set_ylim(0, 1.08 * highest)
        style_curves(axes)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        for bound in bounds if len(bounds) <= MOST_BOUNDS else []:
            axes.axvline(bound, color=FAINT_INK, linewidth=0.7, linestyle=":", zorder=1)
    shown = 0 < len(bounds) <= MOST_BOUNDS
    below.set_xlabel("step (dotted: ends of epochs)" if shown else "step", fontsize=TEXT, color=INK)
    below.set_xlim(0, 1.02 * steps[-1])
    count(below.xaxis)


def intervals(records: Sequence[Metrics]) -> list[Interval]:
    """Return the intervals between the records of steps, none across the end of an epoch.

    A record holds the tokens and seconds of its epoch so far. Steps at the end of an epoch come from its own record.
    """
    found = list[Interval]()
    step, epoch, tokens, seconds = 0, 0, 0, 0.0  # of the record before
    for record in records:
        if not isinstance(record, StepMetrics | EpochMetrics):
            continue
        if record.target_tokens is None or record.seconds is None:
            continue
        if record.epoch != epoch:
            epoch, tokens, seconds = record.epoch, 0, 0.0
        steps, trained, time = record.step - step, record.target_tokens - tokens, record.seconds - seconds
        if steps > 0 and trained > 0 and time > 0:
            found.append(Interval(record.step, trained / time, time / steps))
        step, tokens, seconds = record.step, record.target_tokens, record.seconds
    return found
