"""Figure of the sentence lengths of a dataset, and the share of padding in its batches.

Shapes: N sentences, B batches.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from nmt.plotting.style import add_legend, add_title, count, curve, style_curves

QUANTILES = (0.5, 0.9, 0.99)
SHOWN = 0.998  # least share of the sentences within the axis of lengths
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.6g}%")
MOST_BARS = 60  # of a histogram


def padding_of(
    plan: Sequence[np.ndarray], lengths: Mapping[str, np.ndarray], marks: Mapping[str, int]
) -> dict[str, float]:
    """Return the share of padding in B batches by side; rows are padded to the longest row of their batch.

    Args:
        plan: indices of the pairs of each batch.
        lengths: tokens of each sentence without bos and eos, int64 [N], by side.
        marks: number of bos and eos of a row, by side.
    """
    shares = {}
    for side, counts in lengths.items():
        batches = [np.asarray(counts)[batch] + marks[side] for batch in plan]
        padded = sum(int(rows.max()) * len(rows) for rows in batches)
        shares[side] = 1 - sum(int(rows.sum()) for rows in batches) / padded
    return shares


def draw_lengths(figure: Figure, details: str, lengths: Mapping[str, np.ndarray], unit: str) -> None:
    """Draw the distribution of lengths of each side.

    Args:
        figure: empty figure.
        details: dataset, split, date, padding.
        lengths: tokens of each sentence, int64 [N], N > 0, by name of the side.
        unit: unit of a token, such as "words".
    """
    add_title(figure, f"Sentence lengths in {unit}", details)
    histogram, cumulative = figure.subplots(1, 2)
    longest = int(max(counts.max() for counts in lengths.values()))
    shown = max(1, int(max(np.quantile(counts, SHOWN) for counts in lengths.values())))
    width = max(1, -(-shown // MOST_BARS))
    edges = np.arange(0, longest + width + 1, width) - 0.5  # a bar of width 1 is centred on its length
    names = []
    for number, (side, counts) in enumerate(lengths.items()):
        style = curve(number, 2)
        frequencies = np.histogram(counts, edges)[0] / len(counts)
        line = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 1.8}
        histogram.stairs(frequencies, edges, **line)
        share = np.cumsum(np.bincount(counts, minlength=longest + 1)) / len(counts)
        quantiles = [int(np.quantile(counts, quantile, method="inverted_cdf")) for quantile in QUANTILES]
        cumulative.plot(share, drawstyle="steps-post", **style | {"markevery": quantiles, "markersize": 8})
        middle, most, nearly_all = quantiles
        names.append(
            f"{side}: median {middle:,}, 90% up to {most:,}, 99% up to {nearly_all:,}, longest {int(counts.max()):,}"
        )
    for axes, start, title in (
        (histogram, -0.5, "share of sentences"), (cumulative, 0, "share of sentences up to a length"),
    ):  # fmt: skip
        style_curves(axes, f"length in {unit}", title=title)
        axes.set_xlim(start, shown + 0.6)
        axes.yaxis.set_major_formatter(PERCENT)
        count(axes.xaxis, 6)
    histogram.set_ylim(bottom=0)
    cumulative.set_ylim(0, 1.03)
    add_legend(figure, cumulative.get_lines(), names)
