"""What is wrong with the look of a figure: text outside it or over other text, fonts missing."""

import itertools
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

TOLERANCE = 1.0  # pixels


def problems(figure: Figure) -> list[str]:
    """Return what is wrong, a line each; none for a figure that is well drawn."""
    with fonts_watched() as found:
        figure.draw_without_rendering()
        pieces = [(text, corners(text)) for text in visible_texts(figure)]
    width, height = figure.bbox.width, figure.bbox.height
    for text, polygon in pieces:
        (left, bottom), (right, top) = polygon.min(axis=0), polygon.max(axis=0)
        if min(left, bottom, width - right, height - top) < -TOLERANCE:
            found.append(f"{text.get_text()!r} leaves the figure: {left:.0f}-{right:.0f}, {bottom:.0f}-{top:.0f}")
    for (first, one), (second, other) in itertools.combinations(pieces, 2):
        if overlap(one, other):
            found.append(f"{first.get_text()!r} overlaps {second.get_text()!r}")
    return found


@contextmanager
def fonts_watched() -> Iterator[list[str]]:
    """Yield a list to which warnings of matplotlib, also of its font manager, are added at the end."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("matplotlib")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
    finally:
        logger.removeHandler(handler)
    found += [str(warning.message) for warning in caught]


def visible_texts(figure: Figure) -> list[Text]:
    """Return the texts that are drawn, of ticks those within the limits."""
    undrawn = set[Text]()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-6 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                drawn = axes.axison and axis.get_visible() and low - slack <= tick.get_loc() <= high + slack
                undrawn |= {
                    label for label in (tick.label1, tick.label2)
                    if not (drawn and tick.get_visible() and label.get_visible())
                }  # fmt: skip
    found = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible())
    texts = [text for text in found if isinstance(text, Text) and text.get_text().strip() and text not in undrawn]
    hidden = {axes for axes in figure.axes if not axes.get_visible()}
    return [text for text in dict.fromkeys(texts) if text.axes not in hidden]


def corners(text: Text) -> np.ndarray:
    """Return the corners of a text in pixels, [4, 2]: of a turned text those of its turned box."""
    box = text.get_window_extent()
    middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    angle = text.get_rotation()
    text.set_rotation(0)
    straight = text.get_window_extent()
    text.set_rotation(angle)
    half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [straight.width / 2, straight.height / 2]
    turn = np.deg2rad(angle)
    return middle + half @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two rectangles, [4, 2], have more than ``TOLERANCE`` in common: no edge separates them."""
    for rectangle in (one, other):
        for edge in (rectangle[1] - rectangle[0], rectangle[2] - rectangle[1]):
            if not np.linalg.norm(edge):
                return False
            normal = np.array([-edge[1], edge[0]]) / np.linalg.norm(edge)
            a, b = one @ normal, other @ normal
            if a.max() - TOLERANCE <= b.min() or b.max() - TOLERANCE <= a.min():
                return False
    return True
