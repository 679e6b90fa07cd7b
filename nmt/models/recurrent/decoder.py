"""Decoder steps of Luong et al. (2015) and of Bahdanau et al. (2015).

A decoder runs over whole targets in training and takes single steps in search, by the same ``step``.

Shapes: T target length, B sentences, R rows of a step (sentences, or live beams), S source length, M embedding width,
n state width, E annotation width, N real tokens.
"""

import abc
from typing import Any, NamedTuple

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.basic import Dropout, Layer
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
    """Attentional state, [R, n], with input feeding; else empty."""


class Features(NamedTuple):
    """What a step gives to the output layer."""

    parts: tuple[tf.Tensor, ...]
    """Tensors [R, ...], see ``Decoder.readout``."""
    weights: tuple[tf.Tensor, ...]
    """Attention weights, float32 [R, S]; empty without attention."""


class Decoder(Layer, abc.ABC):
    """Layers of cells, attention, and what comes before the output layer."""

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        """Take the model section. Initializers draw seeds in the order of the cells, the attention, the decoder."""
        super().__init__(**kwargs)
        numbers = range(1, config.layers + 1)
        self.config, self.cells = config, [make_cell(config, config.width, f"cell_{number}") for number in numbers]
        self.dropouts = [Dropout(config.dropout, f"decoder_{number}") for number in numbers]
        self.attention = Attention(config, name="attention") if config.attention != "none" else None
        self.kernel_initializer: keras.initializers.Initializer = keras.initializers.GlorotUniform()

    def _kernel(self, name: str, rows: int, columns: int) -> Any:
        return self.add_weight(name=name, shape=(rows, columns), initializer=self.kernel_initializer)

    def tensors(self, source: Source | None) -> Tensors:
        """Return what ``step`` reads, by name."""
        found = {} if self.attention is None or source is None else self.attention.tensors(source)
        for number, cell in enumerate(self.cells):
            found |= cell.tensors() | (cell.input_tensors() if number else {})
        return found

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
            beams: the beams that the rows are; None: a row is a sentence. Attention weights are those of all beams.
        """

    @abc.abstractmethod
    def readout(self, parts: tuple[tf.Tensor, ...], embedded: tf.Tensor) -> tf.Tensor:
        """Return what the output layer reads, from parts of ``Features`` and embeddings: [..., D] all."""

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
        found: tuple[tf.Tensor, ...] = ()
        if weights and self.attention:
            rows = outputs.pop()  # [T, B, S]
            found = (tf.gather(tf.reshape(rows, [-1, sizes(rows)[-1]]), layout.places),)
        return Features(tuple(layout.to_tokens(part) for part in outputs), found)

    def _run_cells(
        self, ops: StepOps, projected: tf.Tensor, masks: list[tf.Tensor], layers: tuple[State, ...]
    ) -> tuple[State, ...]:
        """Run the cells of a step from the input product of the lowest."""
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
        """Return context and weights of states [R, n], each in a tuple that is empty without attention."""
        if self.attention is None or source is None:
            return (), ()
        if beams is not None:
            states = flat_rows(beams.restore(states))
        context, weights = self.attention(ops, states, t, sizes(source.annotations)[1], source.lengths)
        return (context if beams is None else tf.gather(context, beams.indices),), (weights,)


class LuongDecoder(Decoder):
    """s_t = cell(s_{t-1}, y_{t-1}), context c_t by s_t, s~_t = tanh(W [c_t; s_t]) (Luong et al. 2015, section 3).

    With input feeding the lowest cell reads s~_{t-1} too (section 3.3). Without it no step needs the attention of the
    one before, so that the recurrence runs over all T steps first and attention is computed at once.
    """

    def build(self, input_shape: Any) -> None:
        """Make W [E + n, n], and with input feeding the kernel of s~ in the lowest cell."""
        config, width = self.config, self.config.width
        if self.attention:
            self.attentional_kernel = self._kernel("attentional_kernel", config.annotation_width + width, width)
        if config.input_feeding:
            self.feeding_kernel = self._kernel("feeding_kernel", width, self.cells[0].gates * width)

    def tensors(self, source: Source | None) -> Tensors:
        """See ``Decoder``."""
        found = super().tensors(source)
        if self.config.input_feeding:
            found["feeding"] = self.cast(self.feeding_kernel)
            found["attentional"] = self.cast(self.attentional_kernel)
        return found

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
        """Return s~, or without attention s."""
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
        (context,), found = self._attend(ops, tf.reshape(rows, [-1, width]), tf.range(length), source)
        kept = tuple(tf.gather(part, words.unpadding.indices) for part in found if weights)
        return Features((words.unpadding.flatten(context), x), kept)


class BahdanauDecoder(Decoder):
    """c_t by s_{t-1}, s_t = cell(s_{t-1}, [y_{t-1}; c_t]), maxout of U s_t + V y_{t-1} + C c_t (Bahdanau et al. 2015).

    The paper's formulas disagree on s_{t-1} or s_t in the maxout; s_t is taken here.
    """

    def build(self, input_shape: Any) -> None:
        """Make the kernel of c in the lowest cell, and [U; C; V] of the maxout."""
        config = self.config
        annotation = config.annotation_width if self.attention else 0
        if self.attention:
            self.context_kernel = self._kernel("context_kernel", annotation, self.cells[0].gates * config.width)
        rows = config.width + annotation + config.input_width
        self.maxout_kernel = self._kernel("maxout_kernel", rows, 2 * config.output_width)

    def tensors(self, source: Source | None) -> Tensors:
        """See ``Decoder``."""
        found = super().tensors(source)
        return {**found, "context": self.cast(self.context_kernel)} if self.attention else found

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
