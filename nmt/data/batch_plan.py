"""Batch planning without TensorFlow: the pairs of each batch, their order, and the padding.

The batches of an epoch depend on (seed, epoch) alone, so training resumes at any step without replaying earlier ones.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from nmt.data.token_arrays import Sequences, Split
from nmt.tokenizers.base import BOS, EOS, PAD

# Token batches limit the source side too: short targets with very long sources would not fit into memory.
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
    """Return the batches of an epoch in order; a batch is an array of the indices of its pairs, int64 [B].

    Every pair is in exactly one batch; with several ``corpora``, as often as ``pairs_of_epoch`` returns it.
    With ``sort_by_length`` a batch has pairs of similar length: pairs of equal length are shuffled in every epoch, and
    the batches come in random order. Token batches are always sorted by length. A token batch has as many pairs as fit
    into ``batch_size`` target tokens, eos and padding included, and into twice as many source tokens. A longer pair
    forms a batch alone.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = pairs_of_epoch(corpora or [(len(split), 1.0)], seed=seed, epoch=epoch)
    order = pairs[random.permutation(len(pairs))]
    if batch_type == "sentences" and not sort_by_length:
        return _cut(order, range(batch_size, len(order), batch_size))
    source, target = split.source.lengths[order] + 1, split.target.lengths[order] + 1
    # Source lengths rise for one target length and fall for the next, so neighbours stay similar in both lengths.
    by_length = np.lexsort((np.where(target % 2, source, -source), target))
    order = order[by_length]
    if batch_type == "sentences":
        batches = _cut(order, range(batch_size, len(order), batch_size))
    else:
        batches = _cut(order, _token_starts(source[by_length], target[by_length], batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def pairs_of_epoch(corpora: Sequence[tuple[int, float]], *, seed: int, epoch: int) -> np.ndarray:
    """Return the pairs of an epoch as indices into the split, int64, corpus by corpus.

    ``corpora`` gives the number of pairs and the weight of each corpus, in the order of the split. With weight 2.3,
    each pair comes twice, and a random 30% of them, chosen by (seed, epoch), a third time.
    """
    parts, start = [], 0
    for number, (pairs, weight) in enumerate(corpora, start=1):  # 0 would give the random stream of plan_epoch
        parts += [np.arange(start, start + pairs)] * int(weight)
        extra = pairs_seen(pairs, weight % 1)
        if extra:
            random = np.random.default_rng([seed, epoch, number])
            parts.append(start + random.permutation(pairs)[:extra])
        start += pairs
    return np.concatenate(parts)


def pairs_seen(pairs: int, weight: float) -> int:
    """Return the number of pairs that an epoch reads from a corpus, repeats included."""
    return int(weight) * pairs + round(weight % 1 * pairs)


def length_batches(lengths: Sequence[int] | np.ndarray, size: int) -> list[np.ndarray]:
    """Return batches of at most ``size`` sequences, sorted by length, for decoding and evaluation.

    A batch is an array of int64 indices [B] into ``lengths`` [N]. Sequences of equal length keep their order.
    Sequences of length 0 are left out.
    """
    array = np.asarray(lengths, np.int64)
    order = np.argsort(array, kind="stable")
    order = order[array[order] > 0]
    return [order[start : start + size] for start in range(0, len(order), size)]


def _cut(order: np.ndarray, starts: Iterable[int]) -> list[np.ndarray]:
    """Return ``order`` [N] cut before each index in ``starts``, as views."""
    bounds = [0, *starts, len(order)]
    return [order[start:end] for start, end in itertools.pairwise(bounds)]


def _token_starts(source: np.ndarray, target: np.ndarray, batch_size: int) -> list[int]:
    """Return the start of every token batch except the first, for lengths [N] sorted by target.

    One vectorized search per batch replaces a step per pair.
    """
    max_source = SOURCE_TOKENS_PER_TARGET_TOKEN * batch_size
    starts, start = list[int](), 0
    while True:
        # Rows are padded to the longest; the last target is the longest. No batch has more pairs than tokens.
        window = slice(start, start + batch_size)
        count = np.arange(1, len(target[window]) + 1)
        fits = count * target[window] <= batch_size
        fits &= count * np.maximum.accumulate(source[window]) <= max_source
        start += max(1, int(np.count_nonzero(fits)))
        if start >= len(target):
            return starts
        starts.append(start)


def pad_rows(sequences: Sequences, indices: np.ndarray, *, bos: bool) -> np.ndarray:
    """Return the sequences at ``indices`` [B] as padded rows, int32 [B, L]: bos if requested, tokens, eos, padding.

    L is the length of the longest row.
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
