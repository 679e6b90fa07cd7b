"""The split into training, validation and test, and the rules for several pairs: duplicates and leakage."""

import random
from array import array

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import Corpus, PairLocator, Sources
from nmt.data.manifest import SPLITS, SplitName
from nmt.errors import DataError, counted


def assign_splits(
    corpus: Corpus, sources: Sources, config: DataConfig, locate: PairLocator
) -> dict[SplitName, np.ndarray]:
    """Return the pairs of each split as indices into the pair store, and add to the findings of the corpus.

    A split with files of its own has their pairs. The pairs of ``sources.corpus`` are divided among the remaining
    splits. The further corpora follow them in the training split, in order.

    Raises:
        DataError: if a split or a further corpus would be empty.
    """
    dropped = corpus.dropped
    separate = {role: np.arange(indices.start, indices.stop) for role, indices in corpus.roles.items()}
    divisible, further = separate.pop("train"), {name: separate.pop(name) for name in sources.further}
    everything = np.concatenate([divisible, *further.values()])
    repeated = everything[duplicates(corpus.sources[everything], corpus.targets[everything])]
    (dropped if config.drop_duplicates else corpus.noticed).add_all("duplicates", repeated, locate)
    if config.drop_duplicates:
        divisible = np.setdiff1d(divisible, repeated, assume_unique=True)
        further = {name: np.setdiff1d(indices, repeated, assume_unique=True) for name, indices in further.items()}
    if "near_duplicates" in config.filters:
        kept = int(config.filters["near_duplicates"])
        everything = np.concatenate([divisible, *further.values()])  # without pairs that are dropped already
        near = everything[duplicates(corpus.letters[everything], np.zeros(1, np.uint64), kept)]
        dropped.add_all("filter near_duplicates", near, locate)
        divisible = np.setdiff1d(divisible, near, assume_unique=True)
        further = {name: np.setdiff1d(indices, near, assume_unique=True) for name, indices in further.items()}
    if config.split == "by_source":
        if "validation" in separate and "test" in separate:
            leaking = np.isin(corpus.sources[separate["validation"]], corpus.sources[separate["test"]])
            dropped.add_all("validation source that is in the test", separate["validation"][leaking], locate)
            separate["validation"] = separate["validation"][~leaking]
        if separate:
            held_out = np.concatenate([corpus.sources[indices] for indices in separate.values()])
            leaking = np.isin(corpus.sources[divisible], held_out)
            dropped.add_all("training source that is in validation or test", divisible[leaking], locate)
            divisible = divisible[~leaking]
    left_out = f", with {dropped} left out" if dropped.counts else ""
    random = ", or set data.split=random" if any("source that is in" in reason for reason in dropped.counts) else ""
    names = tuple(name for name in SPLITS if name not in separate)
    if len(divisible) < len(names):
        raise DataError(
            f"{' and '.join(map(str, sources.corpus))} has {counted(len(divisible), 'usable pair')}{left_out}. "
            f"{'Each of ' if len(names) > 1 else 'Split '}{', '.join(names)} needs at least one. Give a file with more "
            f"pairs{random}."
        )
    for name, indices in separate.items():
        if not len(indices):
            raise DataError(
                f"{' and '.join(map(str, sources.roles[name]))} leaves the {name} split empty{left_out}. Each of "
                f"{', '.join(SPLITS)} needs at least one pair. Give another file{random}."
            )
    divided = split_pairs(corpus.sources[divisible], config, names)
    assigned = separate | {name: divisible[indices] for name, indices in divided.items()}
    if further:
        further = _without_leaks(further, assigned, corpus, config, locate)
        assigned["train"] = np.concatenate([assigned["train"], *further.values()])
    return {name: assigned[name] for name in SPLITS}


def _without_leaks(
    further: dict[str, np.ndarray], splits: dict[str, np.ndarray], corpus: Corpus, config: DataConfig,
    locate: PairLocator,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the shuffled pairs of further corpora, without sources that are in validation or test.

    A corpus with a tag has synthetic sources, which differ from the original ones. Its targets are compared too.
    """
    held_out = np.concatenate([splits["validation"], splits["test"]])
    kept = {}
    for name, indices in further.items():
        sides = {"source": corpus.sources} | ({"target": corpus.targets} if config.corpora[name].tag else {})
        left = indices
        for side, hashes in sides.items() if config.split == "by_source" else ():
            leaking = np.isin(hashes[left], hashes[held_out])
            reason = f"{side} of corpus {name} that is in validation or test"
            corpus.dropped.add_all(reason, left[leaking], locate)
            left = left[~leaking]
        if not len(left):
            raise DataError(
                f"Corpus {name!r} has no usable pair. Left out: {str(corpus.dropped) or 'none'}. A corpus "
                "needs at least one. Give other files, or leave it out."
            )
        kept[name] = left[shuffled_indices(len(left), config.seed)]
    return kept


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
