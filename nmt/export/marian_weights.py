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

``Layout.rows`` is the map: a line for each array, with both names, what its axes are, and its scale.

Shapes: D model, H heads, d head size, F feed-forward, V vocabulary, P positions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.export.transformer_weights import BLOCKS, NEVER
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


class Row(NamedTuple):
    """An array of the model, here and there. Kernels of linear layers are transposed there."""

    ours: str
    """Our name."""
    theirs: str
    """Name in transformers."""
    axes: tuple[str, ...]
    """What each of our axes is: "stream", channels of the residual stream; "heads"; "source" or "target", ids; "", any
    other, which is the same here and there."""
    scale: float
    """Their values by ours."""


@dataclass(frozen=True)
class Layout:
    """Arrays of a model as transformers has them."""

    config: TransformerConfig
    """Section model; ``exported_heads`` is not None."""
    vocabularies: Vocabularies
    """Ids of both sides."""

    @property
    def shared(self) -> bool:
        """Whether one matrix serves as both embeddings and output layer."""
        return shares_embeddings(self.config, self.vocabularies)

    @property
    def tied(self) -> bool:
        """Whether the output layer is the target embedding. Pegasus ties all three matrices or none."""
        return self.shared or (self.config.norm == "post" and self.config.tie_embeddings != "none")

    @property
    def size(self) -> int:
        """V of both sides."""
        return max(len(self.vocabularies.source_rows), self.vocabularies.target)

    def rows(self) -> Iterator[Row]:
        """Yield the map. "Scale" is a factor c of the residual stream; words and positions have that of the input."""
        config, pre = self.config, self.config.norm == "pre"
        scale = math.sqrt(EPSILON / config.layer_norm_epsilon)
        given = 1.0 if keeps_positions(config) else scale
        if self.shared or pre:
            yield Row("source_embedding/matrix", "model.shared.weight", ("source", "stream"), given)
        for stack, side in (("encoder", "source"), ("decoder", "target")):
            if not self.shared:
                yield Row(f"{side}_embedding/matrix", f"model.{stack}.embed_tokens.weight", (side, "stream"), given)
            yield Row(f"{side}_positions/matrix", f"model.{stack}.embed_positions.weight", ("", "stream"), given)
            # An output layer tied to the words, which are scaled, takes the scale back in the last norm.
            last = 1 / given if stack == "decoder" and config.tie_embeddings != "none" else 1.0
            yield from self._layers(stack, given, scale, last)
            if pre:
                yield from _norm(f"{stack}_norm", f"model.{stack}.layer_norm", last)
        if config.tie_embeddings == "none":
            yield Row("output_layer/kernel", "lm_head.weight", ("stream", "target"), 1.0)
        elif not self.tied:
            yield Row("target_embedding/matrix", "lm_head.weight", ("target", "stream"), given)

    def _layers(self, stack: str, given: float, scale: float, last: float) -> Iterator[Row]:
        """Yield the rows of the layers of a stack, whose first block reads the scale of the input."""
        config, pre = self.config, self.config.norm == "pre"
        layers = config.encoder_layers if stack == "encoder" else config.decoder_layers
        stream, heads = (("heads", "stream"), ("stream",)), (("stream", "heads"), ("heads",))
        for number in range(1, layers + 1):
            ours, theirs = f"{stack}_{number}", f"model.{stack}.layers.{number - 1}"
            for block, name in zip(BLOCKS[stack], ("self_attn", "encoder_attn"), strict=False):
                reads = 1.0 if pre else given
                memory = 1.0 if name == "encoder_attn" else reads
                for part, scale_read, factor in (
                    ("query", reads, self.query_factor), ("key", memory, 1.0), ("value", memory, 1.0)
                ):  # fmt: skip
                    project = f"{theirs}.{name}.{part[0]}_proj"
                    yield from _linear(f"{ours}/{block}/{part}", project, heads, factor / scale_read, factor)
                yield from _linear(f"{ours}/{block}/output", f"{theirs}.{name}.out_proj", stream, given, given)
                given = scale
                yield from _norm(f"{ours}/{block}_sublayer/norm", f"{theirs}.{name}_layer_norm", 1.0 if pre else scale)
            inner, outer = (("stream", ""), ("",)), (("", "stream"), ("stream",))
            yield from _linear(f"{ours}/feed_forward/inner", f"{theirs}.fc1", inner, 1.0 if pre else 1 / scale, 1.0)
            yield from _linear(f"{ours}/feed_forward/outer", f"{theirs}.fc2", outer, scale, scale)
            normed = 1.0 if pre else last if number == layers else scale
            yield from _norm(f"{ours}/feed_forward_sublayer/norm", f"{theirs}.final_layer_norm", normed)

    @property
    def query_factor(self) -> float:
        """Factor of the queries, since their divisor of scores is another."""
        size = self.config.size_per_head
        divisor = size if self.config.attention_scale == "head" else self.config.heads * size
        return math.sqrt(self.config.d_model // (exported_heads(self.config) or 1) / divisor)

    def exported(self, arrays: Arrays) -> Arrays:
        """Return the arrays of ``complete_weights`` by the names of transformers."""
        found = {row.theirs: self._converted(row, arrays[row.ours]) for row in self.rows()}
        never = np.full(self.size - self.vocabularies.target, NEVER, np.float32)
        found["final_logits_bias"] = np.concatenate([arrays["output_layer/bias"], never])[np.newaxis]
        return found

    def _converted(self, row: Row, array: np.ndarray) -> np.ndarray:
        """Return an array as transformers has it: float32."""
        config, width = self.config, self.config.d_model
        array = row.scale * array
        for axis, kind in enumerate(row.axes):
            if kind == "stream":
                array = array.take([*range(0, width, 2), *range(1, width, 2)], axis)
            elif kind == "source":
                array = _filled(array[self.vocabularies.source_rows], axis, self.size)
            elif kind == "target":
                array = _filled(array, axis, self.size)
            elif kind == "heads":  # zeros for further columns of each head, and for further heads
                count = exported_heads(config) or 1
                before, after = array.shape[:axis], array.shape[axis + 1 :]
                split = array.reshape(*before, config.heads, config.size_per_head, *after)
                split = _filled(_filled(split, axis, count), axis + 1, width // count)
                array = split.reshape(*before, width, *after)
        return np.ascontiguousarray(array.T if row.ours.endswith("/kernel") else array, np.float32)

    def keys(self) -> dict[str, Any]:
        """Return the keys of config.json about embeddings."""
        keys: dict[str, Any] = {"vocab_size": self.size, "tie_word_embeddings": self.tied}
        if self.config.norm == "post":
            keys |= {"decoder_vocab_size": self.size, "share_encoder_decoder_embeddings": self.shared}
        return keys


def _linear(
    ours: str, theirs: str, axes: tuple[tuple[str, ...], tuple[str, ...]], kernel: float, bias: float
) -> Iterator[Row]:
    """Yield the rows of a linear layer with the axes and the scale of its kernel and of its bias."""
    yield Row(f"{ours}/kernel", f"{theirs}.weight", axes[0], kernel)
    yield Row(f"{ours}/bias", f"{theirs}.bias", axes[1], bias)


def _norm(ours: str, theirs: str, scale: float) -> Iterator[Row]:
    """Yield the rows of a norm, whose output has a scale."""
    yield Row(f"{ours}/gamma", f"{theirs}.weight", ("stream",), scale)
    yield Row(f"{ours}/beta", f"{theirs}.bias", ("stream",), scale)


def _filled(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Return an array with zeros at the end of an axis, up to a size."""
    return np.pad(array, [(0, size - array.shape[axis] if number == axis else 0) for number in range(array.ndim)])
