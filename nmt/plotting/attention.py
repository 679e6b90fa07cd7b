"""Attention weights as matrices: one alone, or a sheet of the heads of a layer or of all layers.

A row belongs to the token that attends, a column to the token attended to (Bahdanau et al. 2015, figure 3; Vaswani et
al. 2017, figures 3 to 5). All matrices of a figure share their colours, from 0 to a maximum that the colour bar states.
Cells that a causal mask forbids are blank. Lengths are in inches.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from nmt.plotting.style import INK, MARGIN, POINTS, SMALL, add_bar, add_title, label_columns, label_rows, token_label

# From light to dark, so that it reads the same in grey; a weight of 0 is not white, which is the colour of no weight.
COLORS = LinearSegmentedColormap.from_list("attention", ["#edf1f5", "#a5c1dc", "#3f78b0", "#16447c", "#061a38"])
FRAME = "#8a929a"

LARGEST_FONT, SMALLEST_FONT = 10.0, 5.0  # points of token labels; below the smallest, labels thin out
LETTER = 0.62 / POINTS  # mean width of a letter, in its font size
LEAST_BAR, LONGEST_BAR, BAR_WIDTH = 1.2, 3.0, 0.15  # of the colour bar, which lies below very low matrices
# Sides of a matrix alone and of its cells, labels at 45 degrees; those of a sheet's, whose labels are upright.
SIDE, CELLS, SLANT = 5.0, (0.27, 0.55), 0.5  # slant: font size by side of a cell
SHEET_WIDTH, SHEET_SIDES, SHEET_CELLS, UPRIGHT = 10.5, (1.2, 2.9), (0.105, 0.3), 0.8
ACROSS = 4  # matrices in a row of a sheet
LARGEST_SIDE = 45.0  # of all matrices together, so that a picture of any sentence fits into memory
LEAST_WIDTH = 5.5  # of the figure, so that its title has room
GAP, TITLE, NAME, BAR = 0.12, 0.6, 0.3, 0.95  # between matrices; heights of title and of a matrix' name; bar's width


def draw_attention(
    figure: Figure,
    panels: Sequence[tuple[str, np.ndarray]],
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    heading: str,
    details: str,
    *,
    across: int = ACROSS,
) -> None:
    """Draw a matrix large, or several side by side with labels at the left and at the top of the sheet alone.

    Args:
        figure: empty figure. Its size and layout change.
        panels: captions, such as "head 1", and matrices of the same tokens, row by row: attention of each row's token
            to each column's token, float [rows, columns]; NaN where a mask forbids it.
        rows: name, such as "target", and tokens that attend, from top to bottom.
        columns: name and tokens attended to.
        heading: content of the figure in a line.
        details: run, data and date.
        across: most matrices in a row.
    """
    (row_name, row_tokens), (column_name, column_tokens) = rows, columns
    height, width = shape = len(row_tokens), len(column_tokens)
    across = min(across, len(panels))
    down = math.ceil(len(panels) / across)
    alone = len(panels) == 1
    side = SIDE if alone else float(np.clip(SHEET_WIDTH / across, *SHEET_SIDES))
    cell = float(np.clip(side / max(shape), *(CELLS if alone else SHEET_CELLS)))
    cell = min(cell, LARGEST_SIDE / max(down * height, across * width))
    room = (SLANT if alone else UPRIGHT) * cell * POINTS
    size, every = float(np.clip(room, SMALLEST_FONT, LARGEST_FONT)), math.ceil(SMALLEST_FONT / max(room, 1e-3))

    # The sizes of labels are estimates. What they are wrong by becomes larger or smaller cells.
    left, top = (
        LETTER * size * max(len(token_label(token)) for token in tokens) for tokens in (row_tokens, column_tokens)
    )
    beside, above = (left + 0.75 * top, 0.75 * top) if alone else (left, top)
    is_low = down * height * cell < LEAST_BAR
    figure.set_size_inches(
        max(LEAST_WIDTH, across * (width * cell + GAP) + beside + NAME + BAR + 2 * MARGIN),
        down * (height * cell + GAP + (0 if alone else NAME)) + above + NAME + TITLE + 2 * MARGIN + is_low * BAR,
    )
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=GAP / 2, h_pad=GAP / 2, wspace=0, hspace=0, compress=True))
    add_title(figure, heading, details)
    grid = figure.subplots(down, across, squeeze=False)
    largest = top_of_scale([weights for _, weights in panels])
    colors = COLORS.with_extremes(bad="white")
    for axes, (caption, weights) in zip(grid.flat, panels, strict=False):
        axes.imshow(np.ma.masked_invalid(weights), cmap=colors, vmin=0, vmax=largest, interpolation="nearest")
        axes.spines[:].set(color=FRAME, linewidth=0.6)
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(caption, fontsize=SMALL, color=INK, labelpad=2.5)
    for axes in grid[:, 0]:
        label_rows(axes, row_tokens, size, every)
        axes.set_ylabel(row_name, fontsize=SMALL, color=INK)
    for axes in grid[0]:
        label_columns(axes, column_tokens, size, every, 45 if alone else 90)
    grid[0, 0].set_title(column_name, fontsize=SMALL, color=INK, loc="left")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    shown, mapping = [*grid.flat[: len(panels)]], ScalarMappable(Normalize(0, largest), COLORS)
    wide, high = across * width * cell, down * height * cell
    if is_low:
        add_bar(figure, mapping, shown, "attention weight", location="bottom", pad=0.02, ticks=[0, largest])
        return
    length = min(high, LONGEST_BAR)
    add_bar(
        figure, mapping, shown, "attention weight", pad=0.02, fraction=BAR_WIDTH / wide, shrink=length / high,
        aspect=length / BAR_WIDTH, anchor=(0, 1),
    )  # fmt: skip


def top_of_scale(weights: Sequence[np.ndarray]) -> float:
    """Return the weight with the darkest colour: the largest of all weights, rounded up to a tenth."""
    largest = max(float(np.nanmax(part)) for part in weights)
    return min(1.0, max(1, math.ceil(10 * largest - 1e-6)) / 10)
