"""What the lesson's figures have in common: sinusoidal encodings within bounds, matrices as images.

Maps run from dark to light, so that they can be read in grey and by colour-blind readers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.image import AxesImage

from nmt.errors import NmtError
from nmt.models.layers.positions import angle_rates, sinusoidal_encoding
from nmt.plotting.style import INK, SMALL, count

VALUES, SIMILARITIES = "cividis", "gray"
DENSE = 300  # rows or columns from which on cells may be narrower than pixels
FEW_TICKS = 8
LIGHT = 0.47  # mean of red, green and blue, from which on black text is easier to read than white
MAX_BASE = 1e12
MAX_VALUES = 2**24  # 64 MB in float32; matplotlib needs several times as much to draw them
MAX_SIMILAR = 4_096  # positions whose similarities are MAX_VALUES values

FORMULA = "sinusoids of Vaswani et al. 2017, section 3.5"
"""Where the values of a figure without a run come from, for its title."""


@dataclass(frozen=True)
class Encoding:
    """Length L, width D and base of an encoding."""

    length: int
    width: int
    base: float

    def __post_init__(self) -> None:
        """Refuse an encoding that does not exist, or that is too large for a figure.

        Raises:
            NmtError: names the option.
        """
        if self.width % 2:
            raise NmtError(
                f"--width must be even; received {self.width}. Each sine of the encoding has its cosine. Give "
                f"--width {self.width + 1}."
            )
        if not 1 < self.base <= MAX_BASE:  # refuses nan too
            raise NmtError(
                f"--base must be greater than 1 and at most {MAX_BASE:,.0f}; received {self.base:g}. The paper has "
                "10000. Give another base."
            )
        if self.length * self.width > MAX_VALUES:
            raise NmtError(
                f"--length {self.length} times --width {self.width} is {self.length * self.width:,} values; a figure "
                f"has at most {MAX_VALUES:,}. Give a smaller length or width."
            )

    def matrix(self) -> np.ndarray:
        """Return the encoding of positions 0 .. L - 1, float32 [L, D]."""
        return sinusoidal_encoding(self.length, self.width, self.base)

    def rates(self) -> np.ndarray:
        """Return the radians per position of each pair of columns, float32 [D/2]."""
        return angle_rates(self.width, self.base)

    @property
    def parameters(self) -> str:
        """Length, width and base for a title."""
        return f"length {self.length:,} · width {self.width:,} · base {number(self.base)}"

    def wavelength(self, column: int) -> float:
        """Return the number of positions after which a column repeats."""
        return float(2 * np.pi / self.rates()[column // 2])

    def function(self, column: int) -> str:
        """Return "sin" or "cos", which a column is."""
        return "cos" if column % 2 else "sin"


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return rows divided by their length, float32 [N, D]; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of any two rows, [N, D] -> float32 [N, N]. A row of zeros has cosine 0 with every row."""
    normalized = unit_rows(vectors)
    return normalized @ normalized.T


def number(value: float) -> str:
    """Return a number for a title, such as "10,000", "2.5" or "1e+12"."""
    return f"{value:,.0f}" if value == int(value) and value < 1e9 else f"{value:g}"


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


def write_values(axes: Axes, image: AxesImage, texts: Sequence[Sequence[str]], size: float) -> None:
    """Write a text into each cell of an image, in white on dark cells and in black on light ones."""
    colors = image.to_rgba(np.asarray(image.get_array()))
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            color = "black" if colors[row, column, :3].mean() > LIGHT else "white"
            written = axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)
            written.set_in_layout(False)  # it is inside the axes; the layout would measure it several times
