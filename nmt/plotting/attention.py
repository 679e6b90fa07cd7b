"""Figures of attention weights: a single matrix, or a grid with a matrix for each head of a layer or of all layers.

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
from rich.cells import cell_len

from nmt.plotting.style import INK, MARGIN, POINTS, SMALL, add_bar, add_title, label_columns, label_rows, token_label

# From light to dark, so that the figure can be read in grey. A weight of 0 is light grey: white marks masked cells.
COLORS = LinearSegmentedColormap.from_list("attention", ["#edf1f5", "#a5c1dc", "#3f78b0", "#16447c", "#061a38"])
FRAME = "#8a929a"

LARGEST_FONT, SMALLEST_FONT = 10.0, 5.0  # points of token labels; if the smallest is too large, every n-th has a label
LETTER = 0.62 / POINTS  # mean width of a letter for each point of its font size
LEAST_BAR, LONGEST_BAR, BAR_WIDTH = 1.2, 3.0, 0.15  # of the colour bar; it is below matrices lower than the least
# A single matrix: its side, its smallest and largest cell, and the font size of its labels (at 45 degrees) by the side
# of a cell. A grid: the width of a row, the smallest and largest side of a matrix, and the same for its upright labels.
SIDE, CELLS, SLANTED = 5.0, (0.27, 0.55), 0.5
GRID_WIDTH, GRID_SIDES, GRID_CELLS, UPRIGHT = 10.5, (1.2, 2.9), (0.105, 0.3), 0.8
ACROSS = 4  # matrices in a row of a grid
LARGEST_CELLS = 45.0  # width and height of all cells together, so that a picture of any sentence fits into memory
LEAST_WIDTH = 5.5  # of the figure, so that its title has space
GAP, TITLE, NAME, BAR = 0.12, 0.6, 0.3, 0.95  # between matrices; height of the title, of a caption; width of the bar


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
    """Draw a single large matrix, or a grid of matrices with token labels at its left and top edges only.

    Args:
        figure: empty figure. Its size and layout change.
        panels: captions, such as "head 1", with matrices of the same tokens, row by row. A matrix holds the attention
            of each row's token to each column's token, float [rows, columns]; NaN where a mask forbids it.
        rows: name, such as "target", and the tokens that attend, from top to bottom.
        columns: name and the tokens attended to.
        heading: title of the figure, on one line.
        details: run, data and date.
        across: maximum number of matrices in a row.
    """
    (row_name, row_tokens), (column_name, column_tokens) = rows, columns
    height, width = len(row_tokens), len(column_tokens)
    across = min(across, len(panels))
    down = math.ceil(len(panels) / across)
    is_single = len(panels) == 1
    side = SIDE if is_single else float(np.clip(GRID_WIDTH / across, *GRID_SIDES))
    cell = float(np.clip(side / max(height, width), *(CELLS if is_single else GRID_CELLS)))
    cell = min(cell, LARGEST_CELLS / max(down * height, across * width))
    fitting = (SLANTED if is_single else UPRIGHT) * cell * POINTS
    size = float(np.clip(fitting, SMALLEST_FONT, LARGEST_FONT))
    every = math.ceil(SMALLEST_FONT / max(fitting, 1e-3))

    # The sizes of labels are estimates. The layout corrects an error by larger or smaller cells.
    left, top = _label_length(row_tokens, size), _label_length(column_tokens, size)
    if is_single:
        top *= 0.75
        left += top
    is_low = down * height * cell < LEAST_BAR
    figure.set_size_inches(
        max(LEAST_WIDTH, across * (width * cell + GAP) + left + NAME + BAR + 2 * MARGIN),
        down * (height * cell + GAP + (0 if is_single else NAME)) + top + NAME + TITLE + 2 * MARGIN + is_low * BAR,
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
        label_columns(axes, column_tokens, size, every, 45 if is_single else 90)
    grid[0, 0].set_title(column_name, fontsize=SMALL, color=INK, loc="left")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    used = [*grid.flat[: len(panels)]]
    mapping = ScalarMappable(Normalize(0, largest), COLORS)
    if is_low:
        add_bar(figure, mapping, used, "attention weight", location="bottom", pad=0.02, ticks=[0, largest])
        return
    total_width, total_height = across * width * cell, down * height * cell
    length = min(total_height, LONGEST_BAR)
    add_bar(
        figure, mapping, used, "attention weight", pad=0.02, fraction=BAR_WIDTH / total_width,
        shrink=length / total_height, aspect=length / BAR_WIDTH, anchor=(0, 1),
    )  # fmt: skip


def _label_length(tokens: Sequence[str], size: float) -> float:
    """Return about how long the longest label of some tokens is, in inches, in a font of ``size`` points."""
    return LETTER * size * max(cell_len(token_label(token)) for token in tokens)


def top_of_scale(weights: Sequence[np.ndarray]) -> float:
    """Return the weight with the darkest colour: the largest of all weights, rounded up to a tenth."""
    largest = max(float(np.nanmax(matrix)) for matrix in weights)
    return min(1.0, max(1, math.ceil(10 * largest - 1e-6)) / 10)
