"""Figures of sinusoidal position encodings: as a matrix, by position, by column, beside binary code; similarity.

Shapes: L positions, D width of an encoding. The formula is in section 3.5 of Vaswani et al. 2017.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.message import Argument
from nmt.models.layers.positions import angle_rates, sinusoidal_encoding
from nmt.plotting import style

FORMULA = "sinusoids of Vaswani et al. 2017, section 3.5"
MAX_BASE = 1e12
MAX_VALUES = 2**24  # 64 MB in float32; matplotlib needs several times as much to draw them
MAX_SIMILAR = 4_096  # positions whose similarities are MAX_VALUES values
LEAST_RANGE = 0.1  # of cosines in the image, even if all cosines are close to 1
MOST_POINTS = 128  # of a curve that shows its points
WRITTEN_ROWS, WRITTEN_COLUMNS = 32, 10  # of a matrix whose cells show their values


@dataclass(frozen=True)
class Encoding:
    """A sinusoidal encoding, as its length L, width D and base."""

    length: int
    width: int
    base: float

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            NmtError: for an odd width, a base out of range, or an encoding too large for a figure; names the option.
        """
        length, width, base = self.length, self.width, self.base
        if width % 2:
            raise NmtError(
                Argument("width"),
                f" must be even; received {width}. Each sine of the encoding has its cosine. Give ",
                Argument("width", width + 1),
                ".",
            )
        if not 1 < base <= MAX_BASE:  # refuses nan too
            raise NmtError(
                Argument("base"),
                f" must be greater than 1 and at most {MAX_BASE:,.0f}; received {base:g}. The paper has 10000. "
                "Give another base.",
            )
        if length * width > MAX_VALUES:
            raise NmtError(
                Argument("length", length),
                " times ",
                Argument("width", width),
                f" is {length * width:,} values; a figure has at most {MAX_VALUES:,}. Give a smaller length or width.",
            )

    def matrix(self) -> np.ndarray:
        """Return the encoding of positions 0 .. L - 1, float32 [L, D]."""
        return sinusoidal_encoding(self.length, self.width, self.base)

    @property
    def details(self) -> str:
        """Length, width, base and formula for a title."""
        return f"length {self.length:,} · width {self.width:,} · base {self.base:,.12g} · {FORMULA}"

    def wavelength(self, column: int) -> float:
        """Return the number of positions after which a column repeats."""
        return float(2 * np.pi / angle_rates(self.width, self.base)[column // 2])

    def function(self, column: int) -> str:
        """Return the function of a column: "sin" for even columns, "cos" for odd ones."""
        return "cos" if column % 2 else "sin"


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return vectors divided by their length, float32 [N, D]; vectors of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of every two rows, [N, D] -> float32 [N, N]. A row of zeros has cosine 0 with every row."""
    normalized = unit_rows(vectors)
    return normalized @ normalized.T


def draw_matrix(figure: Figure, encoding: Encoding) -> None:
    """Draw the encoding of each position as a row of an image."""
    style.add_title(figure, "Position encoding", encoding.details)
    axes = figure.add_subplot()
    style.label(axes, "dimension (even: sine, odd: cosine; wavelengths rise to the right)", "position k")
    style.add_bar(figure, style.show_matrix(axes, encoding.matrix(), (-1, 1)), axes, "value")


def draw_similarity(figure: Figure, encoding: Encoding, positions: Sequence[int]) -> None:
    """Draw the cosines of all pairs of positions as an image, and the cosines of some positions as curves.

    The encodings of all positions have the same length, sqrt(D/2): their dot product is the cosine times D/2.

    Raises:
        NmtError: for a position beyond the last, and for an encoding of more than ``MAX_SIMILAR`` positions.
    """
    _check("position", positions, encoding.length, "length")
    if encoding.length > MAX_SIMILAR:
        raise NmtError(
            Argument("length"),
            f" must be at most {MAX_SIMILAR} to compare positions with each other; received "
            f"{encoding.length}. Give a smaller length.",
        )
    similarity = cosines(encoding.matrix())
    low = float(min(1 - LEAST_RANGE, similarity.min()))
    figure.set_size_inches(10, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    style.add_bar(figure, style.show_matrix(left, similarity, (low, 1), style.SIMILARITIES), left, "cosine")
    style.label(left, "position", "position")
    for index, position in enumerate(positions):
        appearance = {**style.curve(index), "markevery": [position], "markersize": 8, "clip_on": False}
        right.plot(range(encoding.length), similarity[position], **appearance)
    style.style_curves(right, "position", "cosine", f"dot product = cosine x {encoding.width // 2:,}")
    style.count(right.xaxis, style.FEW_TICKS)
    style.add_legend(figure, right.get_lines(), [f"position {position:,}" for position in positions])
    style.add_title(figure, "Similarity of positions: cosine of their encodings", encoding.details)


def draw_sinusoids(figure: Figure, width: int, base: float, positions: Sequence[int]) -> None:
    """Draw sin(k / base^(2i/D)) over i = 0 .. D/2 - 1 for width D, with a panel for each position k."""
    rates = angle_rates(Encoding(1, width, base).width, base)
    panels = _panels(figure, len(positions), "i, the number of the sine-cosine pair of dimensions")
    details = f"width d = {width:,} · base n = {base:,.12g} · {FORMULA}"
    style.add_title(figure, "A sinusoid for each position k: sin(k / n^(2i/d))", details)
    for axes, position in zip(panels, positions, strict=True):
        marker = "." if len(rates) <= MOST_POINTS else ""
        axes.plot(
            range(len(rates)), np.sin(position * rates), color=style.BLUE, linewidth=1.6, marker=marker, markersize=5
        )
        axes.set_ylabel(f"k = {position:,}", rotation=0, ha="right", va="center")


def draw_columns(figure: Figure, encoding: Encoding, columns: Sequence[int], positions: Sequence[int]) -> None:
    """Draw columns of the encoding over the positions, a panel for each, and mark the values of the given positions.

    Raises:
        NmtError: for a column or a position that the encoding does not have.
    """
    _check("column", columns, encoding.width, "width")
    _check("position", positions, encoding.length, "length")
    matrix, shows_points = encoding.matrix(), encoding.length <= MOST_POINTS
    panels = _panels(figure, len(columns), "position k")
    for axes, column in zip(panels, columns, strict=True):
        if shows_points:  # also draw the sinusoid between the positions
            between = np.linspace(0, encoding.length - 1, 16 * encoding.length)
            wave = np.cos if column % 2 else np.sin
            frequency = 2 * np.pi / encoding.wavelength(column)
            axes.plot(between, wave(between * frequency), color=style.BLUE, linewidth=0.9, alpha=0.7)
        axes.plot(
            range(encoding.length), matrix[:, column], color=style.BLUE, marker="." if shows_points else "",
            linestyle="" if shows_points else "-", linewidth=1.4, markersize=5, label="_values",
        )  # fmt: skip
        for mark, position in enumerate(positions):
            axes.axvline(position, color="0.45", linewidth=0.9, linestyle=(0, (4, 3)))
            axes.plot(
                [position], [matrix[position, column]], style.MARKERS[mark % len(style.MARKERS)],
                color=style.VERMILLION, markersize=8, markeredgecolor="white", clip_on=False, zorder=3,
                label=f"position {position:,}",
            )  # fmt: skip
        length = encoding.wavelength(column)
        wavelength = f"{length:,.{1 if length < 1000 else 0}f} positions"
        title = f"dimension {column:,}: {encoding.function(column)}, wavelength {wavelength}"
        axes.set_title(title, loc="left", fontsize=style.SMALL)
    style.add_legend(figure, *panels[0].get_legend_handles_labels())
    style.add_title(figure, "Columns of the position encoding", encoding.details)


def column_choice(width: int, count: int) -> list[int]:
    """Return up to ``count`` even columns, from the first on, whose wavelengths are of very different sizes."""
    shares = np.linspace(0, 0.75, count) ** 1.5
    return sorted({min(width - 1, int(width * share) // 2 * 2) for share in shares})


def _panels(figure: Figure, panels: int, x_label: str) -> list[Axes]:
    """Return N panels one below another, with whole numbers on the x axis and values from -1 to 1 on the y axis."""
    figure.set_figheight(1.2 + 1.35 * panels)
    column = list(figure.subplots(panels, 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes in column:
        style.style_curves(axes, x_label)
        axes.set(ylim=(-1.15, 1.15), yticks=[-1, 0, 1])
        axes.label_outer()
    style.count(column[0].xaxis, style.FEW_TICKS)
    return column


def draw_binary_code(figure: Figure, encoding: Encoding) -> None:
    """Draw the bits of each position, lowest bit first, beside its encoding."""
    bits = max(1, (encoding.length - 1).bit_length())
    matrix = encoding.matrix()
    code = np.arange(encoding.length)[:, None] >> np.arange(bits) & 1
    figure.set_size_inches(10, float(np.clip(1.7 + 0.25 * encoding.length, 4.5, 10)))
    style.add_title(figure, "Binary code of positions beside their sinusoids", encoding.details)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.6])
    code_image = style.show_matrix(left, code, (0, 1))
    image = style.show_matrix(right, matrix, (-1, 1))
    style.add_bar(figure, image, right, "value")
    style.label(left, "bit (its value)", "position", "binary: each bit flips half as often\nas the bit to its left")
    left.set_xticks(range(bits), [f"{2**bit:,}" for bit in range(bits)], rotation=0 if bits <= 8 else 90)
    ratio = encoding.base ** (2 / encoding.width)
    title = f"sinusoids: each pair of columns has {ratio:.3g} times\nthe wavelength of the pair to its left"
    style.label(right, "dimension", title=title)
    is_narrow = encoding.width <= WRITTEN_COLUMNS
    if is_narrow:
        columns = range(encoding.width)
        labels = [f"{encoding.function(column)}\n{encoding.wavelength(column):,.4g}" for column in columns]
        right.set_xticks(columns, labels)
        right.set_xlabel("dimension (function and wavelength in positions)")
    if encoding.length <= WRITTEN_ROWS:
        left.set_yticks(range(encoding.length))
        style.write_values(left, code_image, [[str(bit) for bit in row] for row in code], size=style.SMALL)
        if is_narrow:
            style.write_values(right, image, [[f"{value:.2f}" for value in row] for row in matrix], size=8)


def _check(argument: str, values: Sequence[int], count: int, size: str) -> None:
    """Check that the values of an argument are below ``count``, which the argument ``size`` sets.

    Raises:
        NmtError: names the largest value.
    """
    if values and max(values) >= count:
        raise NmtError(
            Argument(argument),
            f" must be from 0 to {count - 1}; received {max(values)}. Give a smaller number, or a greater ",
            Argument(size),
            ".",
        )


def spread(length: int, count: int) -> list[int]:
    """Return up to ``count`` positions spread evenly over 0 .. length - 1."""
    return sorted({int(position) for position in np.linspace(0, length - 1, count).round()})
