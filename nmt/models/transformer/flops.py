"""How much arithmetic a Transformer needs for sentences of given lengths: a count from shapes, nothing measured.

A product of an [m, k] with a [k, n] matrix counts 2 m n k floating-point operations, a multiplication and an addition
for each term. Counted are the products that real tokens need: projections, attention scores and contexts, feed-forward
and output layer. Padding is not counted, nor are embedding look-ups, norms, softmax, dropout, biases, the loss or the
optimizer: their time lowers the rate that a count divided by a time gives, as it should.

For a sentence of s source and t target positions, with D model, I = heads x head size, F feed-forward and V target
vocabulary:

    an encoder layer    8 s D I                 queries, keys, values and output
                        4 s^2 I                 scores and contexts
                        4 s D F                 feed-forward
    a decoder layer     8 t D I + 4 t^2 I       self-attention
                        4 t D I + 4 s D I       attention over the source: queries and output; keys and values
                        4 s t I                 its scores and contexts
                        4 t D F                 feed-forward
    the output layer    2 t D V

All t^2 pairs of the decoder's self-attention are counted, those that the look-ahead mask hides too, as is usual
(Chowdhery et al. 2022, "PaLM", appendix B); with sentences of 15 tokens they are less than 1% of the whole.
"""

from typing import NamedTuple, Self

import numpy as np

from nmt.config.model import ModelConfig

# The gradient of a product with respect to each of its two factors is a product of the same size.
BACKWARD_PER_FORWARD = 2


class Flops(NamedTuple):
    """Floating-point operations of a forward pass, by where they are done."""

    projections: int
    """Queries, keys, values and outputs of all attention blocks."""
    attention: int
    """Scores and contexts."""
    feed_forward: int
    """Both products of all feed-forward blocks."""
    output_layer: int
    """The logits."""

    @property
    def forward(self) -> int:
        """All of them."""
        return sum(self)

    @property
    def training(self) -> int:
        """Forward and backward pass, the backward pass being twice the forward."""
        return (1 + BACKWARD_PER_FORWARD) * self.forward

    def plus(self, other: "Flops") -> Self:
        """Return the sum, part by part."""
        return type(self)(*(mine + its for mine, its in zip(self, other, strict=True)))


def count_flops(
    config: ModelConfig, source_lengths: np.ndarray, target_lengths: np.ndarray, target_vocabulary: int
) -> Flops:
    """Count the operations of a forward pass over sentence pairs, by the formula above.

    Args:
        config: layers and widths.
        source_lengths: positions that the encoder reads of each sentence, bos and eos included: integers [B].
        target_lengths: positions at which the decoder predicts, that of eos included: integers [B].
        target_vocabulary: V.
    """
    s, t = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
    source, target = int(s.sum()), int(t.sum())
    d_model, inner = config.d_model, config.heads * config.size_per_head
    encoder, decoder = config.encoder_layers, config.decoder_layers
    return Flops(
        projections=encoder * 8 * source * d_model * inner + decoder * (12 * target + 4 * source) * d_model * inner,
        attention=4 * inner * (encoder * int(s @ s) + decoder * int(t @ t + s @ t)),
        feed_forward=4 * d_model * config.d_ff * (encoder * source + decoder * target),
        output_layer=2 * target * d_model * target_vocabulary,
    )
