"""Word plus position embeddings of phrases side by side; the fixed ones, which need no run.

Shapes: L tokens of a phrase, D width.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nmt.errors import DataError
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.plotting.lesson.encoding import Encoding
from nmt.plotting.lesson.panels import add_bar, label_rows, show_matrix
from nmt.plotting.style import TEXT, add_title, as_written, shortened

MOST_TOKENS = 256  # of a phrase
MOST_LABELS = 60  # rows with space for a label
FIRST_ID = 2  # of a word, as in the TextVectorization layer of Keras: 0 is padding, 1 unknown
PADDING = "(pad)"
LONGEST = 48  # characters of a phrase above its panel
PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")


class Embedded(NamedTuple):
    """Word plus position embedding of a phrase."""

    phrase: str
    tokens: list[str]
    """Token of each row [L]."""
    values: np.ndarray
    """Float32 [L, D]."""


def words_of(phrase: str) -> list[str]:
    """Return the words of a phrase in lower case without punctuation, as the lesson's text layer cuts it."""
    return PUNCTUATION.sub("", phrase.lower()).split()


def word_ids(phrases: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return ids for the words of all phrases, from ``FIRST_ID``: frequent words first, equally frequent ones from z.

    The order is that of the TextVectorization layer of Keras.
    """
    counts = Counter(word for words in phrases for word in words)
    ranked = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
    return {word: id_ for id_, word in enumerate(ranked, start=FIRST_ID)}


def fixed_embeddings(phrases: Sequence[str], length: int | None, width: int, base: float) -> list[Embedded]:
    """Return the sum of two sinusoidal encodings for each token of phrases: that of its id, that of its position.

    Args:
        phrases: raw phrases.
        length: L, with padding of id 0 after a shorter phrase; None: that of the longest phrase.
        width: D.
        base: base of both encodings.

    Raises:
        DataError: for a phrase without words, or with more than fit.
        NmtError: for an encoding that does not exist.
    """
    cut = [words_of(phrase) for phrase in phrases]
    for phrase, words in zip(phrases, cut, strict=True):
        check_length(phrase, len(words), length)
    ids = word_ids(cut)
    rows = length or max(map(len, cut))
    positions = Encoding(rows, width, base).matrix()
    table = sinusoidal_encoding(FIRST_ID + len(ids), width, base)
    found = []
    for phrase, words in zip(phrases, cut, strict=True):
        padding = rows - len(words)
        row_ids = [ids[word] for word in words] + [0] * padding
        found.append(Embedded(phrase, [*words, *[PADDING] * padding], table[row_ids] + positions))
    return found


def check_length(phrase: str, tokens: int, length: int | None) -> None:
    """Refuse a phrase without tokens, or with more than ``length`` or a figure allow.

    Raises:
        DataError: names the phrase.
    """
    most = min(MOST_TOKENS, length or MOST_TOKENS)
    if not 1 <= tokens <= most:
        raise DataError(
            f"Phrase {phrase[:60]!r} has {tokens} tokens. Phrases of 1 to {most} tokens are drawn here. Give another "
            "phrase, or another --length."
        )


def draw_embeddings(figure: Figure, rows: Sequence[tuple[str, Sequence[Embedded]]], details: str) -> None:
    """Draw embeddings as images: a row of panels for each kind of embedding, a column for each phrase.

    Args:
        figure: empty figure. Its size changes.
        rows: name of a kind of embedding, and the embedding of each phrase.
        details: line below the title.
    """
    longest = max(len(embedded.tokens) for _, row in rows for embedded in row)
    figure.set_size_inches(11, float(np.clip(0.2 * longest + 1.1, 2.6, 8)) * len(rows) + 0.8)
    add_title(figure, "Word plus position embeddings", details)
    panels = figure.subplots(len(rows), len(rows[0][1]), squeeze=False)
    for (kind, row), line in zip(rows, panels, strict=True):
        bound = max(float(np.abs(embedded.values).max()) for embedded in row)
        for axes, embedded in zip(line, row, strict=True):
            image = show_matrix(axes, embedded.values, (-bound, bound))
            as_written(axes.set_title(f"{kind}: {shortened(embedded.phrase, LONGEST)}", loc="left", fontsize=TEXT))
            axes.set_xlabel("dimension", fontsize=TEXT)
            if len(embedded.tokens) <= MOST_LABELS:
                label_rows(axes, embedded.tokens, size=float(np.clip(420 / len(embedded.tokens), 5, 9)))
            else:
                axes.set_ylabel("position", fontsize=TEXT)
        add_bar(figure, image, line[-1], "value")
