"""The input pipeline: a batch plan as a ``tf.data.Dataset`` of padded rows."""

import numpy as np

from nmt.data.batch_plan import pad_rows
from nmt.data.token_arrays import Split
from nmt.runtime import tf


def batch_dataset(split: Split, plan: list[np.ndarray], *, source_bos: bool) -> tf.data.Dataset:
    """Return the batches of a plan, each assembled while the previous one trains.

    Yields:
        (source, target), int32 [B, S] and [B, T + 1]. A target row runs from bos to eos: ``target[:, :-1]`` is the
        decoder's input and ``target[:, 1:]`` its expected output. Source rows end in eos.
    """

    def padded_batch(number: int) -> tuple[np.ndarray, np.ndarray]:
        indices = plan[number]
        return pad_rows(split.source, indices, bos=source_bos), pad_rows(split.target, indices, bos=True)

    def batch(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        source, target = tf.numpy_function(padded_batch, [number], [tf.int32, tf.int32])
        return tf.ensure_shape(source, [None, None]), tf.ensure_shape(target, [None, None])

    # Not from_generator: that operation makes the allocator return freed memory to the system at once, and every
    # large tensor of the training step then costs its page faults again.
    return tf.data.Dataset.range(len(plan)).map(batch).prefetch(2)
