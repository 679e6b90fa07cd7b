"""Sinusoidal position encodings: as a matrix, by position, by column, beside binary code, and their similarity."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.plotting.lesson.panels import (
    FORMULA,
    MAX_SIMILAR,
    SIMILARITIES,
    Encoding,
    cosines,
    number,
    set_integer_ticks,
    show_matrix,
    write_values,
)
from nmt.plotting.style import (
    BLUE,
    MARKERS,
    SMALL,
    TEXT,
    VERMILLION,
    add_bar,
    add_legend,
    add_title,
    curve,
    style_curves,
)

LEAST_RANGE = 0.1  # of cosines in the image, also where all of them are close to 1
PANEL_HEIGHT, PANELS_HEAD = 1.35, 1.2  # inches
MOST_PANELS = 16
MOST_POINTS = 128  # of a curve, with space between them
WRITTEN_ROWS, WRITTEN_COLUMNS = 32, 16  # of a matrix whose cells are large enough for their values
ROW, HEAD = 0.25, 1.7  # inches


def draw_matrix(figure: Figure, encoding: Encoding) -> None:
    """Draw the encoding of each position as a row of an image."""
    add_title(figure, "Position encoding", f"{encoding.parameters} · {FORMULA}")
    axes = figure.add_subplot(
        xlabel="dimension (even: sine, odd: cosine; wavelengths rise to the right)", ylabel="position k"
    )
    image = show_matrix(axes, encoding.matrix(), (-1, 1))
    add_bar(figure, image, axes, "value")


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
    image = show_matrix(left, similarity, (low, 1), SIMILARITIES)
    left.set_xlabel("position")
    left.set_ylabel("position")
    add_bar(figure, image, left, "cosine")
    for index, position in enumerate(positions):
        style = {**curve(index), "markevery": [position], "markersize": 8, "clip_on": False}
        right.plot(range(encoding.length), similarity[position], **style)
    right.set_xlabel("position")
    right.set_ylabel("cosine")
    right.set_title(f"dot product = cosine x {encoding.width // 2:,}", loc="left", fontsize=TEXT)
    set_integer_ticks(right.xaxis, encoding.length)
    style_curves(right)
    add_legend(figure, right.get_lines(), [f"position {position:,}" for position in positions])
    add_title(figure, "Similarity of positions: cosine of their encodings", f"{encoding.parameters} · {FORMULA}")


def draw_sinusoids(figure: Figure, width: int, base: float, positions: Sequence[int]) -> None:
    """Draw sin(k / base^(2i/D)) over i = 0 .. D/2 - 1, with width D, a panel for each position k."""
    rates = Encoding(1, width, base).rates()
    panels = _panels(figure, len(positions))
    add_title(
        figure, "A sinusoid for each position k: sin(k / n^(2i/d))",
        f"width d = {width:,} · base n = {number(base)} · {FORMULA}",
    )  # fmt: skip
    for axes, position in zip(panels, positions, strict=True):
        points = "." if len(rates) <= MOST_POINTS else ""
        axes.plot(range(len(rates)), np.sin(position * rates), color=BLUE, linewidth=1.6, marker=points, markersize=5)
        axes.set_ylabel(f"k = {position:,}", rotation=0, ha="right", va="center", fontsize=TEXT)
        axes.set_xlabel("i, the number of the sine-cosine pair of dimensions")
        axes.label_outer()
    set_integer_ticks(panels[0].xaxis, len(rates))


def draw_columns(figure: Figure, encoding: Encoding, columns: Sequence[int], positions: Sequence[int]) -> None:
    """Draw columns of the encoding over the positions, a panel for each, with the values of given positions marked.

    Raises:
        NmtError: for a column or a position that the encoding does not have.
    """
    _check("--column", columns, encoding.width, "--width")
    _check("--position", positions, encoding.length, "--length")
    matrix, rates = encoding.matrix(), encoding.rates()
    # Between positions the sinusoids are drawn as long as their waves can be seen.
    between = np.linspace(0, encoding.length - 1, 16 * encoding.length) if encoding.length <= MOST_POINTS else None
    panels = _panels(figure, len(columns))
    for axes, column in zip(panels, columns, strict=True):
        if between is not None:
            wave = np.cos if column % 2 else np.sin
            axes.plot(between, wave(between * rates[column // 2]), color=BLUE, linewidth=0.9, alpha=0.7)
        values, points = matrix[:, column], between is not None
        axes.plot(
            range(encoding.length), values, color=BLUE, marker="." if points else "", linestyle="" if points else "-",
            linewidth=1.4, markersize=5, label="_values",
        )  # fmt: skip
        for mark, position in enumerate(positions):
            axes.axvline(position, color="0.45", linewidth=0.9, linestyle=(0, (4, 3)))
            axes.plot(
                [position], [matrix[position, column]], MARKERS[mark % len(MARKERS)], color=VERMILLION, markersize=8,
                markeredgecolor="white", clip_on=False, zorder=3, label=f"position {position:,}",
            )  # fmt: skip
        wavelength = encoding.wavelength(column)
        axes.set_title(
            f"dimension {column:,}: {encoding.function(column)}, wavelength "
            f"{wavelength:,.{1 if wavelength < 1000 else 0}f} positions",
            loc="left", fontsize=SMALL,
        )  # fmt: skip
        axes.set_xlabel("position k")
        axes.label_outer()
    set_integer_ticks(panels[0].xaxis, encoding.length)
    add_legend(figure, *panels[0].get_legend_handles_labels())
    add_title(figure, "Columns of the position encoding", f"{encoding.parameters} · {FORMULA}")


def column_choice(width: int, count: int) -> list[int]:
    """Return up to ``count`` columns from the first on, in steps that show wavelengths of every size."""
    return sorted({min(width - 1, int(width * share) // 2 * 2) for share in np.linspace(0, 0.75, count) ** 1.5})


def _panels(figure: Figure, count: int) -> list[Axes]:
    """Return N panels one below the other, with values from -1 to 1, and give the figure its height.

    Raises:
        NmtError: for more panels than a figure has room for.
    """
    if count > MOST_PANELS:
        raise NmtError(f"A figure has room for {MOST_PANELS} curves; received {count}. Give fewer.")
    figure.set_figheight(PANELS_HEAD + PANEL_HEIGHT * count)
    panels = list(figure.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes in panels:
        axes.set_ylim(-1.15, 1.15)
        axes.set_yticks([-1, 0, 1])
        style_curves(axes)
    return panels


def draw_binary_code(figure: Figure, encoding: Encoding) -> None:
    """Draw the bits of each position at the left, the lowest bit first, and its encoding at the right."""
    count, matrix = max(1, (encoding.length - 1).bit_length()), encoding.matrix()
    code = np.arange(encoding.length)[:, None] >> np.arange(count) & 1
    figure.set_size_inches(10, float(np.clip(HEAD + ROW * encoding.length, 4.5, 10)))
    add_title(figure, "Binary code of positions beside their sinusoids", f"{encoding.parameters} · {FORMULA}")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.6])
    image = show_matrix(left, code, (0, 1))
    left.set_title("binary: each bit flips half as often\nas the bit to its left", loc="left", fontsize=TEXT)
    values = [f"{2**bit:,}" for bit in range(count)]
    left.set_xticks(range(count), values, fontsize=SMALL, rotation=0 if count <= 8 else 90)
    left.set_xlabel("bit (its value)")
    left.set_ylabel("position")
    encoded = show_matrix(right, matrix, (-1, 1))
    ratio = encoding.base ** (2 / encoding.width)
    right.set_title(
        f"sinusoids: the wavelength of each pair of columns\nis {ratio:.3g} times that of the pair to its left",
        loc="left", fontsize=TEXT,
    )  # fmt: skip
    add_bar(figure, encoded, right, "value")
    if encoding.width <= WRITTEN_COLUMNS:
        turned = 0 if encoding.width <= 10 else 90
        names = [
            f"{encoding.function(column)}{' ' if turned else chr(10)}{encoding.wavelength(column):,.4g}"
            for column in range(encoding.width)
        ]
        right.set_xticks(range(encoding.width), names, fontsize=SMALL, rotation=turned)
        right.set_xlabel("dimension (function and wavelength in positions)")
    else:
        right.set_xlabel("dimension")
    if encoding.length <= WRITTEN_ROWS:
        left.set_yticks(range(encoding.length))
        write_values(left, image, [[str(bit) for bit in row] for row in code], size=SMALL)
        if encoding.width <= WRITTEN_COLUMNS:
            write_values(right, encoded, [[f"{value:.2f}" for value in row] for row in matrix], size=8)


def _check(option: str, values: Sequence[int], count: int, size: str) -> None:
    """Refuse values of an option that are not from 0 to ``count`` - 1.

    Raises:
        NmtError: names the first of them, and the option ``size`` that sets the count.
    """
    for value in values:
        if value >= count:
            raise NmtError(
                f"{option} must be from 0 to {count - 1}; received {value}. Give a smaller one, or a greater {size}."
            )


def spread(length: int, count: int) -> list[int]:
    """Return up to ``count`` positions spread evenly over 0 .. length - 1."""
    return sorted({int(position) for position in np.linspace(0, length - 1, count).round()})
