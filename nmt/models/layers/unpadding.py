"""Layouts of tokens: padding removal in training, live beams in search.

Attention needs rows; all else computes one position at a time and works on a flat list of tokens.

Shapes: B batch, L length of either side, K beams, D model, N real tokens (no padding) or live beams.
"""

import contextlib
from typing import Any, NamedTuple

from nmt.models.layers.ops import sizes
from nmt.runtime import on_host, tf
from nmt.tokenizers.base import PAD

ROWS = 8
"""Live beams are computed in multiples of this number, so that matrix products meet few different shapes."""


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
        with on_host():
            real = tf.reshape(tf.not_equal(ids, PAD), [-1])
            indices = tf.cast(tf.where(real)[:, 0], tf.int32)
            tokens = tf.where(real, tf.cumsum(tf.cast(real, tf.int32)) - 1, tf.size(indices))
            return cls(indices, tf.reshape(tokens, sizes(ids)))

    @property
    def positions(self) -> tf.Tensor:
        """Column of each token: int32 [N]."""
        with on_host():
            return self.indices % sizes(self.tokens)[1]

    @property
    def columns(self) -> tf.Tensor:
        """Position of each column of the rows: int32 [L]."""
        return tf.range(sizes(self.tokens)[1])

    @property
    def lengths(self) -> tf.Tensor:
        """Number of real tokens of each row: int32 [B]."""
        with on_host():
            return tf.reduce_sum(tf.cast(self.tokens < tf.size(self.indices), tf.int32), axis=1)

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """Remove padding: [B, L] or [B, L, D] -> [N] or [N, D]."""
        if rows.dtype.is_integer:
            with on_host():
                return tf.gather(tf.reshape(rows, [-1]), self.indices)
        return _exchange(rows, self.indices, self.tokens)

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """Put tokens back into rows: [N, D] -> [B, L, D], zeros at padding."""
        return _exchange(tokens, self.tokens, self.indices)


def gather_or_zero(x: tf.Tensor, indices: tf.Tensor, width: int) -> tf.Tensor:
    """Gather vectors of x, [..., D], at flat indices int32 [...], zeros one past the end.

    ``width`` is D, which the static shape of a gradient may lack.
    """
    rows = tf.reshape(x, [-1, width])
    return tf.gather(tf.concat([rows, tf.zeros([1, width], x.dtype)], axis=0), indices)


def _exchange(x: tf.Tensor, indices: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Gather vectors of x, [..., D], at flat indices, zeros past the end; the gradient gathers at ``inverse``.

    Each of the two undoes the other, so neither direction needs a scatter, which is slow.
    """

    @tf.custom_gradient
    def exchanged(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
        width = x.shape[-1]
        return gather_or_zero(x, indices, width), lambda upstream: gather_or_zero(upstream, inverse, width)

    return exchanged(x)


class BeamLayout(NamedTuple):
    """Layout of a search step: one token for each of K beams of B sentences, of which N beams are live.

    A beam that has ended keeps its place in [B, K], which costs attention little; all else computes live beams alone.
    To attention the K beams of a sentence are K queries of one row, which read the same source.
    """

    indices: tf.Tensor
    """Flat index into [B * K] of each live beam, then of the first place up to a multiple of ``ROWS``: int32 [N]."""
    rows: tf.Tensor
    """Number of the live beam at each place, 0 at the others: int32 [B, K]."""
    position: tf.Tensor | int = 0
    """Position of all these tokens in their sentences: int32 scalar."""

    @classmethod
    def of(cls, tokens: tf.Tensor, position: tf.Tensor | int = 0) -> "BeamLayout":
        """Return the layout of tokens, int32 [B, K], with padding at beams that have ended."""
        with on_host():
            live = tf.reshape(tf.not_equal(tokens, PAD), [-1])
            indices = tf.cast(tf.where(live)[:, 0], tf.int32)
            rows = tf.where(live, tf.cumsum(tf.cast(live, tf.int32)) - 1, 0)
            return cls(tf.pad(indices, [[0, -tf.size(indices) % ROWS]]), tf.reshape(rows, sizes(tokens)), position)

    @property
    def positions(self) -> tf.Tensor:
        """The position, shaped to broadcast: int32 [1]."""
        return tf.reshape(self.position, [1])

    @property
    def columns(self) -> tf.Tensor:
        """The position, which all tokens of a row have: int32 [1]."""
        return self.positions

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """[B, K, ...] -> [N, ...]."""
        with on_host() if rows.dtype.is_integer else contextlib.nullcontext():
            return tf.gather(tf.reshape(rows, [-1, *sizes(rows)[2:]]), self.indices)

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """[N, ...] -> [B, K, ...]; at beams that have ended any row, which nothing reads."""
        with on_host() if tokens.dtype.is_integer else contextlib.nullcontext():
            return tf.gather(tokens, self.rows)


TokenLayout = Unpadding | BeamLayout
