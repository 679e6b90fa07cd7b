"""Diagnostics of a corpus for its data report: cheap hints for a person, none of which changes the data."""

from array import array

import numpy as np

from nmt.data.sources.formats import Pair

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


class _TrigramColumn:
    """Character trigrams of the N sentences of one column, as ids."""

    def __init__(self) -> None:
        self.trigrams, self.starts = array("I"), array("Q")

    def add(self, text: str, ids: dict[str, int]) -> None:
        """Append a sentence; ``ids`` maps trigrams to ids and grows."""
        padded = f" {text.lower()} "
        self.starts.append(len(self.trigrams))
        for start in range(len(padded) - 2):
            self.trigrams.append(ids.setdefault(padded[start : start + 3], len(ids)))

    def log_likelihood_ratios(self, own: np.ndarray, opposite: np.ndarray) -> np.ndarray:
        """Return log P(sentence | own column) - log P(sentence | opposite column) in nats, float64 [N].

        Takes trigram counts of both columns. A sentence is left out of its own column's counts, or a foreign sentence
        would raise its own likelihood.
        """
        trigrams = np.frombuffer(self.trigrams, np.uint32)
        own_total, opposite_total = own.sum() + _SMOOTHING * len(own), opposite.sum() + _SMOOTHING * len(own)
        log_own = np.log((own - 1 + _SMOOTHING).clip(_SMOOTHING) / own_total)
        log_opposite = np.log((opposite + _SMOOTHING) / opposite_total)
        return np.add.reduceat((log_own - log_opposite)[trigrams], np.frombuffer(self.starts, np.int64))


def find_foreign_sides(pairs: list[Pair]) -> dict[str, list[int]]:
    """Return the indices of pairs with swapped sides, or with one side in the other column's language, by reason.

    The majority of a column defines its language: a naive Bayes classifier over character trigrams, which needs no
    knowledge of languages. It finds nothing where a column mixes both languages half and half.
    """
    pairs = [Pair(source or " ", target or " ") for source, target in pairs]
    ids: dict[str, int] = {}
    columns = _TrigramColumn(), _TrigramColumn()
    for pair in pairs:
        for column, text in zip(columns, pair, strict=True):
            column.add(text, ids)
    if not ids:
        return {}
    counts = [
        np.bincount(np.frombuffer(column.trigrams, np.uint32), minlength=len(ids)).astype(float) for column in columns
    ]
    source = columns[0].log_likelihood_ratios(counts[0], counts[1])
    target = columns[1].log_likelihood_ratios(counts[1], counts[0])
    suspects = {
        "sides look swapped": (source < -MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
        "source looks like the target language": (source < -MIN_LOG_RATIO) & (target > MIN_LOG_RATIO),
        "target looks like the source language": (source > MIN_LOG_RATIO) & (target < -MIN_LOG_RATIO),
    }
    return {reason: np.flatnonzero(mask).tolist() for reason, mask in suspects.items() if mask.any()}
