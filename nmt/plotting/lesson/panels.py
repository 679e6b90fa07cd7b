"""What the lesson's figures have in common: matrices as images, tokens as labels.

Maps run from dark to light, so that they can be read in grey and by colour-blind readers.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from nmt.errors import printable
from nmt.plotting.style import INK, SMALL, TEXT, count, fonts, luminance, shortened

VALUES, SIMILARITIES = "cividis", "gray"
DENSE = 300  # rows or columns from which on cells may be narrower than pixels
FEW_TICKS = 8
LONGEST_LABEL = 24  # characters
EQUAL_CONTRAST = 0.18  # luminance with the same contrast to black and to white


FORMULA = "sinusoids of Vaswani et al. 2017, section 3.5"
"""Where the values of a figure without a run come from, for its title."""


def show_matrix(axes: Axes, matrix: np.ndarray, limits: tuple[float, float], colors: str = VALUES) -> AxesImage:
    """Draw a matrix as an image with integer ticks, row 0 at the top; its cells are not square.

    Args:
        axes: empty axes.
        matrix: float [R, C].
        limits: values of the darkest and of the lightest colour.
        colors: name of a colour map.
    """
    (rows, columns), (low, high), interpolation = matrix.shape, limits, "nearest"
    if max(rows, columns) >= DENSE:
        # Cells narrower than a pixel are averaged; otherwise waves appear that the matrix does not have. The average
        # goes over the cells of both axes, so those of the other axis are drawn as several equal ones.
        matrix = np.repeat(matrix, math.ceil(DENSE / rows), axis=0)
        matrix = np.repeat(matrix, math.ceil(DENSE / columns), axis=1)
        interpolation = "auto"
    image = axes.imshow(
        matrix, cmap=colors, vmin=low, vmax=high, interpolation=interpolation, aspect="auto",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )  # fmt: skip
    set_integer_ticks(axes.xaxis, columns)
    set_integer_ticks(axes.yaxis, rows)
    axes.tick_params(labelsize=SMALL, labelcolor=INK)
    return image


def set_integer_ticks(axis: Axis, numbers: int) -> None:
    """Give an axis of the numbers 0 .. N - 1 ticks at some of them."""
    if numbers <= FEW_TICKS:
        axis.set_ticks(range(numbers))
    else:
        count(axis, FEW_TICKS)


def add_bar(figure: Figure, image: AxesImage, axes: Axes, label: str, **options: Any) -> None:
    """Add the colour bar of an image beside its axes; ``options`` are those of ``Figure.colorbar``."""
    bar = figure.colorbar(image, ax=axes, ticks=MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]), **options)
    bar.set_label(label, fontsize=TEXT, color=INK)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)


def write_values(axes: Axes, image: AxesImage, texts: Sequence[Sequence[str]], size: float) -> None:
    """Write a text into each cell of an image, in white on dark cells and in black on light ones."""
    colors = image.to_rgba(np.asarray(image.get_array()))
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            color = "black" if luminance(colors[row, column]) > EQUAL_CONTRAST else "white"
            written = axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)
            written.set_in_layout(False)  # it is inside the axes; the layout would measure it several times


def token_label(token: str) -> str:
    """Return a token as a label of at most ``LONGEST_LABEL`` printable characters."""
    return shortened(printable(token).replace("\n", " "), LONGEST_LABEL)


def label_rows(axes: Axes, tokens: Sequence[str], size: float = SMALL) -> None:
    """Label the rows of a matrix with tokens."""
    # Labels are plain text. By default, matplotlib reads "$" as the start of a formula.
    axes.set_yticks(
        range(len(tokens)), [token_label(token) for token in tokens], fontsize=size, fontfamily=fonts(),
        parse_math=False,
    )  # fmt: skip
    axes.tick_params(axis="y", length=2)


def label_columns(axes: Axes, tokens: Sequence[str], size: float = SMALL) -> None:
    """Label the columns of a matrix with tokens, above it."""
    axes.set_xticks(
        range(len(tokens)), [token_label(token) for token in tokens], fontsize=size, fontfamily=fonts(),
        parse_math=False, rotation=45, rotation_mode="anchor", horizontalalignment="left",
    )  # fmt: skip
    axes.tick_params(axis="x", length=2, top=True, labeltop=True, bottom=False, labelbottom=False)
