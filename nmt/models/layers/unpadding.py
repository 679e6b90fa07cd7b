"""TODO."""

from typing import Any, NamedTuple

from nmt.models.layers.ops import sizes
from nmt.runtime import tf
from nmt.tokenizers.base import PAD


class Packing(NamedTuple):
    """Where the tokens that count stand in padded rows.

    Attention needs rows; all else looks at one position at a time, and then need not see padding: it works on the N
    tokens that count, end to end. In batches of short sentences in random order that is half the arithmetic.
    """

    places: tf.Tensor
    """Of each token that counts, row by row: its place in the rows laid end to end. int32 [N]."""
    tokens: tf.Tensor
    """Of each place in the rows: the number of its token, N where there is none. int32 [B, L]."""

    @classmethod
    def of(cls, ids: tf.Tensor) -> "Packing":
        """Return where ids [B, L] are not padding."""
        counts = tf.reshape(tf.not_equal(ids, PAD), [-1])
        places = tf.cast(tf.where(counts)[:, 0], tf.int32)
        tokens = tf.where(counts, tf.cumsum(tf.cast(counts, tf.int32)) - 1, tf.size(places))
        return cls(places, tf.reshape(tokens, sizes(ids)))

    @property
    def positions(self) -> tf.Tensor:
        """The column of each token: int32 [N]."""
        return self.places % sizes(self.tokens)[1]

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, L] or [B, L, D] -> [N] or [N, D]."""
        if rows.dtype.is_integer:
            return tf.gather(tf.reshape(rows, [-1]), self.places)
        return _exchange(rows, self.places, self.tokens)

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """[N, D] -> [B, L, D], zeros where nothing counts."""
        return _exchange(tokens, self.tokens, self.places)


def _exchange(x: tf.Tensor, there: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
    """Gather what lies along the last axis of x at ``there``, zeros beyond the end; the gradient gathers at ``back``.

    Each of the two undoes the other, so neither way needs to scatter, which is slow.
    """

    def gathered(x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
        rows = tf.reshape(x, [-1, x.shape[-1]])
        return tf.gather(tf.concat([rows, tf.zeros([1, x.shape[-1]], x.dtype)], axis=0), indices)

    @tf.custom_gradient
    def exchanged(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return gathered(x, there), lambda upstream: gathered(upstream, back)

    return exchanged(x)


class Grid(NamedTuple):
    """One token for each of K beams of B sentences, end to end: the packing of a step of search.

    To attention the beams of a sentence are so many queries of one row, and read one source.
    """

    tokens: tf.Tensor
    """int32 [B, K]."""
    position: tf.Tensor
    """Where in their sentences all these tokens stand: int32 scalar."""

    @property
    def positions(self) -> tf.Tensor:
        """The one position: int32 [1]."""
        return self.position[tf.newaxis]

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, K, ...] -> [B * K, ...]."""
        return tf.reshape(rows, [-1, *sizes(rows)[2:]])

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """[B * K, D] -> [B, K, D]."""
        return tf.reshape(tokens, [*sizes(self.tokens), tokens.shape[-1]])
