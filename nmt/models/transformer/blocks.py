"""Blocks and layers of the Transformer (Vaswani et al. 2017, section 3).

Shapes: B batch, S source length, T target length, M columns of a cache, D model, F feed-forward, H heads, d head size,
N real tokens.
"""

import math
from typing import Any, Literal, NamedTuple

from nmt.config.schema import TransformerConfig
from nmt.models.layers.attention import KeysValues, MultiHeadAttention
from nmt.models.layers.basic import Dropout, LayerNormalization, Linear
from nmt.models.layers.layer import Layer
from nmt.models.layers.ops import dropout_scale, relu_dropout, sizes
from nmt.models.layers.ssru import SSRU
from nmt.models.layers.unpadding import TokenLayout
from nmt.runtime import tf


class TransformerState(NamedTuple):
    """Self-attention cache of K target prefixes of each sentence.

    All beams of a sentence write to one row, and ``visible`` says which columns belong to each beam's prefix, so keys
    and values stay in place when beams are reordered. Beams share most of their prefixes, and many prefixes are given
    up: only a third of the written columns are still in use. ``select`` drops the other columns.
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
        """Return the state of some sentences, without the columns that no beam of theirs uses.

        Args:
            rows: numbers of the sentences: int32 [B'].
        """
        visible = tf.gather(self.visible, rows)
        used = tf.cast(tf.reduce_any(visible, axis=1), tf.int32)
        most = tf.reduce_max(tf.reduce_sum(used, axis=1))
        columns = tf.math.top_k(used, most).indices  # columns in use first, in their order

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

    def after(self, layers: tuple[KeysValues, ...], visible: tf.Tensor) -> "TransformerState":
        """Return the state with one more token, given the new cache and the result of ``next_visible``."""
        return TransformerState(layers, visible, self.length + 1)


class SSRUState(NamedTuple):
    """State of the SSRUs of a decoder for K target prefixes of each sentence."""

    layers: tuple[tf.Tensor, ...]
    """c of each decoder layer after the last token: float32 [B, K, D]."""
    length: tf.Tensor
    """Number of tokens of each prefix: int32 scalar."""

    def reorder(self, parents: tf.Tensor) -> "SSRUState":
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""
        layers = tuple(tf.gather(cells, parents, batch_dims=1) for cells in self.layers)
        return self._replace(layers=layers)

    def select(self, rows: tf.Tensor) -> "SSRUState":
        """Return the state of the sentences with the numbers ``rows``: int32 [B']."""
        return self._replace(layers=tuple(tf.gather(cells, rows) for cells in self.layers))

    def after(self, layers: tuple[tf.Tensor, ...], visible: tf.Tensor | None = None) -> "SSRUState":
        """Return the state with one more token, given the new c of each layer."""
        return SSRUState(layers, self.length + 1)


class FeedForward(Layer):
    """max(0, x W1 + b1) W2 + b2, at each position alone (Vaswani et al. 2017, equation 2).

    The inner activation, max(0, x W1 + b1), may have dropout in training. With ``swish`` it is y sigmoid(y) instead of
    max(0, y), where y = x W1 + b1.
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: Dropout | None = None, *, swish: bool = False, **kwargs: Any
    ) -> None:
        """Take D, F, the dropout on the inner activation, if any, and the kind of activation."""
        super().__init__(**kwargs)
        self.inner = Linear(d_model, d_ff, name="inner")
        self.outer = Linear(d_ff, d_model, name="outer")
        self.dropout = dropout
        self.swish = swish

    def call(self, x: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """Transform each vector: [..., D] -> [..., D]."""
        inner = self.inner(x)
        if self.swish:
            inner = tf.nn.silu(inner)
            return self.outer(inner if self.dropout is None else self.dropout(inner, dropout_seed))
        if self.dropout is None or self.dropout.rate == 0 or dropout_seed is None:
            return self.outer(tf.nn.relu(inner))
        rate = self.dropout.rate
        return self.outer(relu_dropout(inner, rate, self.dropout.own_seed(dropout_seed)), dropout_scale(rate))


class SublayerConnection(Layer):
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
        """Take the parts of the connection.

        Args:
            norm: the layer norm, which two connections may share; None: no normalization.
            dropout: dropout on the output of the block.
            placement: place of the norm: before the block, or after the sum.
            residual: whether the input x of the connection is added.
            **kwargs: the name.
        """
        super().__init__(**kwargs)
        self.norm = norm
        self.dropout = dropout
        self.placement = placement
        self.residual = residual

    def before(self, x: tf.Tensor) -> tf.Tensor:
        """Return the input of the block: x, [..., D], normalized in pre-norm."""
        return self.norm(x) if self.norm is not None and self.placement == "pre" else x

    def call(self, x: tf.Tensor, output: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """Join x, [..., D], and the output of the block for x, [..., D]."""
        dropped = self.dropout(output, dropout_seed)
        total = x + dropped if self.residual else dropped
        return self.norm(total) if self.norm is not None and self.placement == "post" else total


def make_norm(config: TransformerConfig, name: str = "norm") -> LayerNormalization:
    """Return a new layer norm for vectors of width D."""
    return LayerNormalization(config.d_model, config.layer_norm_epsilon, name=name)


class _Layer(Layer):
    """Base of encoder and decoder layers: makes their parts from the model section.

    Parts draw the seeds of their initial values in the order in which they are made.
    """

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
        epsilon = config.layer_norm_epsilon if config.query_key_norm else None
        return MultiHeadAttention(config.heads, size, config.d_model, scale, dropout, rotary, epsilon, name=name)

    def _feed_forward(self) -> FeedForward:
        config = self.config
        dropout = self._dropout(config.feed_forward_dropout, "feed_forward/inner")
        return FeedForward(
            config.d_model, config.d_ff, dropout, swish=config.activation == "swish", name="feed_forward"
        )

    def _connection(self, name: str, norm: LayerNormalization | None, *, residual: bool = True) -> SublayerConnection:
        dropout = self._dropout(self.config.dropout, name)
        placement = self.config.norm_placement
        return SublayerConnection(norm, dropout, placement, residual=residual, name=f"{name}_sublayer")


class EncoderLayer(_Layer):
    """Layer of the encoder: self-attention and, unless left out, feed-forward, each in a sublayer connection."""

    def __init__(self, config: TransformerConfig, number: int) -> None:
        """Take the model section and the number of the layer, from 1."""
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
            The output, shaped as x, and the self-attention weights [B, H, S, S].
        """
        query, keys_values = self.attention.queries_keys_values(self.attention_connection.before(x), layout)
        attended, weights = self.attention(query, keys_values, attention_mask, layout, dropout_seed)
        x = self.attention_connection(x, attended, dropout_seed)
        if self.feed_forward is None:
            return x, weights
        expanded = self.feed_forward(self.feed_forward_connection.before(x), dropout_seed)
        return self.feed_forward_connection(x, expanded, dropout_seed), weights


class TargetRead(NamedTuple):
    """Result of the block of a decoder layer that reads the earlier target tokens."""

    output: tf.Tensor
    """Output of the block: [B, T, D], or with a layout [N, D]."""
    memory: Any
    """What the block keeps of the target, see ``DecoderLayerOutput``."""
    weights: tf.Tensor | None
    """Attention weights, see ``DecoderLayerOutput``."""


class DecoderLayerOutput(NamedTuple):
    """Result of a decoder layer."""

    states: tf.Tensor
    """Output of the layer: [B, T, D], or with a layout [N, D]."""
    memory: Any
    """What the layer keeps of the target: keys and values of self-attention, the cached ones first, [B, H, M, d] each,
    or c of an SSRU, float32 [B, T, D]."""
    self_attention: tf.Tensor | None
    """Weights of self-attention: [B, H, T, T]; with a cache, [B, H, T, M]. None for an SSRU."""
    cross_attention: tf.Tensor
    """Weights of cross-attention: [B, H, T, S]."""


class DecoderLayer(_Layer):
    """Layer of the decoder: self-attention, cross-attention and feed-forward, each in a sublayer connection."""

    def __init__(self, config: TransformerConfig, number: int) -> None:
        """Take the model section and the number of the layer, from 1."""
        super().__init__(config, f"decoder_{number}")
        target_block = self._make_target_block()
        self.cross_attention = self._attention("cross_attention")
        self.feed_forward = self._feed_forward()
        norm = make_norm(config)
        self.target_connection = self._connection(target_block.name, norm)
        norm = norm if config.share_decoder_norm else make_norm(config)
        self.cross_attention_connection = self._connection("cross_attention", norm)
        self.feed_forward_connection = self._connection("feed_forward", make_norm(config))

    def call(
        self,
        x: tf.Tensor,
        source: KeysValues,
        source_mask: tf.Tensor,
        attention_mask: tf.Tensor | None,
        memory: Any = None,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> DecoderLayerOutput:
        """Run target positions through the layer.

        Args:
            x: [B, T, D], or with a layout [N, D].
            source: this layer's keys and values of the encoder's output, [B, H, S, d] each.
            source_mask: bool [B, 1, 1, S]; True at real tokens.
            attention_mask: bool, broadcast to [B, H, T, T], or to [B, H, T, M] with a cache; None for an SSRU.
            memory: keys and values [B, H, M, d] of earlier positions, or c of an SSRU after them, float32 [B, K, D];
                None: x is the whole target.
            layout: layout of x; None: padded rows.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.
        """
        normed = self.target_connection.before(x)
        read = self._read_target(normed, attention_mask, memory, layout, dropout_seed)
        x = self.target_connection(x, read.output, dropout_seed)
        query = self.cross_attention.queries(self.cross_attention_connection.before(x), layout)
        attended, cross_weights = self.cross_attention(query, source, source_mask, layout, dropout_seed)
        x = self.cross_attention_connection(x, attended, dropout_seed)
        expanded = self.feed_forward(self.feed_forward_connection.before(x), dropout_seed)
        x = self.feed_forward_connection(x, expanded, dropout_seed)
        return DecoderLayerOutput(x, read.memory, read.weights, cross_weights)

    def _make_target_block(self) -> Layer:
        """Make and return the block that reads the earlier target tokens."""
        self.self_attention = self._attention("self_attention")
        return self.self_attention

    def _read_target(
        self, x: tf.Tensor, attention_mask: tf.Tensor | None, memory: Any, layout: TokenLayout | None,
        dropout_seed: tf.Tensor | None,
    ) -> TargetRead:  # fmt: skip
        """Run target positions through that block; arguments as of ``call``."""
        query, keys_values = self.self_attention.queries_keys_values(x, layout)
        if memory is not None:
            keys = tf.concat([memory.keys, keys_values.keys], axis=2)
            values = tf.concat([memory.values, keys_values.values], axis=2)
            keys_values = KeysValues(keys, values)
        attended, weights = self.self_attention(query, keys_values, attention_mask, layout, dropout_seed)
        return TargetRead(attended, keys_values, weights)


class SSRUDecoderLayer(DecoderLayer):
    """Layer of the decoder with an SSRU in place of self-attention."""

    def _make_target_block(self) -> Layer:
        self.ssru = SSRU(self.config.d_model, name="ssru")
        return self.ssru

    def _read_target(
        self, x: tf.Tensor, attention_mask: tf.Tensor | None, memory: Any, layout: TokenLayout | None,
        dropout_seed: tf.Tensor | None,
    ) -> TargetRead:  # fmt: skip
        output, cells = self.ssru(x, memory, layout)
        return TargetRead(output, cells, None)
