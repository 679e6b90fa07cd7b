"""Places for the labels of points, so that no label covers another label, and few cover points.

Lengths are in pixels.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Directions from a point to its label, best first: right, left, above, below, then the diagonals.
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
DISTANCES = (1.0, 2.2, 3.6, 5.5, 8.0)  # in units of the gap
COST_OF_DISTANCE = 0.75  # of the next distance, where a covered point costs 1


class Place(NamedTuple):
    """Place of a label."""

    left: float
    bottom: float
    is_near: bool
    """Whether it is at the least distance, so that nobody doubts whose label it is."""


class Places:
    """Boxes of labels, placed one after the other. The first ones have the choice, so the important ones come first."""

    def __init__(self, points: np.ndarray, bounds: tuple[float, float, float, float], gap: float) -> None:
        """Take the points [N, 2], left, bottom, right and top of the area for labels, and the gap around a point."""
        self.points, self.bounds, self.gap = points, bounds, gap
        self.boxes = np.empty((0, 4))

    def place(self, point: Sequence[float], size: tuple[float, float], radius: float = 0) -> Place | None:
        """Take the best free place for the label of a point, or return None if no place is free.

        Args:
            point: x and y of the point.
            size: width and height of the label.
            radius: radius of a large point.
        """
        candidates = [
            (self._covered(box) + COST_OF_DISTANCE * (number // len(DIRECTIONS)), number, box)
            for number, box in enumerate(self._boxes_around(point, size, radius))
            if self._is_free(box)
        ]
        if not candidates:
            return None
        _, number, box = min(candidates, key=lambda candidate: candidate[:2])
        self.boxes = np.vstack([self.boxes, box])
        return Place(float(box[0]), float(box[1]), number < len(DIRECTIONS))

    def _boxes_around(self, point: Sequence[float], size: tuple[float, float], radius: float) -> list[np.ndarray]:
        (x, y), (width, height) = point, size
        found = []
        for distance in DISTANCES:
            gap = distance * self.gap + radius
            for across, up in DIRECTIONS:
                left = x + across * gap - width * (1 - across) / 2
                bottom = y + up * gap - height * (1 - up) / 2
                found.append(np.array([left, bottom, left + width, bottom + height]))
        return found

    def _is_free(self, box: np.ndarray) -> bool:
        left, bottom, right, top = self.bounds
        if box[0] < left or box[1] < bottom or box[2] > right or box[3] > top:
            return False
        others = self.boxes
        overlaps = (others[:, 0] < box[2]) & (box[0] < others[:, 2]) & (others[:, 1] < box[3]) & (box[1] < others[:, 3])
        return not overlaps.any()

    def _covered(self, box: np.ndarray) -> int:
        x, y = self.points.T
        return int(((x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])).sum())
