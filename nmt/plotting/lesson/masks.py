"""Masks of attention for a sentence: padding, look-ahead, both together.

Shapes: L tokens, padding included. True is masked, as in the lesson; the masks of ``nmt.models.layers.attention`` are
True where attention is allowed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nmt.errors import DataError
from nmt.plotting.lesson.panels import label_columns, label_rows, token_label, write_values
from nmt.plotting.style import INK, POINTS, SMALL, TEXT, add_title

MASKED, READ = "#3b3b3b", "#f2e8c9"
MOST_TOKENS, MOST_WRITTEN = 40, 16
PADDING = "(pad)"


class Masks(NamedTuple):
    """Masks of each query (row) to each key (column)."""

    padding: np.ndarray
    """True at keys that are padding: bool [L, L]."""
    look_ahead: np.ndarray
    """True at keys after the query: bool [L, L]."""
    both: np.ndarray
    """True where one of both is: bool [L, L]."""


def masks(words: int, padding: int) -> Masks:
    """Return the masks of a sentence of W words, followed by P tokens of padding."""
    length = words + padding
    is_padding = np.broadcast_to(np.arange(length) >= words, (length, length))
    is_ahead = np.arange(length)[None, :] > np.arange(length)[:, None]
    return Masks(is_padding, is_ahead, is_padding | is_ahead)


def draw_masks(figure: Figure, words: Sequence[str], padding: int) -> None:
    """Draw the three masks of a sentence as matrices, with tokens as labels.

    Args:
        figure: empty figure. Its size changes.
        words: words of the sentence.
        padding: tokens of padding after it.

    Raises:
        DataError: without words, or with more tokens than a figure has room for.
    """
    length = len(words) + padding
    if not words or length > MOST_TOKENS:
        raise DataError(
            f"The sentence has {len(words)} words and {padding} of padding. Masks are drawn of a word at least and of "
            f"{MOST_TOKENS} tokens at most. Give another sentence, or less --pad."
        )
    tokens = [*words, *[PADDING] * padding]
    found = masks(len(words), padding)
    names = {
        "padding mask": found.padding,
        "look-ahead mask": found.look_ahead,
        "both: the decoder's mask": found.both,
    }
    side = float(np.clip(0.42 * length, 2.6, 8.0))
    size = float(np.clip(0.42 * side * POINTS / length, 3, 10))
    label = max(len(token_label(token)) for token in tokens) * size / POINTS  # width, at 0.6 an em
    figure.set_size_inches(3 * side + 1.2 + 0.6 * label, side + 1.7 + 0.45 * label)
    add_title(figure, "Masks of attention", f"words: {len(words)} · padding: {padding}")
    for number, (axes, (name, mask)) in enumerate(zip(figure.subplots(1, 3, sharey=True), names.items(), strict=True)):
        image = axes.imshow(mask, cmap=ListedColormap([READ, MASKED]), vmin=0, vmax=1, interpolation="nearest")
        if length <= MOST_WRITTEN:
            write_values(axes, image, [[str(int(cell)) for cell in row] for row in mask], size)
        axes.set_xticks(np.arange(length + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(length + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.6)
        axes.tick_params(which="minor", length=0)
        label_columns(axes, tokens, size)
        if number == 0:
            label_rows(axes, tokens, size)
            axes.set_ylabel("query: the token that attends", fontsize=TEXT, color=INK)
        else:
            axes.tick_params(axis="y", labelleft=False, left=False)
        axes.set_xlabel(name, fontsize=TEXT, color=INK)
    figure.legend(
        handles=[Patch(color=MASKED, label="1: masked, gets no attention"), Patch(color=READ, label="0: attended to")],
        loc="outside lower center", ncols=2, frameon=False, fontsize=SMALL,
    )  # fmt: skip
