"""Style of all figures: colours, curves, titles, labels at the ends of curves, characters.

Colours are those of Okabe and Ito 2008, for colour-blind readers. Curves also differ by marker and by line, so that a
figure is readable in grey. Text that a user named, such as a run, is never read as a formula.
"""

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from matplotlib.transforms import ScaledTranslation

from nmt.storage.json_file import read_json

if TYPE_CHECKING:
    from nmt.runs.directory import Run  # at run time, figures without a run do not wait for its imports

# --- colours and curves

BLUE, VERMILLION, GREEN, BLACK, PURPLE, SKY, ORANGE = (
    "#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00",
)  # fmt: skip
COLORS = (BLUE, VERMILLION, GREEN, BLACK, PURPLE, SKY, ORANGE)  # without yellow, which is faint on white
# The numbers of markers and lines have no common factor, so all pairs of them occur.
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">")
LINES = ("-", "--", ":", "-.")
DIFFERENT_CURVES = len(MARKERS) * len(LINES)
INK, FAINT_INK = "#222222", "#555555"
MARK = "#555555"
"""Colour of what points at a curve: lines at an epoch, rings around a point."""
MANY = 60  # points of a curve, which is drawn finer then
MOST_MARKERS = 24  # of a curve; more would hide its line

# --- sizes. The README shows 8 inches as 960 pixels; in a paper's column of 6 inches, 9 points are 7 points.

WIDTH, HEIGHT, DPI = 8.0, 5.0, 120  # inches, inches, pixels to the inch
HEADING, TEXT, SMALL = 13.0, 10.0, 9.0  # points
POINTS = 72  # to the inch
MARGIN = 0.12  # inches around the title
MOST_TITLE_LINES, MOST_CHARACTERS = 2, 300  # lines; characters that a line of the narrowest can have
HANDLE, LEGEND_ROW = 3.5 * SMALL, 1.75 * SMALL  # points: the line before a name in a legend, the height of a row
LEGEND: dict[str, Any] = {
    "frameon": False, "fontsize": SMALL, "handlelength": 3.5, "labelcolor": INK, "labelspacing": 0.65,
}  # fmt: skip
USUAL_ROWS = 3  # of a legend
LONGEST_NAME = 34  # characters of a name beside the axes

FONT = "DejaVu Sans"  # comes with matplotlib
EAST_ASIAN_FONTS = {
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Hiragino Sans", "PingFang SC",
    "Arial Unicode MS",
}  # fmt: skip


def curve(number: int, points: int = 1) -> dict[str, Any]:
    """Return the keywords of ``Axes.plot`` for curve ``number`` from 0, with K ``points``.

    Up to 36 curves differ by marker and line. A curve of many points has markers at every n-th of them, counted from
    the last, so that there are at most ``MOST_MARKERS``.
    """
    every, marker = max(1, -(-points // MOST_MARKERS)), MARKERS[number % len(MARKERS)]
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": marker,
        "linestyle": LINES[number % len(LINES)],
        "linewidth": 1.8 if points <= MANY else 1.2,
        "markersize": (6.5 if points <= MANY else 5.0) * (0.85 if marker == "D" else 1),  # diamonds look larger
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "markevery": (max(0, points - 1) % every, every),
    }


TRAINING, VALIDATION = 1, 0
"""Numbers of the curves of both splits: validation is a whole blue line, training a broken vermillion line."""


def readable(color: str) -> str:
    """Return a colour, darkened until text in it has a contrast of 4.5 to white (WCAG 2.2, 1.4.3)."""
    rgb = np.array(to_rgb(color))
    while 1.05 / (luminance(rgb) + 0.05) < 4.5:
        rgb *= 0.95
    return "#" + "".join(f"{round(255 * value):02x}" for value in rgb)


def luminance(rgb: Sequence[float] | np.ndarray) -> float:
    """Return the relative luminance of a colour, from 0 for black to 1 for white (WCAG 2.2)."""
    values = np.asarray(rgb, float)[:3]
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


# --- axes


def add_axes(figure: Figure, x_label: str, y_label: str) -> Axes:
    """Add axes with labels, a faint grid, and no frame above or to the right."""
    axes = figure.add_subplot()
    axes.set_xlabel(x_label, fontsize=TEXT, color=INK)
    axes.set_ylabel(y_label, fontsize=TEXT, color=INK)
    style_curves(axes)
    return axes


def count(axis: Axis, most: int = 10) -> None:
    """Give an axis that counts, such as epochs, whole numbers with commas, at most ``most`` + 1 of them."""
    axis.set_major_locator(MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def style_curves(axes: Axes) -> None:
    """Give axes a faint grid, and remove the frame above and to the right."""
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL, labelcolor=INK, color=FAINT_INK)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)


# --- titles


def run_title(run: "Run") -> str:
    """Return what a title says of a run: its name, its dataset, and the date of its last training."""
    dataset = dataset_of(run)
    return " · ".join([f"run {run.name}", *([f"data {dataset}"] if dataset else []), last_training(run)])


def last_training(run: "Run") -> str:
    """Return the date at which a run last wrote metrics, such as 2026-01-31; without metrics, its configuration."""
    path = run.metrics_path if run.metrics_path.exists() else run.config_path
    return datetime.fromtimestamp(path.stat().st_mtime).date().isoformat()


def dataset_of(run: "Run") -> str | None:
    """Return the name of the dataset that a run was trained on; None if the run does not say.

    Raises:
        DataError: if its copy of the dataset's manifest is damaged.
    """
    if not run.dataset_path.exists():
        return run.config().data.dataset
    match read_json(run.dataset_path, "A dataset's manifest"):
        case {"settings": {"dataset": str(name)}}:
            return name
    return run.config().data.dataset


def add_title(figure: Figure, heading: str, details: str) -> None:
    """Write a title at the top left: what the figure shows, and below it run, data and date.

    A line that is wider than the figure wraps; what two lines do not hold becomes an ellipsis. Axes that the layout of
    the figure places keep below the title.

    Args:
        figure: figure of its final size.
        heading: content of the figure in some words.
        details: where its numbers come from, such as ``run_title(run)``.
    """
    width, height = figure.get_size_inches()
    top = MARGIN
    for text, size, weight, color in ((heading, HEADING, "bold", INK), (details, SMALL, "normal", FAINT_INK)):
        above = ScaledTranslation(MARGIN, -top, figure.dpi_scale_trans)
        written = figure.text(
            0, 1, text, transform=figure.transFigure + above, fontsize=size, fontweight=weight, color=color,
            horizontalalignment="left", verticalalignment="top", linespacing=1.25,
        )  # fmt: skip
        as_written(written)
        written.set_in_layout(False)
        with missing_characters_as_boxes():
            fit(written, (width - 2 * MARGIN) * figure.dpi)
            top += written.get_window_extent().height / figure.dpi + 0.06
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 0, 1, 1 - (top + 0.04) / height))


def fit(text: Text, width: float, lines: int = MOST_TITLE_LINES) -> None:
    """Wrap a text to a width in pixels, and shorten it with an ellipsis to a number of lines."""
    whole = shortened(text.get_text(), lines * MOST_CHARACTERS)
    low, high = 0, len(whole)  # columns: the greatest number whose lines are known to fit; the greatest to try
    while low < high:
        columns = (low + high + 1) // 2 if low else high  # most texts fit as they are
        text.set_text(_wrapped(whole, columns, lines))
        if text.get_window_extent().width <= width:
            low = columns
        else:
            low, high = max(1, low), columns - 1
    text.set_text(_wrapped(whole, max(1, low), lines))


def _wrapped(text: str, columns: int, lines: int) -> str:
    """Return a text in at most ``lines`` lines of at most ``columns`` characters."""
    kept = textwrap.wrap(text, columns, break_on_hyphens=False)
    if len(kept) > lines:
        kept = [*kept[: lines - 1], shortened(" ".join(kept[lines - 1 :]), columns)]
    return "\n".join(kept)


def shortened(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters: the middle of a longer text becomes an ellipsis.

    The ends of names tell them apart, as in ``checkpoints/base`` and ``checkpoints/wide``.
    """
    if len(text) <= longest:
        return text
    kept = max(0, longest - 1)
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


# --- names of curves


def name_curves(axes: Axes, lines: Sequence[Line2D]) -> None:
    """Write the label of each curve at its right end, in its colour; labels that would overlap move apart.

    Call it last: it lays the figure out.
    """
    figure = axes.get_figure(root=True)
    labels: list[Annotation] = []
    for line in lines:
        ends = np.column_stack(line.get_data())
        ends = ends[np.isfinite(ends.astype(float)).all(axis=1)]
        if len(ends):
            labels.append(
                axes.annotate(
                    shortened(str(line.get_label()), LONGEST_NAME),
                    tuple(ends[-1]),
                    xytext=(9, 0),
                    textcoords="offset points",
                    color=readable(str(line.get_color())),
                    fontsize=SMALL,
                    verticalalignment="center",
                    annotation_clip=False,
                    parse_math=False,
                )
            )
    if figure is None or not labels:
        return
    with missing_characters_as_boxes():
        figure.draw_without_rendering()
        middle_of = {label: (box.y0 + box.y1) / 2 for label in labels for box in [label.get_window_extent()]}
        labels.sort(key=middle_of.__getitem__)  # a label of two lines begins lower
        boxes = [label.get_window_extent() for label in labels]
    inside = axes.get_window_extent()
    middles = _apart([(box.y0 + box.y1) / 2 for box in boxes], max(box.height for box in boxes) + 2)
    beyond = max(0.0, middles[-1] - inside.y1) + min(0.0, middles[0] - boxes[0].height / 2 - inside.y0)
    middles = [middle - beyond for middle in middles]
    for label, box, middle in zip(labels, boxes, middles, strict=True):
        label.set_position((9, (middle - (box.y0 + box.y1) / 2) * POINTS / figure.dpi))


def _apart(places: Sequence[float], distance: float) -> list[float]:
    """Return rising places, moved as little as need be until neighbours are ``distance`` apart."""
    groups: list[list[float]] = []  # each with the places of its members, which end up side by side
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _start(groups[-2], distance) + len(groups[-2]) * distance > _start(
            groups[-1], distance
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_start(group, distance) + index * distance for group in groups for index in range(len(group))]


def _start(group: Sequence[float], distance: float) -> float:
    return sum(group) / len(group) - distance * (len(group) - 1) / 2


def add_legend(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> Legend:
    """Write a legend below the axes, with as many columns as its names allow; a name wider than the figure is cut."""
    shown, columns = _legend_columns(figure, names)
    legend = figure.legend(handles, shown, loc="outside lower left", ncols=columns, **LEGEND)
    as_written(*legend.get_texts())
    return legend


def add_legend_beside(axes: Axes, handles: Sequence[Artist], names: Sequence[str]) -> Legend:
    """Write a legend to the right of axes, in the order of the names."""
    shown = [shortened(name, LONGEST_NAME) for name in names]
    legend = axes.legend(handles, shown, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, **LEGEND)
    as_written(*legend.get_texts())
    return legend


def make_room_for_legend(figure: Figure, names: Sequence[str]) -> None:
    """Make an empty figure higher, by the rows of a legend beyond ``USUAL_ROWS``. Call it before ``add_title``."""
    shown, columns = _legend_columns(figure, names)
    rows = -(-len(shown) // columns)
    figure.set_figheight(figure.get_figheight() + max(0, rows - USUAL_ROWS) * LEGEND_ROW / POINTS)


def _legend_columns(figure: Figure, names: Sequence[str]) -> tuple[list[str], int]:
    """Return the names of a legend, cut to the width of the figure, and the number of its columns."""
    pixels = figure.dpi / POINTS
    around = (HANDLE + 2.8 * SMALL) * pixels  # the line, the gap after it, the gap between columns
    room = figure.bbox.width - 2 * MARGIN * figure.dpi
    text = figure.text(0, 0, "", fontsize=SMALL)
    as_written(text)
    shown, widest = list[str](), 0.0
    with missing_characters_as_boxes():
        for name in names:
            text.set_text(name)
            fit(text, room - around, lines=1)
            shown.append(text.get_text())
            widest = max(widest, text.get_window_extent().width)
    text.remove()
    return shown, max(1, min(len(shown), int(room // (widest + around))))


# --- characters


def as_written(*texts: Text) -> None:
    """Show texts as a user wrote them: "$" begins no formula, and East Asian characters have a font if there is one."""
    for text in texts:
        text.set_parse_math(False)
        text.set_fontfamily(fonts())


def fonts() -> list[str]:
    """Return the fonts of text that a user wrote, in order."""
    return [FONT, *sorted(EAST_ASIAN_FONTS.intersection(font_manager.get_font_names()))]


@contextmanager
def missing_characters_as_boxes() -> Iterator[None]:
    """Draw a box for a character that no font has, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield
