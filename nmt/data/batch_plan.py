"""Batch planning, without TensorFlow: which pairs form a batch, in which order, padded to which size.

An epoch's batches depend on (seed, epoch) alone, so training resumes at any step without replaying earlier batches.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from nmt.data.token_arrays import Sequences, Split
from nmt.tokenizers.base import BOS, EOS, PAD

# Token batches bound the source side too: a few short targets with very long sources would not fit into memory.
SOURCE_TOKENS_PER_TARGET_TOKEN = 2


def plan_epoch(
    split: Split,
    batch_size: int,
    *,
    seed: int,
    epoch: int,
    sort_by_length: bool = False,
    batch_type: Literal["sentences", "tokens"] = "sentences",
    corpora: Sequence[tuple[int, float]] = (),
) -> list[np.ndarray]:
    """Return the batches of an epoch in order, each as the int64 indices [B] of its pairs.

    Every pair is in exactly one batch; of several ``corpora`` as often as ``pairs_of_epoch`` says.
    With ``sort_by_length`` a batch holds pairs of similar length: pairs of equal
    length are shuffled every epoch, and the batches come in random order. Batches by tokens are always sorted by
    length. A token batch holds as many pairs as fit into ``batch_size`` target tokens, eos and padding included, and
    into twice as many source tokens; a longer pair forms a batch of its own.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = pairs_of_epoch(corpora or [(len(split), 1.0)], seed=seed, epoch=epoch)
    order = pairs[random.permutation(len(pairs))]
    if batch_type == "sentences" and not sort_by_length:
        return _cut(order, range(batch_size, len(order), batch_size))
    source, target = split.source.lengths[order] + 1, split.target.lengths[order] + 1
    # Source lengths rise within one target length and fall within the next, so neighbours stay similar across both.
    by_length = np.lexsort((np.where(target % 2, source, -source), target))
    order = order[by_length]
    if batch_type == "sentences":
        batches = _cut(order, range(batch_size, len(order), batch_size))
    else:
        batches = _cut(order, _token_starts(source[by_length], target[by_length], batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def pairs_of_epoch(corpora: Sequence[tuple[int, float]], *, seed: int, epoch: int) -> np.ndarray:
    """Return the pairs of an epoch by corpus, as indices into the split, int64.

    ``corpora`` are number of pairs and weight of each, in their order in the split. With weight 2.3 each pair comes
    twice, and a share of 0.3 of them, drawn by (seed, epoch), once more.
    """
    found, start = [], 0
    for number, (pairs, weight) in enumerate(corpora, start=1):  # [seed, epoch, 0] would be the dice of plan_epoch
        found += [np.arange(start, start + pairs)] * int(weight)
        if more := pairs_seen(pairs, weight % 1):
            found.append(start + np.random.default_rng([seed, epoch, number]).permutation(pairs)[:more])
        start += pairs
    return np.concatenate(found)


def pairs_seen(pairs: int, weight: float) -> int:
    """Return how many pairs an epoch sees of a corpus."""
    return int(weight) * pairs + round(weight % 1 * pairs)


def length_batches(lengths: Sequence[int] | np.ndarray, size: int) -> list[np.ndarray]:
    """Return batches of at most ``size`` sequences, sorted by length: for decoding and evaluation.

    Each batch holds int64 indices [B] into ``lengths`` [N]. Sequences of equal length keep their order; sequences of
    length 0 are left out.
    """
    array = np.asarray(lengths, np.int64)
    order = np.argsort(array, kind="stable")
    order = order[array[order] > 0]
    return [order[start : start + size] for start in range(0, len(order), size)]


def _cut(order: np.ndarray, starts: Iterable[int]) -> list[np.ndarray]:
    """Return ``order`` [N] cut before each index in ``starts``. Slices are views; np.split would copy."""
    bounds = [0, *starts, len(order)]
    return [order[start:end] for start, end in itertools.pairwise(bounds)]


def _token_starts(source: np.ndarray, target: np.ndarray, batch_size: int) -> list[int]:
    """Return the start of every token batch but the first, for lengths [N] sorted by target.

    Takes one vectorized search per batch rather than a step per pair.
    """
    max_source = SOURCE_TOKENS_PER_TARGET_TOKEN * batch_size
    starts, start = list[int](), 0
    while True:
        # Rows are padded to the longest, which is the last on the target side. No batch has more pairs than tokens.
        window = slice(start, start + batch_size)
        count = np.arange(1, len(target[window]) + 1)
        fits = count * target[window] <= batch_size
        fits &= count * np.maximum.accumulate(source[window]) <= max_source
        start += max(1, int(np.count_nonzero(fits)))
        if start >= len(target):
            return starts
        starts.append(start)


def pad_rows(sequences: Sequences, indices: np.ndarray, *, bos: bool) -> np.ndarray:
    """Return the sequences at ``indices`` [B] as rows: bos if asked for, tokens, eos, padding; int32 [B, L].

    L is the longest row.
    """
    starts = sequences.offsets[indices]
    lengths = sequences.offsets[indices + 1] - starts
    first = int(bos)
    width = first + int(lengths.max()) + 1
    rows = np.full((len(indices), width), PAD, np.int32)
    columns = np.arange(width - first)
    rows[:, first:][columns < lengths[:, np.newaxis]] = np.concatenate(
        [sequences.tokens[start : start + count] for start, count in zip(starts, lengths, strict=True)]
    )
    rows[np.arange(len(rows)), first + lengths] = EOS
    if bos:
        rows[:, 0] = BOS
    return rows
