"""The split into training, validation and test, and the rules for several pairs: duplicates and leakage."""

import random
from array import array
from collections.abc import Mapping, Sequence

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import Corpus, Findings, PairLocator, Sources, corpus_and_split, role_of
from nmt.data.directions import PairRanges, TrainingCorpus, directions_of, first_corpora, training_corpora
from nmt.data.manifest import SPLITS, SplitName
from nmt.errors import DataError, counted


def assign_splits(
    corpus: Corpus, sources: Sources, config: DataConfig, locate: PairLocator
) -> dict[SplitName, np.ndarray]:
    """Return the pairs of each split as indices into the pair store, and add to the findings of the corpus.

    A split with files of its own has their pairs. The pairs of the first corpus of each direction are divided among the
    remaining splits. All other corpora are for training only, and follow in order.

    Raises:
        DataError: if a split or a corpus would be empty.
    """
    dropped = corpus.dropped
    training = {name: _indices(corpus, name, "train") for name in sources.names}
    given = _given(corpus, sources)
    everything = np.concatenate([*training.values()])
    repeated = everything[duplicates(corpus.sources[everything], corpus.targets[everything])]
    (dropped if config.drop_duplicates else corpus.noticed).add_all("duplicates", repeated, locate)
    if config.drop_duplicates:
        training = _without(training, repeated)
    if "near_duplicates" in config.filters:
        kept = int(config.filters["near_duplicates"])
        everything = np.concatenate([*training.values()])  # without pairs that are dropped already
        near = everything[duplicates(corpus.letters[everything], np.zeros(1, np.uint64), kept)]
        dropped.add_all("filter near_duplicates", near, locate)
        training = _without(training, near)
    corpora = training_corpora(sources, config)
    divided = first_corpora(corpora)
    if config.split == "by_source":
        _drop_sources_of_files(training, given, divided, corpus, locate)
    assigned: dict[SplitName, list[np.ndarray]] = {name: [] for name in SPLITS}
    for name in divided:
        _refuse_empty(name, training[name], given, sources, dropped, corpora)
        wanted = _splits_to_make(name, given, corpora)
        parts = split_pairs(corpus.sources[training[name]], config, wanted)
        for split in wanted[1:]:
            assigned[split].append(training[name][parts[split]])
        training[name] = training[name][parts["train"]]
    for splits in given.values():
        for split, indices in splits.items():
            assigned[split].append(indices)
    held = {split: np.concatenate(assigned[split]) for split in SPLITS if split != "train"}
    all_held = np.concatenate([*held.values()])
    has_directions = len(directions_of(corpora)) > 1
    for name in training:
        if name not in divided or has_directions:
            left = _without_leaks(name, training[name], all_held, corpus, config, locate, both_sides=has_directions)
            training[name] = left if name in divided else left[shuffled_indices(len(left), config.seed)]
    ranges = PairRanges.of(corpora, corpus)
    count = len(corpus.sources)
    trained = [training[part.origin] + count * part.is_reversed for part in corpora]
    by_split: dict[SplitName, np.ndarray] = {"train": np.concatenate(trained)}
    for split, indices in held.items():
        both = np.concatenate([indices, indices + count]) if config.both_directions else indices
        both = both[ranges.directions[both] >= 0]
        by_split[split] = both[np.argsort(ranges.directions[both], kind="stable")]
    return by_split


def _drop_sources_of_files(
    training: dict[str, np.ndarray], given: dict[str, dict[SplitName, np.ndarray]], divided: list[str], corpus: Corpus,
    locate: PairLocator,
) -> None:  # fmt: skip
    """Remove sources of test files from validation files, and sources of both from the corpora that are divided."""
    for splits in given.values():
        if "validation" in splits and "test" in splits:
            leaking = np.isin(corpus.sources[splits["validation"]], corpus.sources[splits["test"]])
            corpus.dropped.add_all("validation source that is in the test", splits["validation"][leaking], locate)
            splits["validation"] = splits["validation"][~leaking]
    held_out = [corpus.sources[indices] for splits in given.values() for indices in splits.values()]
    for name in divided if held_out else ():
        leaking = np.isin(corpus.sources[training[name]], np.concatenate(held_out))
        corpus.dropped.add_all("training source that is in validation or test", training[name][leaking], locate)
        training[name] = training[name][~leaking]


def _indices(corpus: Corpus, name: str, split: SplitName) -> np.ndarray:
    indices = corpus.roles[role_of(name, split)]
    return np.arange(indices.start, indices.stop)


def _given(corpus: Corpus, sources: Sources) -> dict[str, dict[SplitName, np.ndarray]]:
    """Return the pairs of validation and test files, by corpus and split."""
    given: dict[str, dict[SplitName, np.ndarray]] = {}
    for role in sources.roles:
        name, split = corpus_and_split(role)
        if split != "train":
            given.setdefault(name, {})[split] = _indices(corpus, name, split)
    return given


def _without(training: dict[str, np.ndarray], dropped: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.setdiff1d(indices, dropped, assume_unique=True) for name, indices in training.items()}


def _splits_to_make(
    name: str, given: Mapping[str, Mapping[SplitName, np.ndarray]], corpora: Sequence[TrainingCorpus]
) -> tuple[SplitName, ...]:
    """Return the splits that take pairs of a corpus: training, and splits without files in its direction."""
    [languages] = [corpus.languages for corpus in corpora if corpus.name == name]
    alike = [corpus.name for corpus in corpora if corpus.languages == languages]
    with_files = {split for other in alike for split in given.get(other, {})}
    return tuple(split for split in SPLITS if split == "train" or split not in with_files)


def _refuse_empty(
    name: str, training: np.ndarray, given: Mapping[str, Mapping[SplitName, np.ndarray]], sources: Sources,
    dropped: Findings, corpora: Sequence[TrainingCorpus],
) -> None:  # fmt: skip
    """Refuse a corpus without a pair for each split."""
    left_out = f", with {dropped} left out" if dropped.counts else ""
    random = ", or set data.split=random" if any("source that is in" in reason for reason in dropped.counts) else ""
    names = _splits_to_make(name, given, corpora)
    if len(training) < len(names):
        files = sources.roles[role_of(name, "train")]
        raise DataError(
            f"{' and '.join(map(str, files))} has {counted(len(training), 'usable pair')}{left_out}. "
            f"{'Each of ' if len(names) > 1 else 'Split '}{', '.join(names)} needs at least one. Give a file with more "
            f"pairs{random}."
        )
    for split, indices in given.get(name, {}).items():
        if not len(indices):
            raise DataError(
                f"{' and '.join(map(str, sources.roles[role_of(name, split)]))} leaves the {split} split "
                f"empty{left_out}. Each of {', '.join(SPLITS)} needs at least one pair. Give another file{random}."
            )


def _without_leaks(
    name: str, indices: np.ndarray, held_out: np.ndarray, corpus: Corpus, config: DataConfig, locate: PairLocator, *,
    both_sides: bool,
) -> np.ndarray:  # fmt: skip
    """Return the pairs of a corpus, without sources that are in validation or test.

    A corpus with a tag has synthetic sources, which differ from the original ones, so its targets are compared too.
    With several directions, a source of one may be a target of another: ``both_sides`` compares the targets of the
    corpus with the held-out sources too.

    Raises:
        DataError: if no pair is left.
    """
    has_tag = name in config.corpora and config.corpora[name].tag
    held_sources, held_targets = corpus.sources[held_out], corpus.targets[held_out]
    if config.both_directions:
        held_sources = np.concatenate([held_sources, held_targets])
    left = indices
    if config.split == "by_source":
        leaking = {"source": np.isin(corpus.sources[left], held_sources), "target": np.zeros(len(left), bool)}
        if has_tag:
            leaking["target"] |= np.isin(corpus.targets[left], held_targets)
        if both_sides:
            leaking["target"] |= np.isin(corpus.targets[left], held_sources)
        leaking["target"] &= ~leaking["source"]
        for side, is_leaking in leaking.items():
            reason = f"{side} of corpus {name} that is in validation or test"
            corpus.dropped.add_all(reason, left[is_leaking], locate)
        left = left[~(leaking["source"] | leaking["target"])]
    if not len(left):
        raise DataError(
            f"Corpus {name!r} has no usable pair. Left out: {str(corpus.dropped) or 'none'}. A corpus "
            "needs at least one. Give other files, or leave it out."
        )
    return left


def duplicates(sources: np.ndarray, targets: np.ndarray, kept: int = 1) -> np.ndarray:
    """Return the rising indices, int64, of pairs that repeat ``kept`` earlier pairs, given hashes, uint64 [N] each."""
    pairs = sources * np.uint64(0x9E3779B97F4A7C15) + targets  # with an odd factor the product is unique
    order = np.argsort(pairs, kind="stable")
    repeats = pairs[order[kept:]] == pairs[order[:-kept]]
    return np.sort(order[kept:][repeats])


def split_pairs(
    sources: np.ndarray, config: DataConfig, names: tuple[SplitName, ...] = SPLITS
) -> dict[SplitName, np.ndarray]:
    """Shuffle pairs with the configured seed and divide them by the configured shares.

    ``by_source`` divides groups of pairs with equal sources, so that no source is in two splits. ``random`` divides
    single pairs. Test and validation have their rounded shares, and training has the rest.

    Args:
        sources: hash of each pair's normalized source, uint64 [N].
        config: split, shares and seed.
        names: the splits to make, including "train".

    Returns:
        Indices of the pairs of each split, uint32. Every prefix is a random sample of the split.

    Raises:
        DataError: if a split would be empty.
    """
    order = shuffled_indices(len(sources), config.seed)
    if config.split == "by_source":
        positions, sizes = _shuffled_groups(sources[order], config.seed)
        order = order[np.argsort(positions, kind="stable")]
    else:
        sizes = np.ones(len(order), np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    shares = {"test": config.test_share, "validation": config.validation_share}
    splits: dict[SplitName, np.ndarray] = {}
    start = 0
    for name in reversed(names):
        count = max(1, round(shares[name] * len(order))) if name in shares else len(order)
        end = int(ends[min(int(np.searchsorted(ends, start + count)), len(ends) - 1)])
        splits[name] = order[start:end]
        start = end
    for name in names:
        if not len(splits[name]):
            raise DataError(
                f"The {name} split would be empty: the corpus has {counted(len(order), 'pair')} with "
                f"{counted(len(sizes), 'distinct source')}. Each of {', '.join(names)} needs at least one. Give more "
                "pairs" + (", or set data.split=random." if config.split == "by_source" else ".")
            )
    return {name: splits[name] for name in names}


def shuffled_indices(count: int, seed: int) -> np.ndarray:
    """Return the numbers below ``count`` in the order of ``random.Random(seed).shuffle``, uint32 [count]."""
    order = array("I", range(count))
    random.Random(seed).shuffle(order)
    return np.frombuffer(order, np.uint32)


def _shuffled_groups(sources: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Group pairs by source hash [N] and shuffle the G groups.

    Large temporary arrays are freed early: ten million pairs take about 400 MB here.

    Returns:
        Position of each pair's group after the shuffle, uint32 [N]; sizes of the groups in that order, int64 [G].
    """
    by_source = np.argsort(sources, kind="stable").astype(np.uint32)
    in_order = sources[by_source]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    del in_order
    first = by_source[is_first]  # the first pair of each group, as the sort is stable
    group = (np.cumsum(is_first, dtype=np.uint32) - np.uint32(1)).astype(np.uint32, copy=False)
    # Groups are numbered by their first pairs and then shuffled. Without the shuffle, large groups would come early.
    position_of_group = np.empty(len(first), np.uint32)
    position_of_group[np.argsort(first, kind="stable")[shuffled_indices(len(first), seed)]] = np.arange(
        len(first), dtype=np.uint32
    )
    positions = np.empty(len(sources), np.uint32)
    positions[by_source] = position_of_group[group]
    return positions, np.bincount(positions, minlength=len(first))
