"""Who goes where: pairs dealt out to training, validation and test so that no source is on two sides."""

import random
from array import array

import numpy as np

from nmt.config import DataConfig
from nmt.corpus import SPLITS, SplitName
from nmt.errors import DataError


def _shuffled(count: int, seed: int) -> np.ndarray:
    """The numbers below ``count`` in the order that ``random.Random(seed)`` shuffles a list of them into."""
    order = array("Q", range(count))
    random.Random(seed).shuffle(order)
    return np.frombuffer(order, np.int64)


def deal_out(
    sources: np.ndarray, config: DataConfig, names: tuple[SplitName, ...] = SPLITS
) -> dict[SplitName, np.ndarray]:
    """Shuffle by seed and deal the pairs out by the configured shares.

    ``by_source`` deals out whole groups of pairs whose source is the same; ``random`` deals out pairs. Test and
    validation get their share first, rounded, and training the rest.

    Args:
        sources: a hash of each pair's normalised source, uint64 [N].
        config: says split, shares and seed.
        names: the splits to make, "train" among them.

    Returns:
        The indices of each split's pairs, int64, in an order that a prefix of is a random sample.

    Raises:
        DataError: if a split would be empty.
    """
    order = _shuffled(len(sources), config.seed)
    if config.split == "by_source":
        _, first, group_of = np.unique(sources[order], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))  # groups in the order of their first pairs
        # Shuffled again: in the order of first pairs, large groups would come early.
        place = np.empty(len(first), np.int64)
        place[_shuffled(len(first), config.seed)] = np.arange(len(first))
        place_of_pair = place[rank[group_of]]
        sizes = np.bincount(place_of_pair, minlength=len(first))
        order = order[np.argsort(place_of_pair, kind="stable")]
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
                f"Each of {', '.join(names)} needs a pair of its own; with {len(sizes)} different sources the {name} "
                "split stays empty. Give more pairs"
                + (", or set data.split=random." if config.split == "by_source" else ".")
            )
    return {name: splits[name] for name in names}
