"""Weights of a Transformer as those of MarianMTModel (post-norm) or PegasusForConditionalGeneration (pre-norm).

Both classes of transformers are the Transformer of Vaswani et al. 2017 with these differences, each made up for:

    residual stream     Their sinusoids have all sines first, ours alternate sine and cosine. The D channels are put
                        into their order in every matrix, norm and bias that reads or writes the stream.
    layer norm          Their epsilon is 1e-5. norm(x; epsilon) = norm(c x; 1e-5) with c = sqrt(1e-5 / epsilon), so
                        the stream is c times ours: what writes it is multiplied by c, what reads it divided.
    heads               Their head size is D / H. Smaller heads are filled up with zeros.
    scores              Their divisor is sqrt(head size). Any other is a factor of the query matrix.

Shapes: D model, H heads, d head size, F feed-forward, V vocabulary, P positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.models.weights import current_name
from nmt.storage.arrays import Arrays

EPSILON = 1e-5
"""Epsilon of layer normalization in Marian and Pegasus, which no configuration changes."""
MASKED_LOGIT = -1e9
"""Bias of an id that fills up the smaller of two vocabularies."""


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
    meaning only with the class's own sinusoids, so these stay as they are where c allows it: the first norm of either
    side then differs by 5e-6 of the variance at most.
    """
    return config.norm == "post" and config.positions == "sinusoidal" and config.layer_norm_epsilon <= 2 * EPSILON


def exported_weights(
    config: TransformerConfig, weights: Arrays, vocabularies: Vocabularies, positions: int
) -> tuple[Arrays, dict[str, Any]]:
    """Return the weights by the names of transformers, float32, and the keys of config.json that follow from them.

    Args:
        config: section model; ``exported_heads`` is not None.
        weights: weights of the run.
        vocabularies: ids of both sides.
        positions: P, number of positions; ``max_positions`` of learned ones.
    """
    layout = _Layout(config, weights)
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(1, layers + 1):
            layout.add_layer(side, number, last=number == layers)
        if config.norm == "pre":
            layout.add_norm(f"{side}_norm", f"model.{side}.layer_norm", layout.output_scale(side))
        layout.add_positions(side, positions)
    keys = layout.add_embeddings(vocabularies)
    return {name: np.ascontiguousarray(array, np.float32) for name, array in layout.arrays.items()}, keys


class _Layout:
    """Arrays by the names of transformers, added part by part. All products are in float64."""

    def __init__(self, config: TransformerConfig, weights: Arrays) -> None:
        heads = exported_heads(config)
        if heads is None:
            raise ValueError(f"{config.heads} heads of {config.size_per_head} do not fit into D {config.d_model}")
        self.config, self.heads, self.head_size = config, heads, config.d_model // heads
        self.weights = {current_name(name): array for name, array in weights.items()}
        self.arrays: Arrays = {}
        self.order = np.concatenate([np.arange(0, config.d_model, 2), np.arange(1, config.d_model, 2)])
        self.scale = math.sqrt(EPSILON / config.layer_norm_epsilon)
        """c: the stream of the export divided by ours."""
        self.input_scale = 1.0 if keeps_positions(config) else self.scale
        """c of the stream that enters the first block: words and positions."""
        size = config.size_per_head
        divisor = size if config.attention_scale == "head" else config.heads * size
        self.query_factor = math.sqrt(self.head_size / divisor)

    def output_scale(self, side: str) -> float:
        """Return c of the last norm's output: that of the decoder undoes c in an output layer tied to the words."""
        return 1 / self.input_scale if side == "decoder" and self.config.tie_embeddings != "none" else 1.0

    def add_layer(self, side: str, number: int, *, last: bool) -> None:
        """Add a layer of a side, by its number from 1."""
        ours, theirs = f"{side}_{number}", f"model.{side}.layers.{number - 1}"
        pre = self.config.norm == "pre"
        stream = self.input_scale if number == 1 else self.scale  # c of the stream that the next block reads
        blocks = [("self_attention" if side == "decoder" else "attention", "self_attn", "self_attn_layer_norm")]
        if side == "decoder":
            blocks.append(("cross_attention", "encoder_attn", "encoder_attn_layer_norm"))
        blocks.append(("feed_forward", "", "final_layer_norm"))
        for block, their_block, their_norm in blocks:
            reads = 1.0 if pre else stream
            if block == "feed_forward":
                self._add_reader(f"{ours}/{block}/inner", f"{theirs}.fc1", reads)
                self._add_writer(f"{ours}/{block}/outer", f"{theirs}.fc2", stream)
            else:
                keys_read = 1.0 if block == "cross_attention" else reads
                self._add_attention(f"{ours}/{block}", f"{theirs}.{their_block}", reads, keys_read, stream)
            if not pre:
                stream = self.output_scale(side) if last and block == "feed_forward" else self.scale
            shared = self.config.share_decoder_norm and block == "cross_attention"
            norm = f"{ours}/{'self_attention' if shared else block}_sublayer/norm"
            self.add_norm(norm, f"{theirs}.{their_norm}", 1.0 if pre else stream)

    def add_norm(self, ours: str, theirs: str, scale: float) -> None:
        """Add a layer norm whose output is ``scale`` times ours."""
        for name, their_name in (("gamma", "weight"), ("beta", "bias")):
            self.arrays[f"{theirs}.{their_name}"] = scale * self._float64(f"{ours}/{name}")[self.order]

    def add_positions(self, side: str, count: int) -> None:
        """Add the table of positions of a side: [P, D]."""
        if self.config.positions == "learned":
            table = self._float64(f"{'source' if side == 'encoder' else 'target'}_positions/matrix")
        else:
            table = sinusoidal_encoding(count, self.config.d_model).astype(np.float64)
        self.arrays[f"model.{side}.embed_positions.weight"] = self.input_scale * table[:, self.order]

    def add_embeddings(self, vocabularies: Vocabularies) -> dict[str, Any]:
        """Add embeddings and output layer. Return the keys of config.json about them."""
        config, target_size = self.config, vocabularies.target
        rows = np.asarray(vocabularies.source_rows)
        source = self.input_scale * self._words("source", int(rows.max()) + 1)[rows][:, self.order]
        target = self.input_scale * self._words("target", target_size)[:, self.order]
        output, bias = target, np.zeros(target_size)
        if config.tie_embeddings == "none":
            output = self._float64("output_layer/kernel").T[:, self.order]
            bias = self._float64("output_layer/bias")
        shared = config.tie_embeddings == "all" and np.array_equal(rows, np.arange(target_size))
        keys: dict[str, Any] = {"vocab_size": len(rows), "tie_word_embeddings": config.tie_embeddings != "none"}
        if config.norm == "post":
            keys |= {"decoder_vocab_size": target_size, "share_encoder_decoder_embeddings": shared}
        elif not shared:  # Pegasus has one vocabulary for both sides, and ties all three matrices or none.
            most = max(len(rows), target_size)
            source, target, output = (_with_rows(matrix, most) for matrix in (source, target, output))
            bias = np.concatenate([bias, np.full(most - target_size, MASKED_LOGIT)])
            keys |= {"vocab_size": most, "tie_word_embeddings": False}
        if shared or config.norm == "pre":
            self.arrays["model.shared.weight"] = source
        if not shared:
            self.arrays["model.encoder.embed_tokens.weight"] = source
            self.arrays["model.decoder.embed_tokens.weight"] = target
        if not keys["tie_word_embeddings"]:
            self.arrays["lm_head.weight"] = output
        self.arrays["final_logits_bias"] = bias[np.newaxis]
        return keys

    def _words(self, side: str, size: int) -> np.ndarray:
        """Return the word embeddings of a side: float64 [V, D]."""
        if self.config.word_embedding == "sinusoidal":
            return sinusoidal_encoding(size, self.config.d_model).astype(np.float64)
        return self._float64(f"{'' if self.config.tie_embeddings == 'all' else f'{side}_'}embedding/matrix")

    def _add_attention(self, ours: str, theirs: str, reads: float, keys_read: float, writes: float) -> None:
        """Add an attention block: c of what its queries read, of what its keys and values read, of what it writes."""
        for name, scale, factor in (("query", reads, self.query_factor), ("key", keys_read, 1), ("value", keys_read, 1)):
            kernel, bias = (factor * self._float64(f"{ours}/{name}/{part}") for part in ("kernel", "bias"))
            self._add(f"{theirs}.{name[0]}_proj", self._fill_heads(kernel[self.order] / scale), self._fill_heads(bias))
        kernel, bias = (writes * self._float64(f"{ours}/output/{part}")[..., self.order] for part in ("kernel", "bias"))
        self._add(f"{theirs}.out_proj", self._fill_heads(kernel.T).T, bias)

    def _add_reader(self, ours: str, theirs: str, scale: float) -> None:
        """Add a linear layer that reads the stream, ``scale`` times ours."""
        kernel, bias = self._float64(f"{ours}/kernel"), self._float64(f"{ours}/bias")
        self._add(theirs, kernel[self.order] / scale, bias)

    def _add_writer(self, ours: str, theirs: str, scale: float) -> None:
        """Add a linear layer whose output adds to the stream, ``scale`` times ours."""
        kernel, bias = self._float64(f"{ours}/kernel"), self._float64(f"{ours}/bias")
        self._add(theirs, scale * kernel[:, self.order], scale * bias[self.order])

    def _add(self, theirs: str, kernel: np.ndarray, bias: np.ndarray) -> None:
        """Add a linear layer: kernel [in, out] and bias [out]."""
        self.arrays[f"{theirs}.weight"], self.arrays[f"{theirs}.bias"] = kernel.T, bias

    def _fill_heads(self, array: np.ndarray) -> np.ndarray:
        """[..., H * d] -> [..., D], with zeros for further columns of each head and for further heads."""
        config = self.config
        split = array.reshape(*array.shape[:-1], config.heads, config.size_per_head)
        more = [(0, 0)] * (array.ndim - 1) + [(0, self.heads - config.heads), (0, self.head_size - split.shape[-1])]
        return np.pad(split, more).reshape(*array.shape[:-1], config.d_model)

    def _float64(self, name: str) -> np.ndarray:
        return self.weights[name].astype(np.float64)


def _with_rows(matrix: np.ndarray, count: int) -> np.ndarray:
    """Return a matrix with zeros as further rows: [count, D]."""
    return np.pad(matrix, [(0, count - len(matrix)), (0, 0)])
