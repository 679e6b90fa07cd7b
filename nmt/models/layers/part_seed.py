"""Dropout in a part of a batch: the part drops the elements that the whole batch drops there.

Shapes: B sentences of the whole batch, L length of a side in it, N its real tokens, n those of the part.
"""

from collections.abc import Callable
from typing import NamedTuple

from nmt.runtime import tf


class PartSeed(NamedTuple):
    """Dropout seed of consecutive sentences of a batch, in place of the plain seed int64 [2].

    Random numbers are drawn for the whole batch, and the part takes its own. Arrays of a part have its real tokens in
    their first dimension, if they have one or two dimensions, and else its sentences; integers [B, L] have sentences.
    """

    seed: tf.Tensor
    """Seed of the whole batch: int64 [2]."""
    ids: tf.Tensor
    """Ids of the whole batch: int32 [B, L]."""
    real: tf.Tensor
    """Positions of ``ids`` that count as real tokens: bool [B, L]."""
    first: tf.Tensor
    """Number of the part's first sentence in the whole batch: int32 scalar."""
    time_major: bool = False
    """Whether sentences are the second dimension of arrays of three dimensions."""

    def shifted(self, offset: tf.Tensor) -> "PartSeed":
        """Return the same part with another seed: the sum with an offset int64 [2]."""
        return self._replace(seed=self.seed + offset)

    @property
    def first_token(self) -> tf.Tensor:
        """Number of real tokens of the sentences before the part: int32 scalar."""
        return tf.math.count_nonzero(self.real[: self.first], dtype=tf.int32)

    def tokens(self) -> tf.Tensor:
        """Return the real tokens of the whole batch: int32 [N]."""
        return tf.boolean_mask(self.ids, self.real)

    def draw(self, draw: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Return random numbers for the elements of ``x``, by a function of shape and seed of the whole batch."""
        of_sentences = x.shape.rank > 2 or (x.shape.rank == 2 and x.dtype.is_integer)
        axis = 1 if self.time_major and x.shape.rank > 2 else 0
        if of_sentences:
            first, count = self.first, tf.shape(self.ids)[0]
        else:
            first, count = self.first_token, tf.math.count_nonzero(self.real, dtype=tf.int32)
        axes = tf.range(x.shape.rank)
        whole = draw(tf.where(axes == axis, count, tf.shape(x)), self.seed)
        return tf.slice(whole, tf.where(axes == axis, first, 0), tf.shape(x))


DropoutSeed = tf.Tensor | PartSeed
"""Seed of dropout: int64 [2], the run's seed and the number of the batch; of a part of a batch with its place."""
