"""A sinusoidal position encoding of given length, width and base, within bounds."""

from dataclasses import dataclass

import numpy as np

from nmt.errors import NmtError
from nmt.models.layers.positions import angle_rates, sinusoidal_encoding

MAX_LENGTH, MAX_WIDTH, MAX_BASE = 100_000, 65_536, 1e12
MAX_VALUES = 2**24  # 64 MB in float32; matplotlib needs several times as much to draw them
MAX_SIMILAR = 4_096  # positions whose similarities are MAX_VALUES values


@dataclass(frozen=True)
class Encoding:
    """Length L, width D and base of an encoding."""

    length: int
    width: int
    base: float

    def __post_init__(self) -> None:
        """Refuse an encoding that does not exist, or that is too large for a figure.

        Raises:
            NmtError: names the option.
        """
        if self.width % 2:
            raise NmtError(
                f"--width must be even; received {self.width}. Each sine of the encoding has its cosine. Give "
                f"--width {self.width + 1}."
            )
        if not 1 < self.base <= MAX_BASE:  # refuses nan too
            raise NmtError(
                f"--base must be greater than 1 and at most {MAX_BASE:,.0f}; received {self.base:g}. The paper has "
                "10000. Give another base."
            )
        if self.length * self.width > MAX_VALUES:
            raise NmtError(
                f"--length {self.length} times --width {self.width} is {self.length * self.width:,} values; a figure "
                f"has at most {MAX_VALUES:,}. Give a smaller length or width."
            )

    def matrix(self) -> np.ndarray:
        """Return the encoding of positions 0 .. L - 1, float32 [L, D]."""
        return sinusoidal_encoding(self.length, self.width, self.base)

    def rates(self) -> np.ndarray:
        """Return the radians per position of each pair of columns, float32 [D/2]."""
        return angle_rates(self.width, self.base)

    def similarity(self) -> np.ndarray:
        """Return the cosine of the encodings of any two positions, float32 [L, L].

        Raises:
            NmtError: for more positions than a figure shows.
        """
        if self.length > MAX_SIMILAR:
            raise NmtError(
                f"--length must be at most {MAX_SIMILAR} where positions are compared with each other; received "
                f"{self.length}. Give a smaller length."
            )
        return cosines(self.matrix())

    @property
    def parameters(self) -> str:
        """Length, width and base for a title."""
        return f"length {self.length:,} · width {self.width:,} · base {number(self.base)}"

    def wavelength(self, column: int) -> float:
        """Return the number of positions after which a column repeats."""
        return float(2 * np.pi / self.rates()[column // 2])

    def function(self, column: int) -> str:
        """Return "sin" or "cos", which a column is."""
        return "cos" if column % 2 else "sin"


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of any two rows, [N, D] -> float32 [N, N]. A row of zeros has cosine 0 with every row."""
    normalized = unit_rows(vectors)
    return normalized @ normalized.T


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return rows divided by their length, float32 [N, D]; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def number(value: float) -> str:
    """Return a number for a title, such as "10,000", "2.5" or "1e+12"."""
    return f"{value:,.0f}" if value == int(value) and value < 1e9 else f"{value:g}"
