"""What a person should know about a corpus before training on it: hints found cheaply, none of them acted upon."""

from array import array

import numpy as np

from nmt.data.sources.formats import Pair

SURE = 10.0  # nats: a side counts as of the other language if it is exp(10), 22,000, times as likely there
LOOKED_AT = 50_000  # pairs
LOOKED_AT_BYTES = 16 * 2**20  # of their texts, or fewer pairs
_SMOOTHING = 0.5


def many_translations(sources: np.ndarray, targets: np.ndarray) -> tuple[int, int]:
    """Return how many sources have more than one translation, and the most that one has. Takes hashes, uint64 [N]."""
    if not len(sources):
        return 0, 0
    order = np.argsort(sources)
    same = sources[order[1:]] == sources[order[:-1]]
    repeated = order[np.concatenate([[False], same]) | np.concatenate([same, [False]])]
    if not len(repeated):
        return 0, 1
    sources, targets = sources[repeated], targets[repeated]
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    new_source = np.concatenate([[True], sources[1:] != sources[:-1]])
    new_pair = new_source | np.concatenate([[True], targets[1:] != targets[:-1]])
    translations = np.add.reduceat(new_pair.astype(np.int64), np.flatnonzero(new_source))
    return int((translations > 1).sum()), int(translations.max())


class _Column:
    """The character trigrams of the sentences of a column, as numbers."""

    def __init__(self) -> None:
        self.flat, self.starts = array("I"), array("Q")

    def add(self, text: str, numbers: dict[str, int]) -> None:
        padded = f" {text.lower()} "
        self.starts.append(len(self.flat))
        for start in range(len(padded) - 2):
            self.flat.append(numbers.setdefault(padded[start : start + 3], len(numbers)))

    def likeness(self, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        """How much likelier each sentence is in its own column than in the other, in nats: float64 [N].

        The sentence itself is left out of its column's counts, or a foreign one would vouch for itself.
        """
        flat = np.frombuffer(self.flat, np.uint32)
        own_total, other_total = own.sum() + _SMOOTHING * len(own), other.sum() + _SMOOTHING * len(own)
        log_own = np.log((own - 1 + _SMOOTHING).clip(_SMOOTHING) / own_total)
        log_other = np.log((other + _SMOOTHING) / other_total)
        return np.add.reduceat((log_own - log_other)[flat], np.frombuffer(self.starts, np.int64))


def foreign_columns(pairs: list[Pair]) -> dict[str, list[int]]:
    """Return the positions of pairs whose sides look swapped, or one of whose sides looks like the other's language.

    Each column's own majority says what its language looks like, by counts of character trigrams: a naive Bayes
    classifier that needs no knowledge of languages and is useless where the columns are mixed half and half.
    """
    pairs = [Pair(source or " ", target or " ") for source, target in pairs]
    numbers: dict[str, int] = {}
    columns = _Column(), _Column()
    for pair in pairs:
        for column, text in zip(columns, pair, strict=True):
            column.add(text, numbers)
    if not numbers:
        return {}
    counts = [
        np.bincount(np.frombuffer(column.flat, np.uint32), minlength=len(numbers)).astype(float) for column in columns
    ]
    source = columns[0].likeness(counts[0], counts[1])
    target = columns[1].likeness(counts[1], counts[0])
    found = {
        "sides look swapped": (source < -SURE) & (target < -SURE),
        "source looks like the target language": (source < -SURE) & (target > SURE),
        "target looks like the source language": (source > SURE) & (target < -SURE),
    }
    return {reason: np.flatnonzero(where).tolist() for reason, where in found.items() if where.any()}
