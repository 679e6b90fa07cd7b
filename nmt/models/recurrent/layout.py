"""Time-major layout of the tokens of a batch.

Shapes: B batch, L length of either side, N real tokens, D width.
"""

from typing import NamedTuple

from nmt.models.layers.ops import sizes
from nmt.models.layers.unpadding import Unpadding, exchange
from nmt.runtime import tf


class TimeMajor(NamedTuple):
    """Mapping between the N real tokens of a batch, row by row, and its time steps."""

    tokens: tf.Tensor
    """Number of the token that each sentence has in each step, N at padding: int32 [L, B]."""
    places: tf.Tensor
    """Flat index into [L * B] of each token: int32 [N]."""

    @classmethod
    def of(cls, unpadding: Unpadding, lengths: tf.Tensor, *, backward: bool = False) -> "TimeMajor":
        """Return the layout of sentences of real lengths int32 [B], each from its first token or from its last."""
        batch, longest = sizes(unpadding.tokens)
        steps, starts = tf.range(longest)[:, tf.newaxis], tf.cumsum(lengths, exclusive=True)
        places = lengths - 1 - steps if backward else steps
        tokens = tf.where(steps < lengths, starts + places, tf.reduce_sum(lengths))
        sentence, column = unpadding.indices // longest, unpadding.positions
        step = tf.gather(lengths, sentence) - 1 - column if backward else column
        return cls(tokens, step * batch + sentence)

    def to_steps(self, x: tf.Tensor) -> tf.Tensor:
        """[N, D] -> [L, B, D], zeros at padding."""
        return exchange(x, self.tokens, self.places)

    def to_tokens(self, x: tf.Tensor) -> tf.Tensor:
        """[L, B, D] -> [N, D]."""
        return exchange(x, self.places, self.tokens)
