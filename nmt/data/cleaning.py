"""Corpus reading and cleaning: every pair is checked, and dropped pairs are counted by reason.

Memory is 16 bytes per pair, and 8 more for each of the filters near_duplicates and score. The text of the pairs is in
a pair store on disk.
"""

import itertools
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.data import ORIGINAL, CorpusConfig, DataConfig
from nmt.data.filters import Score, entities, has_table_quotes, letters_of, reason_finder, repair_pair
from nmt.data.manifest import SIDES, SPLITS, SplitName
from nmt.data.pair_store import PairStore, PairStoreWriter
from nmt.data.sources.formats import facts_of, read_pairs, read_scores, unit_of
from nmt.data.sources.pairs import NumberedPairs, Pair
from nmt.data.sources.text_file import TextFile, Unreadable, shard_of
from nmt.errors import DataError, counted, printable
from nmt.message import Settings
from nmt.tokenizers.normalization import NORMALIZERS, ascii_words, collapse_white_space, first_change

CONTROL = "control characters"
IDENTICAL = "identical sides"
"""Reasons for which a pair is dropped, or noticed."""
EMPTY = "empty side"
"""Reason for which a pair without text on a side is dropped. A test set keeps it, so that scores are comparable."""
FIRST_LINES = 1000  # lines in which unreadable ones are counted before the first is refused
MOST_UNREADABLE = 0.05  # share of unreadable lines up to which a message offers to drop them
EXAMPLES = 3  # places recorded for each reason
AUTO_SAMPLE_PAIRS = 10_000  # largest sample from which "auto" is resolved, in pairs
AUTO_SAMPLE_CHARACTERS = 10_000_000  # the same limit in characters, for long pairs
# Unicode control characters except white space: never part of a sentence, often a sign of a broken encoding.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_LINE_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")
_MARK = "\ufeff"  # byte-order mark, which joining two files leaves in the middle
# UTF-8 that was read as cp1252 or latin1: the first byte of a character, and bytes that continue it. Characters that
# French or Guarani put behind such a letter, such as a no-break space or an apostrophe, do not count.
_CONTINUED = r"[\u0080-\u009f\u00a1-\u00aa\u00ac-\u00ba\u00bc-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192]"
_MOJIBAKE = re.compile(
    rf"[\u00c2\u00c3\u00c5\u00d0\u00d1]{_CONTINUED}|[\u00e0-\u00ef]{_CONTINUED}{{2}}|"
    r"\u00e2\u20ac[\u0153\u009d\u02dc\u2122\u201c\u201d\u00a6]"
)
_ODD = re.compile(rf"{_CONTROL.pattern}|{_LINE_BREAK.pattern}|{_MARK}|{_MOJIBAKE.pattern}")
MOJIBAKE, ENTITIES, TABLE_QUOTES = "mojibake (UTF-8 read as another encoding)", "HTML entities", "quotes of a table"
REPAIRS = {MOJIBAKE: "mojibake", ENTITIES: "entities", TABLE_QUOTES: "quotes"}
"""Value of ``data.repair`` that undoes each kind of damage."""
Progress = Callable[[str, int, int | None], None]
"""Progress callback: (step, pairs done, total number of pairs or None if unknown)."""


@dataclass(frozen=True)
class Sources:
    """The files of a corpus. A role has a file of pairs, which may have shards, or two files with one side each."""

    corpus: list[TextFile]
    """Files whose pairs are divided among training and the splits without files of their own; empty if there are only
    further corpora."""
    validation: list[TextFile] = field(default_factory=list)
    test: list[TextFile] = field(default_factory=list)
    further: dict[str, list[TextFile]] = field(default_factory=dict)
    """Files of further corpora, by name."""
    held_out: dict[str, dict[SplitName, list[TextFile]]] = field(default_factory=dict)
    """Validation and test files of further corpora, by name and split."""

    @classmethod
    def of(cls, path: Path) -> "Sources":
        """Return the sources of a corpus that is one file of pairs."""
        return cls([TextFile(path)])

    @property
    def roles(self) -> dict[str, list[TextFile]]:
        """Files by role, as ``role_of`` names it."""
        files = (self.corpus, self.validation, self.test)
        roles = {role_of(ORIGINAL, split): given for split, given in zip(SPLITS, files, strict=True)} | self.further
        for name, given_files in self.held_out.items():
            roles |= {role_of(name, split): given for split, given in given_files.items()}
        return {role: role_files for role, role_files in roles.items() if role_files}

    @property
    def names(self) -> list[str]:
        """Names of all corpora."""
        return [*([ORIGINAL] if self.corpus else []), *self.further]

    @property
    def first(self) -> list[TextFile]:
        """Files of the first corpus."""
        return self.corpus or next(iter(self.further.values()))


def role_of(corpus: str, split: SplitName) -> str:
    """Return the role of files: "train", "validation" and "test", "NAME" and "NAME test" for a further corpus."""
    if corpus == ORIGINAL:
        return split
    return corpus if split == "train" else f"{corpus} {split}"


def corpus_and_split(role: str) -> tuple[str, SplitName]:
    """Return the corpus and the split of a role.

    >>> corpus_and_split("train"), corpus_and_split("es-gn"), corpus_and_split("es-gn test")
    (('original', 'train'), ('es-gn', 'train'), ('es-gn', 'test'))
    """
    corpus, _, last = role.rpartition(" ")
    for split in SPLITS:
        if last == split:
            return corpus or ORIGINAL, split
    return role, "train"


@dataclass
class Findings:
    """Counts and first places of the pairs that a rule applies to, by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    """Number of pairs, by reason."""
    places: dict[str, list[str]] = field(default_factory=dict)
    """Places of the first pairs, with their text, by reason."""

    def add(self, reason: str, place: str) -> None:
        """Count a pair, and record its place if it is among the first ``EXAMPLES``."""
        self.counts[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < EXAMPLES:
            places.append(place)

    def add_all(self, reason: str, indices: Sequence[int] | np.ndarray, place: Callable[[int], str]) -> None:
        """Count the stored pairs at ``indices``, and record the first places; ``place`` describes a pair."""
        if len(indices):
            self.counts[reason] += len(indices)
            self.places.setdefault(reason, []).extend(place(int(index)) for index in indices[:EXAMPLES])

    def __str__(self) -> str:
        """Return the counts for a message, such as "3 x duplicates, 1 x too long"."""
        return ", ".join(f"{count:,} x {reason}" for reason, count in self.counts.items())


@dataclass(frozen=True)
class Corpus:
    """The N cleaned pairs of a corpus in a pair store, grouped by role, in the order of their files."""

    roles: dict[str, range]
    """Indices of the pairs that came from the files of each role."""
    sources: np.ndarray
    """Hash of each normalized source, uint64 [N]; equal sources have equal hashes."""
    targets: np.ndarray
    """Hash of each normalized target, uint64 [N]."""
    read: int
    """Number of pairs read, the dropped ones included."""
    dropped: Findings
    """Dropped pairs. Later steps add theirs."""
    noticed: Findings
    """Suspicious pairs that were kept. Later steps add theirs."""
    normalized: Findings
    """Kept pairs that normalization changed, with the first word that it changed in each."""
    letters: np.ndarray
    """Hash of the letters of each pair, uint64 [N], if near duplicates are dropped; otherwise empty."""
    facts: list[str] = field(default_factory=list)
    """Properties of the files that were recognized, such as their encodings and headers."""


def text_hash(text: str) -> bytes:
    """Return a hash of 8 bytes. Different texts have different hashes in practice."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def place_of(files: list[TextFile], number: int, pair: Pair | None = None) -> str:
    """Return the place of a pair, such as "corpus.tsv, line 7", followed by the beginning of each side."""
    files, number = shard_of(files, number)
    text = f": {pair.source[:60]!r} | {pair.target[:60]!r}" if pair else ""
    return printable(f"{' and '.join(file.name for file in files)}, {unit_of(files)} {number}{text}")


@dataclass(frozen=True)
class PairLocator:
    """Function that returns the place and the text of a stored pair, for reports."""

    sources: Sources
    roles: dict[str, range]
    store: PairStore

    def __call__(self, index: int) -> str:
        """Return file, line and beginning of pair ``index``."""
        role = next(role for role, indices in self.roles.items() if index % len(self.store) in indices)
        return place_of(self.sources.roles[role], self.store.number(index), self.store[index])


def resolve_auto(sources: Sources, config: DataConfig) -> DataConfig:
    """Return the configuration with "auto" resolved for the tokenizer, the normalization and the joint vocabulary.

    The choice depends on the first pairs. Lower-case ASCII words without punctuation, as in lesson corpora, become word
    tokens. Any other text becomes subwords after NFC normalization. One text in a hundred may differ.
    """
    if "auto" not in {config.tokenizer, config.normalization, config.joint_vocabulary}:
        return config
    limit = min(config.n_sentences or AUTO_SAMPLE_PAIRS, AUTO_SAMPLE_PAIRS)
    texts: list[str] = []
    characters = 0
    for _, pair in itertools.islice(read_pairs(sources.first, config), limit):
        if isinstance(pair, Pair):
            texts += map(collapse_white_space, pair)
            characters += sum(map(len, pair))
        if characters > AUTO_SAMPLE_CHARACTERS:
            break
    cleaned = sum(text == ascii_words(text) for text in texts) >= 0.99 * len(texts)
    tokenizer = ("word" if cleaned else "subword") if config.tokenizer == "auto" else config.tokenizer
    normalization = ("ascii-words" if cleaned else "nfc") if config.normalization == "auto" else config.normalization
    joint = tokenizer == "subword" if config.joint_vocabulary == "auto" else config.joint_vocabulary
    return config.model_copy(update={"tokenizer": tokenizer, "normalization": normalization, "joint_vocabulary": joint})


def _refusal(files: list[TextFile], item: Unreadable, config: DataConfig) -> DataError:
    """Return the error about an unreadable line. It offers to drop such lines if they are few."""
    items = [following for _, following in itertools.islice(read_pairs(files, config), FIRST_LINES)]
    bad = sum(isinstance(following, Unreadable) and not following.is_dropped for following in items)
    if bad > MOST_UNREADABLE * len(items) and (bad > 1 or len(items) == 1):
        looked_at = counted(len(items), "line")
        return DataError(f"{item.message}. Looked at {looked_at}, and {bad:,} cannot be read as pairs.")
    return DataError(
        f"{item.message}, or drop and count unreadable lines with ", Settings({"data.drop_unreadable": True})
    )


def _normalize_pair(item: Pair | Unreadable, config: DataConfig, *, keeps_empty: bool) -> tuple[str, str] | str:
    """Return the normalized sides of a pair, or the reason to drop it. ``keeps_empty``: a side may be empty."""
    if isinstance(item, Unreadable):
        return item.reason
    source, target = map(NORMALIZERS[config.normalization], item)
    return (source, target) if keeps_empty or (source and target) else EMPTY


def _read(files: list[TextFile], config: DataConfig, most: int | None, *, is_reversed: bool) -> NumberedPairs:
    """Yield the first ``most`` pairs (None: all), with exchanged sides if ``is_reversed``."""
    for number, item in itertools.islice(read_pairs(files, config), most):
        yield number, Pair(item.target, item.source) if is_reversed and isinstance(item, Pair) else item


def _report_scores(scores: Iterable[float], report: Progress) -> Iterator[float]:
    """Yield scores, and report progress."""
    for number, score in enumerate(scores):
        if number % 1000 == 0:
            report("scoring", number, None)
        yield score


def _record_change(normalized: Findings, files: list[TextFile], number: int, pair: Pair, config: DataConfig) -> None:
    """Record the first word of a pair that normalization changes, if there is one."""
    for side in pair:
        change = first_change(side, config.normalization)
        if change is not None:
            words = f"{change.before[:30]!r} becomes {change.after[:30]!r}"
            normalized.add(change.kind, f"{place_of(files, number)}: {printable(words)}")
            return


class _Checked(NamedTuple):
    """A readable pair with text on both sides, or a pair of a test set."""

    raw: Pair
    """The pair as it stands in the file, without a byte-order mark at the beginning of a side."""
    pair: Pair
    """The pair after repairs."""
    usable: tuple[str, str]
    """Its normalized sides."""
    notices: list[str]
    """Reasons to suspect it."""


def _check(
    files: list[TextFile], number: int, item: Pair | Unreadable, config: DataConfig, dropped: Findings, *,
    keeps_empty: bool,
) -> _Checked | None:  # fmt: skip
    """Return a pair after repairs and normalization; None after counting an unreadable or empty one as dropped.

    Raises:
        DataError: for an unreadable line, unless a setting allows to drop it.
    """
    if isinstance(item, Unreadable) and not (config.drop_unreadable or item.is_dropped):
        raise _refusal(files, item, config)
    notices: list[str] = []
    if isinstance(item, Pair):
        if _ODD.search(item.source) or _ODD.search(item.target):
            item, notices = _inspect_odd(item)
        notices += _repairable(item)
    pair = repair_pair(item, config) if config.repair and isinstance(item, Pair) else item
    usable = _normalize_pair(pair, config, keeps_empty=keeps_empty)
    if isinstance(item, Unreadable) or isinstance(pair, Unreadable):
        text = f": {printable(repr(item.text[:120]))}" if isinstance(item, Unreadable) and item.text else ""
        dropped.add(str(usable), place_of(files, number) + text)
        return None
    if isinstance(usable, str):
        dropped.add(usable, place_of(files, number, item))
        return None
    if not all(usable):
        notices.append("empty side in the test set")
    elif usable[0] == usable[1]:
        notices.append(IDENTICAL)
    if isinstance(pair, Pair) and pair is not item:
        left = _repairable(pair)
        notices = [notice for notice in notices if notice not in REPAIRS or notice in left]
    return _Checked(item, pair, usable, notices)


def _reason_to_drop(notices: list[str], filtered: str | None, config: DataConfig) -> str | None:
    """Return the reason to drop a pair from training: a rule that is switched on, or a filter; None to keep it."""
    if CONTROL in notices and config.drop_control:
        return CONTROL
    if IDENTICAL in notices and config.drop_identical:
        return IDENTICAL
    return f"filter {filtered}" if filtered else None


def _inspect_odd(pair: Pair) -> tuple[Pair, list[str]]:
    """Return a pair without byte-order marks at the beginning of its sides, and the kinds of odd characters in it."""
    bare = Pair(*(side.removeprefix(_MARK) for side in pair))
    notices = []
    if bare != pair:
        notices.append("byte-order mark within the file, removed")
    if any(map(_CONTROL.search, bare)):
        notices.append(CONTROL)
    if any(_LINE_BREAK.search(side.strip()) for side in bare):
        notices.append("line break within a text, read as a space")
    return bare, notices


def _repairable(pair: Pair) -> list[str]:
    """Return the kinds of damage in a pair that ``data.repair`` undoes."""
    kinds = []
    if not (pair.source.isascii() and pair.target.isascii()) and any(map(_MOJIBAKE.search, pair)):
        kinds.append(MOJIBAKE)
    if entities(*pair):
        kinds.append(ENTITIES)
    if any(map(has_table_quotes, pair)):
        kinds.append(TABLE_QUOTES)
    return kinds


def read_corpus(
    sources: Sources, config: DataConfig, folder: Path, report: Progress, score: Score | None = None
) -> Corpus:
    """Read every file, apply the rules for single pairs, and write the kept pairs to a pair store in ``folder``.

    From ``sources.corpus``, only the first ``n_sentences`` pairs are read. Validation and test files keep every usable
    pair, and test files pairs with an empty side too. The settings of columns and headers do not apply to further
    corpora. The filter ``score`` calls ``score``, or without it reads the scores in JSON Lines.

    Raises:
        DataError: for a file that cannot be read, and for an unreadable line, unless a setting allows to drop it.
    """
    dropped, noticed, normalized = Findings(), Findings(), Findings()
    source_hashes, target_hashes, letter_hashes = bytearray(), bytearray(), bytearray()
    roles: dict[str, range] = {}
    plain = config.model_copy(update={"source_column": None, "target_column": None, "header": "auto"})
    read, facts = 0, list[str]()
    with PairStoreWriter(folder) as store:
        for role, files in sources.roles.items():
            start = store.count
            name, split = corpus_and_split(role)
            columns = config if name == ORIGINAL else columns_of(name, plain)
            most = config.n_sentences if role == "train" else None
            is_reversed = config.corpora.get(name, CorpusConfig()).reverse
            trains = split == "train"
            keeps_empty = split == "test" and not config.drop_empty
            facts += facts_of(files, columns)
            own = config.model_copy(update={"filters": config.filters_of(name) if trains else {}})
            reads = [_read(files, columns, most, is_reversed=is_reversed) for _ in range(3)]
            for_score, for_shifted = (
                (repair_pair(item, config) if isinstance(item, Pair) else None for _, item in items)
                for items in reads[1:]
            )
            scores = array("d")
            if "score" in own.filters:
                scores.extend(_report_scores(score(for_score) if score else read_scores(files), report))
            if "shifted" in own.filters:
                report("comparing lines", 0, None)
            find_reason = reason_finder(own, for_shifted, scores)
            for position, (number, item) in enumerate(reads[0]):
                read += 1
                if read % 1000 == 0:
                    report("reading", read, None)
                checked = _check(files, number, item, config, dropped, keeps_empty=keeps_empty)
                if checked is None:
                    continue
                raw, pair, usable, notices = checked
                filtered = find_reason(position, pair) if own.filters else None
                reason = _reason_to_drop(notices, filtered, config) if trains else None
                if reason is not None:
                    dropped.add(reason, place_of(files, number, raw))
                    continue
                if trains and pair is not raw:
                    notices.append("repaired")
                for notice in notices:
                    noticed.add(notice, place_of(files, number, raw))
                store.append(number, pair if trains else raw)
                if usable != pair:
                    _record_change(normalized, files, number, pair, config)
                source_hashes += text_hash(usable[0])
                target_hashes += text_hash(usable[1])
                if "near_duplicates" in config.filters:
                    letter_hashes += text_hash(letters_of(pair))
            roles[role] = range(start, store.count)
    hashes = [np.frombuffer(side, np.uint64) for side in (source_hashes, target_hashes, letter_hashes)]
    return Corpus(roles, hashes[0], hashes[1], read, dropped, noticed, normalized, hashes[2], facts)


def columns_of(name: str, config: DataConfig) -> DataConfig:
    """Return the section with the languages of a further corpus, which tell the sides of its files."""
    corpus = config.corpora.get(name, CorpusConfig())
    if corpus.reverse:  # names of languages would tell the sides that are to be exchanged
        return config.model_copy(update={"source_language": None, "target_language": None})
    source, target = config.languages_of(name)
    known = {"source_language": source, "target_language": target}
    return config.model_copy(update={key: None if code in SIDES else code for key, code in known.items()})


MIN_LOG_RATIO = 10.0  # nats: in a foreign side, the other column's language is exp(10), 22,000, times more likely
SAMPLE_PAIRS = 50_000  # training pairs whose languages are compared
SAMPLE_BYTES = 16 * 2**20  # the same limit in bytes of text, for long pairs
_SMOOTHING = 0.5  # added to each trigram count


def count_translations(sources: np.ndarray, targets: np.ndarray) -> tuple[int, int]:
    """Count distinct translations of equal sources, given hashes of sources and targets, uint64 [N] each.

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
    """Return the ids of the character trigrams of N texts, uint32, and the start of each text in them, int64 [N].

    New trigrams are added to ``ids``, which maps trigrams to ids.
    """
    trigrams, starts = array("I"), array("q")
    for text in texts:
        padded = f" {text.lower() or ' '} "
        starts.append(len(trigrams))
        for start in range(len(padded) - 2):
            trigrams.append(ids.setdefault(padded[start : start + 3], len(ids)))
    return np.frombuffer(trigrams, np.uint32), np.frombuffer(starts, np.int64)


def find_foreign_sides(pairs: list[Pair]) -> dict[str, list[int]]:
    """Return the indices of pairs with swapped sides, or with a side in the other column's language, by reason.

    A naive Bayes classifier over character trigrams learns the language of each column from the column itself. It finds
    nothing if a column mixes both languages in equal parts.
    """
    if not pairs:
        return {}
    ids: dict[str, int] = {}
    columns = [_trigrams([pair[side] for pair in pairs], ids) for side in (0, 1)]
    counts = [np.bincount(trigrams, minlength=len(ids)).astype(float) for trigrams, _ in columns]
    totals = [count.sum() + _SMOOTHING * len(ids) for count in counts]
    # For each column: log P(sentence | own column) - log P(sentence | opposite column) in nats, float64 [N].
    ratios = []
    for own, opposite in ((0, 1), (1, 0)):
        trigrams, starts = columns[own]
        # A sentence is left out of its own column's counts, since a foreign one would raise its own likelihood.
        log_own = np.log((counts[own] - 1 + _SMOOTHING).clip(_SMOOTHING) / totals[own])
        log_opposite = np.log((counts[opposite] + _SMOOTHING) / totals[opposite])
        ratios.append(np.add.reduceat((log_own - log_opposite)[trigrams], starts))
    source, target = ratios
    suspects = {
        "sides look swapped": (source < -MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
        "source looks like the target language": (source < -MIN_LOG_RATIO) & (target > MIN_LOG_RATIO),
        "target looks like the source language": (source > MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
    }
    return {reason: np.flatnonzero(mask).tolist() for reason, mask in suspects.items() if mask.any()}
