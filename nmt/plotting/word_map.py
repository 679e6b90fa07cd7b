"""Figures that map word embeddings to two dimensions, with nearest neighbours by cosine.

Shapes: V ids of a vocabulary, D width of an embedding, K words of the map.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from nmt.errors import DataError, NotFoundError, counted
from nmt.message import Argument
from nmt.plotting import style
from nmt.plotting.fonts import missing_characters_as_boxes
from nmt.plotting.sinusoids import cosines, unit_rows
from nmt.plotting.trained import Vocabulary
from nmt.storage.names import did_you_mean
from nmt.tokenizers.base import FIRST_WORD, SPACE_MARK, UNK

FEWEST = 3  # words of a map
COLUMN_WIDTH, COLUMN_LINES = 1.75, 36  # inches and lines of a column of the list of neighbours
PLACES = [(across, up) for up in (0, 1, -1) for across in (1, -1)] + [(0, 1), (0, -1)]
"""Positions of a label around its point, best first: 1 is right or above, -1 is left or below."""
HORIZONTAL, VERTICAL = {1: "left", 0: "center", -1: "right"}, {1: "bottom", 0: "center", -1: "top"}
HALO = withStroke(linewidth=1.8, foreground="white", alpha=0.8)  # between a label and the lines that it crosses


def neighbors(vectors: np.ndarray, id_: int, among: Sequence[int], count: int) -> dict[int, float]:
    """Return the N words of ``among`` with the highest cosine to another word, and their cosines, highest first.

    Words with equal cosines are in the order of ``among``.
    """
    ids = np.array([candidate for candidate in among if candidate != id_], int)
    similarities = unit_rows(vectors[ids]) @ unit_rows(vectors[[id_]])[0]
    order = np.argsort(-similarities, kind="stable")[:count]
    return {int(ids[index]): float(similarities[index]) for index in order}


def project(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project vectors on their two principal components (PCA), by the singular value decomposition.

    The vectors are first divided by their length, so that distances on the map follow cosines.

    Args:
        vectors: float [K, D], K > 1.

    Returns:
        Coordinates, float [K, 2], and the share of the variance that each component explains, float [2].
    """
    rows = unit_rows(vectors).astype(np.float64)
    rows -= rows.mean(axis=0)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    values = np.append(values, [0.0, 0.0])
    points = np.zeros((len(rows), 2))
    count = min(2, left.shape[1])
    points[:, :count] = left[:, :count] * values[:count]
    # The sign of a component is arbitrary: here its largest coordinate is positive.
    points *= np.where(points[np.abs(points).argmax(axis=0), [0, 1]] < 0, -1, 1)
    return points, values[:2] ** 2 / ((values**2).sum() or 1.0)


def find_words(vocabulary: Vocabulary, words: Sequence[str], side: str) -> list[int]:
    """Return the ids of words that a user gave, without repetition.

    Raises:
        NotFoundError: for a word that is not a token of the vocabulary; names its pieces, or a similar token.
    """
    word_ids = []
    for word in words:
        ids = vocabulary.tokenizer.encode(word)
        if len(ids) == 1 and ids[0] >= FIRST_WORD:
            word_ids.append(ids[0])
        elif word in vocabulary.pieces[FIRST_WORD:]:
            word_ids.append(vocabulary.pieces.index(word, FIRST_WORD))
        else:
            known = [vocabulary.pieces[id_].removeprefix(SPACE_MARK) for id_ in vocabulary.words()]
            if UNK in ids:
                hint = did_you_mean(word, known) or ", and training has not seen it"
            else:
                hint = f". Its pieces are: {' '.join(vocabulary.tokenizer.pieces(ids)[:12])}"
            raise NotFoundError(
                f"{word[:60]!r} is not a token of the {side} vocabulary{hint}. Only tokens have an embedding of their "
                "own. Give another word."
            )
    return list(dict.fromkeys(word_ids))


def token_name(vocabulary: Vocabulary, id_: int) -> str:
    """Return a token as a label: without its mark of a space, or with a hyphen if it is a subword within a word."""
    piece = vocabulary.pieces[id_]
    if vocabulary.tokenizer.unit == "subwords" and piece[0].isalpha():
        return f"-{style.token_label(piece)}"
    return style.token_label(piece.replace(SPACE_MARK, " ").strip() or SPACE_MARK)


def draw_frequent(figure: Figure, vocabulary: Vocabulary, count: int, details: str) -> None:
    """Draw a map of the K most frequent words. Lines join pairs of words that are nearest neighbours of each other.

    Raises:
        DataError: for a vocabulary of fewer than ``FEWEST`` words.
    """
    ids = vocabulary.words()[:count]
    figure.set_size_inches(10, 8)
    details += " · thick lines join tokens that are nearest to each other by cosine"
    style.add_title(figure, f"Word embeddings: the {len(ids):,} most frequent tokens", details)
    axes, points = _add_map(figure, vocabulary, ids)
    axes.plot(*points.T, "o", color=style.BLUE, markersize=3.5, markeredgewidth=0)
    for pair in mutual_neighbors(vocabulary.vectors[ids]):
        axes.plot(*points[[*pair]].T, color="0.65", linewidth=1.4, zorder=0.9)
    _label(figure, axes, points, [token_name(vocabulary, id_) for id_ in ids])


def mutual_neighbors(vectors: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of rows (i, j), i < j, that are nearest neighbours of each other by cosine."""
    similarities = cosines(vectors)
    np.fill_diagonal(similarities, -np.inf)
    nearest = similarities.argmax(axis=1)
    return [(first, int(second)) for first, second in enumerate(nearest) if nearest[second] == first < second]


def draw_given(figure: Figure, vocabulary: Vocabulary, given: Sequence[int], count: int, details: str) -> None:
    """Draw a map of given words, by id, and their N nearest neighbours; list the neighbours with their cosines.

    Raises:
        DataError: for fewer than ``FEWEST`` words on the map.
    """
    among = vocabulary.words()
    neighborhoods = {id_: neighbors(vocabulary.vectors, id_, among, count) for id_ in given}
    ids = list(dict.fromkeys([*given, *itertools.chain(*neighborhoods.values())]))
    columns = math.ceil(len(neighborhoods) * (count + 2) / COLUMN_LINES)
    figure.set_size_inches(8.4 + COLUMN_WIDTH * columns, 7.6)
    style.add_title(figure, f"Word embeddings: nearest neighbours of {counted(len(given), 'token')} by cosine", details)
    axes, points = _add_map(figure, vocabulary, ids)
    point_of = dict(zip(ids, points, strict=True))
    markers = {}
    for number, (id_, nearest) in enumerate(neighborhoods.items()):
        color, marker = style.COLORS[number % len(style.COLORS)], style.MARKERS[number % len(style.MARKERS)]
        appearance: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
        for neighbor in nearest:
            ends = np.array([point_of[id_], point_of[neighbor]])
            axes.plot(*ends.T, color=color, linewidth=0.8, alpha=0.6, zorder=0.9)
            if neighbor not in neighborhoods:
                axes.plot(*ends[1:].T, **appearance, markersize=4, markeredgewidth=0)
        (markers[id_],) = axes.plot(*point_of[id_], **appearance, markersize=9, markeredgecolor=style.INK, zorder=3)

    # The list is a legend at the right of the map: each word with its neighbours and their cosines.
    blank = Line2D([], [], linestyle="none")
    # A legend fills its columns evenly. Blank lines make all groups equally long, so that no group is split.
    longest = max(map(len, neighborhoods.values()))
    lines: list[tuple[Line2D, str]] = []
    for id_, nearest in neighborhoods.items():
        names = [f"{cosine:.2f}  {token_name(vocabulary, neighbor)}" for neighbor, cosine in nearest.items()]
        lines += [(markers[id_], token_name(vocabulary, id_)), *((blank, name) for name in names)]
        lines += [(blank, "")] * (longest + 1 - len(names))
    lines += [(blank, "")] * (-len(neighborhoods) % columns * (longest + 2))
    legend = axes.legend(
        *zip(*lines, strict=True), loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, ncols=columns,
        frameon=False, fontsize=style.SMALL, labelcolor=style.INK, handlelength=1, labelspacing=0.3,
    )  # fmt: skip
    style.show_literally(*legend.get_texts())
    for text, (handle, _) in zip(legend.get_texts(), lines, strict=True):
        text.set_fontweight("normal" if handle is blank else "bold")
    _label(figure, axes, points, [token_name(vocabulary, id_) for id_ in ids], bold=len(given))


def _add_map(figure: Figure, vocabulary: Vocabulary, ids: Sequence[int]) -> tuple[Axes, np.ndarray]:
    """Return axes for a map of words, and the points of the words, float [K, 2].

    Raises:
        DataError: for fewer than ``FEWEST`` words.
    """
    if len(ids) < FEWEST:
        raise DataError(
            f"A map needs at least {FEWEST} words; received {len(ids)}. Give more words or ", Argument("neighbors"), "."
        )
    points, shares = project(vocabulary.vectors[ids])
    axes = figure.add_subplot(xticks=[], yticks=[])
    first, second = (f"principal component ({share:.0%} of variance)" for share in shares)
    style.label(axes, f"first {first}", f"second {second}")
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.spines[:].set_color("0.8")
    return axes, points


def _label(figure: Figure, axes: Axes, points: np.ndarray, names: Sequence[str], bold: int = 0) -> None:
    """Write labels beside points so that no label covers another, and few cover points; omit labels without space.

    The first ``bold`` labels are bold, as their points are large. This lays the figure out, since the positions of
    labels depend on its final form.
    """
    with missing_characters_as_boxes():
        figure.draw_without_rendering()
        pixels = axes.transData.transform(points)
        inside = axes.get_window_extent()
        taken: list[Bbox] = []
        for number, (name, point) in enumerate(zip(names, points, strict=True)):
            size, weight, distance = (style.TEXT, "bold", 8) if number < bold else (8.0, "normal", 4)
            text = axes.annotate(
                name, tuple(point), (0, 0), textcoords="offset points", color=style.INK, fontsize=size,
                fontweight=weight, path_effects=[HALO], in_layout=False,
            )  # fmt: skip
            style.show_literally(text)
            free: dict[tuple[int, int], Bbox] = {}
            for across, up in PLACES:
                text.set(position=(across * distance, up * distance), ha=HORIZONTAL[across], va=VERTICAL[up])
                box = text.get_window_extent()
                if not box.count_overlaps(taken) and inside.containsx(box.x0) and inside.containsx(box.x1):
                    free[across, up] = box
            if not free:
                text.remove()
                continue
            across, up = min(free, key=lambda place: free[place].count_contains(pixels))
            text.set(position=(across * distance, up * distance), ha=HORIZONTAL[across], va=VERTICAL[up])
            taken.append(free[across, up])
