"""The manifest of a prepared dataset: its corpus files, settings, statistics, and the checksums of its files."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator

from nmt.config.data import ORIGINAL, DataConfig, known_codes
from nmt.config.languages import matching_code
from nmt.config.record import Record
from nmt.errors import DataError, NmtError
from nmt.message import Argument, Settings
from nmt.storage.json_file import read_json, restore_remedy
from nmt.storage.names import did_you_mean
from nmt.tokenizers.names import COPIED_SHARE, LEAST_NAMES

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)

MANIFEST_FORMAT: Literal[10] = 10
"""Number of the format in which manifests are written. Up to format 9, there is no ``report.letters``, and up to format
8 no ``names``. Up to format 7, all pairs have the same direction. Up to format 6, there is no normalization ``nfc`` and
no ``report.median_length_ratio``, and ``settings.max_length_ratio`` was a ratio of tokens. Format 5 has no
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
SEVERAL = "mul"
"""Code for several languages (ISO 639-2)."""
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
    direction: Count | None = None
    """Index of its language pair in ``directions``; None if the dataset has none."""


class Direction(Record):
    """A language pair of a dataset. Its validation pairs are consecutive, and its test pairs."""

    source: str
    """Code of the source language; "source" if it is unknown."""
    target: str
    """Code of the target language; "target" if it is unknown."""
    tag: str | None = None
    """Tag before each source, which says the target language; None: sources have none."""
    pairs: dict[str, Count] = Field(default_factory=dict)
    """Number of pairs, by split."""
    median_length_ratio: float | None = Field(None, gt=0)
    """Median of target characters per source character in training; None if it is unknown."""
    token_ratio: float | None = Field(None, gt=0)
    """Target tokens per source token in training, with eos; None if it is unknown."""

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of source and target."""
        return self.source, self.target

    @property
    def name(self) -> str:
        """Both codes, such as "es-gn"; "en,pt-BR" if a code has a region."""
        separator = "," if "-" in self.source + self.target else "-"
        return f"{self.source}{separator}{self.target}"


class Names(Record):
    """New names in the validation pairs of a small corpus; see ``nmt.tokenizers.names``."""

    found: Count
    """Number of names in validation sources that no training source has."""
    copied: Count
    """How many of them are in the target unchanged."""
    known: str
    """Words of all training sources in lower case, separated by spaces."""

    @property
    def are_copied(self) -> bool:
        """Whether translations copy new names."""
        return self.found >= LEAST_NAMES and self.copied >= COPIED_SHARE * self.found


class Letter(Record):
    """A letter that is frequent in training or validation, and rare in the other; see ``nmt.tokenizers.spelling``."""

    language: str
    """Code of the language."""
    letter: str
    """The letter in lower case."""
    training: float = Field(ge=0, le=1)
    """Share among the letters of the training text."""
    validation: float = Field(ge=0, le=1)
    """Share among the letters of the validation text."""


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
    letters: list[Letter] = Field(default_factory=list)
    """Letters that may belong to different spellings in training and validation, by language. Empty before format
    10."""


class Manifest(Record):
    """Content of ``manifest.json``: what ``prepare`` read, decided and wrote."""

    format: Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    prepared_at: str
    """Time of preparation, ISO 8601 in UTC."""
    corpus: SourceFile
    """First corpus file."""
    more_files: list[SourceFile] = Field(default_factory=list)
    """Further files: the second side, the files of validation and test, and further corpora."""
    settings: DataConfig
    """Resolved settings. None of them is "auto", except unknown language codes before format 4, and subword sampling in
    format 1, which does not have it."""
    read: Count
    """Number of pairs read, dropped ones included."""
    dropped: dict[str, Count]
    """Number of dropped pairs, by reason."""
    vocabulary: Annotated[dict[str, Annotated[int, Field(gt=4, le=2**31)]], BySide, Field(min_length=1)]
    """Number of ids by side, including the four special ones."""
    splits: dict[str, SplitCounts]
    corpora: dict[str, CorpusCounts] = Field(default_factory=dict)
    """Corpora of the training split by name, in order; empty if all pairs are of the corpus "original"."""
    directions: list[Direction] = Field(default_factory=list)
    """Language pairs of a dataset of several, in the order of their validation and test pairs; empty for a single
    pair."""
    repeating_targets: float | None = Field(None, ge=0, le=1)
    """Share of training targets with a phrase three times in a row; None before format 6, and for imported runs."""
    names: Names | None = None
    """What is known about new names; None if the dataset does not keep its training text, and before format 9."""
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
        numbers = [corpus.direction for corpus in self.corpora.values() if corpus.direction is not None]
        if any(number >= len(self.directions) for number in numbers):
            raise ValueError("a corpus has a direction that does not exist")
        for name, split in self.splits.items():
            if self.directions and not self.is_imported:
                counted = sum(direction.pairs.get(name, 0) for direction in self.directions)
                if counted != split.pairs:
                    raise ValueError(f"directions have other numbers of pairs than the {name} split")
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
    def known_words(self) -> frozenset[str] | None:
        """Words of all training sources in lower case. Translations copy names that are not among them; None: none."""
        if self.names is None or not self.names.are_copied:
            return None
        return frozenset(self.names.known.split())

    @property
    def is_imported(self) -> bool:
        """Whether the manifest belongs to an imported run, which has no dataset."""
        return self.read == 0

    @property
    def languages(self) -> dict[Side, str]:
        """Language code of each side; "source" or "target" if it is unknown, "mul" for several languages."""
        if self.directions:
            sources = {direction.source for direction in self.directions}
            targets = {direction.target for direction in self.directions}
            return {
                "source": sources.pop() if len(sources) == 1 else SEVERAL,
                "target": targets.pop() if len(targets) == 1 else SEVERAL,
            }
        source, target = known_codes(self.settings.source_language, self.settings.target_language)
        return {"source": source, "target": target}

    @property
    def is_multilingual(self) -> bool:
        """Whether the dataset has several directions."""
        return len(self.directions) > 1

    @property
    def training_parts(self) -> list[tuple[range, tuple[str, str]]]:
        """Consecutive training pairs with the codes of their languages: each corpus of a dataset of several pairs."""
        languages = self.languages["source"], self.languages["target"]
        if not self.directions:
            return [(range(self.splits["train"].pairs), languages)]
        parts, start = [], 0
        for corpus in self.corpora.values():
            pairs = range(start, start + corpus.pairs)
            parts.append((pairs, self.directions[corpus.direction or 0].languages))
            start += corpus.pairs
        return parts or [(range(self.splits["train"].pairs), self.directions[0].languages)]

    @property
    def keeps_training_text(self) -> bool:
        """Whether the dataset has its raw training text, which subword sampling needs."""
        return self.settings.subword_sampling in (True, "possible")

    @property
    def all_directions(self) -> list[Direction]:
        """The directions of the dataset, or its single one."""
        languages = self.languages
        pairs = {name: split.pairs for name, split in self.splits.items()}
        return self.directions or [Direction(source=languages["source"], target=languages["target"], pairs=pairs)]

    def rows(self, split: SplitName) -> list[tuple[Direction, range]]:
        """Return the pairs of each direction in the validation or the test split."""
        rows, start = [], 0
        for direction in self.all_directions:
            end = start + direction.pairs.get(split, 0)
            rows.append((direction, range(start, end)))
            start = end
        return rows

    def direction(self, source: str | None, target: str | None) -> Direction:
        """Return the direction between two languages, which may be one that no pair of the dataset has (zero-shot).

        Args:
            source: code of the source language; None: the source language of all directions with this target.
            target: code of the target language; None: the only target language.

        Raises:
            NmtError: if the dataset does not have a language, or has several target languages and none is given.
        """
        known = self.all_directions
        sources = list(dict.fromkeys(one.source for one in known))
        targets = list(dict.fromkeys(one.target for one in known))
        if target is None and len(targets) > 1:
            raise NmtError(
                f"The model translates into several languages: {', '.join(targets)}. Choose one with ",
                Settings({"decoding.target_language": targets[0]}),
                ".",
            )
        wanted = _known_code("target_language", target, targets)
        fitting = [one for one in known if one.target == wanted]
        if source is None:
            several = len({one.source for one in fitting}) > 1
            return fitting[0].model_copy(update={"source": SEVERAL}) if several else fitting[0]
        readable = list(dict.fromkeys([*sources, *targets])) if self.is_multilingual else sources
        found = _known_code("source_language", source, readable)
        same = [one for one in fitting if one.source == found]
        return same[0] if same else fitting[0].model_copy(update={"source": found, "pairs": {}})

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the dataset's files and corpora. It is equal only for equal tokens, tokenizers and texts.

        A training text that is only kept in case it is needed does not count: it has the same tokens. So a run goes on
        with a dataset that an older version prepared without it.
        """
        content = self.files | {f"corpus {name}": str(corpus.pairs) for name, corpus in self.corpora.items()}
        if self.settings.subword_sampling == "possible":
            for side in SIDES:
                content.pop(f"train.{side}.txt", None)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _known_code(key: str, code: str | None, known: list[str]) -> str:
    """Return the code among known ones that means the same language; the only known one for None."""
    if code is None:
        return known[0]
    match = matching_code(code, known)
    if match in known:
        return match
    if known in (["source"], ["target"]):  # a model of unknown languages translates as it was trained
        return known[0]
    raise NmtError(
        Settings({f"decoding.{key}": code}),
        f": the model does not know this language{did_you_mean(code, known)}. It knows {', '.join(known)}. Give one of "
        "these.",
    )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file of format 1 to 10.

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
