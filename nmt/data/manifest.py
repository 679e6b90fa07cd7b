"""The manifest of a prepared dataset: what was read, with which settings, and what each file holds."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator

from nmt.config.data import ORIGINAL, DataConfig
from nmt.config.record import Record
from nmt.errors import DataError
from nmt.message import Argument
from nmt.storage.json_file import read_json, restore

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)

MANIFEST_FORMAT: Literal[6] = 6
"""Number of the newest format, in which manifests are written. Format 5 has no ``repeating_targets``, format 4 one
corpus alone, format 3 no language codes. Format 2 also knows one file of tokens a side. Format 1 also spells the key
``settings.normalization`` ``normalisation``."""


def _check_sides(counts: dict[str, Any]) -> dict[str, Any]:
    if counts and set(counts) != set(SIDES):
        raise ValueError(f"counts have the keys {', '.join(counts)} instead of {', '.join(SIDES)}")
    return counts


BySide = AfterValidator(_check_sides)
Count = Annotated[int, Field(ge=0, lt=2**63)]
Counts = Annotated[dict[str, Count], BySide, Field(min_length=1)]
"""Counts by side."""
ORDINARY_REPEATS = 0.02
"""Share of training targets that repeat a phrase three times in a row from which such repeats are ordinary."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class SourceFile(Record):
    """A corpus file that the dataset was prepared from."""

    name: str
    bytes: Count
    sha256: Sha256
    role: str = "train"
    """Split that the file was given for, or name of a further corpus. Pairs given for "train" are divided among the
    splits that have no file."""


class SplitCounts(Record):
    """Statistics of one split. Token counts leave out bos and eos."""

    pairs: Count
    tokens: Counts
    """Number of tokens."""
    longest: Counts
    """Number of tokens of the longest sentence."""
    unknown: Counts
    """Number of tokens that are unk."""
    sources_in_training: Count
    """Number of pairs whose source sentence also occurs in the training split; 0 for the training split itself."""
    characters: Annotated[dict[str, Count], BySide] = Field(default_factory=dict)
    """Number of characters of the raw text."""
    percentiles: Annotated[dict[str, dict[str, Count]], BySide] = Field(default_factory=dict)
    """Sentence length in tokens at each percentile ("50", "90", "99"), by side."""


class CorpusCounts(Record):
    """A corpus in the training split, in which its pairs stand side by side."""

    pairs: Count
    tag: bool = False
    """Whether each of its sources begins with its tag."""


class DataReport(Record):
    """Findings about the corpus that a person should know before training."""

    noticed: dict[str, Count] = Field(default_factory=dict)
    """Number of suspicious pairs that were kept, by reason."""
    places: dict[str, list[str]] = Field(default_factory=dict)
    """First places, with their text, of pairs that were dropped or noticed, by reason."""
    sources_translated_often: Count = 0
    """Number of distinct sources with more than one translation in the corpus."""
    most_translations: Count = 0
    """Largest number of distinct translations of one source."""
    columns_looked_at: Count = 0
    """Number of training pairs whose sides were compared with the language of their column."""


class Manifest(Record):
    """Content of ``manifest.json``: everything ``prepare`` read, decided and wrote."""

    format: Literal[1, 2, 3, 4, 5, 6]
    prepared_at: str
    """Time of preparation, ISO 8601 in UTC."""
    corpus: SourceFile
    """First corpus file."""
    more_files: list[SourceFile] = Field(default_factory=list)
    """Further corpus files: the second side, and the files of validation and test."""
    settings: DataConfig
    """Settings in force; none of them is "auto", but for the language codes before format 4, which are unknown."""
    read: Count
    """Number of pairs read, the dropped ones included."""
    dropped: dict[str, Count]
    """Number of pairs left out, by reason."""
    vocabulary: Annotated[dict[str, Annotated[int, Field(gt=4, le=2**31)]], BySide, Field(min_length=1)]
    """Number of ids, the four special ones included, by side."""
    splits: dict[str, SplitCounts]
    corpora: dict[str, CorpusCounts] = Field(default_factory=dict)
    """Corpora of the training split by name, in their order; none: all of it is the corpus "original"."""
    repeating_targets: float | None = Field(None, ge=0, le=1)
    """Share of training targets that repeat a phrase three times in a row; None before format 6, and for imports."""
    report: DataReport = DataReport()
    tokenizer_of: str | None = None
    """Name of the run whose tokenizers were used; None if tokenizers were fitted on the training split."""
    unit: str = "words"
    """What a token stands for: "words", "characters" or "subwords"."""
    files: dict[str, Sha256]
    """SHA-256 of every other file of the dataset, by file name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if set(self.splits) != set(SPLITS):
            raise ValueError(f"splits has the keys {', '.join(self.splits) or 'none'} instead of {', '.join(SPLITS)}")
        if sum(self.pairs_by_corpus.values()) != self.splits["train"].pairs:
            raise ValueError("corpora have other numbers of pairs than the training split")
        return self

    @property
    def pairs_by_corpus(self) -> dict[str, int]:
        """Number of training pairs of each corpus, in the order in which their pairs stand in the split."""
        return {name: corpus.pairs for name, corpus in self.corpora.items()} or {ORIGINAL: self.splits["train"].pairs}

    def written(self) -> dict[str, Any]:
        """Return the content of the file, in the newest format."""
        return {**self.model_dump(), "format": MANIFEST_FORMAT}

    @property
    def has_ordinary_repeats(self) -> bool:
        """Whether targets repeat phrases as a matter of course, so that a translation that does is no failure."""
        return self.repeating_targets is not None and self.repeating_targets >= ORDINARY_REPEATS

    @property
    def is_imported(self) -> bool:
        """Whether the manifest is that of an imported run, which has no dataset."""
        return self.read == 0

    @property
    def languages(self) -> dict[Side, str]:
        """Language code of each side; "source" or "target" where it is unknown."""
        codes: dict[Side, str | None] = {
            "source": self.settings.source_language,
            "target": self.settings.target_language,
        }
        return {side: side if code in (None, "auto") else str(code) for side, code in codes.items()}

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the dataset's files and corpora: equal for equal tokens, tokenizers and texts, and only then."""
        content = self.files | {f"corpus {name}": str(corpus.pairs) for name, corpus in self.corpora.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file, of formats 1 to 6.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is damaged or has another format.
    """
    values = read_json(path, "A dataset's manifest")
    number = values["format"] if isinstance(values, dict) and "format" in values else None
    if type(number) is int and number not in range(1, MANIFEST_FORMAT + 1):
        raise DataError(
            f"Manifest {path} has format {number}. This version of nmt reads manifests of formats 1 to "
            f"{MANIFEST_FORMAT}. Use the version of nmt that prepared the dataset, or prepare the corpus again with ",
            Argument("overwrite", True),
            ".",
        )
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))[:200]
        reason = problem["msg"].removeprefix("Value error, ")[:200]
        raise DataError(f"Manifest {path} is damaged: {key}{': ' if key else ''}{reason}. ", *restore(path)) from None
