"""Layouts of tokens: padding removal in training, live beams in search.

Attention needs the rows of sentences. Everything else computes each position alone, and works on a flat list of tokens.

Shapes: B batch, L length of either side, K beams, D model, N real tokens (no padding) or live beams.
"""

import contextlib
from typing import Any, NamedTuple

from nmt.models.layers.ops import sizes
from nmt.runtime import on_host, tf
from nmt.tokenizers.base import PAD

ROWS = 8
"""The number of computed beams is a multiple of this, so that matrix products have few different shapes."""


class Unpadding(NamedTuple):
    """Padding removal: a mapping between padded rows and their N real tokens, row by row.

    It halves the arithmetic on batches of short sentences in random order.
    """

    indices: tf.Tensor
    """Flat index into [B * L] of each real token: int32 [N]."""
    tokens: tf.Tensor
    """Number of the real token at each place of the padded rows, N at padding: int32 [B, L]."""

    @classmethod
    def of(cls, ids: tf.Tensor) -> "Unpadding":
        """Return the layout of ids, int32 [B, L]."""
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
        """Number of real tokens in each row: int32 [B]."""
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
    """Gather vectors of x at flat indices; an index just past the end gives zeros.

    Args:
        x: [..., D].
        indices: int32 of any shape.
        width: D, which the static shape of a gradient may lack.
    """
    rows = tf.reshape(x, [-1, width])
    return tf.gather(tf.concat([rows, tf.zeros([1, width], x.dtype)], axis=0), indices)


def _exchange(x: tf.Tensor, indices: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Gather vectors of x, [..., D], as ``gather_or_zero`` does; the gradient gathers at ``inverse``.

    The two gathers undo each other, so neither direction needs a scatter, which is slow.
    """

    @tf.custom_gradient
    def exchanged(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
        width = x.shape[-1]
        return gather_or_zero(x, indices, width), lambda upstream: gather_or_zero(upstream, inverse, width)

    return exchanged(x)


class BeamLayout(NamedTuple):
    """Layout of a search step: one token for each of K beams of B sentences, of which N beams are live.

    A beam that has ended keeps its place in [B, K] for attention, which costs little; everything else computes live
    beams only. In attention the K beams of a sentence are K queries of one row, which read the same source.
    """

    indices: tf.Tensor
    """Flat index into [B * K] of each live beam, filled up with 0 to a multiple of ``ROWS``: int32 [N]."""
    rows: tf.Tensor
    """Number of the live beam at each place, 0 at beams that have ended: int32 [B, K]."""
    position: tf.Tensor | int = 0
    """Position of the tokens in their sentences, the same for all: int32 scalar."""

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
        """Position of each token, shaped to broadcast: int32 [1]."""
        return tf.reshape(self.position, [1])

    @property
    def columns(self) -> tf.Tensor:
        """Position of each column, the same for all: int32 [1]."""
        return self.positions

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """Return the rows of live beams: [B, K, ...] -> [N, ...]."""
        with on_host() if rows.dtype.is_integer else contextlib.nullcontext():
            return tf.gather(tf.reshape(rows, [-1, *sizes(rows)[2:]]), self.indices)

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """Put the rows of live beams back: [N, ...] -> [B, K, ...]. Nothing reads the rows at ended beams."""
        with on_host() if tokens.dtype.is_integer else contextlib.nullcontext():
            return tf.gather(tokens, self.rows)


TokenLayout = Unpadding | BeamLayout
