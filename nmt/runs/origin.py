"""Where an imported model comes from, and how it compares with the original: import.json of a run."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.errors import DataError, counted
from nmt.storage.json_file import read_json


class Expected(Record):
    """What the original does with a text, in ids of the run: those it reads, and its translations."""

    text: str
    source: list[int]
    greedy: list[int]
    beam: list[int]


class Origin(Record):
    """Content of ``import.json``, which runs that start from the import keep."""

    format: Literal[1] = 1
    source: str
    """Name of the folder."""
    kind: Literal["transformers", "marian"]
    licence: str | None
    files: dict[str, str]
    """SHA-256 of each file that was read."""
    compared_with: str | None = None
    """What spoke for the original, such as "transformers 5.24.0"."""
    different: dict[str, int] = Field(default_factory=dict)
    """Number of texts with other source ids, greedy translations and beam translations."""
    logits: float | None = None
    """Largest difference of a logit; None where the original itself could not be asked."""
    expected: list[Expected] = Field(default_factory=list)

    @property
    def comparison(self) -> str:
        """The comparison in words."""
        counts = [f"{count:,} by {what}" for what, count in self.different.items()]
        logits = [] if self.logits is None else [f"logits by up to {self.logits:.1e}"]
        return f"of {counted(len(self.expected), 'sentence')} differ {', '.join(counts + logits)}"


def read_origin(path: Path) -> Origin | None:
    """Return the origin of a run; None without one. Raises DataError if the file is damaged."""
    try:
        return Origin.model_validate(read_json(path, "The origin of a run")) if path.is_file() else None
    except ValidationError as error:
        raise DataError(f"{path} is damaged: {error.errors()[0]['msg'][:200]}. Import the model again.") from None
