"""Two-dimensional map of word embeddings with nearest neighbours by cosine.

Shapes: V ids of a vocabulary, D width of an embedding, K words of the map.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation

from nmt.errors import DataError, NotFoundError
from nmt.plotting.lesson.encoding import cosines, unit_rows
from nmt.plotting.lesson.label_places import Places
from nmt.plotting.lesson.panels import token_label
from nmt.plotting.lesson.trained import Vocabulary
from nmt.plotting.style import (
    BLUE,
    COLORS,
    FAINT_INK,
    INK,
    MARKERS,
    POINTS,
    SMALL,
    TEXT,
    add_title,
    fonts,
    missing_characters_as_boxes,
    readable,
)
from nmt.storage.names import did_you_mean
from nmt.tokenizers.base import FIRST_WORD, SPACE_MARK

MOST_GIVEN = 12  # words with neighbours in a figure
FEWEST = 3  # words of a map
GAP = 4.0  # between a point and its label, in points
MAP_FONT = 8.0
MAP_SIZE = (8.4, 7.6)  # inches
COLUMN_WIDTH = 1.75  # inches of the list
LINE_HEIGHT = 11.5  # points
BREAK = 0.6  # lines between two words of the list
COLUMN_LINES = 40
HALO = withStroke(linewidth=1.8, foreground="white", alpha=0.8)  # between a label and the lines that it crosses


class Neighbor(NamedTuple):
    """A word near another one."""

    id: int
    cosine: float


def neighbors(vectors: np.ndarray, id_: int, among: Sequence[int], count: int) -> list[Neighbor]:
    """Return the nearest words by cosine, nearest first, equally near ones in the order of ``among``.

    Args:
        vectors: word embedding, float32 [V, D].
        id_: word whose neighbours are asked for.
        among: ids of possible neighbours; the word itself is none.
        count: most neighbours.
    """
    ids = np.array([other for other in among if other != id_], int)
    similar = unit_rows(vectors[ids]) @ unit_rows(vectors[[id_]])[0]
    order = np.argsort(-similar, kind="stable")[:count]
    return [Neighbor(int(ids[place]), float(similar[place])) for place in order]


class Projection(NamedTuple):
    """Vectors on the plane of their two principal components."""

    points: np.ndarray
    """Coordinates, float [K, 2]."""
    shares: tuple[float, float]
    """Share of the variance of each component."""


def project(vectors: np.ndarray) -> Projection:
    """Return vectors of length 1 on their two principal components, by the singular value decomposition (PCA).

    Args:
        vectors: float [K, D], K > 1. They are divided by their length, so that distances on the map follow cosines.
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
    total = float((values**2).sum()) or 1.0
    return Projection(points, (float(values[0] ** 2) / total, float(values[1] ** 2) / total))


def find_words(vocabulary: Vocabulary, words: Sequence[str], side: str) -> list[int]:
    """Return the id of each word of the user.

    Raises:
        NotFoundError: for a word that is no token of the vocabulary; says what it consists of, or a similar token.
        DataError: for more words than a figure shows.
    """
    if len(words) > MOST_GIVEN:
        raise DataError(f"A map shows the neighbours of {MOST_GIVEN} words at most; received {len(words)}. Give fewer.")
    found = []
    for word in words:
        ids = vocabulary.tokenizer.encode(word)
        if len(ids) == 1 and ids[0] >= FIRST_WORD:
            found.append(ids[0])
        elif word in vocabulary.pieces[FIRST_WORD:]:
            found.append(vocabulary.pieces.index(word, FIRST_WORD))
        else:
            raise NotFoundError(_unknown(vocabulary, word, ids, side))
    return list(dict.fromkeys(found))


def _unknown(vocabulary: Vocabulary, word: str, ids: Sequence[int], side: str) -> str:
    name = f"{word[:60]!r} is no token of the {side} vocabulary"
    if len(ids) > 1 and min(ids) >= FIRST_WORD:
        pieces = " ".join(vocabulary.tokenizer.pieces(ids)[:12])
        return f"{name}. Its pieces are: {pieces}. Only tokens have an embedding of their own. Give one of these."
    known = [vocabulary.pieces[id_].removeprefix(SPACE_MARK) for id_ in vocabulary.words()]
    return f"{name}{did_you_mean(word, known)}. Training has not seen it. Give another word."


def token_name(vocabulary: Vocabulary, id_: int) -> str:
    """Return a token as a label: without its mark of a space, and with a hyphen before a subword within a word."""
    piece = vocabulary.pieces[id_]
    if vocabulary.tokenizer.unit == "subwords" and piece[0].isalpha():
        return f"-{token_label(piece)}"
    return token_label(piece.replace(SPACE_MARK, " ").strip() or SPACE_MARK)


def draw_frequent(figure: Figure, vocabulary: Vocabulary, count: int, details: str) -> None:
    """Draw the map of the K most frequent words. Lines join words that are nearest to each other.

    Args:
        figure: empty figure. Its size changes.
        vocabulary: tokens with their vectors.
        count: K.
        details: line below the title.

    Raises:
        DataError: for a vocabulary with too few words.
    """
    ids = vocabulary.words()[:count]
    _check_count(ids)
    figure.set_size_inches(10, 8)
    heading = f"Word embeddings: the {len(ids):,} most frequent tokens"
    add_title(figure, heading, f"{details} · thick lines join tokens that are nearest to each other by cosine")
    projection = project(vocabulary.vectors[ids])
    axes = _axes(figure, projection)
    axes.plot(*projection.points.T, "o", color=BLUE, markersize=3.5, markeredgewidth=0, label="tokens")
    for first, second in mutual_neighbors(vocabulary.vectors[ids]):
        axes.plot(*projection.points[[first, second]].T, color="0.65", linewidth=1.4, zorder=0.9)
    _label(axes, projection.points, [token_name(vocabulary, id_) for id_ in ids], [INK] * len(ids))


def mutual_neighbors(vectors: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of rows (i, j), i < j, each of which is the nearest to the other by cosine."""
    similar = cosines(vectors)
    np.fill_diagonal(similar, -np.inf)
    nearest = similar.argmax(axis=1)
    return [(first, int(second)) for first, second in enumerate(nearest) if nearest[second] == first < second]


def draw_given(figure: Figure, vocabulary: Vocabulary, given: Sequence[int], count: int, details: str) -> None:
    """Draw the map of words and their N nearest neighbours, and list the neighbours with their cosines.

    Args:
        figure: empty figure. Its size changes.
        vocabulary: tokens with their vectors.
        given: ids of the words.
        count: N.
        details: line below the title.

    Raises:
        DataError: for a vocabulary with too few words.
    """
    among = vocabulary.words()
    near = {id_: neighbors(vocabulary.vectors, id_, among, count) for id_ in given}
    ids = list(dict.fromkeys([*given, *(neighbor.id for found in near.values() for neighbor in found)]))
    _check_count(ids)
    place = {id_: number for number, id_ in enumerate(ids)}
    columns = len(_list_columns(near))
    figure.set_size_inches(MAP_SIZE[0] + COLUMN_WIDTH * columns, MAP_SIZE[1])
    add_title(figure, f"Word embeddings: nearest neighbours of {len(given)} tokens by cosine", details)
    projection = project(vocabulary.vectors[ids])
    axes = _axes(figure, projection, list_width=COLUMN_WIDTH * columns)
    colors = [INK] * len(ids)
    for number, (id_, found) in enumerate(near.items()):
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        for neighbor in found:
            ends = projection.points[[place[id_], place[neighbor.id]]]
            axes.plot(*ends.T, color=color, linewidth=0.8, alpha=0.6, zorder=0.9)
            if neighbor.id not in near:
                axes.plot(*ends[1:].T, marker, color=color, markersize=4, markeredgewidth=0)
                colors[place[neighbor.id]] = readable(color)
        axes.plot(
            *projection.points[[place[id_]]].T, marker, color=color, markersize=9, markeredgecolor=INK, zorder=3,
            label=token_name(vocabulary, id_),
        )  # fmt: skip
    _list_neighbors(figure, figure.axes[1], vocabulary, near)
    _label(axes, projection.points, [token_name(vocabulary, id_) for id_ in ids], colors, bold=len(given))


def _check_count(ids: Sequence[int]) -> None:
    if len(ids) < FEWEST:
        raise DataError(f"A map needs {FEWEST} words at least; received {len(ids)}. Give more words or --neighbors.")


def _axes(figure: Figure, projection: Projection, *, list_width: float = 0) -> Axes:
    """Return axes for a map; at the right of it are axes for a list of some width in inches."""
    if list_width:
        axes, beside = figure.subplots(1, 2, width_ratios=[MAP_SIZE[0] - 0.3, list_width])
        beside.set_axis_off()
    else:
        axes = figure.add_subplot()
    for name, share, set_label in (
        ("first", projection.shares[0], axes.set_xlabel),
        ("second", projection.shares[1], axes.set_ylabel),
    ):
        set_label(f"{name} principal component ({share:.0%} of variance)", fontsize=SMALL, color=FAINT_INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.spines[:].set_color("0.8")
    return axes


def _label(axes: Axes, points: np.ndarray, names: Sequence[str], colors: Sequence[str], bold: int = 0) -> None:
    """Write labels beside points where no label covers another. The first ``bold`` labels are bold and larger.

    A thin line leads from a point to a label at some distance. A label without a free place is left out. Lays the
    figure out: the places of labels depend on its final form.
    """
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    with missing_characters_as_boxes():
        figure.draw_without_rendering()
        pixels = axes.transData.transform(points)
        box = axes.get_window_extent()
        places = Places(pixels, (box.x0, box.y0, box.x1, box.y1), GAP * figure.dpi / POINTS)
        for number, (name, pixel, color) in enumerate(zip(names, pixels, colors, strict=True)):
            text = axes.annotate(
                name, tuple(points[number]), xytext=(0, 0), textcoords="offset points", color=color,
                fontsize=TEXT if number < bold else MAP_FONT, fontweight="bold" if number < bold else "normal",
                fontfamily=fonts(), parse_math=False, annotation_clip=False, path_effects=[HALO],
            )  # fmt: skip
            text.set_in_layout(False)
            extent = text.get_window_extent()
            place = places.place(
                pixel, (extent.width, extent.height), figure.dpi / POINTS * GAP if number < bold else 0
            )
            if place is None:
                text.remove()
                continue
            scale = POINTS / figure.dpi
            text.set_position(((place.left - extent.x0) * scale, (place.bottom - extent.y0) * scale))
            if not place.is_near:
                corner = np.array([place.left, place.bottom])
                end = np.clip(pixel, corner, corner + extent.size)
                leader = axes.transData.inverted().transform([pixel, end])
                axes.plot(*leader.T, color=FAINT_INK, linewidth=0.5, zorder=0.8, scalex=False, scaley=False)


def _list_columns(near: dict[int, list[Neighbor]]) -> list[list[int]]:
    """Return the words of each column of the list: a word and its neighbours stay together."""
    columns: list[list[int]] = [[]]
    lines = 0.0
    for id_, found in near.items():
        needed = len(found) + 1 + BREAK
        if columns[-1] and lines + needed > COLUMN_LINES:
            columns.append([])
            lines = 0
        columns[-1].append(id_)
        lines += needed
    return columns


def _list_neighbors(figure: Figure, axes: Axes, vocabulary: Vocabulary, near: dict[int, list[Neighbor]]) -> None:
    """Write each word with its neighbours and their cosines, in columns at the right of the map."""

    def write(text: str, right: float, down: float, weight: str) -> None:
        axes.annotate(
            text, (0, 1), xycoords="axes fraction", xytext=(right, -down), textcoords="offset points", fontsize=SMALL,
            fontweight=weight, verticalalignment="center", color=INK, fontfamily=fonts(), parse_math=False,
            annotation_clip=False,
        ).set_in_layout(False)  # fmt: skip

    numbers = {id_: number for number, id_ in enumerate(near)}
    for column, ids in enumerate(_list_columns(near)):
        right, down = column * COLUMN_WIDTH * POINTS, SMALL
        for id_ in ids:
            color, marker = COLORS[numbers[id_] % len(COLORS)], MARKERS[numbers[id_] % len(MARKERS)]
            place = ScaledTranslation((right + 4) / POINTS, -down / POINTS, figure.dpi_scale_trans)
            [point] = axes.plot(
                [0], [1], marker, color=color, markeredgecolor=INK, markersize=7, transform=axes.transAxes + place,
                clip_on=False,
            )  # fmt: skip
            point.set_in_layout(False)
            write(token_name(vocabulary, id_), right + 13, down, "bold")
            for neighbor in near[id_]:
                down += LINE_HEIGHT
                write(f"{neighbor.cosine:.2f}  {token_name(vocabulary, neighbor.id)}", right + 13, down, "normal")
            down += (1 + BREAK) * LINE_HEIGHT
