"""Figures before and after they are drawn: empty, and saved to a file."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from nmt.errors import NmtError
from nmt.plotting.style import DPI, HEIGHT, WIDTH, missing_characters_as_boxes
from nmt.storage.atomic import atomic_file

PADDING = 0.1  # inches around axes
LARGEST_SIDE = 60.0  # inches; more is no figure that a person reads
# What a file says of itself. Dates are left out, so that equal figures are equal files.
PROGRAM = "nmt plot"
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": PROGRAM},
    ".svg": {"Creator": PROGRAM, "Date": None},
    ".pdf": {"Creator": PROGRAM, "CreationDate": None},
}


def empty_figure() -> Figure:
    """Return a figure without axes, 960 by 600 pixels."""
    layout = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
    return Figure(figsize=(WIDTH, HEIGHT), layout=layout, dpi=DPI)


def check_format(path: Path) -> None:
    """Refuse a path whose suffix names no format of a figure.

    Raises:
        NmtError: naming the suffixes.
    """
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in known:
        raise NmtError(
            f"The figure cannot be written to {str(path)!r}: the suffix must name its format. Known: "
            f"{', '.join(sorted(known))}."
        )


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the suffix of ``path`` names; text stays text.

    Raises:
        NmtError: for a format that matplotlib does not write, a path that cannot be written, or a figure too large.
    """
    check_format(path)
    width, height = figure.get_size_inches()
    if max(width, height) > LARGEST_SIDE:
        raise NmtError(
            f"The figure would be {width:.0f} x {height:.0f} inches; a side has at most {LARGEST_SIDE:.0f}. Draw fewer "
            "runs, panels or words."
        )
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": PROGRAM, "pdf.fonttype": 42, "ps.fonttype": 42}
    metadata = METADATA.get(path.suffix.lower())
    options: dict[str, Any] = {"metadata": metadata} if metadata else {}  # some formats take none
    with atomic_file(path) as temporary, missing_characters_as_boxes(), mpl.rc_context(settings):
        try:
            figure.savefig(temporary, **options)
        except RuntimeError as error:  # a format that needs another program
            raise NmtError(
                f"matplotlib cannot write {path} here: {error}. Choose another suffix, such as .png."
            ) from None
