"""Corpus reading and cleaning: every pair is checked, and what is dropped is counted by reason.

Memory: 16 bytes per pair, and 8 more for each of the filters near_duplicates and score; the pairs themselves are in a
pair store on disk.
"""

import itertools
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from nmt.config.data import CorpusConfig, DataConfig
from nmt.data.filters import Score, letters_of, reason_finder, repaired
from nmt.data.manifest import SPLITS
from nmt.data.pair_store import PairStore, PairStoreWriter
from nmt.data.sources.formats import NumberedPairs, Pair, read_pairs, read_scores, unit_of
from nmt.data.sources.text_file import TextFile, Unreadable
from nmt.errors import DataError, printable
from nmt.message import Settings
from nmt.tokenizers.normalization import NORMALIZERS, ascii_words, collapse_white_space

EXAMPLES = 3  # places recorded for each reason
AUTO_SAMPLE_PAIRS = 10_000  # pairs that decide what "auto" becomes
AUTO_SAMPLE_CHARACTERS = 10_000_000  # characters that decide it, where pairs are long
# Unicode control characters but white space: never part of a sentence, often a sign of a broken encoding.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
Progress = Callable[[str, int, int | None], None]
"""Progress callback: (step, pairs done, total number of pairs or None where it is unknown)."""


@dataclass(frozen=True)
class Sources:
    """The files of a corpus. Each role has one file of pairs, or two files with a side each."""

    corpus: list[TextFile]
    """Pairs that are divided among training and the splits without files of their own."""
    validation: list[TextFile] = field(default_factory=list)
    test: list[TextFile] = field(default_factory=list)
    further: dict[str, list[TextFile]] = field(default_factory=dict)
    """Further corpora for training only, by name."""

    @classmethod
    def of(cls, path: Path) -> "Sources":
        """Return a corpus of one file."""
        return cls([TextFile(path)])

    @property
    def roles(self) -> dict[str, list[TextFile]]:
        """Files of each role that has any; the role of ``corpus`` is "train", that of a further corpus its name."""
        files = (self.corpus, self.validation, self.test)
        return {role: given for role, given in zip(SPLITS, files, strict=True) if given} | self.further


@dataclass
class Findings:
    """Pairs that a rule applies to, by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    """Number of pairs, by reason."""
    places: dict[str, list[str]] = field(default_factory=dict)
    """Places of the first pairs, with their text, by reason."""

    def add(self, reason: str, place: str) -> None:
        """Count one pair, and record its place if it is among the first."""
        self.counts[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < EXAMPLES:
            places.append(place)

    def add_all(self, reason: str, indices: Sequence[int] | np.ndarray, place: Callable[[int], str]) -> None:
        """Count the stored pairs at ``indices``, and record the first places, which ``place`` names."""
        if len(indices):
            self.counts[reason] += len(indices)
            self.places.setdefault(reason, []).extend(place(int(index)) for index in indices[:EXAMPLES])

    def __str__(self) -> str:
        """Return the counts for a message, such as "3 x duplicates, 1 x too long"."""
        return ", ".join(f"{count:,} x {reason}" for reason, count in self.counts.items())


@dataclass(frozen=True)
class Corpus:
    """The N cleaned pairs of a corpus, in a pair store: grouped by role, in the order of their files."""

    roles: dict[str, range]
    """Indices of the pairs that came from the files of each role."""
    sources: np.ndarray
    """Hash of each normalized source, uint64 [N]: equal for equal sources."""
    targets: np.ndarray
    """Hash of each normalized target, uint64 [N]."""
    read: int
    """Number of pairs read, the dropped ones included."""
    dropped: Findings
    """Pairs left out; the steps after reading add theirs."""
    noticed: Findings
    """Suspicious pairs that were kept; likewise."""
    letters: np.ndarray
    """Hash of the letters of each pair of the role "train", uint64, if near duplicates are dropped; else empty."""


def text_hash(text: str) -> bytes:
    """Return a hash of 8 bytes: equal for equal texts, and in practice for no others."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def place_of(files: list[TextFile], number: int, pair: Pair | None = None) -> str:
    """Return the place of a pair, such as "corpus.tsv, line 7", and the beginnings of its sides."""
    text = f": {pair.source[:60]!r} | {pair.target[:60]!r}" if pair else ""
    return printable(f"{' and '.join(file.name for file in files)}, {unit_of(files)} {number}{text}")


@dataclass(frozen=True)
class PairLocator:
    """Names the place and the text of a stored pair."""

    sources: Sources
    roles: dict[str, range]
    store: PairStore

    def __call__(self, index: int) -> str:
        """Return file, line and beginning of pair ``index``."""
        role = next(role for role, indices in self.roles.items() if index in indices)
        return place_of(self.sources.roles[role], self.store.number(index), self.store[index])


def resolve_auto(sources: Sources, config: DataConfig) -> DataConfig:
    """Return the configuration with "auto" replaced: tokenizer, normalization and joint vocabulary.

    The first pairs decide. Lower-case ASCII words without punctuation, as in lesson corpora, become word tokens. Any
    other text becomes subwords after NFKC normalization. One pair in a hundred may differ.
    """
    if "auto" not in {config.tokenizer, config.normalization, config.joint_vocabulary}:
        return config
    limit = min(config.n_sentences or AUTO_SAMPLE_PAIRS, AUTO_SAMPLE_PAIRS)
    texts: list[str] = []
    characters = 0
    for _, pair in itertools.islice(read_pairs(sources.corpus, config), limit):
        if isinstance(pair, Pair):
            texts += map(collapse_white_space, pair)
            characters += sum(map(len, pair))
        if characters > AUTO_SAMPLE_CHARACTERS:
            break
    cleaned = sum(text == ascii_words(text) for text in texts) >= 0.99 * len(texts)
    tokenizer = ("word" if cleaned else "subword") if config.tokenizer == "auto" else config.tokenizer
    normalization = ("ascii-words" if cleaned else "nfkc") if config.normalization == "auto" else config.normalization
    joint = tokenizer == "subword" if config.joint_vocabulary == "auto" else config.joint_vocabulary
    return config.model_copy(update={"tokenizer": tokenizer, "normalization": normalization, "joint_vocabulary": joint})


def _usable(files: list[TextFile], number: int, item: Pair | Unreadable, config: DataConfig) -> tuple[str, str] | str:
    """Return the normalized sides of a pair, or the reason to drop it.

    Raises:
        DataError: for an unusable pair that no setting allows to drop.
    """
    if isinstance(item, Unreadable):
        if not config.drop_unreadable:
            raise DataError(
                f"{item.message}, or drop and count unreadable lines with ", Settings({"data.drop_unreadable": True})
            )
        return item.reason
    source, target = map(NORMALIZERS[config.normalization], item)
    if source and target:
        return source, target
    if not config.drop_empty:
        side = "target" if source else "source"
        raise DataError(
            f"{' and '.join(map(str, files))}, {unit_of(files)} {number}: the {side} is empty after "
            f"{config.normalization!r} normalization: {getattr(item, side)[:60]!r}. Both sides of a pair must hold "
            "words. Correct the pair, or drop and count such pairs with ",
            Settings({"data.drop_empty": True}),
        )
    return "empty side"


def _read(files: list[TextFile], config: DataConfig, most: int | None, *, is_reversed: bool) -> NumberedPairs:
    """Yield the first pairs, with their sides exchanged if ``is_reversed``."""
    for number, item in itertools.islice(read_pairs(files, config), most):
        yield number, Pair(item.target, item.source) if is_reversed and isinstance(item, Pair) else item


def _counted(scores: Iterable[float], report: Progress) -> Iterator[float]:
    for number, score in enumerate(scores):
        if number % 1000 == 0:
            report("scoring", number, None)
        yield score


def read_corpus(
    sources: Sources, config: DataConfig, folder: Path, report: Progress, score: Score | None = None
) -> Corpus:
    """Read every file, apply the rules about a single pair, and write the kept pairs to a pair store in ``folder``.

    Of ``sources.corpus`` only the first ``n_sentences`` pairs are read. Validation and test files are kept whole, but
    for pairs that cannot be used. Keys about columns and headers are not for further corpora. The filter ``score`` asks
    ``score``, or reads the scores of JSON Lines.

    Raises:
        DataError: for a file that cannot be read, and for an unusable pair that no setting allows to drop.
    """
    dropped, noticed = Findings(), Findings()
    source_hashes, target_hashes, letter_hashes = bytearray(), bytearray(), bytearray()
    roles: dict[str, range] = {}
    plain = config.model_copy(update={"source_column": None, "target_column": None, "header": False})
    read = 0
    with PairStoreWriter(folder) as store:
        for role, files in sources.roles.items():
            start = store.count
            columns = plain if role in sources.further else config
            most = config.n_sentences if role == "train" else None
            is_reversed = role in sources.further and config.corpora.get(role, CorpusConfig()).reverse
            trains = role not in {"validation", "test"}
            own = config.model_copy(update={"filters": config.filters_of(role) if trains else {}})
            reads = [_read(files, columns, most, is_reversed=is_reversed) for _ in range(3)]
            for_score, for_shifted = (
                (repaired(item, config) if isinstance(item, Pair) else None for _, item in each) for each in reads[1:]
            )
            scores = array("d")
            if "score" in own.filters:
                scores.extend(_counted(score(for_score) if score else read_scores(files), report))
            if "shifted" in own.filters:
                report("comparing lines", 0, None)
            find_reason = reason_finder(own, for_shifted, scores)
            for position, (number, item) in enumerate(reads[0]):
                read += 1
                if read % 1000 == 0:
                    report("reading", read, None)
                pair = repaired(item, config) if config.repair and isinstance(item, Pair) else item
                usable = _usable(files, number, pair, config)
                if isinstance(item, Unreadable) or isinstance(pair, Unreadable) or isinstance(usable, str):
                    dropped.add(str(usable), place_of(files, number, item if isinstance(item, Pair) else None))
                    continue
                has_control = any(map(_CONTROL.search, pair))
                filtered = find_reason(position, pair) if own.filters else None
                for reason, found, drops in (
                    ("control characters", has_control, config.drop_control and trains),
                    ("identical sides", usable[0] == usable[1], config.drop_identical and trains),
                    (f"filter {filtered}", filtered, True),
                    ("repaired", trains and pair is not item, False),
                ):
                    if found:
                        (dropped if drops else noticed).add(reason, place_of(files, number, item))
                        if drops:
                            break
                else:
                    store.append(number, pair if trains else item)
                    source_hashes += text_hash(usable[0])
                    target_hashes += text_hash(usable[1])
                    if "near_duplicates" in config.filters:
                        letter_hashes += text_hash(letters_of(pair))
            roles[role] = range(start, store.count)
    hashes = [np.frombuffer(side, np.uint64) for side in (source_hashes, target_hashes, letter_hashes)]
    return Corpus(roles, hashes[0], hashes[1], read, dropped, noticed, hashes[2])


MIN_LOG_RATIO = 10.0  # nats: a side counts as foreign if the other column's language is exp(10), 22,000, times likelier
SAMPLE_PAIRS = 50_000  # training pairs whose languages are compared
SAMPLE_BYTES = 16 * 2**20  # bytes of their text, where pairs are long
_SMOOTHING = 0.5  # added to each trigram count


def count_translations(sources: np.ndarray, targets: np.ndarray) -> tuple[int, int]:
    """Count distinct translations. Takes hashes of sources and targets, uint64 [N] each.

    Returns:
        Number of distinct sources with more than one translation; largest number of translations of one source.
    """
    if not len(sources):
        return 0, 0
    order = np.argsort(sources)
    equals_previous = sources[order[1:]] == sources[order[:-1]]
    repeated = order[np.concatenate([[False], equals_previous]) | np.concatenate([equals_previous, [False]])]
    if not len(repeated):
        return 0, 1
    sources, targets = sources[repeated], targets[repeated]
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    new_source = np.concatenate([[True], sources[1:] != sources[:-1]])
    new_pair = new_source | np.concatenate([[True], targets[1:] != targets[:-1]])
    translations = np.add.reduceat(new_pair.astype(np.int64), np.flatnonzero(new_source))
    return int((translations > 1).sum()), int(translations.max())


def _trigrams(texts: list[str], ids: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the character trigrams of N texts as ids, uint32, and where those of each text start, int64 [N].

    ``ids`` maps trigrams to ids and grows.
    """
    trigrams, starts = array("I"), array("q")
    for text in texts:
        padded = f" {text.lower() or ' '} "
        starts.append(len(trigrams))
        for start in range(len(padded) - 2):
            trigrams.append(ids.setdefault(padded[start : start + 3], len(ids)))
    return np.frombuffer(trigrams, np.uint32), np.frombuffer(starts, np.int64)


def find_foreign_sides(pairs: list[Pair]) -> dict[str, list[int]]:
    """Return the indices of pairs with swapped sides, or with one side in the other column's language, by reason.

    The majority of a column defines its language: a naive Bayes classifier over character trigrams, which needs no
    knowledge of languages. It finds nothing where a column mixes both languages half and half.
    """
    if not pairs:
        return {}
    ids: dict[str, int] = {}
    columns = [_trigrams([pair[side] for pair in pairs], ids) for side in (0, 1)]
    counts = [np.bincount(trigrams, minlength=len(ids)).astype(float) for trigrams, _ in columns]
    totals = [count.sum() + _SMOOTHING * len(ids) for count in counts]
    ratios = []  # log P(sentence | own column) - log P(sentence | other column) in nats, float64 [N], of each column
    for own, other in ((0, 1), (1, 0)):
        trigrams, starts = columns[own]
        # A sentence is left out of its own column's counts, or a foreign one would raise its own likelihood.
        log_own = np.log((counts[own] - 1 + _SMOOTHING).clip(_SMOOTHING) / totals[own])
        log_other = np.log((counts[other] + _SMOOTHING) / totals[other])
        ratios.append(np.add.reduceat((log_own - log_other)[trigrams], starts))
    source, target = ratios
    suspects = {
        "sides look swapped": (source < -MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
        "source looks like the target language": (source < -MIN_LOG_RATIO) & (target > MIN_LOG_RATIO),
        "target looks like the source language": (source > MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
    }
    return {reason: np.flatnonzero(mask).tolist() for reason, mask in suspects.items() if mask.any()}
