"""Decoders of Luong et al. (2015) and of Bahdanau et al. (2015).

The same ``step`` serves whole targets in training and single tokens in search.

Shapes: T target length, B sentences, R rows of a step (sentences, or live beams), S source length, M embedding width,
n state width, E annotation width, N real tokens.
"""

import abc
from typing import Any, NamedTuple

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.basic import Dropout
from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import flat_rows, sizes
from nmt.models.layers.unpadding import BeamLayout
from nmt.models.recurrent.attention import Attention, Source
from nmt.models.recurrent.cells import State, make_cell, run_cell
from nmt.models.recurrent.encoder import TimeMajor, Words
from nmt.models.recurrent.scan import StepOps, Tensors, scan
from nmt.runtime import keras, tf


class StepState(NamedTuple):
    """State of a decoder between two steps."""

    layers: tuple[State, ...]
    """State of each layer's cell: [R, n] each."""
    fed: tuple[tf.Tensor, ...]
    """Attentional state, [R, n], with input feeding; otherwise empty."""


class Features(NamedTuple):
    """Result of a step, from which ``Decoder.readout`` computes the input of the output layer."""

    parts: tuple[tf.Tensor, ...]
    """Tensors [R, ...], see ``Decoder.readout``."""
    weights: tuple[tf.Tensor, ...]
    """Attention weights, float32 [R, S]; empty without attention."""


class Decoder(Layer, abc.ABC):
    """Layers of cells, attention, and a transformation before the output layer."""

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section. Cells, attention and decoder draw the seeds of initial values in this order."""
        super().__init__(**kwargs)
        self.config = config
        widths = [config.input_width, *[config.width] * (config.layers - 1)]
        self.cells = [
            make_cell(config, width, config.width, f"cell_{number}") for number, width in enumerate(widths, start=1)
        ]
        self.dropouts = [Dropout(config.dropout, f"decoder_{number}") for number in range(1, config.layers + 1)]
        self.attention = Attention(config, name="attention") if config.attention != "none" else None
        self.initializer = keras.initializers.GlorotUniform()  # of all kernels

    def _declare_kernel(self, name: str, rows: int, columns: int) -> None:
        self.declare(name, (rows, columns), self.initializer, Blocks())

    def tensors(self, source: Source | None) -> Tensors:
        """Return the tensors that ``step`` reads, by name."""
        tensors = {} if self.attention is None or source is None else self.attention.tensors(source)
        for number, cell in enumerate(self.cells):
            tensors |= cell.tensors()
            if number:
                tensors |= cell.input_tensors()
        return tensors

    @abc.abstractmethod
    def step(
        self, ops: StepOps, t: tf.Tensor, inputs: list[tf.Tensor], state: StepState, source: Source | None,
        beams: BeamLayout | None = None,
    ) -> tuple[StepState, Features]:  # fmt: skip
        """Read a target token.

        Args:
            ops: operations with the ``tensors``.
            t: position of the token: int32 scalar.
            inputs: product of the embedding in the lowest cell [R, G n], then dropout masks [R, n] of the layers above.
            state: state of the step before.
            source: source sentences; None without attention.
            beams: layout of search, if rows are live beams; None: a row is a sentence. Attention weights are returned
                for all beams.
        """

    @abc.abstractmethod
    def readout(self, parts: tuple[tf.Tensor, ...], embedded: tf.Tensor) -> tf.Tensor:
        """Return the input of the output layer from the parts of ``Features`` and the embeddings, [..., D] each."""

    def run(
        self, words: Words, state: StepState, source: Source | None, dropout_seed: tf.Tensor | None = None, *,
        weights: bool = False,
    ) -> Features:  # fmt: skip
        """Read whole targets.

        Args:
            words: embeddings of the target tokens, dropout included.
            state: state before the first token: [B, n] each.
            source: source sentences; None without attention.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.
            weights: whether to return attention weights.

        Returns:
            Features of the real tokens: parts [N, ...], weights [N, S] if asked for.
        """
        layout = TimeMajor.of(words.unpadding)
        projected = words.to_steps(self.cells[0](words.vectors), layout)
        masks = []
        if dropout_seed is not None and self.config.dropout:
            ones = tf.ones([*sizes(projected)[:2], self.config.width], self.compute_dtype)
            masks = [dropout(ones, dropout_seed) for dropout in self.dropouts[1:]]

        def step(ops: StepOps, t: tf.Tensor, inputs: Any, state: StepState) -> tuple[StepState, list[tf.Tensor]]:
            state, features = self.step(ops, t, inputs, state, source)
            return state, [*features.parts, *(features.weights if weights else ())]

        outputs = scan(step, [projected, *masks], state, self.tensors(source))
        of_tokens: tuple[tf.Tensor, ...] = ()
        if weights and self.attention:
            by_step = outputs.pop()  # [T, B, S]
            of_tokens = (tf.gather(flat_rows(by_step), layout.places),)
        return Features(tuple(layout.to_tokens(part) for part in outputs), of_tokens)

    def _run_cells(
        self, ops: StepOps, projected: tf.Tensor, masks: list[tf.Tensor], layers: tuple[State, ...]
    ) -> tuple[State, ...]:
        """Run the cells of a step, given the input product of the lowest cell."""
        new: list[State] = []
        for number, (cell, state) in enumerate(zip(self.cells, layers, strict=True)):
            if number:
                below = self.cells[number - 1].output(new[-1])
                projected = cell.project(ops, below * masks[number - 1] if masks else below)
            new.append(cell.step(ops, projected, state))
        return tuple(new)

    def _attend(
        self, ops: StepOps, states: tf.Tensor, t: tf.Tensor, source: Source | None, beams: BeamLayout | None = None
    ) -> tuple[tuple[tf.Tensor, ...], tuple[tf.Tensor, ...]]:
        """Return the context and the weights of states [R, n], in tuples that are empty without attention."""
        if self.attention is None or source is None:
            return (), ()
        if beams is not None:
            states = flat_rows(beams.restore(states))
        context, weights = self.attention(ops, states, t, sizes(source.annotations)[1], source.lengths)
        if beams is not None:
            context = tf.gather(context, beams.indices)
        return (context,), (weights,)


class LuongDecoder(Decoder):
    """s_t = cell(s_{t-1}, y_{t-1}), context c_t by s_t, s~_t = tanh(W [c_t; s_t]) (Luong et al. 2015, section 3).

    With input feeding the lowest cell also reads s~_{t-1} (section 3.3). Without it no step needs the attention of the
    step before, so the recurrence runs over all T steps first, and then attention is computed for all steps at once.
    """

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section: W is [E + n, n], and with input feeding s~ has a kernel in the lowest cell."""
        super().__init__(config, **kwargs)
        width = config.width
        if self.attention:
            self._declare_kernel("attentional_kernel", config.annotation_width + width, width)
        if config.input_feeding:
            self._declare_kernel("feeding_kernel", width, self.cells[0].gates * width)

    def tensors(self, source: Source | None) -> Tensors:
        """See ``Decoder``."""
        tensors = super().tensors(source)
        if self.config.input_feeding:
            tensors["feeding"] = self.cast(self.feeding_kernel)
            tensors["attentional"] = self.cast(self.attentional_kernel)
        return tensors

    def step(
        self, ops: StepOps, t: tf.Tensor, inputs: list[tf.Tensor], state: StepState, source: Source | None,
        beams: BeamLayout | None = None,
    ) -> tuple[StepState, Features]:  # fmt: skip
        """See ``Decoder``."""
        projected, *masks = inputs
        if self.config.input_feeding:
            projected += ops.product("feeding", state.fed[0])
        layers = self._run_cells(ops, projected, masks, state.layers)
        output = self.cells[-1].output(layers[-1])
        context, weights = self._attend(ops, output, t, source, beams)
        if not self.config.input_feeding:
            return StepState(layers, ()), Features((*context, output), weights)
        attentional = ops.tanh(ops.product("attentional", tf.concat([*context, output], axis=-1)))
        return StepState(layers, (attentional,)), Features((attentional,), weights)

    def readout(self, parts: tuple[tf.Tensor, ...], embedded: tf.Tensor) -> tf.Tensor:
        """Return s~; without attention, s."""
        if len(parts) == 1:
            return parts[0]
        return tf.tanh(tf.matmul(tf.concat(parts, axis=-1), self.cast(self.attentional_kernel)))

    def run(
        self, words: Words, state: StepState, source: Source | None, dropout_seed: tf.Tensor | None = None, *,
        weights: bool = False,
    ) -> Features:  # fmt: skip
        """See ``Decoder``."""
        if self.config.input_feeding:
            return super().run(words, state, source, dropout_seed, weights=weights)
        layout = TimeMajor.of(words.unpadding)
        steps = words.to_steps(self.cells[0](words.vectors), layout)
        x = layout.to_tokens(run_cell(self.cells[0], steps, state.layers[0])[0])
        for cell, dropout, first in zip(self.cells[1:], self.dropouts[1:], state.layers[1:], strict=True):
            x = layout.to_tokens(run_cell(cell, layout.to_steps(cell(dropout(x, dropout_seed))), first)[0])
        if self.attention is None or source is None:
            return Features((x,), ())
        ops = StepOps(self.attention.tensors(source))
        rows = words.unpadding.restore(x)
        _, length, width = sizes(rows)
        (context,), (of_rows,) = self._attend(ops, tf.reshape(rows, [-1, width]), tf.range(length), source)
        of_tokens = (tf.gather(of_rows, words.unpadding.indices),) if weights else ()
        return Features((words.unpadding.flatten(context), x), of_tokens)


class BahdanauDecoder(Decoder):
    """c_t by s_{t-1}, s_t = cell(s_{t-1}, [y_{t-1}; c_t]), maxout of U s_t + V y_{t-1} + C c_t (Bahdanau et al. 2015).

    The paper's formulas disagree on s_{t-1} or s_t in the maxout; this decoder takes s_t.
    """

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section: c has a kernel in the lowest cell, and the maxout the kernel [U; C; V]."""
        super().__init__(config, **kwargs)
        annotation = config.annotation_width if self.attention else 0
        if self.attention:
            self._declare_kernel("context_kernel", annotation, self.cells[0].gates * config.width)
        rows = config.width + annotation + config.input_width
        self._declare_kernel("maxout_kernel", rows, 2 * config.output_width)

    def tensors(self, source: Source | None) -> Tensors:
        """See ``Decoder``."""
        tensors = super().tensors(source)
        if self.attention:
            tensors["context"] = self.cast(self.context_kernel)
        return tensors

    def step(
        self, ops: StepOps, t: tf.Tensor, inputs: list[tf.Tensor], state: StepState, source: Source | None,
        beams: BeamLayout | None = None,
    ) -> tuple[StepState, Features]:  # fmt: skip
        """See ``Decoder``."""
        projected, *masks = inputs
        context, weights = self._attend(ops, self.cells[-1].output(state.layers[-1]), t, source, beams)
        for part in context:
            projected += ops.product("context", part)
        layers = self._run_cells(ops, projected, masks, state.layers)
        return StepState(layers, ()), Features((self.cells[-1].output(layers[-1]), *context), weights)

    def readout(self, parts: tuple[tf.Tensor, ...], embedded: tf.Tensor) -> tf.Tensor:
        """Return the maxout of s, c and the embedding."""
        x = tf.matmul(tf.concat([*parts, embedded], axis=-1), self.cast(self.maxout_kernel))
        return tf.maximum(*tf.split(x, 2, axis=-1))


DECODERS: dict[str, type[Decoder]] = {"bahdanau": BahdanauDecoder, "luong": LuongDecoder}
"""Decoders by ``step`` of the model section."""
