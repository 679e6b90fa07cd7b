"""Which pairs meet in which batch: the plan of an epoch is a pure function of (seed, epoch), so it can be sought."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from nmt.data.token_arrays import Sequences, Split
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

# Both sides of a batch count, or a few short targets with endless sources would make a batch that fits no memory.
SOURCE_TOKENS_PER_TARGET_TOKEN = 2


def plan_epoch(
    split: Split,
    batch_size: int,
    *,
    seed: int,
    epoch: int,
    sort_by_length: bool,
    batch_type: Literal["sentences", "tokens"] = "sentences",
) -> list[np.ndarray]:
    """Return the batches of an epoch in order, each as the int64 indices of its pairs.

    Every pair is in exactly one batch. With ``sort_by_length`` a batch holds pairs of like length, equals being
    mixed anew each epoch, and the batches come in random order. Batches by tokens are always sorted so: a batch has as
    many pairs as fit in ``batch_size`` target tokens, eos included, padding too, and in twice as many source tokens;
    a longer pair is a batch of its own.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(split))
    if batch_type == "sentences" and not sort_by_length:
        return _cut(order, range(batch_size, len(order), batch_size))
    source, target = split.source.lengths[order] + 1, split.target.lengths[order] + 1
    # Sources of one target length rise, those of the next fall, so that neighbours are alike there too.
    by_length = np.lexsort((np.where(target % 2, source, -source), target))
    order = order[by_length]
    if batch_type == "sentences":
        batches = _cut(order, range(batch_size, len(order), batch_size))
    else:
        batches = _cut(order, _token_starts(source[by_length], target[by_length], batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def _cut(order: np.ndarray, starts: Iterable[int]) -> list[np.ndarray]:
    """Cut before each of ``starts``; slices, where np.split would copy."""
    bounds = [0, *starts, len(order)]
    return [order[start:end] for start, end in itertools.pairwise(bounds)]


def _token_starts(source: np.ndarray, target: np.ndarray, batch_size: int) -> list[int]:
    """Return where batches start, but the first, for lengths [N] sorted by target: one search a batch, not a pair."""
    most_source = SOURCE_TOKENS_PER_TARGET_TOKEN * batch_size
    starts, start = list[int](), 0
    while True:
        # Rows are padded to the longest, on the target side to the last. No batch has more pairs than tokens.
        window = slice(start, start + batch_size)
        count = np.arange(1, len(target[window]) + 1)
        fits = count * target[window] <= batch_size
        fits &= count * np.maximum.accumulate(source[window]) <= most_source
        start += max(1, int(np.count_nonzero(fits)))
        if start >= len(target):
            return starts
        starts.append(start)


def length_batches(lengths: Sequence[int], size: int) -> list[np.ndarray]:
    """Return indices of sentences sorted by length, in batches of at most ``size``; those of length 0 are left out."""
    order = np.argsort(lengths, kind="stable")
    order = order[np.asarray(lengths)[order] > 0]
    return [order[start : start + size] for start in range(0, len(order), size)]


def pad_rows(sequences: Sequences, indices: np.ndarray, *, bos: bool, length: int | None = None) -> np.ndarray:
    """Return sequences with eos, and bos if asked for, padded to the longest or to ``length``: int32 [B, L]."""
    starts = sequences.offsets[indices]
    lengths = sequences.offsets[indices + 1] - starts
    first = int(bos)
    width = length if length is not None else first + int(lengths.max()) + 1
    rows = np.full((len(indices), width), PAD, np.int32)
    columns = np.arange(width - first)
    rows[:, first:][columns < lengths[:, np.newaxis]] = np.concatenate(
        [sequences.tokens[start : start + count] for start, count in zip(starts, lengths, strict=True)]
    )
    rows[np.arange(len(rows)), first + lengths] = EOS
    if bos:
        rows[:, 0] = BOS
    return rows


def longest_row(sequences: Sequences, *, bos: bool) -> int:
    """Return the width that ``pad_rows`` needs for the longest sequence."""
    return int(bos) + int(sequences.lengths.max()) + 1


def batch_dataset(split: Split, plan: list[np.ndarray], *, source_bos: bool, pad_to_longest: bool) -> tf.data.Dataset:
    """Return the batches of a plan, made while the previous one trains.

    Yields:
        (source, target) as int32 [B, S] and [B, T + 1]; target rows run from bos to eos, so that the decoder's input
        is ``target[:, :-1]`` and its expected output ``target[:, 1:]``. Source rows end in eos.
    """
    source_length = longest_row(split.source, bos=source_bos) if pad_to_longest else None
    target_length = longest_row(split.target, bos=True) if pad_to_longest else None

    def make(number: int) -> tuple[np.ndarray, np.ndarray]:
        indices = plan[number]
        return (
            pad_rows(split.source, indices, bos=source_bos, length=source_length),
            pad_rows(split.target, indices, bos=True, length=target_length),
        )

    def batch(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        source, target = tf.numpy_function(make, [number], [tf.int32, tf.int32])
        return tf.ensure_shape(source, [None, None]), tf.ensure_shape(target, [None, None])

    # Not from_generator: that operation makes the allocator return freed memory to the system at once, and every
    # large tensor of the training step then costs its page faults again.
    return tf.data.Dataset.range(len(plan)).map(batch).prefetch(2)


class PaddedSize(NamedTuple):
    """What a batch comes to with its padding, eos counted."""

    tokens: int
    """Of source and target."""
    pairs: int
    """Of tokens that attention could weigh: within the source, within the target, and across."""


def padded_sizes(split: Split, indices: np.ndarray) -> PaddedSize:
    """Return the size of a batch."""
    source, target = (
        int((side.offsets[indices + 1] - side.offsets[indices]).max()) + 1 for side in (split.source, split.target)
    )
    return PaddedSize(
        len(indices) * (source + target), len(indices) * (source * source + target * target + source * target)
    )


Batch = TypeVar("Batch")


def grouped(batches: Iterable[Batch], count: int) -> Iterator[list[Batch]]:
    """Yield the batches of each step: ``count`` of them, the last time what is left."""
    coming = iter(batches)
    while group := list(itertools.islice(coming, count)):
        yield group
