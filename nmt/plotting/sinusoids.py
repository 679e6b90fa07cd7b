"""Sinusoidal position encodings: as a matrix, by position, by column, beside binary code, and their similarity.

Shapes: L positions, D width of an encoding. The formula is that of Vaswani et al. 2017, section 3.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.models.layers.positions import angle_rates, sinusoidal_encoding
from nmt.plotting import style

FORMULA = "sinusoids of Vaswani et al. 2017, section 3.5"
MAX_BASE = 1e12
MAX_VALUES = 2**24  # 64 MB in float32; matplotlib needs several times as much to draw them
MAX_SIMILAR = 4_096  # positions whose similarities are MAX_VALUES values
LEAST_RANGE = 0.1  # of cosines in the image, also where all of them are close to 1
MOST_POINTS = 128  # of a curve, with space between them
WRITTEN_ROWS, WRITTEN_COLUMNS = 32, 10  # of a matrix whose cells are large enough for their values


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
        length, width, base = self.length, self.width, self.base
        for wrong, message in (
            (width % 2, f"--width must be even; received {width}. Each sine of the encoding has its cosine. Give "
             f"--width {width + 1}."),
            (not 1 < base <= MAX_BASE, f"--base must be greater than 1 and at most {MAX_BASE:,.0f}; received {base:g}. "
             "The paper has 10000. Give another base."),  # refuses nan too
            (length * width > MAX_VALUES, f"--length {length} times --width {width} is {length * width:,} values; a "
             f"figure has at most {MAX_VALUES:,}. Give a smaller length or width."),
        ):  # fmt: skip
            if wrong:
                raise NmtError(message)

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


def draw_matrix(figure: Figure, encoding: Encoding) -> None:
    """Draw the encoding of each position as a row of an image."""
    style.add_title(figure, "Position encoding", encoding.details)
    axes = figure.add_subplot()
    style.label(axes, "dimension (even: sine, odd: cosine; wavelengths rise to the right)", "position k")
    style.add_bar(figure, style.show_matrix(axes, encoding.matrix(), (-1, 1)), axes, "value")


def draw_similarity(figure: Figure, encoding: Encoding, positions: Sequence[int]) -> None:
    """Draw the cosine of any two positions as an image, and that of given positions to all as curves.

    The encodings of all positions have the same length, sqrt(D/2): their dot product is the cosine times D/2.

    Raises:
        NmtError: for a position beyond the last, and for more positions than a figure shows.
    """
    _check("--position", positions, encoding.length, "--length")
    if encoding.length > MAX_SIMILAR:
        raise NmtError(
            f"--length must be at most {MAX_SIMILAR} where positions are compared with each other; received "
            f"{encoding.length}. Give a smaller length."
        )
    similarity = cosines(encoding.matrix())
    low = float(min(1 - LEAST_RANGE, similarity.min()))
    figure.set_size_inches(10, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    style.add_bar(figure, style.show_matrix(left, similarity, (low, 1), style.SIMILARITIES), left, "cosine")
    style.label(left, "position", "position")
    for index, position in enumerate(positions):
        look = {**style.curve(index), "markevery": [position], "markersize": 8, "clip_on": False}
        right.plot(range(encoding.length), similarity[position], **look)
    style.style_curves(right, "position", "cosine", f"dot product = cosine x {encoding.width // 2:,}")
    style.count(right.xaxis, style.FEW_TICKS)
    style.add_legend(figure, right.get_lines(), [f"position {position:,}" for position in positions])
    style.add_title(figure, "Similarity of positions: cosine of their encodings", encoding.details)


def draw_sinusoids(figure: Figure, width: int, base: float, positions: Sequence[int]) -> None:
    """Draw sin(k / base^(2i/D)) over i = 0 .. D/2 - 1, with width D, a panel for each position k."""
    rates = angle_rates(Encoding(1, width, base).width, base)
    panels = _panels(figure, len(positions), "i, the number of the sine-cosine pair of dimensions")
    details = f"width d = {width:,} · base n = {base:,.12g} · {FORMULA}"
    style.add_title(figure, "A sinusoid for each position k: sin(k / n^(2i/d))", details)
    for axes, position in zip(panels, positions, strict=True):
        points = "." if len(rates) <= MOST_POINTS else ""
        axes.plot(
            range(len(rates)), np.sin(position * rates), color=style.BLUE, linewidth=1.6, marker=points, markersize=5
        )
        axes.set_ylabel(f"k = {position:,}", rotation=0, ha="right", va="center")


def draw_columns(figure: Figure, encoding: Encoding, columns: Sequence[int], positions: Sequence[int]) -> None:
    """Draw columns of the encoding over the positions, a panel for each, with the values of given positions marked.

    Raises:
        NmtError: for a column or a position that the encoding does not have.
    """
    _check("--column", columns, encoding.width, "--width")
    _check("--position", positions, encoding.length, "--length")
    matrix, few = encoding.matrix(), encoding.length <= MOST_POINTS
    panels = _panels(figure, len(columns), "position k")
    for axes, column in zip(panels, columns, strict=True):
        if few:  # the sinusoid between positions, as long as its waves can be seen
            between = np.linspace(0, encoding.length - 1, 16 * encoding.length)
            wave, turn = np.cos if column % 2 else np.sin, 2 * np.pi / encoding.wavelength(column)
            axes.plot(between, wave(between * turn), color=style.BLUE, linewidth=0.9, alpha=0.7)
        axes.plot(
            range(encoding.length), matrix[:, column], color=style.BLUE, marker="." if few else "",
            linestyle="" if few else "-", linewidth=1.4, markersize=5, label="_values",
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
    """Return up to ``count`` columns from the first on, in steps that show wavelengths of every size."""
    return sorted({min(width - 1, int(width * share) // 2 * 2) for share in np.linspace(0, 0.75, count) ** 1.5})


def _panels(figure: Figure, panels: int, x_label: str) -> list[Axes]:
    """Return N panels one below the other over whole numbers, with values from -1 to 1."""
    figure.set_figheight(1.2 + 1.35 * panels)
    found = list(figure.subplots(panels, 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes in found:
        style.style_curves(axes, x_label)
        axes.set(ylim=(-1.15, 1.15), yticks=[-1, 0, 1])
        axes.label_outer()
    style.count(found[0].xaxis, style.FEW_TICKS)
    return found


def draw_binary_code(figure: Figure, encoding: Encoding) -> None:
    """Draw the bits of each position at the left, the lowest bit first, and its encoding at the right."""
    bits, matrix = max(1, (encoding.length - 1).bit_length()), encoding.matrix()
    code = np.arange(encoding.length)[:, None] >> np.arange(bits) & 1
    figure.set_size_inches(10, float(np.clip(1.7 + 0.25 * encoding.length, 4.5, 10)))
    style.add_title(figure, "Binary code of positions beside their sinusoids", encoding.details)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.6])
    shown, encoded = style.show_matrix(left, code, (0, 1)), style.show_matrix(right, matrix, (-1, 1))
    style.add_bar(figure, encoded, right, "value")
    style.label(left, "bit (its value)", "position", "binary: each bit flips half as often\nas the bit to its left")
    left.set_xticks(range(bits), [f"{2**bit:,}" for bit in range(bits)], rotation=0 if bits <= 8 else 90)
    ratio = encoding.base ** (2 / encoding.width)
    title = f"sinusoids: the wavelength of each pair of columns\nis {ratio:.3g} times that of the pair to its left"
    style.label(right, "dimension", title=title)
    are_few = encoding.width <= WRITTEN_COLUMNS
    if are_few:
        columns = range(encoding.width)
        right.set_xticks(columns, [f"{encoding.function(one)}\n{encoding.wavelength(one):,.4g}" for one in columns])
        right.set_xlabel("dimension (function and wavelength in positions)")
    if encoding.length <= WRITTEN_ROWS:
        left.set_yticks(range(encoding.length))
        style.write_values(left, shown, [[str(bit) for bit in row] for row in code], size=style.SMALL)
        if are_few:
            style.write_values(right, encoded, [[f"{value:.2f}" for value in row] for row in matrix], size=8)


def _check(option: str, values: Sequence[int], count: int, size: str) -> None:
    """Refuse values of an option that are ``count`` or more, with NmtError; the option ``size`` sets the count."""
    if values and max(values) >= count:
        raise NmtError(
            f"{option} must be from 0 to {count - 1}; received {max(values)}. Give a smaller one, or a greater {size}."
        )


def spread(length: int, count: int) -> list[int]:
    """Return up to ``count`` positions spread evenly over 0 .. length - 1."""
    return sorted({int(position) for position in np.linspace(0, length - 1, count).round()})
