"""Self-attention cache of the Transformer's decoder in search.

Shapes: B batch, H heads, d head size, K beams, M columns.
"""

from typing import NamedTuple

from nmt.models.layers.attention import KeysValues
from nmt.models.layers.ops import sizes
from nmt.runtime import tf


class TransformerState(NamedTuple):
    """Self-attention cache of K target prefixes of each sentence.

    All beams of a sentence write to one row, and ``visible`` says which columns belong to each beam's prefix. When
    beams are reordered, no keys and values move. Beams share most of their prefixes and leave others behind: of the
    columns written, those in use are a third, so that ``select`` drops the rest.
    """

    layers: tuple[KeysValues, ...]
    """Keys and values [B, H, M, d] for each decoder layer, K columns for each token since the last ``select``."""
    visible: tf.Tensor
    """True at the columns of each beam's prefix: bool [B, K, M]."""
    length: tf.Tensor
    """Number of tokens of each prefix: int32 scalar."""

    def reorder(self, parents: tf.Tensor) -> "TransformerState":
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""
        return self._replace(visible=tf.gather(self.visible, parents, batch_dims=1))

    def select(self, rows: tf.Tensor) -> "TransformerState":
        """Return the state of the sentences ``rows``, int32 [B'], alone, without columns that no beam sees."""
        visible = tf.gather(self.visible, rows)
        used = tf.cast(tf.reduce_any(visible, axis=1), tf.int32)
        most = tf.reduce_max(tf.reduce_sum(used, axis=1))
        columns = tf.math.top_k(used, most).indices  # those in use, in their order, then others

        def selected(part: tf.Tensor) -> tf.Tensor:
            _, heads, total, size = sizes(part)
            starts = rows[:, tf.newaxis] * heads + tf.range(heads)
            return tf.gather(tf.reshape(part, [-1, size]), starts[..., tf.newaxis] * total + columns[:, tf.newaxis])

        layers = tuple(KeysValues(selected(layer.keys), selected(layer.values)) for layer in self.layers)
        return TransformerState(layers, tf.gather(visible, columns, axis=2, batch_dims=1), self.length)

    def next_visible(self) -> tf.Tensor:
        """Return ``visible`` with a new column for each beam: bool [B, K, M + K]."""
        batch, beams, _ = sizes(self.visible)
        return tf.concat([self.visible, tf.eye(beams, batch_shape=[batch], dtype=tf.bool)], axis=2)
