"""Figures of the page as SVG, drawn without a script: what a reader sees before or without it.

Lengths are in pixels of the figure, which scales with the page. Colours, dashes and fonts are those of the page's
classes: no figure has a style of its own, so that all follow the light and the dark page.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

WIDTH, HEIGHT = 400, 232
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 12, 40  # margins around the plot
MARKS = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z", "M-3-3h6v6h-6z", "M0-4 3.8 3h-7.6z",
    "M0-4.2 4.2 0 0 4.2-4.2 0z", "M0 4 3.8-3h-7.6z", "M-3.6-1.2h2.4v-2.4h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4z",
    "M-4-2.2h8v4.4h-8z",
)  # fmt: skip
"""Marker of each style of the page, around the origin; a further series repeats the first style."""
MOST_MARKS = 60  # of a line; more would hide it
CELL = 22  # side of a cell of a heat map
LEVELS = 24  # of opacity in a heat map: one path for each keeps it small
CHARACTER = 6.6  # estimated width of a character of a label
SHORTEST_LABEL = 20.0
SINE = 0.87  # of 60 degrees, by which the labels of columns lean


class Line(NamedTuple):
    """A series of a chart."""

    label: str
    style: int
    """Number of its colour, dash and marker."""
    points: Sequence[tuple[float, float | None]]
    thin: bool = False
    """Whether it has no markers."""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return at most about ``count`` round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 times 10^n."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round((first + index) * step, 12) for index in range(int((high - low) / step + 1e-9) + 2)
            if (first + index) * step <= high + step * 1e-6]  # fmt: skip


def short(value: float) -> str:
    """Return a number as a short label: 1,500 as 1.5k, 0.00125 as 0.00125."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}" if value == 0 or abs(value) >= 1e-4 else f"{value:.2g}"


def line_chart(lines: Sequence[Line], x_label: str, label: str, names: Sequence[str] = ()) -> Markup:
    """Return a chart of lines.

    Args:
        lines: series; points without value are left out.
        x_label: name of the horizontal axis.
        label: what the chart shows, for readers who hear it.
        names: names of the positions 0, 1, 2 ...; none for numbers.
    """
    values = [(x, y) for line in lines for x, y in line.points if y is not None]
    if not values:
        return Markup("")
    (x_low, x_high), (y_low, y_high) = _range([x for x, _ in values]), _range([y for _, y in values])
    y_ticks = ticks(y_low, y_high)
    if names:
        x_low, x_high = -0.4, len(names) - 0.6
    x_ticks = [float(index) for index in range(len(names))] if names else ticks(x_low, x_high)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / (x_high - x_low)
        up = (y - y_low) / (y_high - y_low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, label)]
    for value in y_ticks:
        y = place(x_low, value)[1]
        parts.append(
            Markup('<path class="grid" d="M{} {:.1f}H{}"/><text class="tick end" x="{}" y="{:.1f}">{}</text>').format(
                LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, short(value)
            )
        )
    for value in x_ticks:
        text = names[int(value)] if names else short(value)
        x = place(value, y_low)[0]
        parts.append(
            Markup('<text class="tick middle" x="{:.1f}" y="{}">{}</text>').format(x, HEIGHT - BOTTOM + 17, text)
        )
    parts.append(
        Markup('<text class="tick middle" x="{}" y="{}">{}</text>').format(
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, x_label
        )
    )
    parts += [_path(line, place) for line in lines]
    return Markup("").join([*parts, Markup("</svg>")])


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest value with a margin."""
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0 if 0 <= low < 0.15 * high else low - margin), high + margin


def _path(line: Line, place: Callable[[float, float], tuple[float, float]]) -> Markup:
    style = line.style % len(MARKS)
    places = [place(x, y) if y is not None else None for x, y in line.points]
    commands, pen = [], "M"
    for point in places:
        if point is None:
            pen = "M"
            continue
        commands.append(f"{pen}{point[0]:.1f} {point[1]:.1f}")
        pen = "L"
    kind = " thin" if line.thin else ""
    drawn = Markup('<path class="line s{}{}" d="{}"/>').format(style, kind, "".join(commands))
    if line.thin or len(line.points) > MOST_MARKS:
        return drawn
    marks = [
        Markup('<path class="mark s{}" transform="translate({:.1f} {:.1f})" d="{}"/>').format(
            style, *point, MARKS[style]
        )
        for point in places
        if point is not None
    ]
    return Markup("").join([drawn, *marks])


def heat_map(weights: np.ndarray, source: Sequence[str], target: Sequence[str], label: str) -> Markup:
    """Return a map of attention: a cell for each weight, the more opaque the larger.

    Args:
        weights: float [T, S], 0 to 1.
        source: S labels of the columns.
        target: T labels of the rows.
        label: what the map shows, for readers who hear it.
    """
    left, longest = _longest(target), _longest(source)
    top = math.ceil(SINE * longest)
    width, height = left + CELL * len(source) + longest / 2, top + CELL * len(target) + 2
    parts = [
        Markup(
            '<svg class="map" width="{:.0f}" height="{:.0f}" viewBox="0 0 {:.0f} {:.0f}" data-left="{:.0f}" '
            'data-top="{:.0f}" role="img" aria-label="{}">'
        ).format(width, height, width, height, left, top, label)
    ]
    for index, token in enumerate(source):
        x, y = left + CELL * (index + 0.62), top - 7
        parts.append(
            Markup('<text class="token" transform="translate({:.1f} {:.1f}) rotate(-60)">{}</text>').format(x, y, token)
        )
    for index, token in enumerate(target):
        parts.append(
            Markup('<text class="token end" x="{:.0f}" y="{:.1f}">{}</text>').format(
                left - 7, top + CELL * (index + 0.5) + 4, token
            )
        )
    parts.append(
        Markup('<rect class="field" x="{:.0f}" y="{:.0f}" width="{}" height="{}"/><g class="cells">').format(
            left, top, CELL * len(source), CELL * len(target)
        )
    )
    levels = np.rint(weights * LEVELS).astype(int)
    for level in range(1, LEVELS + 1):
        cells = [
            f"M{left + CELL * column + 1:.0f} {top + CELL * row + 1:.0f}h{CELL - 2}v{CELL - 2}h-{CELL - 2}z"
            for row, column in np.argwhere(levels == level).tolist()
        ]
        if cells:
            parts.append(Markup('<path fill-opacity="{:.2f}" d="{}"/>').format(level / LEVELS, "".join(cells)))
    return Markup("").join([*parts, Markup("</g></svg>")])


def _longest(labels: Sequence[str]) -> int:
    """Return the estimated length of the longest label with its gap, a whole number."""
    return math.ceil(max([len(label) * CHARACTER for label in labels] + [SHORTEST_LABEL]) + 14)
