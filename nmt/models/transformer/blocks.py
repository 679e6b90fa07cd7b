"""The encoder and decoder layers of the Transformer (Vaswani et al. 2017, section 3.1).

Shapes: B batch, S source length, T target length, K keys, D model, H heads, d head size, N tokens that count.
"""

from typing import Any

from nmt.models.layers.attention import KeysValues, MultiHeadAttention
from nmt.models.layers.basic import Composite, FeedForward, Residual
from nmt.models.layers.unpadding import Packing
from nmt.runtime import tf


class EncoderLayer(Composite):
    """Self-attention and feed-forward, each in its residual frame."""

    def __init__(self, attention: MultiHeadAttention, feed_forward: FeedForward, frames: list[Residual], **kwargs: Any):
        """Take the two blocks and a frame for each."""
        super().__init__(**kwargs)
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_frame, self.feed_forward_frame = frames

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """Its attention blocks."""
        return [self.attention]

    @property
    def frames(self) -> list[Residual]:
        """The frame of each block."""
        return [self.attention_frame, self.feed_forward_frame]

    def call(
        self,
        x: tf.Tensor,
        attention_mask: tf.Tensor,
        packing: Packing | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Let every position of x, [B, S, D] or packed [N, D], look at those the mask [B, 1, 1, S] allows."""
        seen = self.attention_frame.before(x)
        query, keys_values = self.attention.project(seen, packing)
        attended, _ = self.attention.attend(query, keys_values, attention_mask, packing, dropout_seed)
        x = self.attention_frame(x, attended, dropout_seed)
        expanded = self.feed_forward(self.feed_forward_frame.before(x), dropout_seed)
        return self.feed_forward_frame(x, expanded, dropout_seed)


class DecoderLayer(Composite):
    """Self-attention, attention over the encoder's output, and feed-forward, each in its residual frame."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        frames: list[Residual],
        **kwargs: Any,
    ) -> None:
        """Take the three blocks and a frame for each."""
        super().__init__(**kwargs)
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_attention_frame, self.cross_attention_frame, self.feed_forward_frame = frames

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """Its attention blocks."""
        return [self.self_attention, self.cross_attention]

    @property
    def frames(self) -> list[Residual]:
        """The frame of each block."""
        return [self.self_attention_frame, self.cross_attention_frame, self.feed_forward_frame]

    def call(
        self,
        x: tf.Tensor,
        source: KeysValues,
        source_mask: tf.Tensor,
        attention_mask: tf.Tensor,
        cache: KeysValues | None = None,
        index: tf.Tensor | int = 0,
        packing: Packing | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, KeysValues, tf.Tensor]:
        """Run target positions through the layer.

        Args:
            x: [B, T, D], or packed [N, D].
            source: this layer's keys and values of the encoder's output, [B, H, S, d] each.
            source_mask: bool [B, 1, 1, S].
            attention_mask: look-ahead mask, bool [1, 1, T, K].
            cache: keys and values [B, H, K, d] of the positions before ``index``; None when x is the whole target.
            index: position of the first column of x.
            packing: where the tokens of a packed x stand.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.

        Returns:
            The output, shaped as x; the keys and values with those of x written in; the cross-attention weights
            [B, H, T, S].
        """
        seen = self.self_attention_frame.before(x)
        query, keys_values = self.self_attention.project(seen, packing)
        if cache is not None:
            keys_values = cache.written_at(index, keys_values)
        attended, _ = self.self_attention.attend(query, keys_values, attention_mask, packing, dropout_seed)
        x = self.self_attention_frame(x, attended, dropout_seed)
        seen = self.cross_attention_frame.before(x)
        attended, alignment = self.cross_attention(seen, source, source_mask, packing, dropout_seed)
        x = self.cross_attention_frame(x, attended, dropout_seed)
        expanded = self.feed_forward(self.feed_forward_frame.before(x), dropout_seed)
        return self.feed_forward_frame(x, expanded, dropout_seed), keys_values, alignment
