"""Origin of an imported model and its comparison with the original program: ``import.json`` of a run."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.errors import DataError, counted
from nmt.storage.json_file import read_json


class Expected(Record):
    """Results of the original program for a text, all in ids of the run: source ids and translations."""

    text: str
    source: list[int]
    """Source ids."""
    greedy: list[int]
    """Ids of the greedy translation."""
    beam: list[int]
    """Ids of the translation by beam search."""


class Origin(Record):
    """Content of ``import.json``. A run that starts from an imported run keeps a copy."""

    format: Literal[1] = 1
    source: str
    """Name of the imported folder."""
    kind: Literal["transformers", "marian"]
    """Format of the imported folder."""
    licence: str | None
    """Licence of the model; None if the folder names none."""
    files: dict[str, str]
    """SHA-256 by name of each file that was read."""
    compared_with: str | None = None
    """Program that computed the original's results, such as "transformers 5.24.0"."""
    different: dict[str, int] = Field(default_factory=dict)
    """Number of texts with different source ids, greedy translations and beam translations."""
    logits: float | None = None
    """Largest absolute difference of a logit; None if the original program did not run."""
    expected: list[Expected] = Field(default_factory=list)
    """Results of the original program."""

    @property
    def comparison(self) -> str:
        """Result of the comparison in words."""
        counts = [f"{count:,} by {aspect}" for aspect, count in self.different.items()]
        logits = [] if self.logits is None else [f"logits by up to {self.logits:.1e}"]
        return f"of {counted(len(self.expected), 'sentence')} differ {', '.join(counts + logits)}"


def read_origin(path: Path) -> Origin | None:
    """Return the origin of a run; None if the file does not exist. Raises DataError if the file is damaged."""
    try:
        return Origin.model_validate(read_json(path, "The origin of a run")) if path.is_file() else None
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. Import the model again.") from None
