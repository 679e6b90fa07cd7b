"""The encoder: layers of cells over the source, in one direction or both.

Shapes: B sentences, S source length, N real tokens, D width of a layer's input, n width of a direction's states.
"""

from typing import Any, NamedTuple

from nmt.models.layers.basic import Composite, Dropout
from nmt.models.layers.unpadding import Unpadding
from nmt.models.recurrent.cells import Cell, State, run_cell
from nmt.models.recurrent.layout import TimeMajor, Words
from nmt.runtime import tf


class Read(NamedTuple):
    """What a direction of a layer gives."""

    outputs: tf.Tensor
    """Output at each real token: [N, n]."""
    final: State
    """State after the last token that the direction reads: [B, n] each."""


class Direction(Composite):
    """A cell that reads sentences from their first token or from their last."""

    def __init__(self, cell: Cell, *, backward: bool, **kwargs: Any) -> None:
        """Take the cell and the direction."""
        super().__init__(**kwargs)
        self.cell, self.backward = cell, backward

    def call(self, x: Words | tf.Tensor, unpadding: Unpadding, lengths: tf.Tensor) -> Read:
        """Read words, or the outputs of the layer below [N, D], of sentences with real lengths int32 [B]."""
        layout = TimeMajor.of(unpadding, lengths, backward=self.backward)
        steps = x.to_steps(self.cell(x.vectors), layout) if isinstance(x, Words) else layout.to_steps(self.cell(x))
        state = self.cell.zero_state(lengths.shape[0] or tf.size(lengths))
        outputs = run_cell(self.cell, steps, state)
        outputs, *rest = (layout.to_tokens(part) for part in outputs)
        ends = tf.cumsum(lengths, exclusive=self.backward) - (0 if self.backward else 1)
        final = [tf.gather(part, ends) for part in (outputs, *rest)]
        return Read(outputs, tuple(map(tf.cast, final, (part.dtype for part in state))))


class RecurrentEncoder(Composite):
    """Layers of one direction or two; each reads the outputs of the layer below, dropout between them."""

    def __init__(self, layers: list[list[Direction]], dropouts: list[Dropout], **kwargs: Any) -> None:
        """Take the directions of each layer, and the dropout on the input of each."""
        super().__init__(**kwargs)
        self.layers, self.dropouts = layers, dropouts

    def call(
        self, words: Words, unpadding: Unpadding, lengths: tf.Tensor, dropout_seed: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, list[list[State]]]:
        """Read source sentences.

        Args:
            words: embeddings, dropout included.
            unpadding: layout of the real tokens.
            lengths: real lengths: int32 [B].
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The outputs of the last layer, directions side by side, [N, E], and for each layer the final states of its
            directions.
        """
        finals, x = [], words
        for number, (layer, dropout) in enumerate(zip(self.layers, self.dropouts, strict=True)):
            if number:
                x = dropout(x, dropout_seed)
            read = [direction(x, unpadding, lengths) for direction in layer]
            x = tf.concat([part.outputs for part in read], axis=-1)
            finals.append([part.final for part in read])
        return x, finals
