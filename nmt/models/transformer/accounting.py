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

import numpy as np

from nmt.config.model import TransformerConfig
from nmt.models.accounting import Flops, Part


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
    d_model, inner = config.d_model, config.heads * config.size_per_head
    norm = 2 * d_model
    attention = 3 * (d_model + 1) * inner + (inner + 1) * d_model
    feed_forward = (d_model + 1) * config.d_ff + (config.d_ff + 1) * d_model
    kind = f"{config.norm}-norm, attention {config.heads} heads of {config.size_per_head}, feed-forward {config.d_ff}"
    tied = config.tie_embeddings != "none"
    rows = [
        *_embedding(config, "source", "S", source_vocabulary),
        *(
            Part(f"encoder_{n}", f"[B, S, {d_model}]", attention + feed_forward + 2 * norm, f"EncoderLayer: {kind}")
            for n in range(1, config.encoder_layers + 1)
        ),
        *_norm(config, "encoder_norm", "S"),
        *_embedding(config, "target", "T", target_vocabulary),
    ]
    norms = 2 if config.share_decoder_norm else 3
    rows += [
        Part(f"decoder_{n}", f"[B, T, {d_model}]", 2 * attention + feed_forward + norms * norm, f"DecoderLayer: {kind}")
        for n in range(1, config.decoder_layers + 1)
    ]
    rows += _norm(config, "decoder_norm", "T")
    output = Part(
        "output_layer", f"[B, T, {target_vocabulary}]", 0 if tied else (d_model + 1) * target_vocabulary,
        "the embedding's matrix" if tied else "Linear",
    )  # fmt: skip
    return [*rows, output]


def _embedding(config: TransformerConfig, side: str, length: str, vocabulary: int) -> list[Part]:
    shape = f"[B, {length}, {config.d_model}]"
    shared = config.tie_embeddings == "all"
    name = "embedding" if shared else f"{side}_embedding"
    if config.word_embedding == "sinusoidal":
        words = Part(name, shape, 0, "SinusoidalTokenEmbedding")
    elif shared and side == "target":
        words = Part(name, shape, 0, "TokenEmbedding, the same matrix")
    else:
        words = Part(name, shape, vocabulary * config.d_model, "TokenEmbedding")
    learned = config.positions == "learned"
    positions = Part(
        f"{side}_positions", shape, config.max_positions * config.d_model if learned else 0,
        "LearnedPositions" if learned else "SinusoidalPositions",
    )  # fmt: skip
    return [words, positions]


def _norm(config: TransformerConfig, name: str, length: str) -> list[Part]:
    if config.norm != "pre":
        return []
    return [Part(name, f"[B, {length}, {config.d_model}]", 2 * config.d_model, "LayerNormalization")]
