"""Style of all figures (colours, curves, titles, legends, colour bars, tokens as labels), and how they are saved.

The colours are from Okabe and Ito 2008, for colour-blind readers. Curves also differ by marker and by line, so that a
figure can be read in grey. Names that users chose, such as the name of a run, are never read as formulas.
"""

import math
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from matplotlib.transforms import ScaledTranslation

from nmt.errors import JOINERS, NmtError, printable
from nmt.plotting.fonts import families, missing_characters_as_boxes
from nmt.storage.json_file import read_json
from nmt.storage.outputs import OutputFile

if TYPE_CHECKING:
    from nmt.runs.directory import Run  # at run time, figures without a run do not wait for its imports

BLUE, VERMILLION, GREEN, BLACK, PURPLE, SKY, ORANGE = (
    "#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00",
)  # fmt: skip
COLORS = (BLUE, VERMILLION, GREEN, BLACK, PURPLE, SKY, ORANGE)  # without yellow, which is faint on white
# The numbers of colours, markers and lines have no common factor: 36 pairs of marker and line, 252 with colours.
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">")
LINES = ("-", "--", ":", "-.")
INK, FAINT_INK = "#222222", "#555555"
MANY = 60  # points; a curve with more is drawn thinner
MOST_MARKERS = 24  # of a curve; more would hide its line

# The README shows 8 inches as 960 pixels; in a paper's column of 6 inches, 9 points are 7 points.
WIDTH, HEIGHT, DPI = 8.0, 5.0, 120  # inches, inches, pixels to the inch
PADDING = 0.1  # inches around axes
LARGEST_SIDE = 60.0  # inches; nobody reads a larger figure
HEADING, TEXT, SMALL = 13.0, 10.0, 9.0  # points
POINTS = 72  # to the inch
MARGIN = 0.12  # inches around the title
LONGEST_TITLE, LONGEST_NAME, LONGEST_LABEL = 300, 50, 24  # characters of a line of a title, of a name, of a token
USUAL_ROWS, LEGEND_ROW = 3, 1.75 * SMALL / POINTS  # rows of a legend in a figure of usual height; height of a row

VALUES, SIMILARITIES = "cividis", "gray"  # colour maps from dark to light, which can be read in grey
DENSE = 300  # rows or columns; in a larger matrix a cell may be narrower than a pixel
FEW_TICKS = 8  # of a matrix
LIGHT = 0.47  # mean of red, green and blue; on a lighter cell, black text is easier to read than white text

PROGRAM = "nmt plot"
# Metadata in a file, by suffix. It holds no date, so that equal figures are equal files.
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": PROGRAM},
    ".svg": {"Creator": PROGRAM, "Date": None},
    ".pdf": {"Creator": PROGRAM, "CreationDate": None},
}


# --- curves and axes


def empty_figure() -> Figure:
    """Return a figure without axes, 960 by 600 pixels."""
    layout = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
    return Figure(figsize=(WIDTH, HEIGHT), layout=layout, dpi=DPI)


def curve(number: int, points: int = 1) -> dict[str, Any]:
    """Return the keywords of ``Axes.plot`` for curve ``number``, counted from 0, with K ``points``.

    Up to 36 curves differ by marker and line, up to 252 if the colour counts too. A curve of many points has a marker
    at every n-th point, counted from the last, and at most ``MOST_MARKERS`` markers.
    """
    every = max(1, -(-points // MOST_MARKERS))
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
        "linewidth": 1.8 if points <= MANY else 1.2,
        "markersize": 6.5 if points <= MANY else 5.0,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "markevery": (max(0, points - 1) % every, every),
    }


def add_axes(figure: Figure, x_label: str, y_label: str) -> Axes:
    """Return new axes for curves, with labels."""
    axes = figure.add_subplot()
    style_curves(axes, x_label, y_label)
    return axes


def style_curves(axes: Axes, x_label: str = "", y_label: str = "", title: str = "", size: float = TEXT) -> None:
    """Give axes labels, a title at the left, a faint grid, and a frame without its upper and right sides."""
    label(axes, x_label, y_label, title, size)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)
    axes.tick_params(color=FAINT_INK)


def label(axes: Axes, x_label: str = "", y_label: str = "", title: str = "", size: float = TEXT) -> None:
    """Give axes labels, and a title above them at the left. The title may contain text of a user."""
    axes.set_xlabel(x_label, fontsize=TEXT, color=INK)
    axes.set_ylabel(y_label, fontsize=TEXT, color=INK)
    show_literally(axes.set_title(title, loc="left", fontsize=size, color=INK))
    axes.tick_params(labelsize=SMALL, labelcolor=INK)


def count(axis: Axis, most: int = 10) -> None:
    """Give an axis of counts, such as epochs, at most ``most`` + 1 ticks at whole numbers, written with commas."""
    axis.set_major_locator(MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


# --- titles and legends


def run_title(run: "Run") -> str:
    """Return name, dataset and date of the last training of a run, for a title."""
    return f"run {run.name} · data {dataset_of(run)[0]} · {last_training(run)}"


def last_training(run: "Run") -> str:
    """Return the date when a run last wrote its metrics (without metrics, its configuration), such as 2026-01-31."""
    path = run.metrics_path if run.metrics_path.exists() else run.config_path
    return datetime.fromtimestamp(path.stat().st_mtime).date().isoformat()


def dataset_of(run: "Run") -> tuple[str, str]:
    """Return name and preparation time of the dataset that a run was trained on; "unknown" or "" if not recorded.

    Raises:
        DataError: if the run's copy of the dataset's manifest is damaged.
    """
    if run.dataset_path.exists():
        match read_json(run.dataset_path, "A dataset's manifest"):
            case {"settings": {"dataset": str(name)}, **manifest}:
                return name, str(manifest.get("prepared_at") or "")
    return run.config().data.dataset or "unknown", ""


def add_title(figure: Figure, heading: str, details: str) -> None:
    """Write a title at the top left: the content of the figure, and below it run, data and date.

    Lines that are wider than the figure wrap, and long names are cut. The layout places axes below the title.

    Args:
        figure: figure in its final size.
        heading: content of the figure in a few words.
        details: origin of its numbers, such as ``run_title(run)``.
    """
    top = MARGIN
    for text, size, weight, color in ((heading, HEADING, "bold", INK), (details, SMALL, "normal", FAINT_INK)):
        words = [shortened(word, LONGEST_NAME) for word in text.split(" ")]
        above = ScaledTranslation(MARGIN, -top, figure.dpi_scale_trans)
        title = figure.text(
            0, 1, shortened(" ".join(words), LONGEST_TITLE), transform=figure.transFigure + above, fontsize=size,
            fontweight=weight, color=color, verticalalignment="top", linespacing=1.25, wrap=True, in_layout=False,
        )  # fmt: skip
        show_literally(title)
        with missing_characters_as_boxes():
            top += title.get_window_extent().height / figure.dpi + 0.06
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 0, 1, 1 - (top + 0.04) / figure.get_figheight()))


def add_legend(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> Legend:
    """Return a new legend below the axes, with as many columns as its names allow.

    A long legend makes the figure higher, so call this before ``add_title``.
    """
    for columns in range(min(len(names), 6), 0, -1):
        legend = figure.legend(
            handles, names, loc="outside lower left", ncols=columns, frameon=False, fontsize=SMALL, handlelength=3.5,
            labelcolor=INK, labelspacing=0.65,
        )  # fmt: skip
        show_literally(*legend.get_texts())
        with missing_characters_as_boxes():
            if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
                break
        legend.remove()
    rows = math.ceil(len(names) / columns)
    figure.set_figheight(figure.get_figheight() + max(0, rows - USUAL_ROWS) * LEGEND_ROW)
    return legend


# --- matrices and text


def show_matrix(axes: Axes, matrix: np.ndarray, limits: tuple[float, float], colors: Any = VALUES) -> AxesImage:
    """Draw a matrix as an image that fills the axes, with row 0 at the top and integer ticks, and return the image.

    Args:
        axes: empty axes.
        matrix: float [R, C].
        limits: values of the darkest and of the lightest colour.
        colors: colour map.
    """
    rows, columns = matrix.shape
    is_dense = max(rows, columns) >= DENSE
    if is_dense:
        # Cells narrower than a pixel are averaged; otherwise waves appear that the matrix does not have. Averaging
        # applies to both axes, so a short axis first gets several copies of each cell.
        matrix = np.repeat(np.repeat(matrix, math.ceil(DENSE / rows), axis=0), math.ceil(DENSE / columns), axis=1)
    image = axes.imshow(
        matrix, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="auto" if is_dense else "nearest",
        aspect="auto", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )  # fmt: skip
    count(axes.xaxis, FEW_TICKS)
    count(axes.yaxis, FEW_TICKS)
    return image


def write_values(axes: Axes, image: AxesImage, texts: Sequence[Sequence[str]], size: float) -> None:
    """Write a text into each cell of an image, in white on dark cells and in black on light cells."""
    colors = image.to_rgba(np.asarray(image.get_array()))
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            color = "black" if colors[row, column, :3].mean() > LIGHT else "white"
            # in_layout=False saves time: the layout would measure every text, although it lies inside the axes.
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color, in_layout=False)


def add_bar(figure: Figure, colors: ScalarMappable, axes: Any, label: str, **options: Any) -> None:
    """Add the colour bar of an image beside its axes; ``options`` are keywords of ``Figure.colorbar``."""
    bar = figure.colorbar(colors, ax=axes, **{"ticks": MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10])} | options)
    bar.set_label(label, fontsize=TEXT, color=INK)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)


def shortened(text: str, longest: int) -> str:
    """Return a text cut to at most ``longest`` characters, with an ellipsis in place of its middle.

    Names usually differ at their ends, as in ``checkpoints/base`` and ``checkpoints/wide``.
    """
    if len(text) <= longest:
        return text
    start, end = longest // 2, len(text) - (longest - 1) // 2
    while start and _belongs_to_the_letter_before(text[start]):
        start -= 1
    while end < len(text) and _belongs_to_the_letter_before(text[end]):
        end += 1
    return f"{text[:start]}…{text[end:]}"


def _belongs_to_the_letter_before(character: str) -> bool:
    """Return whether a character is a combining mark, such as an accent or a vowel sign of Hindi, or a joiner."""
    return unicodedata.category(character).startswith("M") or character in JOINERS


def token_label(token: str) -> str:
    """Return a token as a label of at most ``LONGEST_LABEL`` printable characters."""
    return shortened(printable(token).replace("\n", " "), LONGEST_LABEL)


def label_rows(axes: Axes, tokens: Sequence[str], size: float = SMALL, every: int = 1) -> None:
    """Label every n-th row of a matrix with its token."""
    rows = range(0, len(tokens), every)
    axes.set_yticks(rows, [token_label(tokens[row]) for row in rows], fontsize=size)
    axes.tick_params(axis="y", length=2)
    show_literally(*axes.get_yticklabels())


def label_columns(axes: Axes, tokens: Sequence[str], size: float = SMALL, every: int = 1, turn: int = 45) -> None:
    """Label every n-th column of a matrix with its token, above the matrix and turned by ``turn`` degrees."""
    columns = range(0, len(tokens), every)
    labels = [token_label(tokens[column]) for column in columns]
    slanted: dict[str, Any] = {"rotation_mode": "anchor", "horizontalalignment": "left"} if turn == 45 else {}
    axes.set_xticks(columns, labels, fontsize=size, rotation=turn, **slanted)
    axes.tick_params(axis="x", length=2, top=True, labeltop=True, bottom=False, labelbottom=False)
    show_literally(*axes.get_xticklabels())


def show_literally(*texts: Text) -> None:
    """Show texts as the user wrote them: "$" begins no formula, and installed fonts show letters of any script."""
    for text in texts:
        text.set_parse_math(False)
        text.set_fontfamily(families(text.get_text()))


# --- files

MARKS = {
    ".png": f"Software\0{PROGRAM}",
    ".svg": f"<dc:title>{PROGRAM}</dc:title>",
    ".pdf": f"/Creator ({PROGRAM})",
}
"""How METADATA stands in a file of each format."""


def output_figure(path: Path) -> OutputFile:
    """Return the file of a figure, whose suffix names its format. It may replace an earlier figure.

    Raises:
        NmtError: for another suffix; names the known ones.
        ConflictError: if the file exists and is not a figure of nmt.
    """
    if path.suffix.lower() not in METADATA:
        raise NmtError(
            f"The figure cannot be written to {str(path)!r}: the suffix must name its format. Give a name in "
            f"{', '.join(METADATA)}."
        )
    return OutputFile(path, kind="figure", is_earlier=_is_figure)


def _is_figure(path: Path) -> bool:
    return MARKS[path.suffix.lower()].encode() in path.read_bytes()


def save(figure: Figure, output: OutputFile) -> None:
    """Write a figure in the format that the suffix of its file names. Text remains text, so that it can be searched.

    Raises:
        NmtError: if the figure is too large.
        ConflictError, DiskError: as ``OutputFile.temporary_file``.
    """
    width, height = figure.get_size_inches()
    if max(width, height) > LARGEST_SIDE:
        raise NmtError(
            f"The figure would be {width:.0f} x {height:.0f} inches; a side has at most {LARGEST_SIDE:.0f}. Draw fewer "
            "runs, panels or words."
        )
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": PROGRAM, "pdf.fonttype": 42}
    with output.temporary_file() as temporary, missing_characters_as_boxes(), mpl.rc_context(settings):
        figure.savefig(temporary, metadata=METADATA[output.path.suffix.lower()])
