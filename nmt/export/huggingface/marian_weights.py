"""Weights of a Transformer as those of MarianMTModel (post-norm) or PegasusForConditionalGeneration (pre-norm).

Both classes of transformers are the Transformer of Vaswani et al. 2017 with these differences, each made up for:

    residual stream     Their sinusoids have all sines first, ours alternate sine and cosine. The D channels are put
                        into their order in every matrix, norm and bias that reads or writes the stream.
    layer norm          Their epsilon is 1e-5. norm(x; epsilon) = norm(c x; 1e-5) with c = sqrt(1e-5 / epsilon), so
                        the stream is c times ours: what writes it is multiplied by c, what reads it divided.
    heads               Their head size is D / H. Smaller heads are filled up with zeros.
    scores              Their divisor is sqrt(head size). Any other is a factor of the query matrix.
    vocabularies        Pegasus has one size for both sides, and so has Marian in transformers 4. The smaller one is
                        filled up with ids that are never generated.

Shapes: D model, H heads, d head size, F feed-forward, V vocabulary, P positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.export.ctranslate2 import NEVER
from nmt.export.transformer_weights import AttentionWeights, LinearWeights, NormWeights, TransformerWeights
from nmt.models.layers.positions import BASE
from nmt.storage.arrays import Arrays

EPSILON = 1e-5
"""Epsilon of layer normalization in Marian and Pegasus, which no configuration changes."""


class Vocabularies(NamedTuple):
    """Ids of both sides in the exported model."""

    source_rows: np.ndarray
    """Our source id for each id that the encoder reads: integers [V of the encoder]."""
    target: int
    """V of the target side, whose ids are ours."""


def exported_heads(config: TransformerConfig) -> int | None:
    """Return the least H' >= H that divides D into heads of at least our size; None if there is none."""
    widths = range(config.heads, config.d_model // config.size_per_head + 1)
    return next((heads for heads in widths if config.d_model % heads == 0), None)


def keeps_positions(config: TransformerConfig) -> bool:
    """Return whether the positions of the export are the sinusoids that its class computes by itself.

    MarianMTModel reads positions from the file and never saves them again. A copy that transformers saves keeps its
    meaning only with the class's own sinusoids, so these stay as they are where epsilon is small. Words and positions
    then have c = 1, and the first norm of either side differs from ours by a factor of at most 1 + 5e-6 / variance.
    """
    theirs = config.positions == "sinusoidal" and config.position_base == BASE
    return config.norm == "post" and theirs and config.layer_norm_epsilon <= 2 * EPSILON


def shares_embeddings(config: TransformerConfig, vocabularies: Vocabularies) -> bool:
    """Return whether one matrix serves as both embeddings and output layer."""
    return config.tie_embeddings == "all" and np.array_equal(vocabularies.source_rows, np.arange(vocabularies.target))


def exported_weights(
    config: TransformerConfig, arrays: Arrays, vocabularies: Vocabularies, positions: int
) -> tuple[Arrays, dict[str, Any]]:
    """Return the weights by the names of transformers, float32, and the keys of config.json that follow from them.

    Args:
        config: section model; ``exported_heads`` is not None.
        arrays: weights of the run by name.
        vocabularies: ids of both sides.
        positions: P, number of positions; ``max_positions`` of learned ones.
    """
    layout = _Layout(config, TransformerWeights(config, arrays))
    layout.add_stack("encoder", config.encoder_layers)
    layout.add_stack("decoder", config.decoder_layers)
    layout.add_positions(positions)
    keys = layout.add_embeddings(vocabularies)
    return {name: np.ascontiguousarray(array, np.float32) for name, array in layout.arrays.items()}, keys


class _Layout:
    """Arrays by the names of transformers, added part by part. "Scale" is a factor c of the residual stream."""

    def __init__(self, config: TransformerConfig, weights: TransformerWeights) -> None:
        heads = exported_heads(config)
        if heads is None:
            raise ValueError(f"{config.heads} heads of {config.size_per_head} do not fit into D {config.d_model}")
        self.config, self.weights, self.heads, self.head_size = config, weights, heads, config.d_model // heads
        self.arrays: Arrays = {}
        self.order = np.concatenate([np.arange(0, config.d_model, 2), np.arange(1, config.d_model, 2)])
        self.scale = math.sqrt(EPSILON / config.layer_norm_epsilon)
        # Words and positions, which the first block reads.
        self.input_scale = 1.0 if keeps_positions(config) else self.scale
        size = config.size_per_head
        divisor = size if config.attention_scale == "head" else config.heads * size
        self.query_factor = math.sqrt(self.head_size / divisor)

    def add_stack(self, stack: str, layers: int) -> None:
        """Add the layers of stack "encoder" or "decoder", and the norm behind them if there is one."""
        pre, scale = self.config.norm == "pre", self.input_scale
        # An output layer tied to the words, which are scaled, takes the scale back here.
        last = 1 / self.input_scale if stack == "decoder" and self.config.tie_embeddings != "none" else 1.0
        blocks = self.weights.encoder_layer if stack == "encoder" else self.weights.decoder_layer
        for number in range(1, layers + 1):
            layer = f"model.{stack}.layers.{number - 1}"
            *attentions, feed_forward = blocks(number)
            for attention, block in zip(attentions, ("self_attn", "encoder_attn"), strict=False):
                reads = 1.0 if pre else scale
                memory = 1.0 if block == "encoder_attn" else reads
                self._add_attention(attention, f"{layer}.{block}", reads, memory, scale)
                scale = self.scale
                self._add_norm(attention.norm, f"{layer}.{block}_layer_norm", 1.0 if pre else scale)
            self._add_linear(feed_forward.inner, f"{layer}.fc1", reads=1.0 if pre else scale)
            self._add_linear(feed_forward.outer, f"{layer}.fc2", writes=scale)
            normed = 1.0 if pre else last if number == layers else scale
            self._add_norm(feed_forward.norm, f"{layer}.final_layer_norm", normed)
        if pre:
            self._add_norm(self.weights.final_norm(stack), f"model.{stack}.layer_norm", last)

    def add_positions(self, count: int) -> None:
        """Add the positions of both sides: [P, D] each."""
        for stack, side in (("encoder", "source"), ("decoder", "target")):
            table = self.weights.positions(side, count)[:, self.order]
            self.arrays[f"model.{stack}.embed_positions.weight"] = self.input_scale * table

    def add_embeddings(self, vocabularies: Vocabularies) -> dict[str, Any]:
        """Add embeddings and output layer. Return the keys of config.json about them."""
        config, rows, target_size = self.config, vocabularies.source_rows, vocabularies.target
        source = self.input_scale * self.weights.embedding("source", int(rows.max()) + 1)[rows][:, self.order]
        target = self.input_scale * self.weights.embedding("target", target_size)[:, self.order]
        matrix, bias = self.weights.output_layer(target_size)
        shared = shares_embeddings(config, vocabularies)
        # Pegasus ties all three matrices or none.
        tied = shared or (config.norm == "post" and config.tie_embeddings != "none")
        size = max(len(rows), target_size)
        source, target, matrix = (_with_rows(part, size) for part in (source, target, matrix[:, self.order]))
        if shared or config.norm == "pre":
            self.arrays["model.shared.weight"] = source
        if not shared:
            self.arrays["model.encoder.embed_tokens.weight"] = source
            self.arrays["model.decoder.embed_tokens.weight"] = target
        if not tied:
            self.arrays["lm_head.weight"] = matrix if config.tie_embeddings == "none" else target
        never = np.full(size - target_size, NEVER)
        self.arrays["final_logits_bias"] = np.concatenate([bias, never])[np.newaxis]
        keys: dict[str, Any] = {"vocab_size": size, "tie_word_embeddings": tied}
        if config.norm == "post":
            keys |= {"decoder_vocab_size": size, "share_encoder_decoder_embeddings": shared}
        return keys

    def _add_norm(self, norm: NormWeights, name: str, scale: float) -> None:
        """Add a norm whose output has a scale."""
        self.arrays[f"{name}.weight"], self.arrays[f"{name}.bias"] = (scale * part[self.order] for part in norm)

    def _add_attention(self, block: AttentionWeights, name: str, reads: float, memory: float, writes: float) -> None:
        """Add an attention block: scales of what its queries, and its keys and values, read; of what it writes."""
        self._add_projection(block.query, f"{name}.q_proj", reads, self.query_factor)
        self._add_projection(block.key, f"{name}.k_proj", memory)
        self._add_projection(block.value, f"{name}.v_proj", memory)
        output = LinearWeights(self._fill_heads(block.output.kernel.T).T, block.output.bias)
        self._add_linear(output, f"{name}.out_proj", writes=writes)

    def _add_projection(self, linear: LinearWeights, name: str, reads: float, factor: float = 1.0) -> None:
        """Add queries, keys or values, multiplied by a factor."""
        filled = LinearWeights(*(factor * self._fill_heads(part) for part in linear))
        self._add_linear(filled, name, reads=reads)

    def _add_linear(
        self, linear: LinearWeights, name: str, reads: float | None = None, writes: float | None = None
    ) -> None:
        """Add a linear layer that reads the stream, or writes it, at a scale."""
        kernel, bias = linear
        if reads is not None:
            kernel = kernel[self.order] / reads
        if writes is not None:
            kernel, bias = writes * kernel[:, self.order], writes * bias[self.order]
        self.arrays[f"{name}.weight"], self.arrays[f"{name}.bias"] = kernel.T, bias

    def _fill_heads(self, array: np.ndarray) -> np.ndarray:
        """[..., H * d] -> [..., D], with zeros for further columns of each head and for further heads."""
        config = self.config
        split = array.reshape(*array.shape[:-1], config.heads, config.size_per_head)
        more = [(0, 0)] * (array.ndim - 1) + [(0, self.heads - config.heads), (0, self.head_size - split.shape[-1])]
        return np.pad(split, more).reshape(*array.shape[:-1], config.d_model)


def _with_rows(matrix: np.ndarray, count: int) -> np.ndarray:
    """Return a matrix with zeros as further rows: [count, D]."""
    return np.pad(matrix, [(0, count - len(matrix)), (0, 0)])
