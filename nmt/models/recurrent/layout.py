"""Layouts of a batch: time steps, and different words.

Shapes: B batch, L length of either side, N real tokens, U different words, D width.
"""

from collections.abc import Callable
from typing import NamedTuple

from nmt.models.layers.ops import sizes
from nmt.models.layers.unpadding import Unpadding, gather_or_zero
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
        """[N] or [N, D] -> [L, B] or [L, B, D]; at padding the last token, whose states nothing reads."""
        tokens = tf.minimum(self.tokens, tf.size(self.places) - 1)
        if x.dtype.is_integer:
            return tf.gather(x, tokens)

        @tf.custom_gradient
        def steps(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            return tf.gather(x, tokens), lambda upstream: self._at_places(upstream, x.shape[-1])

        return steps(x)

    def to_tokens(self, x: tf.Tensor) -> tf.Tensor:
        """[L, B, D] -> [N, D]."""

        @tf.custom_gradient
        def real_tokens(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            width = x.shape[-1]
            return self._at_places(x, width), lambda upstream: gather_or_zero(upstream, self.tokens, width)

        return real_tokens(x)

    def _at_places(self, x: tf.Tensor, width: int) -> tf.Tensor:
        return tf.gather(tf.reshape(x, [-1, width]), self.places)


class Words(NamedTuple):
    """Vectors of the different words of a batch.

    A batch of 2,000 subwords of image captions has 600 different ones. What depends on the word alone, its embedding
    and the product of that in the lowest cells, is computed once for each. Dropout falls on the same elements of a word
    wherever it stands in the batch.
    """

    vectors: tf.Tensor
    """[U, D]."""
    numbers: tf.Tensor
    """Number of the word of each real token: int32 [N]."""

    @classmethod
    def of(cls, ids: tf.Tensor, embed: Callable[[tf.Tensor], tf.Tensor]) -> "Words":
        """Return the words of the real tokens int32 [N], by a function from ids to vectors."""
        different, numbers = tf.unique(ids)
        return cls(embed(different), numbers)

    def to_tokens(self, x: tf.Tensor) -> tf.Tensor:
        """[U, D] -> [N, D]."""
        return _repeated(x, self.numbers)

    def to_steps(self, x: tf.Tensor, layout: TimeMajor) -> tf.Tensor:
        """[U, D] -> [L, B, D]; at padding any word, whose states nothing reads."""
        return _repeated(x, layout.to_steps(self.numbers))


def _repeated(x: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Gather rows of x, [U, D], at numbers int32 [...]; the gradient adds up in float32."""

    @tf.custom_gradient
    def gathered(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rows = tf.cast(tf.reshape(upstream, [-1, x.shape[-1]]), tf.float32)
            return tf.cast(tf.math.unsorted_segment_sum(rows, tf.reshape(numbers, [-1]), sizes(x)[0]), x.dtype)

        return tf.gather(x, numbers), gradient

    return gathered(x)
