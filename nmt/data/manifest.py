"""What a prepared dataset is: token ids end to end, and a manifest that says whence they come."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from nmt.config.data import DataConfig
from nmt.config.record import Record
from nmt.errors import DataError
from nmt.storage.json_file import RESTORE, read_json

Count = Annotated[int, Field(ge=0, lt=2**63)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
SPLIT_NAMES, SIDE_NAMES = {"train", "validation", "test"}, {"source", "target"}


class SourceFile(Record):
    """A file that was prepared."""

    name: str
    bytes: Count
    sha256: Sha256
    role: Literal["train", "validation", "test"] = "train"
    """What it was given for; pairs given for "train" alone are split."""


class SplitCounts(Record):
    """What a split holds. Tokens are counted without bos and eos."""

    pairs: Count
    tokens: dict[str, Count]
    """By side."""
    longest: dict[str, Count]
    """Tokens of the longest sentence, by side."""
    unknown: dict[str, Count]
    """Tokens that are unk, by side."""
    sources_in_training: Count
    """Pairs whose source sentence stands in the training split too (the training split itself: 0)."""
    characters: dict[str, Count] = Field(default_factory=dict)
    """Of the raw text, by side."""
    percentiles: dict[str, dict[str, Count]] = Field(default_factory=dict)
    """By side: so many percent of the sentences have at most so many tokens."""


class Report(Record):
    """What preparation found that a person should know, beyond the counts."""

    noticed: dict[str, Count] = Field(default_factory=dict)
    """Pairs that are odd and were kept, by what is odd."""
    places: dict[str, list[str]] = Field(default_factory=dict)
    """The first places of what was dropped or noticed, by reason."""
    sources_translated_often: Count = 0
    """Different sources with more than one translation in the corpus."""
    most_translations: Count = 0
    """Of one source."""
    columns_looked_at: Count = 0
    """Pairs whose languages were compared with those of their columns."""


class Manifest(Record):
    """What ``prepare`` read, decided and wrote: ``manifest.json``."""

    format: Literal[1]
    prepared_at: str
    corpus: SourceFile
    """The first of the files."""
    more_files: list[SourceFile] = Field(default_factory=list)
    """Those beside it: the other side, validation, test."""
    settings: DataConfig
    """As resolved: nothing in them is "auto"."""
    read: Count
    dropped: dict[str, Count]
    vocabulary: dict[str, Annotated[int, Field(gt=4, le=2**31)]]
    """Ids by side, the four special ones included."""
    splits: dict[str, SplitCounts]
    report: Report = Report()
    tokenizer_of: str | None = None
    """The run whose tokenizers were taken; None: they were fitted on the training split."""
    unit: str = "words"
    """What a token is: "words", "characters" or "subwords"."""
    files: dict[str, Sha256]
    """SHA-256 of every other file of the dataset, by its name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if set(self.splits) != SPLIT_NAMES:
            raise ValueError(
                f"splits are {', '.join(sorted(SPLIT_NAMES))}; there are {', '.join(self.splits) or 'none'}"
            )
        by_side: list[dict[str, Any]] = [self.vocabulary]
        for split in self.splits.values():
            by_side += [split.tokens, split.longest, split.unknown]
            by_side += [part for part in (split.characters, split.percentiles) if part]
        if any(set(part) != SIDE_NAMES for part in by_side):
            raise ValueError(f"what is counted by side has {' and '.join(sorted(SIDE_NAMES))}")
        return self

    @property
    def fingerprint(self) -> str:
        """SHA-256 that two datasets share if and only if they hold the same tokens, tokenizers and texts."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file.

    Raises:
        DataError: if it is not a manifest of this format.
    """
    try:
        return Manifest.model_validate(read_json(path, "A dataset's manifest"))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))[:200]
        said = problem["msg"].removeprefix("Value error, ")[:200]
        raise DataError(
            f"A dataset's manifest is as nmt prepare writes it; {path} is damaged: "
            f"{where}{': ' if where else ''}{said}. {RESTORE}"
        ) from None
