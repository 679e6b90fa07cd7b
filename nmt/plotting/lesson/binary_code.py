"""Binary code of positions beside their sinusoidal encoding."""

import numpy as np
from matplotlib.figure import Figure

from nmt.plotting.lesson.encoding import Encoding
from nmt.plotting.lesson.panels import FORMULA, add_bar, show_matrix, write_values
from nmt.plotting.style import SMALL, TEXT, add_title

WRITTEN_ROWS, WRITTEN_COLUMNS = 32, 16  # of a matrix whose cells are large enough for their values
ROW, HEAD = 0.25, 1.7  # inches


def bits(length: int) -> np.ndarray:
    """Return the binary code of positions 0 .. L - 1, the lowest bit first: int [L, bits of L - 1, at least 1]."""
    count = max(1, (length - 1).bit_length())
    return np.arange(length)[:, None] >> np.arange(count) & 1


def draw_binary_code(figure: Figure, encoding: Encoding) -> None:
    """Draw the bits of each position at the left, the lowest bit first, and its encoding at the right."""
    code, matrix = bits(encoding.length), encoding.matrix()
    figure.set_size_inches(10, float(np.clip(HEAD + ROW * encoding.length, 4.5, 10)))
    add_title(figure, "Binary code of positions beside their sinusoids", f"{encoding.parameters} · {FORMULA}")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.6])
    image = show_matrix(left, code, (0, 1))
    left.set_title("binary: each bit flips half as often\nas the bit to its left", loc="left", fontsize=TEXT)
    count = code.shape[1]
    left.set_xticks(range(count), [f"{2**bit:,}" for bit in range(count)], fontsize=SMALL, rotation=_turned(count, 8))
    left.set_xlabel("bit (its value)")
    left.set_ylabel("position")
    encoded = show_matrix(right, matrix, (-1, 1))
    ratio = encoding.base ** (2 / encoding.width)
    right.set_title(
        f"sinusoids: the wavelength of each pair of columns\nis {ratio:.3g} times that of the pair to its left",
        loc="left", fontsize=TEXT,
    )  # fmt: skip
    add_bar(figure, encoded, right, "value")
    if encoding.width <= WRITTEN_COLUMNS:
        turned = _turned(encoding.width, 10)
        names = [
            f"{encoding.function(column)}{' ' if turned else chr(10)}{encoding.wavelength(column):,.4g}"
            for column in range(encoding.width)
        ]
        right.set_xticks(range(encoding.width), names, fontsize=SMALL, rotation=turned)
        right.set_xlabel("dimension (function and wavelength in positions)")
    else:
        right.set_xlabel("dimension")
    if encoding.length <= WRITTEN_ROWS:
        left.set_yticks(range(encoding.length))
        write_values(left, image, [[str(bit) for bit in row] for row in code], size=SMALL)
        if encoding.width <= WRITTEN_COLUMNS:
            write_values(right, encoded, [[f"{value:.2f}" for value in row] for row in matrix], size=8)


def _turned(count: int, upright: int) -> float:
    """Return the rotation of N labels, of which ``upright`` fit side by side."""
    return 0 if count <= upright else 90
