"""The position encoding of a sentence written out: formula and value of each cell."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from nmt.errors import DataError, NmtError
from nmt.plotting.lesson.encoding import Encoding, number
from nmt.plotting.lesson.panels import FORMULA, label_rows, show_matrix, write_values
from nmt.plotting.style import SMALL, add_title

MOST_WORDS, MOST_COLUMNS = 32, 16
CELL_WIDTH, CELL_HEIGHT = 1.15, 0.5  # inches
MARGINS = (2.6, 1.5)
LEAST_WIDTH = 6.5  # of the title in a line


def draw_table(figure: Figure, words: Sequence[str], width: int, base: float) -> None:
    """Draw a table with a row for each word: position, then the formula and the value of each dimension.

    Args:
        figure: empty figure. Its size changes.
        words: L words.
        width: D.
        base: base of the encoding.

    Raises:
        DataError: without words, or with more than the table has room for.
        NmtError: for more dimensions than the table has room for.
    """
    encoding = Encoding(max(1, len(words)), width, base)
    if not 1 <= len(words) <= MOST_WORDS:
        raise DataError(
            f"The sentence has {len(words)} words. A table has from 1 to {MOST_WORDS} rows, one a word. Give another "
            "sentence."
        )
    if width > MOST_COLUMNS:
        raise NmtError(
            f"--width must be at most {MOST_COLUMNS} in a table; received {width}. nmt plot position-matrix draws "
            "wider encodings."
        )
    matrix = encoding.matrix()
    figure.set_size_inches(max(LEAST_WIDTH, MARGINS[0] + CELL_WIDTH * width), MARGINS[1] + CELL_HEIGHT * len(words))
    add_title(figure, "Position encoding of a sentence", f"width d = {width} · base n = {number(base)} · {FORMULA}")
    axes = figure.add_subplot()
    image = show_matrix(axes, matrix, (-1, 1))
    divisors = [base ** (column // 2 * 2 / width) for column in range(width)]
    cells = [
        [
            f"{encoding.function(column)}({position} / {number(round(divisors[column], 2))})\n{value:.6f}"
            for column, value in enumerate(row)
        ]
        for position, row in enumerate(matrix)
    ]
    write_values(axes, image, cells, size=8)
    label_rows(axes, [f"{word}   k = {position}" for position, word in enumerate(words)])
    axes.set_xticks(range(width), [f"{encoding.function(column)}, i = {column // 2}" for column in range(width)])
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0, labelsize=SMALL)
