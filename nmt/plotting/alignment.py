"""Attention of a translation to its source as a matrix (Bahdanau et al. 2015, figure 3; Luong et al. 2015, figure 7).

Lengths are in inches. The figure is as large as its S x T cells and their labels need.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.errors import printable
from nmt.plotting.style import missing_characters_as_boxes

SMALLEST_CELL, LARGEST_CELL = 0.27, 0.55  # side of a cell
USUAL_SIDE = 5.0  # side of a matrix with cells between these
LARGEST_SIDE = 45.0  # the cells of more than 160 tokens are smaller, so that the picture fits into memory
BAR_GAP, BAR_WIDTH, BAR_HEIGHTS = 0.3, 0.14, (1.3, 3.0)
MARGIN = 0.12
LARGEST_FONT = 10.0  # points
POINTS = 72  # to the inch
LONGEST_LABEL = 40  # characters

FONT = "DejaVu Sans"  # comes with matplotlib
EAST_ASIAN_FONTS = {
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Hiragino Sans", "PingFang SC",
    "Arial Unicode MS",
}  # fmt: skip


def draw_alignment(
    figure: Figure, source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str
) -> None:
    """Draw the matrix of attention, from 0 in black to 1 in white, with tokens as labels.

    Args:
        figure: empty figure. Its size and layout change.
        source: S tokens, the labels of the columns.
        target: T tokens, the labels of the rows.
        weights: attention of each target token to each source token, float [T, S].
        title: lines above the matrix.
    """
    cell = float(np.clip(USUAL_SIDE / max(weights.shape), SMALLEST_CELL, LARGEST_CELL))
    cell = min(cell, LARGEST_SIDE / max(weights.shape))
    figure.set_layout_engine("none")
    matrix, bar = figure.add_subplot(), figure.add_subplot()
    image = matrix.imshow(weights, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    figure.colorbar(image, cax=bar)
    bar.set_ylabel("attention weight", fontsize=9)
    bar.tick_params(labelsize=8)
    _label_tokens(matrix, source, target, points=max(1.0, min(LARGEST_FONT, 0.5 * cell * POINTS)))
    _place(figure, (len(source) * cell, len(target) * cell), title)


def _label_tokens(axes: Axes, source: Sequence[str], target: Sequence[str], points: float) -> None:
    """Label the columns at the top and the rows at the left."""
    fonts = [FONT, *sorted(EAST_ASIAN_FONTS.intersection(font_manager.get_font_names()))]
    # Labels are plain text. By default, matplotlib reads "$" as the start of a formula.
    axes.set_xticks(
        range(len(source)), [_label(token) for token in source], fontsize=points, fontfamily=fonts, parse_math=False,
        rotation=45, rotation_mode="anchor", horizontalalignment="left",
    )  # fmt: skip
    axes.set_yticks(
        range(len(target)), [_label(token) for token in target], fontsize=points, fontfamily=fonts, parse_math=False
    )
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=2)
    axes.set_xlabel("source", fontsize=9)
    axes.set_ylabel("target", fontsize=9)


def _label(token: str) -> str:
    """Return a token as a label of at most ``LONGEST_LABEL`` printable characters."""
    text = printable(token)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _place(figure: Figure, size: tuple[float, float], title: str) -> None:
    """Place title, matrix and colour bar, and give the figure the size of all three.

    Args:
        figure: figure with two axes, matrix and colour bar.
        size: width and height of the matrix without its labels.
        title: lines above the matrix.
    """
    (width, height), (matrix, bar) = size, figure.axes
    bar_height = float(np.clip(height, *BAR_HEIGHTS))

    def place(left: float, bottom: float) -> None:
        whole = np.tile(figure.get_size_inches(), 2)
        matrix.set_position(np.array([left, bottom, width, height]) / whole)
        bar_place = [left + width + BAR_GAP, bottom + height - bar_height, BAR_WIDTH, bar_height]
        bar.set_position(np.array(bar_place) / whole)

    # Labels are as large as their text, so they are measured around a matrix of its final size.
    figure.set_size_inches(width, height)
    place(0, 0)
    with missing_characters_as_boxes():
        parts = figure.get_tightbbox()
        heading = figure.text(0, 0, title, fontsize=11, verticalalignment="top")
        heading_box = heading.get_window_extent()  # pixels
    whole_width = max(parts.width, heading_box.width / figure.dpi) + 2 * MARGIN
    whole_height = parts.height + heading_box.height / figure.dpi + 3 * MARGIN
    figure.set_size_inches(whole_width, whole_height)
    place(MARGIN - parts.x0, MARGIN - parts.y0)
    heading.set_position((MARGIN / whole_width, 1 - MARGIN / whole_height))
