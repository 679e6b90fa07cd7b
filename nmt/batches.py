"""Which pairs meet in which batch: the plan of an epoch is a pure function of (seed, epoch), so it can be sought."""

import numpy as np
import tensorflow as tf

from nmt.dataset import Sequences, Split
from nmt.tokenizer import BOS, EOS, PAD


def plan_epoch(split: Split, batch_size: int, *, seed: int, epoch: int, sort_by_length: bool) -> list[np.ndarray]:
    """Return the batches of an epoch in order, each as the int64 indices of its pairs.

    Every pair is in exactly one batch. With ``sort_by_length`` a batch holds pairs of like length, equals being
    mixed anew each epoch, and the batches come in random order.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(split))
    if sort_by_length:
        by_length = np.lexsort((split.source.lengths[order], split.target.lengths[order]))
        order = order[by_length]
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if sort_by_length:
        batches = [batches[index] for index in random.permutation(len(batches))]
    return batches


def pad_rows(sequences: Sequences, indices: np.ndarray, *, bos: bool, length: int | None = None) -> np.ndarray:
    """Return sequences with eos, and bos if asked for, padded to the longest or to ``length``: int32 [B, L]."""
    starts = sequences.offsets[indices]
    lengths = sequences.offsets[indices + 1] - starts
    first = int(bos)
    width = length if length is not None else first + int(lengths.max()) + 1
    rows = np.full((len(indices), width), PAD, np.int32)
    for row, start, count in zip(rows, starts, lengths, strict=True):
        row[first : first + count] = sequences.tokens[start : start + count]
        row[first + count] = EOS
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
