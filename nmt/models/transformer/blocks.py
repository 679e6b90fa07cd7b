"""Blocks and layers of the Transformer (Vaswani et al. 2017, section 3).

Shapes: B batch, S source length, T target length, M columns of a cache, D model, F feed-forward, H heads, d head size,
N real tokens.
"""

import math
from typing import Any, Literal, NamedTuple

from nmt.config.schema import TransformerConfig
from nmt.models.layers.attention import KeysValues, MultiHeadAttention
from nmt.models.layers.basic import Composite, Dropout, LayerNormalization, Linear
from nmt.models.layers.ops import dropout_scale, relu_dropout, sizes
from nmt.models.layers.unpadding import TokenLayout
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


class FeedForward(Composite):
    """max(0, x W1 + b1) W2 + b2, at each position alone (Vaswani et al. 2017, equation 2).

    In training, dropout may apply to max(0, x W1 + b1). Swish, y sigmoid(y), can stand for max(0, y).
    """

    swish = False

    def __init__(self, d_model: int, d_ff: int, dropout: Dropout | None = None, **kwargs: Any) -> None:
        """Take D, F and the dropout on the inner activation, if any."""
        super().__init__(**kwargs)
        self.inner = Linear(d_ff, name="inner")
        self.outer = Linear(d_model, d_ff, name="outer")
        self.dropout = dropout

    def call(self, x: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """[..., D] -> [..., D]."""
        inner = self.inner(x)
        if self.swish:
            inner = tf.nn.silu(inner)
            return self.outer(inner if self.dropout is None else self.dropout(inner, dropout_seed))
        if self.dropout is None or self.dropout.rate == 0 or dropout_seed is None:
            return self.outer(tf.nn.relu(inner))
        rate = self.dropout.rate
        return self.outer(relu_dropout(inner, rate, self.dropout.own_seed(dropout_seed)), dropout_scale(rate))


class SublayerConnection(Composite):
    """Dropout, residual sum and layer norm around a block (Vaswani et al. 2017, section 5.4).

    Post-norm (Vaswani et al. 2017, section 3.1): norm(x + dropout(block(x))). Pre-norm (Xiong et al. 2020):
    x + dropout(block(norm(x))). For ablations, the norm and the residual sum can be left out.
    """

    def __init__(
        self,
        norm: LayerNormalization | None,
        dropout: Dropout,
        placement: Literal["post", "pre"],
        *,
        residual: bool = True,
        **kwargs: Any,
    ) -> None:
        """Take the layer norm (two connections may share it), the dropout, the place of the norm, whether x is added.

        Without a norm, None, nothing is normalized.
        """
        super().__init__(**kwargs)
        self.norm = norm
        self.dropout = dropout
        self.placement = placement
        self.residual = residual

    def before(self, x: tf.Tensor) -> tf.Tensor:
        """Return the block's input from x: [..., D] both."""
        return self.norm(x) if self.norm is not None and self.placement == "pre" else x

    def call(self, x: tf.Tensor, output: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """Add the block's output to x: [..., D] all."""
        dropped = self.dropout(output, dropout_seed)
        total = x + dropped if self.residual else dropped
        return self.norm(total) if self.norm is not None and self.placement == "post" else total


def make_norm(config: TransformerConfig, name: str = "norm") -> LayerNormalization:
    """Return a norm."""
    return LayerNormalization(config.layer_norm_epsilon, name=name)


class _Layer(Composite):
    """What makes the parts of a layer from the model section. Initializers draw seeds in the order of the calls."""

    def __init__(self, config: TransformerConfig, name: str) -> None:
        super().__init__(name=name)
        self.config = config

    def _dropout(self, rate: float, part: str) -> Dropout:
        return Dropout(rate, f"{self.name}/{part}")

    def _attention(self, name: str) -> MultiHeadAttention:
        config, size = self.config, self.config.size_per_head
        divisor = size if config.attention_scale == "head" else config.heads * size
        dropout = self._dropout(config.attention_dropout, f"{name}/weights")
        rotary = config.position_base if config.positions == "rotary" else None
        scale = 1 / math.sqrt(divisor)
        return MultiHeadAttention(config.heads, size, config.d_model, scale, dropout, rotary, name=name)

    def _feed_forward(self) -> FeedForward:
        dropout = self._dropout(self.config.feed_forward_dropout, "feed_forward/inner")
        layer = FeedForward(self.config.d_model, self.config.d_ff, dropout, name="feed_forward")
        layer.swish = self.config.activation == "swish"
        return layer

    def _connection(self, name: str, norm: LayerNormalization | None, *, residual: bool = True) -> SublayerConnection:
        dropout, placement = self._dropout(self.config.dropout, name), self.config.norm_placement
        return SublayerConnection(norm, dropout, placement, residual=residual, name=f"{name}_sublayer")


class EncoderLayer(_Layer):
    """Self-attention and, unless it is left out, feed-forward, each in a sublayer connection."""

    def __init__(self, config: TransformerConfig, number: int) -> None:
        """Take the model section, and the number of the layer, from 1."""
        super().__init__(config, f"encoder_{number}")
        self.attention = self._attention("attention")
        self.feed_forward = self._feed_forward() if config.encoder_feed_forward else None
        self.attention_connection = self._encoder_connection("attention")
        if self.feed_forward is not None:
            self.feed_forward_connection = self._encoder_connection("feed_forward")

    def _encoder_connection(self, name: str) -> SublayerConnection:
        norm = make_norm(self.config) if self.config.encoder_norm else None
        return self._connection(name, norm, residual=self.config.encoder_residual)

    def call(
        self,
        x: tf.Tensor,
        attention_mask: tf.Tensor,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Run source positions through the layer.

        Args:
            x: [B, S, D], or with a layout [N, D].
            attention_mask: bool [B, 1, 1, S]; True at real tokens.
            layout: layout of x; None: padded rows.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The output, shaped as x; the self-attention weights [B, H, S, S].
        """
        query, keys_values = self.attention.queries_keys_values(self.attention_connection.before(x), layout)
        attended, weights = self.attention(query, keys_values, attention_mask, layout, dropout_seed)
        x = self.attention_connection(x, attended, dropout_seed)
        if self.feed_forward is None:
            return x, weights
        expanded = self.feed_forward(self.feed_forward_connection.before(x), dropout_seed)
        return self.feed_forward_connection(x, expanded, dropout_seed), weights


class DecoderLayer(_Layer):
    """Self-attention, cross-attention and feed-forward, each in a sublayer connection."""

    def __init__(self, config: TransformerConfig, number: int) -> None:
        """Take the model section, and the number of the layer, from 1."""
        super().__init__(config, f"decoder_{number}")
        self.self_attention = self._attention("self_attention")
        self.cross_attention = self._attention("cross_attention")
        self.feed_forward = self._feed_forward()
        norm = make_norm(config)
        self.self_attention_connection = self._connection("self_attention", norm)
        norm = norm if config.share_decoder_norm else make_norm(config)
        self.cross_attention_connection = self._connection("cross_attention", norm)
        self.feed_forward_connection = self._connection("feed_forward", make_norm(config))

    def call(
        self,
        x: tf.Tensor,
        source: KeysValues,
        source_mask: tf.Tensor,
        attention_mask: tf.Tensor,
        cache: KeysValues | None = None,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, KeysValues, tf.Tensor, tf.Tensor]:
        """Run target positions through the layer.

        Args:
            x: [B, T, D], or with a layout [N, D].
            source: this layer's keys and values of the encoder's output, [B, H, S, d] each.
            source_mask: bool [B, 1, 1, S]; True at real tokens.
            attention_mask: bool, broadcast to [B, H, T, T], or to [B, H, T, M] with a cache.
            cache: keys and values [B, H, M, d] of earlier positions; None: x is the whole target.
            layout: layout of x; None: padded rows.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The output, shaped as x; the keys and values, those of x included; the weights of self-attention, [B, H, T,
            T] or with a cache [B, H, T, M], and of cross-attention, [B, H, T, S].
        """
        normed = self.self_attention_connection.before(x)
        query, keys_values = self.self_attention.queries_keys_values(normed, layout)
        if cache is not None:
            keys_values = KeysValues(*(tf.concat(parts, axis=2) for parts in zip(cache, keys_values, strict=True)))
        attended, own_weights = self.self_attention(query, keys_values, attention_mask, layout, dropout_seed)
        x = self.self_attention_connection(x, attended, dropout_seed)
        query = self.cross_attention.queries(self.cross_attention_connection.before(x), layout)
        attended, cross_weights = self.cross_attention(query, source, source_mask, layout, dropout_seed)
        x = self.cross_attention_connection(x, attended, dropout_seed)
        expanded = self.feed_forward(self.feed_forward_connection.before(x), dropout_seed)
        return self.feed_forward_connection(x, expanded, dropout_seed), keys_values, own_weights, cross_weights
