"""Colours, axes and characters of all figures."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

TRAINING, VALIDATION, MARK = "#1f6fb4", "#d1495b", "#444444"
CURVE: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.8}  # keywords of Axes.plot


def add_axes(figure: Figure, title: str, x_label: str, y_label: str) -> Axes:
    """Add axes with a title on the left, a faint grid, and no frame above or to the right."""
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    style_curves(axes)
    return axes


def style_curves(axes: Axes) -> None:
    """Give axes a faint grid and remove the frame above and to the right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


@contextmanager
def missing_characters_as_boxes() -> Iterator[None]:
    """Draw a box for a character that no font has, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield
