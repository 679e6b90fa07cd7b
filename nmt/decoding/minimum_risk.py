"""Minimum Bayes risk decoding: of several translations, choose the one that is most like all of them.

Kumar and Byrne 2004, and Eikema and Aziz 2020. The likeness is chrF2 (Popović 2015), as in sacrebleu.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

ORDERS = range(1, 7)
"""Lengths of the sequences of characters that chrF compares."""
BETA_SQUARED = 4
"""Weight of recall against precision in chrF2."""


def by_expected_chrf(texts: Sequence[str]) -> list[int]:
    """Return the indices of the translations of a sentence by their mean chrF2 against all of them, highest first.

    A translation that occurs several times, as samples may, counts several times. Equal ones keep their order.
    """
    counts = Counter(texts)
    distinct = list(counts)
    weights = np.array([counts[text] for text in distinct])
    expected = dict(zip(distinct, chrf_matrix(distinct) @ weights, strict=True))
    return sorted(range(len(texts)), key=lambda index: -expected[texts[index]])


def chrf_matrix(texts: Sequence[str]) -> np.ndarray:
    """Return the chrF2 of each of N texts (row) with each of them as the reference (column): float64 [N, N], 0 to 1."""
    squeezed = ["".join(text.split()) for text in texts]
    precision, recall, orders = np.zeros([3, len(texts), len(texts)])
    for order in ORDERS:
        counts = _ngram_counts(squeezed, order)
        matches = np.array([np.minimum(row, counts).sum(axis=1) for row in counts])
        totals = counts.sum(axis=1)
        both = np.minimum.outer(totals, totals) > 0  # chrF leaves out the orders that one of the texts is too short for
        precision += both * matches / np.maximum(totals, 1)[:, np.newaxis]
        recall += both * matches / np.maximum(totals, 1)
        orders += both
    precision /= np.maximum(orders, 1)
    recall /= np.maximum(orders, 1)
    denominator = BETA_SQUARED * precision + recall
    return (1 + BETA_SQUARED) * precision * recall / np.where(denominator > 0, denominator, 1)


def _ngram_counts(texts: Sequence[str], order: int) -> np.ndarray:
    """Return how often each of G sequences of characters occurs in each of N texts: int [N, G]."""
    columns: dict[str, int] = {}
    rows = []
    for text in texts:
        sequences = [text[start : start + order] for start in range(len(text) - order + 1)]
        rows.append([columns.setdefault(sequence, len(columns)) for sequence in sequences])
    return np.array([np.bincount(np.array(row, np.int64), minlength=len(columns)) for row in rows])
