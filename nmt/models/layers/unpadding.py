"""Layouts of tokens: padding removal in training, beams side by side in search.

Attention needs rows; all else computes one position at a time and works on a flat list of tokens.

Shapes: B batch, L length of either side, K beams, D model, N real tokens (no padding).
"""

from typing import Any, NamedTuple

from nmt.models.layers.ops import sizes
from nmt.runtime import tf
from nmt.tokenizers.base import PAD


class Unpadding(NamedTuple):
    """Padding removal: a mapping between padded rows and their N real tokens, row by row.

    In batches of short sentences in random order it halves the arithmetic.
    """

    indices: tf.Tensor
    """Flat index into [B * L] of each real token: int32 [N]."""
    tokens: tf.Tensor
    """Number of the real token at each place of the rows, N at padding: int32 [B, L]."""

    @classmethod
    def of(cls, ids: tf.Tensor) -> "Unpadding":
        """Return the padding removal of ids, int32 [B, L]."""
        real = tf.reshape(tf.not_equal(ids, PAD), [-1])
        indices = tf.cast(tf.where(real)[:, 0], tf.int32)
        tokens = tf.where(real, tf.cumsum(tf.cast(real, tf.int32)) - 1, tf.size(indices))
        return cls(indices, tf.reshape(tokens, sizes(ids)))

    @property
    def positions(self) -> tf.Tensor:
        """Column of each token: int32 [N]."""
        return self.indices % sizes(self.tokens)[1]

    @property
    def columns(self) -> tf.Tensor:
        """Position of each column of the rows: int32 [L]."""
        return tf.range(sizes(self.tokens)[1])

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """Remove padding: [B, L] or [B, L, D] -> [N] or [N, D]."""
        if rows.dtype.is_integer:
            return tf.gather(tf.reshape(rows, [-1]), self.indices)
        return _exchange(rows, self.indices, self.tokens)

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """Put tokens back into rows: [N, D] -> [B, L, D], zeros at padding."""
        return _exchange(tokens, self.tokens, self.indices)


def gather_or_zero(x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Gather vectors of x, [..., D], at flat indices int32 [...], zeros one past the end."""
    rows = tf.reshape(x, [-1, x.shape[-1]])
    return tf.gather(tf.concat([rows, tf.zeros([1, x.shape[-1]], x.dtype)], axis=0), indices)


def _exchange(x: tf.Tensor, indices: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Gather vectors of x, [..., D], at flat indices, zeros past the end; the gradient gathers at ``inverse``.

    Each of the two undoes the other, so neither direction needs a scatter, which is slow.
    """

    @tf.custom_gradient
    def exchanged(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return gather_or_zero(x, indices), lambda upstream: gather_or_zero(upstream, inverse)

    return exchanged(x)


class BeamLayout(NamedTuple):
    """Layout of a search step: one token for each of K beams of B sentences.

    To attention the K beams of a sentence are K queries of one row, which read the same source.
    """

    tokens: tf.Tensor
    """int32 [B, K]."""
    position: tf.Tensor
    """Position of all these tokens in their sentences: int32 scalar."""

    @property
    def positions(self) -> tf.Tensor:
        """The position, shaped to broadcast: int32 [1]."""
        return self.position[tf.newaxis]

    @property
    def columns(self) -> tf.Tensor:
        """The position, which all tokens of a row have: int32 [1]."""
        return self.positions

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, K, ...] -> [B * K, ...]."""
        return tf.reshape(rows, [-1, *sizes(rows)[2:]])

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """[B * K, D] -> [B, K, D]."""
        return tf.reshape(tokens, [*sizes(self.tokens), tokens.shape[-1]])


TokenLayout = Unpadding | BeamLayout
