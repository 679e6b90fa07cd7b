"""Self-attention cache of the Transformer's decoder in search.

Shapes: B batch, H heads, d head size, K beams, C capacity in tokens of each beam.
"""

from typing import NamedTuple

from nmt.models.layers.attention import KeysValues
from nmt.models.layers.ops import sizes
from nmt.runtime import tf


class TransformerState(NamedTuple):
    """Self-attention cache of K target prefixes of each sentence.

    All beams of a sentence write to one row, and ``visible`` says which columns belong to each beam's prefix. When
    beams are reordered, no keys and values move.
    """

    layers: tuple[KeysValues, ...]
    """Keys and values [B, H, C * K, d] for each decoder layer: token t of beam k in column t * K + k."""
    visible: tf.Tensor
    """True at the columns of each beam's prefix: bool [B, K, C * K]."""
    length: tf.Tensor
    """Number of tokens of each prefix: int32 scalar."""

    def reorder(self, parents: tf.Tensor) -> "TransformerState":
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""
        return self._replace(visible=tf.gather(self.visible, parents, batch_dims=1))

    def select(self, rows: tf.Tensor, capacity: tf.Tensor | int) -> "TransformerState":
        """Return the state of the sentences ``rows``, int32 [B'], alone, C raised to ``capacity``."""
        _, beams, columns = sizes(self.visible)
        new = capacity * beams - columns

        def selected(part: tf.Tensor) -> tf.Tensor:
            return tf.pad(tf.gather(part, rows), [[0, 0], [0, 0], [0, new], [0, 0]])

        layers = tuple(KeysValues(selected(layer.keys), selected(layer.values)) for layer in self.layers)
        visible = tf.pad(tf.gather(self.visible, rows), [[0, 0], [0, 0], [0, new]])
        return TransformerState(layers, visible, self.length)

    def next_visible(self) -> tf.Tensor:
        """Return ``visible`` with the column that each beam writes next."""
        _, beams, columns = sizes(self.visible)
        own = self.length * beams + tf.range(beams)
        return self.visible | tf.equal(tf.range(columns), own[:, tf.newaxis])
