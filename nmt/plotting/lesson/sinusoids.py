"""Sinusoids of the position encoding: over the dimensions for a position, over the positions for a column."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.plotting.lesson.encoding import Encoding, number
from nmt.plotting.lesson.panels import FORMULA, set_integer_ticks
from nmt.plotting.style import BLUE, MARKERS, SMALL, TEXT, VERMILLION, add_legend, add_title, style_curves

PANEL_HEIGHT, HEAD = 1.35, 1.2  # inches
MOST_PANELS = 16
MOST_POINTS = 128  # of a curve, with space between them


def draw_sinusoids(figure: Figure, width: int, base: float, positions: Sequence[int]) -> None:
    """Draw sin(k / base^(2i/D)) over i = 0 .. D/2 - 1, a panel for each position k.

    Args:
        figure: empty figure.
        width: D.
        base: base of the encoding.
        positions: positions k.
    """
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
    """Draw columns of the encoding over the positions, a panel for each, with the values of marked positions.

    Args:
        figure: empty figure.
        encoding: length, width and base.
        columns: dimensions.
        positions: marked positions.

    Raises:
        NmtError: for a column that the encoding does not have.
    """
    for column in columns:
        if column >= encoding.width:
            raise NmtError(
                f"--column {column} is not among the {encoding.width} dimensions from 0 to {encoding.width - 1}. Give "
                "a smaller one, or a greater --width."
            )
    matrix, rates = encoding.matrix(), encoding.rates()
    # Between positions the sinusoids are drawn as long as their waves can be seen.
    between = np.linspace(0, encoding.length - 1, 16 * encoding.length) if encoding.length <= MOST_POINTS else None
    panels = _panels(figure, len(columns))
    add_title(figure, "Columns of the position encoding", f"{encoding.parameters} · {FORMULA}")
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
        wavelength = _positions(encoding.wavelength(column))
        axes.set_title(
            f"dimension {column:,}: {encoding.function(column)}, wavelength {wavelength}", loc="left", fontsize=SMALL
        )
        axes.set_xlabel("position k")
        axes.label_outer()
    set_integer_ticks(panels[0].xaxis, encoding.length)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        add_legend(figure, handles, labels)


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
    figure.set_figheight(HEAD + PANEL_HEIGHT * count)
    panels = list(figure.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes in panels:
        axes.set_ylim(-1.15, 1.15)
        axes.set_yticks([-1, 0, 1])
        style_curves(axes)
    return panels


def _positions(wavelength: float) -> str:
    return f"{wavelength:,.1f} positions" if wavelength < 1000 else f"{wavelength:,.0f} positions"
