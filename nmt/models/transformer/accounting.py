"""Weights and arithmetic of a Transformer, from its configuration.

A product of an [m, k] with a [k, n] matrix counts 2 m n k floating-point operations, a multiplication and an addition
for each term. The count has the products of real tokens: projections, attention scores and contexts, feed-forward and
output layer. It leaves out padding, embedding look-ups, norms, softmax, dropout, biases, the loss and the optimizer;
their time lowers the rate that a count divided by a time gives, as it should.

For a sentence of s source and t target positions, with D model, I = heads x head size, F feed-forward and V target
vocabulary:

    an encoder layer    8 s D I                 queries, keys, values and output
                        4 s^2 I                 scores and contexts
                        4 s D F                 feed-forward
    a decoder layer     8 t D I + 4 t^2 I       self-attention
                        4 t D I + 4 s D I       cross-attention: queries and output; keys and values
                        4 s t I                 its scores and contexts
                        4 t D F                 feed-forward
    the output layer    2 t D V

All t^2 pairs of the decoder's self-attention count, those behind the causal mask too, as is usual (Chowdhery et al.
2022, "PaLM", appendix B); with sentences of 15 tokens they are less than 1% of the whole.
"""

from collections.abc import Callable

import numpy as np

from nmt.config.model import TransformerConfig
from nmt.models.accounting import Flops, Part, count_weights


def flops(
    config: TransformerConfig, source_lengths: np.ndarray, target_lengths: np.ndarray, target_vocabulary: int
) -> Flops:
    """Count the operations of a forward pass over B sentence pairs, by the formula above.

    Args:
        config: layers and widths.
        source_lengths: source positions of each sentence, bos and eos included: integers [B].
        target_lengths: target positions of each sentence, that of eos included: integers [B].
        target_vocabulary: V.
    """
    s, t = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
    source, target = int(s.sum()), int(t.sum())
    d_model, inner = config.d_model, config.heads * config.size_per_head
    encoder, decoder = config.encoder_layers, config.decoder_layers
    return Flops(
        projections=encoder * 8 * source * d_model * inner + decoder * (12 * target + 4 * source) * d_model * inner,
        attention=4 * inner * (encoder * int(s @ s) + decoder * int(t @ t + s @ t)),
        feed_forward=4 * d_model * config.d_ff * (encoder * source * config.encoder_feed_forward + decoder * target),
        output_layer=2 * target * d_model * target_vocabulary,
    )


def parts(config: TransformerConfig, source_vocabulary: int, target_vocabulary: int) -> list[Part]:
    """Return the parts with their output shapes and weights, in the order of the data's way through the model."""
    encoder, decoder = _Stack(config, "S"), _Stack(config, "T")
    rows = _embedding(config, "source", "S", source_vocabulary)
    for number in range(1, config.encoder_layers + 1):
        rows.append(_encoder_layer(encoder, f"encoder_{number}", rows[-1].name))
    if config.norm == "pre" and config.encoder_norm:
        rows.append(encoder.norm("encoder_norm", rows[-1].name))
    memory = rows[-1].name
    rows += _embedding(config, "target", "T", target_vocabulary)
    for number in range(1, config.decoder_layers + 1):
        rows.append(_decoder_layer(decoder, f"decoder_{number}", rows[-1].name, memory))
    if config.norm == "pre":
        rows.append(decoder.norm("decoder_norm", rows[-1].name))
    tied = config.tie_embeddings != "none"
    output = Part(
        "output_layer", f"[B, T, {target_vocabulary}]", 0 if tied else (config.d_model + 1) * target_vocabulary,
        "the embedding's matrix" if tied else "Linear", (rows[-1].name,),
    )  # fmt: skip
    return [*rows, output]


class _Stack:
    """Sublayers of the encoder or of the decoder."""

    def __init__(self, config: TransformerConfig, length: str) -> None:
        self.config, self.shape = config, f"[B, {length}, {config.d_model}]"

    def norm(self, name: str, reads: str, *, shared_with: str = "") -> Part:
        if shared_with:
            return Part(name, self.shape, 0, f"LayerNormalization, the same as {shared_with}", (reads,))
        return Part(name, self.shape, 2 * self.config.d_model, "LayerNormalization", (reads,))

    def attention(self, name: str, reads: tuple[str, ...]) -> Part:
        d_model, inner = self.config.d_model, self.config.heads * self.config.size_per_head
        kind = f"MultiHeadAttention, {self.config.heads} heads of {self.config.size_per_head}"
        if self.config.positions == "rotary" and name != "cross_attention":
            kind += f", rotary positions, base {self.config.position_base:,g}"
        return Part(name, self.shape, 3 * (d_model + 1) * inner + (inner + 1) * d_model, kind, reads)

    def feed_forward(self, name: str, reads: tuple[str, ...]) -> Part:
        d_model, d_ff = self.config.d_model, self.config.d_ff
        weights = (d_model + 1) * d_ff + (d_ff + 1) * d_model
        return Part(name, self.shape, weights, f"FeedForward, inner width {d_ff}", reads)

    def connected(
        self, block: Callable[[str, tuple[str, ...]], Part], name: str, x: str, memory: tuple[str, ...] = (), *,
        normed: bool = True, residual: bool = True, shared_with: str = "",
    ) -> list[Part]:  # fmt: skip
        """Return a block with its norm and residual sum, in the order of the data's way.

        Args:
            block: makes the block from its name and what it reads.
            name: name of the block.
            x: name of the part that the sublayer reads.
            memory: what the block reads besides.
            normed: whether there is a norm.
            residual: whether there is a residual sum.
            shared_with: norm that serves here too.
        """
        pre = self.config.norm == "pre"
        norm = f"{name}_norm"
        found = [self.norm(norm, x)] if normed and pre else []
        found.append(block(name, (found[-1].name if found else x, *memory)))
        if residual:
            found.append(
                Part(f"{name}_sum", self.shape, 0, f"residual sum, dropout {self.config.dropout:g}", (x, name))
            )
        if normed and not pre:
            found.append(self.norm(norm, found[-1].name, shared_with=shared_with))
        return found


def _layer(name: str, shape: str, kind: str, inputs: tuple[str, ...], sublayers: list[Part]) -> Part:
    return Part(name, shape, count_weights(sublayers), kind, inputs, tuple(sublayers))


def _encoder_layer(stack: _Stack, name: str, x: str) -> Part:
    config = stack.config
    normed, residual = config.encoder_norm, config.encoder_residual
    sublayers = stack.connected(stack.attention, "attention", x, normed=normed, residual=residual)
    if config.encoder_feed_forward:
        sublayers += stack.connected(
            stack.feed_forward, "feed_forward", sublayers[-1].name, normed=normed, residual=residual
        )
    lacks = f" without {' and '.join(config.ablations.values())}" if config.ablations else ""
    return _layer(name, stack.shape, f"EncoderLayer, {config.norm}-norm{lacks}", (x,), sublayers)


def _decoder_layer(stack: _Stack, name: str, x: str, memory: str) -> Part:
    shared = "self_attention_norm" if stack.config.share_decoder_norm else ""
    sublayers = stack.connected(stack.attention, "self_attention", x)
    sublayers += stack.connected(stack.attention, "cross_attention", sublayers[-1].name, (memory,), shared_with=shared)
    sublayers += stack.connected(stack.feed_forward, "feed_forward", sublayers[-1].name)
    return _layer(name, stack.shape, f"DecoderLayer, {stack.config.norm}-norm", (x, memory), sublayers)


def _embedding(config: TransformerConfig, side: str, length: str, vocabulary: int) -> list[Part]:
    shape = f"[B, {length}, {config.d_model}]"
    shared = config.tie_embeddings == "all"
    name = "embedding" if shared else f"{side}_embedding"
    if config.word_embedding == "sinusoidal":
        words = Part(name, shape, 0, "SinusoidalTokenEmbedding", (side,))
    elif shared and side == "target":
        words = Part(name, shape, 0, "TokenEmbedding, the same matrix", (side,))
    else:
        words = Part(name, shape, vocabulary * config.d_model, "TokenEmbedding", (side,))
    if config.positions == "rotary":
        return [words]
    learned = config.positions == "learned"
    positions = Part(
        f"{side}_positions", shape, config.max_positions * config.d_model if learned else 0,
        "LearnedPositions" if learned else f"SinusoidalPositions, base {config.position_base:,g}", (name,),
    )  # fmt: skip
    return [words, positions]
