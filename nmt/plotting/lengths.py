"""Lengths of the sentences of a dataset, and the padding of its batches.

N sentences, B batches.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from nmt.plotting.style import INK, SMALL, add_legend, add_title, count, curve, style_curves

QUANTILES = (0.5, 0.9, 0.99)
SHOWN = 0.998  # share of the sentences that the axis of lengths holds at least
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.6g}%")
HEIGHT = 6.4  # inches
MOST_BARS = 60  # of a histogram


class BatchPadding(NamedTuple):
    """Padding of the B batches of an epoch, and how pairs are put into them."""

    name: str
    batches: int
    share: dict[str, float]
    """Share of the places in the padded arrays that hold padding, by side."""


def padding_of(
    name: str, plan: Sequence[np.ndarray], lengths: Mapping[str, np.ndarray], marks: Mapping[str, int]
) -> BatchPadding:
    """Return the padding of batches whose rows are padded to the longest row of the batch.

    Args:
        name: how pairs are put into batches.
        plan: indices of the pairs of each batch.
        lengths: tokens of each sentence without bos and eos, int64 [N], by side.
        marks: number of bos and eos of a row, by side.
    """
    share = {}
    for side, counts in lengths.items():
        batches = [np.asarray(counts)[batch] + marks[side] for batch in plan]
        places = sum(int(rows.max()) * len(rows) for rows in batches)
        share[side] = 1 - sum(int(rows.sum()) for rows in batches) / places
    return BatchPadding(name, len(plan), share)


def draw_lengths(
    figure: Figure, details: str, lengths: Mapping[str, np.ndarray], unit: str, plans: Sequence[BatchPadding]
) -> None:
    """Draw the distribution of lengths of each side, and the share of padding of batches.

    Args:
        figure: empty figure. It becomes higher.
        details: dataset, split, date.
        lengths: tokens of each sentence, int64 [N], by name of the side. At least a pair.
        unit: what a token stands for, such as "words".
        plans: padding of the batches by each way to put pairs into batches.
    """
    figure.set_figheight(HEIGHT)
    add_title(figure, f"Sentence lengths in {unit}, and padding of batches", details)
    panels = figure.subplot_mosaic(
        [["histogram", "cumulative"], ["padding", "padding"]], height_ratios=[3, 0.55 + 0.3 * len(plans)]
    )
    longest = int(max(counts.max() for counts in lengths.values()))
    shown = max(1, int(max(np.quantile(counts, SHOWN) for counts in lengths.values())))
    width = max(1, -(-shown // MOST_BARS))
    edges = np.arange(0, longest + width + 1, width) - 0.5  # a bar of width 1 is around its length
    names = []
    for number, (side, counts) in enumerate(lengths.items()):
        style = curve(number, 2)
        frequencies = np.histogram(counts, edges)[0] / len(counts)
        line = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 1.8}
        panels["histogram"].stairs(frequencies, edges, **line)
        share = np.cumsum(np.bincount(counts, minlength=longest + 1)) / len(counts)
        quantiles = [int(np.quantile(counts, quantile, method="inverted_cdf")) for quantile in QUANTILES]
        panels["cumulative"].plot(share, drawstyle="steps-post", **style | {"markevery": quantiles, "markersize": 8})
        middle, most, nearly_all = quantiles
        names.append(
            f"{side}: median {middle:,}, 90% up to {most:,}, 99% up to {nearly_all:,}, longest {int(counts.max()):,}"
        )
    for name, title in (("histogram", "share of sentences"), ("cumulative", "share of sentences up to a length")):
        style_curves(panels[name], f"length in {unit}", title=title)
        panels[name].set_xlim(-0.5 if name == "histogram" else 0, shown + 0.6)
        panels[name].yaxis.set_major_formatter(PERCENT)
        count(panels[name].xaxis, 6)
    panels["histogram"].set_ylim(bottom=0)
    panels["cumulative"].set_ylim(0, 1.03)
    add_legend(figure, panels["cumulative"].get_lines(), names)

    # A bar of padding for each plan and side, the share written beside it.
    axes, sides = panels["padding"], list(plans[0].share)
    height = 0.8 / len(sides)
    ends = max(plan.share[side] for plan in plans for side in sides)
    for number, side in enumerate(sides):
        places = np.arange(len(plans)) + (number - (len(sides) - 1) / 2) * height
        shares = [plan.share[side] for plan in plans]
        style = curve(number)
        bars = axes.barh(
            places, shares, 0.86 * height, color=style["color"], hatch=("", "////")[number % 2], edgecolor="white",
            linewidth=0,
        )  # fmt: skip
        axes.bar_label(bars, [f"{side} {share:.1%}" for share in shares], padding=4, fontsize=SMALL, color=INK)
    axes.set_yticks(range(len(plans)), [f"{plan.name}\n({plan.batches:,} batches)" for plan in plans])
    axes.invert_yaxis()
    axes.set_xlim(0, max(0.02, 1.2 * ends))
    axes.xaxis.set_major_formatter(PERCENT)
    style_curves(axes, title="share of padding in the batches of an epoch")
    axes.grid(visible=False, axis="y")
