"""The recurrent encoder: layers of cells over the source, in one direction or both.

Shapes: B sentences, S source length, N real tokens, D width of a layer's input, n width of a direction's states.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.basic import Dropout
from nmt.models.layers.layer import Layer
from nmt.models.layers.ops import sizes
from nmt.models.layers.unpadding import Unpadding, gather_or_zero
from nmt.models.recurrent.cells import Cell, State, make_cell, run_cell
from nmt.runtime import tf


class TimeMajor(NamedTuple):
    """Mapping between the N real tokens of a batch, row by row, and its time steps."""

    tokens: tf.Tensor
    """Number of the token that each sentence reads in each step, N at padding: int32 [L, B]."""
    places: tf.Tensor
    """Flat index into [L * B] of each token: int32 [N]."""

    @classmethod
    def of(cls, unpadding: Unpadding, *, backward: bool = False) -> "TimeMajor":
        """Return the layout of sentences that are read from their first token on, or backward from their last."""
        batch, longest = sizes(unpadding.tokens)
        lengths = unpadding.lengths
        steps = tf.range(longest)[:, tf.newaxis]
        starts = tf.cumsum(lengths, exclusive=True)
        columns = lengths - 1 - steps if backward else steps
        tokens = tf.where(steps < lengths, starts + columns, tf.reduce_sum(lengths))
        sentence, column = unpadding.indices // longest, unpadding.positions
        step = tf.gather(lengths, sentence) - 1 - column if backward else column
        return cls(tokens, step * batch + sentence)

    def to_steps(self, x: tf.Tensor) -> tf.Tensor:
        """Return tokens by time step: [N] or [N, D] -> [L, B] or [L, B, D].

        Padding gets the last token of the batch; nothing reads the states there.
        """
        tokens = tf.minimum(self.tokens, tf.size(self.places) - 1)
        if x.dtype.is_integer:
            return tf.gather(x, tokens)

        @tf.custom_gradient
        def steps(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            return tf.gather(x, tokens), lambda upstream: self._at_places(upstream, x.shape[-1])

        return steps(x)

    def to_tokens(self, x: tf.Tensor) -> tf.Tensor:
        """Return the real tokens of time steps: [L, B, D] -> [N, D]."""

        @tf.custom_gradient
        def real_tokens(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            width = x.shape[-1]
            return self._at_places(x, width), lambda upstream: gather_or_zero(upstream, self.tokens, width)

        return real_tokens(x)

    def _at_places(self, x: tf.Tensor, width: int) -> tf.Tensor:
        return tf.gather(tf.reshape(x, [-1, width]), self.places)


class Words(NamedTuple):
    """Vectors of the U different words of a batch, and the places of the words.

    A batch of 2,000 subwords of image captions has 600 different ones. The embedding of a word, and its product in the
    lowest cells, depend on the word alone and are computed once for each word. Dropout falls on the same elements of a
    word at all its places in the batch.
    """

    vectors: tf.Tensor
    """Vectors of the words: [U, D]."""
    numbers: tf.Tensor
    """Number of the word of each real token: int32 [N]."""
    unpadding: Unpadding
    """Layout of the real tokens."""

    @classmethod
    def of(cls, ids: tf.Tensor, unpadding: Unpadding, embed: Callable[[tf.Tensor], tf.Tensor]) -> "Words":
        """Return the words of a batch.

        Args:
            ids: real tokens: int32 [N].
            unpadding: layout of the real tokens.
            embed: function from ids, int32 [U], to vectors [U, D].
        """
        different, numbers = tf.unique(ids)
        return cls(embed(different), numbers, unpadding)

    def to_tokens(self, x: tf.Tensor) -> tf.Tensor:
        """Return the rows of x, one for each word, at the real tokens: [U, D] -> [N, D]."""
        return _repeated(x, self.numbers)

    def to_steps(self, x: tf.Tensor, layout: TimeMajor) -> tf.Tensor:
        """Return the rows of x by time step: [U, D] -> [L, B, D].

        Padding gets some word; nothing reads the states there.
        """
        return _repeated(x, layout.to_steps(self.numbers))


def _repeated(x: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Gather rows of x, [U, D], at numbers, int32 [...]. The gradient is summed in float32."""

    @tf.custom_gradient
    def gathered(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rows = tf.cast(tf.reshape(upstream, [-1, x.shape[-1]]), tf.float32)
            return tf.cast(tf.math.unsorted_segment_sum(rows, tf.reshape(numbers, [-1]), sizes(x)[0]), x.dtype)

        return tf.gather(x, numbers), gradient

    return gathered(x)


class Direction(Layer):
    """A cell that reads sentences forward or backward."""

    def __init__(self, cell: Cell, *, backward: bool, **kwargs: Any) -> None:
        """Take the cell and the direction."""
        super().__init__(**kwargs)
        self.cell, self.backward = cell, backward

    def call(self, x: Words | tf.Tensor, unpadding: Unpadding) -> tuple[tf.Tensor, State]:
        """Read sentences.

        Args:
            x: words of the sentences, or the outputs of the layer below, [N, D].
            unpadding: layout of the real tokens.

        Returns:
            The output at each real token [N, n], and the state after the last token that is read: [B, n] each.
        """
        layout, lengths = TimeMajor.of(unpadding, backward=self.backward), unpadding.lengths
        steps = x.to_steps(self.cell(x.vectors), layout) if isinstance(x, Words) else layout.to_steps(self.cell(x))
        first = self.cell.zero_state(lengths.shape[0] or tf.size(lengths))
        states = [layout.to_tokens(part) for part in run_cell(self.cell, steps, first)]
        ends = tf.cumsum(lengths, exclusive=True) if self.backward else tf.cumsum(lengths) - 1
        final = [tf.cast(tf.gather(part, ends), like.dtype) for part, like in zip(states, first, strict=True)]
        return states[0], tuple(final)


class RecurrentEncoder(Layer):
    """Layers with a forward direction, a backward one or both, and dropout between the layers."""

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section."""
        super().__init__(**kwargs)
        numbers = range(1, config.layers + 1)

        def direction(number: int, *, backward: bool) -> Direction:
            name = f"{'backward' if backward else 'forward'}_{number}"
            width = config.input_width if number == 1 else config.annotation_width
            cell = make_cell(config, width, config.direction_width, "cell")
            return Direction(cell, backward=backward, name=name)

        directions = [False, True] if config.bidirectional else [config.reverse_source]
        self.layers = [[direction(number, backward=backward) for backward in directions] for number in numbers]
        self.dropouts = [Dropout(config.dropout, f"encoder_{number}") for number in numbers]

    def call(self, words: Words, dropout_seed: tf.Tensor | None = None) -> tuple[tf.Tensor, list[list[State]]]:
        """Read source sentences.

        Args:
            words: embeddings, dropout included.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The outputs of the last layer, [N, E], in which two directions are concatenated, and for each layer the
            final states of its directions.
        """
        finals = []
        x: Words | tf.Tensor = words
        for number, (layer, dropout) in enumerate(zip(self.layers, self.dropouts, strict=True)):
            if number:
                x = dropout(x, dropout_seed)
            read = [direction(x, words.unpadding) for direction in layer]
            x = tf.concat([outputs for outputs, _ in read], axis=-1)
            finals.append([state for _, state in read])
        return x, finals
