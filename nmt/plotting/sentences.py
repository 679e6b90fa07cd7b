"""Figures of a sentence: its position encoding as a table, its attention masks, its word plus position embeddings.

Shapes: L tokens, padding included; D width. True means masked, as in the lesson. (The masks of
``nmt.models.layers.attention`` are True where attention is allowed.)
"""

import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.cells import cell_len

from nmt.errors import DataError, counted
from nmt.message import Argument
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.plotting import style
from nmt.plotting.sinusoids import FORMULA, Encoding

PADDING = "(pad)"
MOST_WORDS, MOST_COLUMNS = 32, 16  # of a table
MASKED, ATTENDED = "#3b3b3b", "#f2e8c9"
MOST_MASKED, MOST_WRITTEN = 40, 16  # tokens of a mask, and of a mask whose cells show numbers
MOST_TOKENS = 256  # of a phrase
MOST_LABELS = 60  # rows of a panel that labels every row
FIRST_ID = 2  # of a word, as in the TextVectorization layer of Keras: 0 is padding, 1 unknown
LONGEST = 48  # characters of a phrase above its panel


# --- table


def draw_table(figure: Figure, words: Sequence[str], width: int, base: float) -> None:
    """Draw a table with a row for each word: its position, and formula and value of each of D dimensions.

    Raises:
        DataError: if there are no words, or more than ``MOST_WORDS`` words or ``MOST_COLUMNS`` dimensions.
    """
    encoding = Encoding(max(1, len(words)), width, base)
    if not 1 <= len(words) <= MOST_WORDS or width > MOST_COLUMNS:
        raise DataError(
            f"A table has from 1 to {MOST_WORDS} rows, one a word, and at most {MOST_COLUMNS} columns; received "
            f"{counted(len(words), 'word')} and a width of {width}. Give another sentence or width. nmt plot "
            "position-matrix draws larger encodings."
        )
    matrix = encoding.matrix()
    figure.set_size_inches(max(6.5, 2.6 + 1.15 * width), 1.5 + 0.5 * len(words))
    style.add_title(figure, "Position encoding of a sentence", f"width d = {width} · base n = {base:,.12g} · {FORMULA}")
    axes = figure.add_subplot()
    image = style.show_matrix(axes, matrix, (-1, 1))
    names = [encoding.function(column) for column in range(width)]
    divisors = [f"{round(base ** (column // 2 * 2 / width), 2):,.12g}" for column in range(width)]
    cells = [
        [f"{names[column]}({position} / {divisors[column]})\n{value:.6f}" for column, value in enumerate(row)]
        for position, row in enumerate(matrix)
    ]
    style.write_values(axes, image, cells, size=8)
    style.label_rows(axes, [f"{word}   k = {position}" for position, word in enumerate(words)])
    style.label_columns(axes, [f"{name}, i = {column // 2}" for column, name in enumerate(names)], turn=0)


# --- masks


def masks(words: int, padding: int) -> dict[str, np.ndarray]:
    """Return the masks of a sentence of W words and P tokens of padding, by name, bool [query L, key L], L = W + P."""
    length = words + padding
    is_padding = np.broadcast_to(np.arange(length) >= words, (length, length))
    is_ahead = np.arange(length)[None, :] > np.arange(length)[:, None]
    return {
        "padding mask": is_padding,
        "look-ahead mask": is_ahead,
        "both: the decoder's mask": is_padding | is_ahead,
    }


def draw_masks(figure: Figure, words: Sequence[str], padding: int) -> None:
    """Draw the three masks of a sentence with P tokens of padding as matrices, with tokens as labels.

    Raises:
        DataError: if there are no words, or more than ``MOST_MASKED`` tokens.
    """
    length = len(words) + padding
    if not words or length > MOST_MASKED:
        raise DataError(
            f"The sentence has {counted(len(words), 'word')} and {counted(padding, 'token')} of padding. Masks are "
            f"drawn for at least one word and at most {MOST_MASKED} tokens. Give another sentence, or a smaller ",
            Argument("pad"),
            ".",
        )
    tokens = [*words, *[PADDING] * padding]
    side = float(np.clip(0.42 * length, 2.6, 8.0))
    size = float(np.clip(0.42 * side * style.POINTS / length, 3, 10))
    longest = max(cell_len(style.token_label(token)) for token in tokens) * size / style.POINTS  # in ems, as inches
    figure.set_size_inches(3 * side + 1.2 + 0.6 * longest, side + 1.7 + 0.45 * longest)
    style.add_title(figure, "Masks of attention", f"words: {len(words)} · padding: {padding}")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (name, mask) in zip(panels, masks(len(words), padding).items(), strict=True):
        image = axes.imshow(mask, cmap=ListedColormap([ATTENDED, MASKED]), vmin=0, vmax=1, interpolation="nearest")
        if length <= MOST_WRITTEN:
            style.write_values(axes, image, [[str(int(cell)) for cell in row] for row in mask], size)
        style.label(axes, name, "query: the token that attends" if axes is panels[0] else "")
        lines = np.arange(length + 1) - 0.5
        axes.set_xticks(lines, minor=True)
        axes.set_yticks(lines, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.6)
        axes.tick_params(which="minor", length=0)
        style.label_columns(axes, tokens, size)
        style.label_rows(axes, tokens, size)
        axes.label_outer()
        axes.tick_params(axis="x", labeltop=True)
    patches = [Patch(color=MASKED), Patch(color=ATTENDED)]
    style.add_legend(figure, patches, ["1: masked, gets no attention", "0: attended to"])


# --- embeddings


class Embedded(NamedTuple):
    """Word plus position embedding of a phrase."""

    phrase: str
    tokens: list[str]
    """Token of each row [L]."""
    values: np.ndarray
    """Embedding of each token, float32 [L, D]."""


def words_of(phrase: str) -> list[str]:
    """Return the words of a phrase in lower case without punctuation, as the lesson's text layer splits it."""
    return phrase.lower().translate(dict.fromkeys(map(ord, string.punctuation))).split()


def word_ids(phrases: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return ids for the words of all phrases, from ``FIRST_ID`` on, in the order of Keras's TextVectorization layer.

    Frequent words come first; equally frequent words are in reverse alphabetical order.
    """
    counts = Counter(word for words in phrases for word in words)
    ranked = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
    return {word: id_ for id_, word in enumerate(ranked, start=FIRST_ID)}


def fixed_embeddings(phrases: Sequence[str], length: int | None, width: int, base: float) -> list[Embedded]:
    """Return the lesson's untrained embeddings: the sum of the sinusoidal encodings of each token's id and position.

    Args:
        phrases: raw phrases.
        length: L, with padding of id 0 after a shorter phrase; None: the length of the longest phrase.
        width: D.
        base: base of both encodings.

    Raises:
        DataError: for a phrase without words, or with more than L or ``MOST_TOKENS``.
        NmtError: for an encoding that does not exist (see ``Encoding``).
    """
    split = [words_of(phrase) for phrase in phrases]
    for phrase, words in zip(phrases, split, strict=True):
        check_length(phrase, len(words), length)
    ids = word_ids(split)
    rows = length or max(map(len, split))
    positions = Encoding(rows, width, base).matrix()
    table = sinusoidal_encoding(FIRST_ID + len(ids), width, base)
    embedded = []
    for phrase, words in zip(phrases, split, strict=True):
        tokens = words + [PADDING] * (rows - len(words))
        values = table[[ids.get(token, 0) for token in tokens]] + positions
        embedded.append(Embedded(phrase, tokens, values))
    return embedded


def check_length(phrase: str, tokens: int, length: int | None) -> None:
    """Check that a phrase has from 1 to ``length`` tokens, and at most ``MOST_TOKENS``.

    Raises:
        DataError: if it does not; names the phrase.
    """
    most = min(MOST_TOKENS, length or MOST_TOKENS)
    if not 1 <= tokens <= most:
        raise DataError(
            f"Phrase {phrase[:60]!r} has {counted(tokens, 'token')}. The figure draws phrases of 1 to "
            f"{counted(most, 'token')}. Give another phrase, or another ",
            Argument("length"),
            ".",
        )


def draw_embeddings(figure: Figure, rows: Sequence[tuple[str, Sequence[Embedded]]], details: str) -> None:
    """Draw embeddings as images: a row of panels for each kind of embedding, a column for each phrase.

    Args:
        figure: empty figure.
        rows: name of each kind of embedding, such as "learned", and its embedding of each phrase.
        details: line below the title.
    """
    longest = max(len(embedded.tokens) for _, row in rows for embedded in row)
    height = float(np.clip(0.2 * longest + 1.1, 2.6, 8)) * len(rows) + 0.8
    figure.set_size_inches(max(11, 1.5 * len(rows[0][1])), height)
    style.add_title(figure, "Word plus position embeddings", details)
    panels = figure.subplots(len(rows), len(rows[0][1]), squeeze=False)
    for (kind, row), line in zip(rows, panels, strict=True):
        bound = max(float(np.abs(embedded.values).max()) for embedded in row)
        for axes, embedded in zip(line, row, strict=True):
            image = style.show_matrix(axes, embedded.values, (-bound, bound))
            style.label(axes, "dimension", title=f"{kind}: {style.shortened(embedded.phrase, LONGEST)}")
            if len(embedded.tokens) <= MOST_LABELS:
                style.label_rows(axes, embedded.tokens, size=float(np.clip(420 / len(embedded.tokens), 5, 9)))
            else:
                axes.set_ylabel("position")
        style.add_bar(figure, image, line[-1], "value")
