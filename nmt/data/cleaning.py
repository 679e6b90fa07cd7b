"""A corpus as it comes: read, checked pair by pair, and what is left out counted by reason. Memory: 16 bytes a pair."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.pair_store import SpoolWriter
from nmt.data.sources.formats import Fault, Pair, read_pairs, unit_of
from nmt.data.sources.text_file import TextFile
from nmt.errors import DataError, printable
from nmt.tokenizers.normalization import NORMALIZERS, Normalizer, ascii_words, collapse_white_space

SPLITS: tuple["SplitName", ...] = ("train", "validation", "test")
SplitName = Literal["train", "validation", "test"]
EXAMPLES = 3  # places named for each reason
LOOKED_AT = 10_000  # pairs that decide what "auto" is
LOOKED_AT_CHARACTERS = 10_000_000  # of their texts, or fewer pairs
# What Unicode calls control characters, white space apart: never part of a sentence, often of a broken encoding.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
Progress = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it is done, and of how much (None: unknown)."""


@dataclass(frozen=True)
class Sources:
    """The files of a corpus: one, or two with a side each; validation and test apart, or to be split off."""

    corpus: list[TextFile]
    validation: list[TextFile] = field(default_factory=list)
    test: list[TextFile] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> "Sources":
        """Return a corpus of one file."""
        return cls([TextFile(path)])

    def roles(self) -> Iterator[tuple[SplitName, list[TextFile]]]:
        """Yield the files of each role; those of "train" are split where a role has none of its own."""
        yield "train", self.corpus
        if self.validation:
            yield "validation", self.validation
        if self.test:
            yield "test", self.test


@dataclass
class Findings:
    """What the rules found, by reason: how often, and the first places with their text."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, place: str, count: int = 1) -> None:
        """Count a finding, and keep its place if it is among the first."""
        self.counts[reason] += count
        places = self.places.setdefault(reason, [])
        if len(places) < EXAMPLES:
            places.append(place)


@dataclass(frozen=True)
class Corpus:
    """The pairs that are kept, in a spool, those of each role together and in the order of their file."""

    roles: dict[SplitName, range]
    """Which pairs of the spool came from the files of a role."""
    sources: np.ndarray
    """A hash of each normalized source, uint64 [N]: equal for equal sources."""
    targets: np.ndarray
    """The same for targets, uint64 [N]."""
    read: int
    dropped: Findings
    noticed: Findings
    """What is odd and was kept."""


def text_hash(text: str) -> bytes:
    """Return 8 bytes that two texts share, for all that will ever be met, if and only if they are equal."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def place_of(files: list[TextFile], number: int) -> str:
    """Return "file, line 7", or the like."""
    return printable(f"{' and '.join(file.name for file in files)}, {unit_of(files)} {number}")


def show(pair: Pair) -> str:
    """Return the beginnings of both sides for a message."""
    return f"{pair.source[:60]!r} | {pair.target[:60]!r}"


def resolve_auto(sources: Sources, config: DataConfig) -> DataConfig:
    """Return the configuration with tokenizer, normalization and joint vocabulary decided by a look at the text.

    Lower-case ASCII words without punctuation, as lessons use, are taken as the words they are; anything else becomes
    subwords of text in NFKC. One pair in a hundred may differ.
    """
    if "auto" not in {config.tokenizer, config.normalization, config.joint_vocabulary}:
        return config
    first = itertools.islice(read_pairs(sources.corpus, config), min(config.n_sentences or LOOKED_AT, LOOKED_AT))
    texts: list[str] = []
    characters = 0
    for _, pair in first:
        if isinstance(pair, Pair):
            texts += map(collapse_white_space, pair)
            characters += sum(map(len, pair))
        if characters > LOOKED_AT_CHARACTERS:
            break
    cleaned = sum(text == ascii_words(text) for text in texts) >= 0.99 * len(texts)
    tokenizer = ("word" if cleaned else "subword") if config.tokenizer == "auto" else config.tokenizer
    normalization = ("ascii-words" if cleaned else "nfkc") if config.normalization == "auto" else config.normalization
    joint = tokenizer == "subword" if config.joint_vocabulary == "auto" else config.joint_vocabulary
    return config.model_copy(update={"tokenizer": tokenizer, "normalization": normalization, "joint_vocabulary": joint})


class _Checker:
    """The rules that look at one pair."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.normalize: Normalizer = NORMALIZERS[config.normalization]
        self.dropped, self.noticed = Findings(), Findings()

    def judge(self, files: list[TextFile], number: int, item: Pair | Fault, *, strict: bool) -> tuple[str, str] | None:
        """Return the normalized pair, or None if it is dropped. ``strict`` is false for files that are kept whole.

        Raises:
            DataError: for what is neither kept nor to be dropped.
        """
        config = self.config
        if isinstance(item, Fault):
            if not config.drop_unreadable:
                raise DataError(
                    f"{item.message}, or leave such places out and count them with --set data.drop_unreadable=true"
                )
            self.dropped.add(item.reason, place_of(files, number))
            return None
        source, target = self.normalize(item.source), self.normalize(item.target)
        if not source or not target:
            if not config.drop_empty:
                side = "target" if source else "source"
                raise DataError(
                    f"Both sides of a pair must hold words; {' and '.join(map(str, files))}, {unit_of(files)} "
                    f"{number}: the {side} is empty after "
                    f"{config.normalization!r} normalization: {getattr(item, side)[:60]!r}. Mend the pair, or leave "
                    "such pairs out and count them with --set data.drop_empty=true"
                )
            self.dropped.add("empty side", f"{place_of(files, number)}: {show(item)}")
            return None
        if _CONTROL.search(item.source) or _CONTROL.search(item.target):
            dropping = config.drop_control and strict
            self._found("control characters", files, number, item, dropping=dropping)
            if dropping:
                return None
        if source == target:
            dropping = config.drop_identical and strict
            self._found("identical sides", files, number, item, dropping=dropping)
            if dropping:
                return None
        return source, target

    def _found(self, reason: str, files: list[TextFile], number: int, pair: Pair, *, dropping: bool) -> None:
        findings = self.dropped if dropping else self.noticed
        findings.add(reason, f"{place_of(files, number)}: {show(pair)}")


def read_corpus(sources: Sources, config: DataConfig, folder: Path, report: Progress) -> Corpus:
    """Read every file, apply the rules that look at one pair, and write what is kept to a spool in ``folder``.

    Only the first ``n_sentences`` of the corpus are read. Validation and test files are kept whole: of the rules, only
    those against pairs that cannot be used apply to them.

    Raises:
        DataError: for a file that cannot be read, and a pair that is neither kept nor to be dropped.
    """
    checker = _Checker(config)
    source_hashes, target_hashes = bytearray(), bytearray()
    roles: dict[SplitName, range] = {}
    read = 0
    with SpoolWriter(folder) as spool:
        for role, files in sources.roles():
            start = spool.count
            items = itertools.islice(read_pairs(files, config), config.n_sentences if role == "train" else None)
            for number, item in items:
                read += 1
                if read % 1000 == 0:
                    report("reading", read, None)
                normal = checker.judge(files, number, item, strict=role == "train")
                if normal is not None and isinstance(item, Pair):
                    spool.append(number, item)
                    source_hashes += text_hash(normal[0])
                    target_hashes += text_hash(normal[1])
            roles[role] = range(start, spool.count)
    hashes = [np.frombuffer(side, np.uint64) for side in (source_hashes, target_hashes)]
    return Corpus(roles, hashes[0], hashes[1], read, checker.dropped, checker.noticed)


def duplicates(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the indices of pairs that stood before, in order: int64. Takes hashes, uint64 [N] each."""
    pairs = sources * np.uint64(0x9E3779B97F4A7C15) + targets  # odd: no two sources are mapped to one number
    order = np.argsort(pairs, kind="stable")
    again = pairs[order[1:]] == pairs[order[:-1]]
    return np.sort(order[1:][again])
