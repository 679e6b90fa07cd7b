"""Batch size that ``training.batch_size: auto`` has chosen for a run, with the measurements behind it."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.errors import DataError
from nmt.storage.format_number import check_format
from nmt.storage.json_file import read_json, write_json

FORMAT = 1


class FittedBatch(Record):
    """Content of ``batch_size.json``."""

    format: int = FORMAT
    """Number of this format."""
    batch_type: Literal["sentences", "tokens"]
    """Unit of the batch sizes."""
    batch_size: int = Field(ge=1)
    """Size of a batch that was chosen."""
    micro_batches: int = Field(ge=1)
    """Batches of a step that were chosen with it."""
    default_size: int = Field(ge=1)
    """Size of a batch where memory is no limit."""
    needed_bytes: int | None
    """Memory that the longest batch of the default size takes besides weights and optimizer; None: not known."""
    chosen_bytes: int | None
    """Memory that the longest batch of the chosen size takes likewise; None: not known."""
    free_bytes: int | None
    """Memory that was free; None: not known."""

    @property
    def text(self) -> str:
        """The choice and its reason on a line."""
        unit = "sentences" if self.batch_type == "sentences" else "target tokens"
        choice = f"{self.batch_size:,} {unit}" + (
            f" in each of {self.micro_batches} micro-batches" if self.micro_batches > 1 else ""
        )
        if self.needed_bytes is None or self.chosen_bytes is None or self.free_bytes is None:
            return f"Batch size: {choice}, the default; the system does not say how much memory is free"
        free = f"{memory_size(self.free_bytes)} were free"
        if self.batch_size == self.default_size:
            return f"Batch size: {choice}, the default, whose longest takes {memory_size(self.needed_bytes)}; {free}"
        return (
            f"Batch size: {choice}, whose longest takes {memory_size(self.chosen_bytes)}; {free}, and the default of "
            f"{self.default_size:,} takes {memory_size(self.needed_bytes)}"
        )

    def write(self, path: Path) -> None:
        """Write the file."""
        write_json(path, self.model_dump(mode="json"))


def read_fitted_batch(path: Path) -> FittedBatch | None:
    """Return the content of a file; None if there is none, since the size of the batches was given.

    Raises:
        DataError: if it is damaged, or of an unknown format.
    """
    if not path.exists():
        return None
    content = read_json(path, "The choice of a batch size")
    if not isinstance(content, dict) or "format" not in content:
        raise DataError(f"{path} is damaged: it has no format. nmt train wrote it. Restore a copy, or delete it.")
    check_format(content["format"], [FORMAT], str(path))
    try:
        return FittedBatch.model_validate(content)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise DataError(f"{path} is damaged: {reason}. nmt train wrote it. Restore a copy, or delete it.") from None


def memory_size(count: int) -> str:
    """Return a number of bytes in MB or GB, rounded."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"
