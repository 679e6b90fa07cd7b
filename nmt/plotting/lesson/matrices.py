"""The position encoding as a matrix, and the similarity of its rows."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.plotting.lesson.encoding import Encoding
from nmt.plotting.lesson.panels import FORMULA, SIMILARITIES, add_bar, set_integer_ticks, show_matrix
from nmt.plotting.style import TEXT, add_legend, add_title, curve, style_curves

LEAST_RANGE = 0.1  # of cosines in the image, also where all of them are close to 1


def draw_matrix(figure: Figure, encoding: Encoding) -> None:
    """Draw the encoding of each position as a row of an image."""
    add_title(figure, "Position encoding", f"{encoding.parameters} · {FORMULA}")
    axes = figure.add_subplot(
        xlabel="dimension (even: sine, odd: cosine; wavelengths rise to the right)", ylabel="position k"
    )
    image = show_matrix(axes, encoding.matrix(), (-1, 1))
    add_bar(figure, image, axes, "value")


def draw_similarity(figure: Figure, encoding: Encoding, positions: Sequence[int]) -> None:
    """Draw the cosine of any two positions as an image, and that of some positions to all as curves.

    The encodings of all positions have the same length, sqrt(D/2): their dot product is the cosine times D/2.

    Args:
        figure: empty figure.
        encoding: length, width and base.
        positions: positions with a curve.
    """
    check_positions(positions, encoding)
    similarity = encoding.similarity()
    low = float(min(1 - LEAST_RANGE, similarity.min()))
    figure.set_size_inches(10, 4.9)
    add_title(figure, "Similarity of positions: cosine of their encodings", f"{encoding.parameters} · {FORMULA}")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    image = show_matrix(left, similarity, (low, 1), SIMILARITIES)
    left.set_xlabel("position")
    left.set_ylabel("position")
    add_bar(figure, image, left, "cosine")
    for number, position in enumerate(positions):
        style = {**curve(number), "markevery": [position], "markersize": 8, "clip_on": False}
        right.plot(range(encoding.length), similarity[position], **style)
    right.set_xlabel("position")
    right.set_ylabel("cosine")
    right.set_title(f"dot product = cosine x {encoding.width // 2:,}", loc="left", fontsize=TEXT)
    set_integer_ticks(right.xaxis, encoding.length)
    style_curves(right)
    add_legend(figure, right.get_lines(), [f"position {position:,}" for position in positions])


def check_positions(positions: Sequence[int], encoding: Encoding) -> None:
    """Refuse positions beyond the last one.

    Raises:
        NmtError: names the first of them.
    """
    for position in positions:
        if position >= encoding.length:
            raise NmtError(
                f"--position {position} is not among the {encoding.length} positions from 0 to {encoding.length - 1}. "
                "Give a smaller one, or a greater --length."
            )


def spread(length: int, count: int) -> list[int]:
    """Return up to ``count`` positions spread evenly over 0 .. length - 1."""
    return sorted({int(position) for position in np.linspace(0, length - 1, count).round()})
