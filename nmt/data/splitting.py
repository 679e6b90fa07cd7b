"""Who goes where: pairs dealt out to training, validation and test so that no source is on two sides."""

import random
from array import array

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import SPLITS, SplitName
from nmt.errors import DataError


def _shuffled(count: int, seed: int) -> np.ndarray:
    """The numbers below ``count`` in the order that ``random.Random(seed)`` shuffles a list of them into."""
    order = array("I", range(count))
    random.Random(seed).shuffle(order)
    return np.frombuffer(order, np.uint32)


def _places_of_groups(sources: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the group of each pair comes once groups are shuffled, uint32 [N]; the sizes of the groups there, int64.

    Written so that little is in memory at a time: ten million pairs take some 400 MB here.
    """
    by_source = np.argsort(sources, kind="stable").astype(np.uint32)
    in_order = sources[by_source]
    begins = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    del in_order
    first = by_source[begins]  # the sort is stable, so the first of a group's pairs
    group = (np.cumsum(begins, dtype=np.uint32) - np.uint32(1)).astype(np.uint32, copy=False)
    # Groups are numbered in the order of their first pairs, then shuffled: unshuffled, large groups would come early.
    place_of_group = np.empty(len(first), np.uint32)
    place_of_group[np.argsort(first, kind="stable")[_shuffled(len(first), seed)]] = np.arange(
        len(first), dtype=np.uint32
    )
    place = np.empty(len(sources), np.uint32)
    place[by_source] = place_of_group[group]
    return place, np.bincount(place, minlength=len(first))


def deal_out(
    sources: np.ndarray, config: DataConfig, names: tuple[SplitName, ...] = SPLITS
) -> dict[SplitName, np.ndarray]:
    """Shuffle by seed and deal the pairs out by the configured shares.

    ``by_source`` deals out whole groups of pairs whose source is the same; ``random`` deals out pairs. Test and
    validation get their share first, rounded, and training the rest.

    Args:
        sources: a hash of each pair's normalized source, uint64 [N].
        config: says split, shares and seed.
        names: the splits to make, "train" among them.

    Returns:
        The indices of each split's pairs, uint32, in an order that a prefix of is a random sample.

    Raises:
        DataError: if a split would be empty.
    """
    order = _shuffled(len(sources), config.seed)
    if config.split == "by_source":
        place, sizes = _places_of_groups(sources[order], config.seed)
        order = order[np.argsort(place, kind="stable")]
    else:
        sizes = np.ones(len(order), np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    shares = {"test": config.test_share, "validation": config.validation_share}
    splits: dict[SplitName, np.ndarray] = {}
    start = 0
    for name in reversed(names):
        wanted = max(1, round(shares[name] * len(order))) if name in shares else len(order)
        end = int(ends[min(int(np.searchsorted(ends, start + wanted)), len(ends) - 1)])
        splits[name] = order[start:end]
        start = end
    for name in names:
        if not len(splits[name]):
            raise DataError(
                f"Each of {', '.join(names)} needs a pair of its own; {len(order)} pairs with "
                f"{_sources(len(sizes))} leave the {name} split empty. Give more pairs"
                + (", or set data.split=random." if config.split == "by_source" else ".")
            )
    return {name: splits[name] for name in names}


def _sources(count: int) -> str:
    return "one source" if count == 1 else f"{count} different sources"
