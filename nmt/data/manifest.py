"""The manifest of a prepared dataset: its corpus files, settings, statistics, and the checksums of its files."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator

from nmt.config.data import ORIGINAL, DataConfig
from nmt.config.record import Record
from nmt.errors import DataError
from nmt.message import Argument
from nmt.storage.json_file import read_json, restore_remedy

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)

MANIFEST_FORMAT: Literal[7] = 7
"""Number of the format in which manifests are written. Up to format 6, there is no normalization ``nfc`` and no
``report.median_length_ratio``, and ``settings.max_length_ratio`` was a ratio of tokens. Format 5 has no
``repeating_targets``, format 4 has only one corpus, and format 3 has no language codes. Up to format 2, a side has
exactly one token file. Format 1 spells the key ``settings.normalization`` ``normalisation``."""


def _check_sides(counts: dict[str, Any]) -> dict[str, Any]:
    if counts and set(counts) != set(SIDES):
        raise ValueError(f"counts have the keys {', '.join(counts)} instead of {', '.join(SIDES)}")
    return counts


BySide = AfterValidator(_check_sides)
Count = Annotated[int, Field(ge=0, lt=2**63)]
Counts = Annotated[dict[str, Count], BySide, Field(min_length=1)]
"""Counts by side."""
ORDINARY_REPEATS = 0.02
"""Smallest share of training targets with a phrase three times in a row at which such repeats count as ordinary."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class SourceFile(Record):
    """A corpus file from which the dataset was prepared."""

    name: str
    bytes: Count
    sha256: Sha256
    role: str = "train"
    """Split for which the file was given, or name of a further corpus. Pairs given for "train" are divided among the
    splits that have no file."""


class SplitCounts(Record):
    """Statistics of one split. Token counts leave out bos and eos."""

    pairs: Count
    tokens: Counts
    """Number of tokens."""
    longest: Counts
    """Length of the longest sentence in tokens."""
    unknown: Counts
    """Number of unk tokens."""
    sources_in_training: Count
    """Number of pairs whose source sentence also occurs in the training split; 0 for the training split itself."""
    characters: Annotated[dict[str, Count], BySide] = Field(default_factory=dict)
    """Number of characters of the raw text."""
    percentiles: Annotated[dict[str, dict[str, Count]], BySide] = Field(default_factory=dict)
    """Sentence length in tokens at each percentile ("50", "90", "99"), by side."""


class CorpusCounts(Record):
    """A corpus in the training split; its pairs are consecutive."""

    pairs: Count
    tag: bool = False
    """Whether its sources begin with its tag."""


class DataReport(Record):
    """Findings about the corpus that a user should know before training."""

    facts: list[str] = Field(default_factory=list)
    """Properties of the files that were recognized rather than set: encoding, header, delimiter, fields."""
    noticed: dict[str, Count] = Field(default_factory=dict)
    """Number of suspicious pairs that were kept, by reason."""
    normalized: dict[str, Count] = Field(default_factory=dict)
    """Number of pairs that normalization changed by more than white space, by the kind of change."""
    places: dict[str, list[str]] = Field(default_factory=dict)
    """First places and texts of dropped, suspicious and changed pairs, by reason."""
    sources_translated_often: Count = 0
    """Number of distinct sources with more than one translation in the corpus."""
    most_translations: Count = 0
    """Largest number of distinct translations of one source."""
    columns_looked_at: Count = 0
    """Number of training pairs whose languages were compared with the languages of their columns."""
    median_length_ratio: float | None = Field(None, gt=0)
    """Median of target characters per source character in training. ``data.max_length_ratio`` is relative to it."""


class Manifest(Record):
    """Content of ``manifest.json``: what ``prepare`` read, decided and wrote."""

    format: Literal[1, 2, 3, 4, 5, 6, 7]
    prepared_at: str
    """Time of preparation, ISO 8601 in UTC."""
    corpus: SourceFile
    """First corpus file."""
    more_files: list[SourceFile] = Field(default_factory=list)
    """Further files: the second side, the files of validation and test, and further corpora."""
    settings: DataConfig
    """Resolved settings. None of them is "auto", except unknown language codes before format 4."""
    read: Count
    """Number of pairs read, dropped ones included."""
    dropped: dict[str, Count]
    """Number of dropped pairs, by reason."""
    vocabulary: Annotated[dict[str, Annotated[int, Field(gt=4, le=2**31)]], BySide, Field(min_length=1)]
    """Number of ids by side, including the four special ones."""
    splits: dict[str, SplitCounts]
    corpora: dict[str, CorpusCounts] = Field(default_factory=dict)
    """Corpora of the training split by name, in order; empty if all pairs are of the corpus "original"."""
    repeating_targets: float | None = Field(None, ge=0, le=1)
    """Share of training targets with a phrase three times in a row; None before format 6, and for imported runs."""
    report: DataReport = DataReport()
    tokenizer_of: str | None = None
    """Name of the run whose tokenizers were used; None if tokenizers were fitted on the training split."""
    unit: str = "words"
    """Unit of a token: "words", "characters" or "subwords"."""
    files: dict[str, Sha256]
    """SHA-256 of every file of the dataset except the manifest, by file name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if set(self.splits) != set(SPLITS):
            raise ValueError(f"splits has the keys {', '.join(self.splits) or 'none'} instead of {', '.join(SPLITS)}")
        if sum(self.pairs_by_corpus.values()) != self.splits["train"].pairs:
            raise ValueError("corpora have other numbers of pairs than the training split")
        return self

    @property
    def pairs_by_corpus(self) -> dict[str, int]:
        """Number of training pairs of each corpus, in the order of the split."""
        return {name: corpus.pairs for name, corpus in self.corpora.items()} or {ORIGINAL: self.splits["train"].pairs}

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``manifest.json`` in the newest format."""
        return {**self.model_dump(), "format": MANIFEST_FORMAT}

    @property
    def has_ordinary_repeats(self) -> bool:
        """Whether repeated phrases are ordinary in the targets, so that one in a translation is not a failure."""
        return self.repeating_targets is not None and self.repeating_targets >= ORDINARY_REPEATS

    @property
    def is_imported(self) -> bool:
        """Whether the manifest belongs to an imported run, which has no dataset."""
        return self.read == 0

    @property
    def languages(self) -> dict[Side, str]:
        """Language code of each side; "source" or "target" if it is unknown."""
        codes: dict[Side, str | None] = {
            "source": self.settings.source_language,
            "target": self.settings.target_language,
        }
        return {side: side if code in (None, "auto") else str(code) for side, code in codes.items()}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the dataset's files and corpora. It is equal only for equal tokens, tokenizers and texts."""
        content = self.files | {f"corpus {name}": str(corpus.pairs) for name, corpus in self.corpora.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file of format 1 to 7.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if the file is damaged or has a newer format.
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
        raise DataError(
            f"Manifest {path} is damaged: {key}{': ' if key else ''}{reason}. ", *restore_remedy(path)
        ) from None
