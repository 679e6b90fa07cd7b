"""Interface of a tracker."""

from collections.abc import Mapping
from typing import Protocol

Value = bool | int | float | str
"""Value of a hyper-parameter."""


class Tracker(Protocol):
    """Record of a run in the files of another program. It begins empty; any method may raise, which ends it.

    Names of series have parts, separated by slashes, such as "validation/loss". ``step`` counts training steps from 1.
    """

    def hyperparameters(self, values: Mapping[str, Value]) -> None:
        """Record the configuration, by full keys such as "training.seed"."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Record a value of each series."""

    def text(self, step: int, name: str, markdown: str) -> None:
        """Record a text."""

    def image(self, step: int, name: str, png: bytes) -> None:
        """Record a picture."""

    def flush(self) -> None:
        """Write what is recorded to the disk."""

    def close(self) -> None:
        """Write the rest, and end the record."""
