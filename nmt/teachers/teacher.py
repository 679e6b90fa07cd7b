"""Interface of teachers, and their translations."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import JsonValue

EMPTY, CUT_OFF, TOO_LONG = "empty line", "cut off by the limit on its length", "longer than the model reads"
"""Problems of candidates."""


class Candidate(NamedTuple):
    """A translation of a line by a teacher, or the reason why there is none."""

    text: str
    """The translation."""
    score: float | None = None
    """Mean log-probability of its tokens (natural logarithm); None if the teacher does not tell."""
    problem: str = ""
    """Reason for which the candidate is not used, such as ``CUT_OFF``; empty if there is none."""


class Teacher(Protocol):
    """A model or a server that translates lines. Two threads may call it at the same time."""

    name: str
    """Name in messages."""

    identity: dict[str, JsonValue]
    """What its translations depend on. An interrupted job goes on only with an equal identity."""

    def translate(self, lines: Sequence[str], first: int, journal: Path) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; at least one for each.

        An empty line has a candidate without text.

        Args:
            lines: consecutive lines of the text.
            first: number of the first of them, from 0.
            journal: file in which a server's answers are kept until the whole block is written. Answers that it has are
                not asked for again.
        """

    def summary(self) -> str:
        """Return what the translations have cost, in words; empty for a teacher that costs nothing."""

    def close(self) -> None:
        """Release the model and its threads."""
