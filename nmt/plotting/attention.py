"""Attention weights as matrices: a sheet of the heads of a layer or of all layers, or a head alone.

A row belongs to the token that attends, a column to the token attended to (Bahdanau et al. 2015, figure 3; Vaswani et
al. 2017, figures 3 to 5). All matrices of a figure share their colours, from 0 to a maximum that the colour bar states.
Cells that a causal mask forbids are blank. Lengths are in inches.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from nmt.errors import printable
from nmt.plotting.style import FAINT_INK, INK, MARGIN, POINTS, SMALL, add_title, fonts, missing_characters_as_boxes

# From light to dark, so that it reads the same in grey; a weight of 0 is not white, which is the colour of no weight.
COLORS = LinearSegmentedColormap.from_list("attention", ["#edf1f5", "#a5c1dc", "#3f78b0", "#16447c", "#061a38"])

FRAME: dict[str, Any] = {"color": "#8a929a", "linewidth": 0.6}

BAR_GAP, BAR_WIDTH, BAR_HEIGHTS = 0.25, 0.13, (1.2, 3.0)
LEAST_WIDTH = 5.5  # of the figure, so that its title has room
LARGEST_FONT, SMALLEST_FONT = 10.0, 5.0  # points of token labels; below the smallest, labels thin out
LINE = 1.25  # height of a line of text, in its font size
LONGEST_LABEL, LONGEST_SHEET_LABEL = 40, 24  # characters
LARGEST_SIDE = 45.0  # of all matrices together, so that a picture of any sentence fits into memory

# A matrix alone: its labels stand at 45 degrees, so they need more room across than along.
SLANT = 0.5  # font size by side of a cell
SMALLEST_CELL, LARGEST_CELL, USUAL_SIDE = 0.27, 0.55, 5.0

# A sheet: labels are upright. About as wide as a landscape page until cells become small.
UPRIGHT = 1 / LINE  # font size by side of a cell
SMALLEST_SHEET_CELL, LARGEST_SHEET_CELL, SHEET_WIDTH, PANEL_SIDES = 0.105, 0.3, 10.5, (1.2, 2.9)
GAP, CAPTION_GAP = 0.14, 0.34  # between columns and between rows of matrices


class Tokens(NamedTuple):
    """Tokens along a side of a matrix."""

    name: str
    """What they are, such as "source"."""
    tokens: Sequence[str]


class Panel(NamedTuple):
    """A matrix of a sheet."""

    name: str
    """Caption, such as "head 1"."""
    weights: np.ndarray
    """Attention of each row's token to each column's token, float [rows, columns]; NaN where a mask forbids it."""


def above_diagonal_blank(weights: np.ndarray) -> np.ndarray:
    """Return weights [..., T, T] with NaN above the diagonal, where the causal mask forbids attention."""
    return np.where(np.tri(weights.shape[-1]) > 0, weights, np.nan)


def draw_matrix(figure: Figure, weights: np.ndarray, rows: Tokens, columns: Tokens, heading: str, details: str) -> None:
    """Draw one matrix, large.

    Args:
        figure: empty figure. Its size and layout change.
        weights: float [rows, columns]; NaN is blank.
        rows: tokens that attend, from top to bottom.
        columns: tokens attended to.
        heading: content of the figure in a line.
        details: run, data and date.
    """
    longest = max(weights.shape)
    cell = min(float(np.clip(USUAL_SIDE / longest, SMALLEST_CELL, LARGEST_CELL)), LARGEST_SIDE / longest)
    axes = figure.add_subplot()
    top = _draw_weights([axes], [weights])
    _label(axes, rows, columns, SLANT * cell * POINTS, cell, slanted=True)
    axes.set_title(columns.name, fontsize=SMALL, color=INK, loc="center")
    width, height = len(columns.tokens) * cell, len(rows.tokens) * cell
    _place(figure, top, [(axes, (0, 0, width, height))], heading, details)


def draw_sheet(
    figure: Figure,
    panels: Sequence[Panel],
    rows: Tokens,
    columns: Tokens,
    heading: str,
    details: str,
    *,
    across: int | None = None,
) -> None:
    """Draw matrices of the same tokens side by side. Labels stand at the left and at the top of the sheet alone.

    Args:
        figure: empty figure. Its size and layout change.
        panels: matrices, row by row.
        rows: tokens that attend, from top to bottom.
        columns: tokens attended to.
        heading: content of the figure in a line.
        details: run, data and date.
        across: number of matrices in a row; None: a number that makes the sheet about as wide as a page.
    """
    shape = len(rows.tokens), len(columns.tokens)
    across = across or best_across(len(panels), shape)
    down = math.ceil(len(panels) / across)
    side = float(np.clip(SHEET_WIDTH / across, *PANEL_SIDES))
    cell = float(np.clip(side / max(shape), SMALLEST_SHEET_CELL, LARGEST_SHEET_CELL))
    cell = min(cell, LARGEST_SIDE / max(down * shape[0], across * shape[1]))
    height, width = shape[0] * cell, shape[1] * cell
    all_axes = [figure.add_subplot() for _ in panels]
    top = _draw_weights(all_axes, [panel.weights for panel in panels])
    places = []
    for number, (axes, panel) in enumerate(zip(all_axes, panels, strict=True)):
        line, column = divmod(number, across)
        _label(
            axes, rows if column == 0 else None, columns if line == 0 else None, UPRIGHT * cell * POINTS, cell,
            slanted=False,
        )  # fmt: skip
        axes.set_xlabel(panel.name, fontsize=SMALL, color=INK, labelpad=2.5)
        places.append((axes, (column * (width + GAP), (down - 1 - line) * (height + CAPTION_GAP), width, height)))
    all_axes[0].set_title(columns.name, fontsize=SMALL, color=INK, loc="left")
    _place(figure, top, places, heading, details)


def best_across(count: int, shape: tuple[int, int]) -> int:
    """Return how many of ``count`` matrices stand in a row: few empty places, and a sheet of 3 to 2 about.

    Args:
        count: number of matrices.
        shape: rows and columns of each.
    """

    def cost(across: int) -> tuple[int, float]:
        down = math.ceil(count / across)
        return across * down - count, abs(math.log(across * shape[1] / (down * shape[0]) / 1.5))

    # A prime number of matrices has no whole grid but a row; an empty place or two are better than a long row.
    few_empty = [across for across in range(1, count + 1) if cost(across)[0] <= (0 if count < 5 else 2)]
    return min(few_empty, key=lambda across: cost(across)[1] + 0.3 * cost(across)[0])


def top_of_scale(weights: Sequence[np.ndarray]) -> float:
    """Return the weight with the darkest colour: the largest of all weights, rounded up to a tenth."""
    largest = max(float(np.nanmax(part)) for part in weights)
    return min(1.0, max(1, math.ceil(10 * largest - 1e-6)) / 10)


def _draw_weights(all_axes: Sequence[Axes], weights: Sequence[np.ndarray]) -> float:
    """Draw a matrix into each axes, and return the weight with the darkest colour."""
    colors, top = COLORS.with_extremes(bad="white"), top_of_scale(weights)
    for axes, part in zip(all_axes, weights, strict=True):
        axes.imshow(np.ma.masked_invalid(part), cmap=colors, vmin=0, vmax=top, interpolation="nearest", aspect="auto")
        axes.spines[:].set(**FRAME)
    return top


def _label(
    axes: Axes, rows: Tokens | None, columns: Tokens | None, points: float, cell: float, *, slanted: bool
) -> None:
    """Label rows at the left and columns at the top; None: no labels."""
    size = float(np.clip(points, SMALLEST_FONT, LARGEST_FONT))
    every = max(1, math.ceil(size / (points + 1e-9) - 1e-6)) if points < SMALLEST_FONT else 1
    longest = LONGEST_LABEL if slanted else LONGEST_SHEET_LABEL
    # Labels are plain text. By default, matplotlib reads "$" as the start of a formula.
    style: dict[str, Any] = {"fontsize": size, "fontfamily": fonts(), "parse_math": False}
    turned: dict[str, Any] = (
        {"rotation": 45, "rotation_mode": "anchor", "horizontalalignment": "left"} if slanted else {"rotation": 90}
    )
    axes.set_xticks([])
    axes.set_yticks([])
    if columns is not None:
        shown = range(0, len(columns.tokens), every)
        axes.set_xticks(shown, [token_label(columns.tokens[n], longest) for n in shown], **style, **turned)
    if rows is not None:
        shown = range(0, len(rows.tokens), every)
        axes.set_yticks(shown, [token_label(rows.tokens[n], longest) for n in shown], **style)
        axes.set_ylabel(rows.name, fontsize=SMALL, color=INK)
    pad = 2.0 if cell < LARGEST_SHEET_CELL else 3.0
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=min(2.0, size / 4), pad=pad)


def token_label(token: str, longest: int = LONGEST_LABEL) -> str:
    """Return a token as a label of printable characters, at most ``longest``."""
    text = printable(token)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _place(
    figure: Figure,
    top: float,
    places: Sequence[tuple[Axes, tuple[float, float, float, float]]],
    heading: str,
    details: str,
) -> None:
    """Place title, matrices and colour bar, and give the figure the size of all of them.

    Args:
        figure: figure with the axes of matrices.
        top: weight with the darkest colour.
        places: left, bottom, width and height of each matrix, without its labels.
        heading: first line of the title.
        details: second line.
    """
    figure.set_layout_engine("none")
    bar = figure.add_subplot()
    mapping = ScalarMappable(Normalize(0, top), COLORS)
    figure.colorbar(mapping, cax=bar, ticks=_bar_ticks(top))
    bar.spines[:].set(**FRAME)
    bar.set_ylabel("attention weight", fontsize=SMALL, color=INK)
    bar.tick_params(labelsize=SMALL, labelcolor=INK, color=FAINT_INK, length=2)
    width = max(left + across for _, (left, _, across, _) in places)
    height = max(bottom + down for _, (_, bottom, _, down) in places)
    bar_height = float(np.clip(height, *BAR_HEIGHTS))
    places = [*places, (bar, (width + BAR_GAP, height - bar_height, BAR_WIDTH, bar_height))]

    def place(left: float, bottom: float) -> None:
        whole = np.tile(figure.get_size_inches(), 2)
        for axes, inches in places:
            axes.set_position(np.array(inches + np.array([left, bottom, 0, 0])) / whole)

    # Labels are as large as their text, so they are measured around matrices of their final size.
    figure.set_size_inches(width, height)
    place(0, 0)
    with missing_characters_as_boxes():
        parts = figure.get_tightbbox()
        whole_width = max(parts.width + 2 * MARGIN, LEAST_WIDTH)
        figure.set_size_inches(whole_width, parts.height)
        add_title(figure, heading, details)
        title_height = parts.height - min(text.get_window_extent().y0 for text in figure.texts) / figure.dpi
    figure.set_size_inches(whole_width, title_height + 1.5 * MARGIN + parts.height + MARGIN)
    place(MARGIN - parts.x0, MARGIN - parts.y0)


def _bar_ticks(top: float) -> list[float]:
    """Return the numbers beside a colour bar from 0 to ``top``, which is a tenth."""
    tenths = round(10 * top)
    step = next(step for step in (1, 2, 5) if tenths / step <= 5 or step == 5)
    if tenths % step:
        step = 1
    return [number / 10 for number in range(0, tenths + 1, step)]
