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

``weight_map`` has a row for each array: both names, what its axes are, and its scale.

Shapes: D model, H heads, d head size, F feed-forward, V vocabulary, P positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.export.transformer_weights import BLOCKS, NEVER
from nmt.models.layers.positions import BASE
from nmt.storage.arrays import Arrays

EPSILON = 1e-5
"""Epsilon of layer normalization in Marian and Pegasus, which no configuration changes."""


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
    return config.norm_placement == "post" and theirs and config.layer_norm_epsilon <= 2 * EPSILON


class Row(NamedTuple):
    """An array of the model, here and there. Kernels of linear layers are transposed there."""

    ours: str
    theirs: str
    axes: tuple[str, ...]
    """What each of our axes is: "stream", channels of the residual stream; "heads"; "ids"; "", any other, which is the
    same here and there."""
    scale: float
    """Their values by ours."""


def weight_map(config: TransformerConfig) -> list[Row]:
    """Return the rows of all arrays but ``final_logits_bias``. ``exported_heads`` is not None."""
    pre, shared = config.norm_placement == "pre", config.tie_embeddings == "all"
    scale = math.sqrt(EPSILON / config.layer_norm_epsilon)  # c of the residual stream
    words = 1.0 if keeps_positions(config) else scale  # c of words and positions
    rows: list[Row] = []

    def linear(ours: str, theirs: str, inner: str, reads: float = 0, writes: float = 0, factor: float = 1) -> None:
        """Add a layer from the stream at a scale to an inner width, or (``writes``) from there to the stream."""
        rows.append(
            Row(f"{ours}/kernel", f"{theirs}.weight", ("stream", inner), factor / reads) if reads
            else Row(f"{ours}/kernel", f"{theirs}.weight", (inner, "stream"), writes)
        )  # fmt: skip
        rows.append(Row(f"{ours}/bias", f"{theirs}.bias", (inner if reads else "stream",), writes or factor))

    def norm(ours: str, theirs: str, scale: float) -> None:
        """Add a norm whose output has a scale."""
        rows.append(Row(f"{ours}/gamma", f"{theirs}.weight", ("stream",), scale))
        rows.append(Row(f"{ours}/beta", f"{theirs}.bias", ("stream",), scale))

    if shared or pre:
        rows.append(Row("source_embedding/matrix", "model.shared.weight", ("ids", "stream"), words))
    for stack, side, layers in (
        ("encoder", "source", config.encoder_layers), ("decoder", "target", config.decoder_layers)
    ):  # fmt: skip
        if not shared:
            rows.append(Row(f"{side}_embedding/matrix", f"model.{stack}.embed_tokens.weight", ("ids", "stream"), words))
        rows.append(Row(f"{side}_positions/matrix", f"model.{stack}.embed_positions.weight", ("", "stream"), words))
        # An output layer tied to the words, which are scaled, takes the scale back in the last norm.
        last = 1 / words if stack == "decoder" and config.tie_embeddings != "none" else 1.0
        given = words
        for number in range(1, layers + 1):
            ours, theirs = f"{stack}_{number}", f"model.{stack}.layers.{number - 1}"
            for block, name in zip(BLOCKS[stack], ("self_attn", "encoder_attn"), strict=False):
                reads = 1.0 if pre else given
                memory = 1.0 if name == "encoder_attn" else reads
                linear(f"{ours}/{block}/query", f"{theirs}.{name}.q_proj", "heads", reads, factor=_query(config))
                linear(f"{ours}/{block}/key", f"{theirs}.{name}.k_proj", "heads", memory)
                linear(f"{ours}/{block}/value", f"{theirs}.{name}.v_proj", "heads", memory)
                linear(f"{ours}/{block}/output", f"{theirs}.{name}.out_proj", "heads", writes=given)
                norm(f"{ours}/{block}_sublayer/norm", f"{theirs}.{name}_layer_norm", 1.0 if pre else scale)
                given = scale
            linear(f"{ours}/feed_forward/inner", f"{theirs}.fc1", "", 1.0 if pre else scale)
            linear(f"{ours}/feed_forward/outer", f"{theirs}.fc2", "", writes=scale)
            normed = 1.0 if pre else last if number == layers else scale
            norm(f"{ours}/feed_forward_sublayer/norm", f"{theirs}.final_layer_norm", normed)
        if pre:
            norm(f"{stack}_norm", f"model.{stack}.layer_norm", last)
    if config.tie_embeddings == "none":
        rows.append(Row("output_layer/kernel", "lm_head.weight", ("stream", "ids"), 1.0))
    elif not _ties_output(config):
        rows.append(Row("target_embedding/matrix", "lm_head.weight", ("ids", "stream"), words))
    return rows


def exported_weights(config: TransformerConfig, arrays: Arrays, size: int) -> Arrays:
    """Return the arrays of ``complete_weights`` by the names of transformers, float32; V of both sides is ``size``."""
    found = {row.theirs: _converted(row, arrays[row.ours], config, size) for row in weight_map(config)}
    bias = arrays["output_layer/bias"]
    return found | {"final_logits_bias": np.pad(bias, (0, size - len(bias)), constant_values=NEVER)[np.newaxis]}


def embedding_keys(config: TransformerConfig, size: int) -> dict[str, Any]:
    """Return the keys of config.json about embeddings."""
    keys = {"vocab_size": size, "tie_word_embeddings": _ties_output(config)}
    both = {"decoder_vocab_size": size, "share_encoder_decoder_embeddings": config.tie_embeddings == "all"}
    return keys | (both if config.norm_placement == "post" else {})


def _ties_output(config: TransformerConfig) -> bool:
    """Return whether the output layer is the target embedding. Pegasus ties all three matrices or none."""
    return config.tie_embeddings == "all" or (config.norm_placement == "post" and config.tie_embeddings == "output")


def _query(config: TransformerConfig) -> float:
    """Return the factor of queries, whose scores have another divisor there."""
    divisor = config.size_per_head * (1 if config.attention_scale == "head" else config.heads)
    return math.sqrt(config.d_model // (exported_heads(config) or 1) / divisor)


def _converted(row: Row, array: np.ndarray, config: TransformerConfig, size: int) -> np.ndarray:
    array, width = row.scale * array, config.d_model
    for axis, kind in enumerate(row.axes):
        if kind == "stream":
            array = array.take([*range(0, width, 2), *range(1, width, 2)], axis)
        elif kind == "heads":  # zeros for further columns of each head, and for further heads
            heads = exported_heads(config) or 1
            before, after = array.shape[:axis], array.shape[axis + 1 :]
            split = array.reshape(*before, config.heads, config.size_per_head, *after)
            array = _filled(_filled(split, axis, heads), axis + 1, width // heads).reshape(*before, width, *after)
        elif kind:
            array = _filled(array, axis, size)
    return np.ascontiguousarray(array.T if row.ours.endswith("/kernel") else array, np.float32)


def _filled(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Return an array with zeros at the end of an axis, up to a size."""
    return np.pad(array, [(0, size - array.shape[axis] if number == axis else 0) for number in range(array.ndim)])
