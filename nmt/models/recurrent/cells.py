"""Recurrent cells: LSTM, GRU, simple.

The products of the inputs with W need no state, so one matrix product computes them for all time steps. A step adds the
products of the state with U.

Shapes: R rows (sentences, or beams of sentences), M input width, n state width, G gates.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.basic import Layer
from nmt.models.layers.ops import column_sums, linear
from nmt.models.recurrent.scan import Operation, StepOps, Tensors, scan
from nmt.runtime import keras, tf

State = tuple[tf.Tensor, ...]
"""State of a cell, [R, n] each: first the output h, then what the cell keeps besides."""


class Cell(Layer, abc.ABC):
    """A cell with the weights and the order of gates of the Keras layer of its kind."""

    gates: ClassVar[int]
    """G: state widths in the product of an input."""
    state_types: ClassVar[tuple[str | None, ...]]
    """Type of each tensor of the state; None: the compute precision."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        """Take n."""
        super().__init__(**kwargs)
        self.units = units
        self.kernel_initializer: keras.initializers.Initializer = keras.initializers.GlorotUniform()
        self.recurrent_initializer: keras.initializers.Initializer = keras.initializers.Orthogonal()

    def build(self, input_shape: Any) -> None:
        """Make W [M, G n], U [n, G n] and the bias."""
        columns = self.gates * self.units
        shape, of_state = (input_shape[-1], columns), (self.units, columns)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=self.kernel_initializer)
        initializer = self.recurrent_initializer
        self.recurrent_kernel = self.add_weight(name="recurrent_kernel", shape=of_state, initializer=initializer)
        self._build_bias(columns)

    def _build_bias(self, columns: int) -> None:
        self.bias = self.add_weight(name="bias", shape=(columns,), initializer="zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return the products of inputs with W, plus the bias: [..., M] -> [..., G n]."""
        return linear(x, self.cast(self.kernel), self.cast(self.bias))

    def tensors(self) -> Tensors:
        """Return what ``step`` reads, by name."""
        return {self._named("state"): self.cast(self.recurrent_kernel)}

    def input_tensors(self) -> Tensors:
        """Return what ``project`` reads, by name."""
        return {self._named("input"): self.cast(self.kernel), self._named("input_bias"): self.cast(self.bias)}

    def project(self, ops: StepOps, x: tf.Tensor) -> tf.Tensor:
        """Do in a step what ``call`` does: [R, M] -> [R, G n]."""
        return ops.product(self._named("input"), x) + ops.tensors[self._named("input_bias")]

    def zero_state(self, rows: tf.Tensor | int) -> State:
        """Return a state of zeros."""
        return tuple(tf.zeros([rows, self.units], type_ or self.compute_dtype) for type_ in self.state_types)

    @abc.abstractmethod
    def step(self, ops: StepOps, x: tf.Tensor, state: State) -> State:
        """Return the new state from the product of the input, [R, G n], and the state."""

    def output(self, state: State) -> tf.Tensor:
        """Return h in the compute precision: [R, n]."""
        return tf.cast(state[0], self.compute_dtype)

    def _named(self, name: str) -> str:
        return f"{self.name}/{name}"


class SimpleCell(Cell):
    """h' = tanh(W x + U h + b) (Elman 1990)."""

    gates = 1
    state_types = (None,)

    def step(self, ops: StepOps, x: tf.Tensor, state: State) -> State:
        """See ``Cell``."""
        return (ops.tanh(x + ops.product(self._named("state"), state[0])),)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

    i, f, g, o are the four parts of W x + U h + b. c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').
    The bias of f starts at 1 (Jozefowicz et al. 2015). c is float32: a sum over all time steps.
    """

    gates = 4
    state_types = (None, "float32")

    def _build_bias(self, columns: int) -> None:
        def initial(shape: Any, dtype: Any = None) -> Any:
            parts = [keras.ops.full([self.units], value, dtype=dtype) for value in (0.0, 1.0, 0.0, 0.0)]
            return keras.ops.concatenate(parts)

        self.bias = self.add_weight(name="bias", shape=(columns,), initializer=initial)

    def step(self, ops: StepOps, x: tf.Tensor, state: State) -> State:
        """See ``Cell``."""
        h, c = state
        h, c, *_ = ops.apply(_LSTM, x + ops.product(self._named("state"), h), c)
        return h, c


class GRUCell(Cell):
    """Gated recurrent unit (Cho et al. 2014).

    r, z = sigmoid(W x + U h + b), h~ = tanh(W x + U (r h) + b), h' = (1 - z) h + z h~ (Bahdanau et al. 2015, appendix
    A.1.1; Keras has 1 - z for z). With ``reset_after`` h~ = tanh(W x + b + r (U h + b')) instead, one product a step.
    The order of gates is z, r, h~. h is float32: a weighted sum over all time steps.
    """

    gates = 3
    state_types = ("float32",)

    def __init__(self, units: int, *, reset_after: bool, **kwargs: Any) -> None:
        """Take n, and whether the reset gate applies after the product with U."""
        super().__init__(units, **kwargs)
        self.reset_after = reset_after

    def _build_bias(self, columns: int) -> None:
        super()._build_bias(columns)
        if self.reset_after:
            self.recurrent_bias = self.add_weight(name="recurrent_bias", shape=(columns,), initializer="zeros")

    def tensors(self) -> Tensors:
        """See ``Cell``."""
        if self.reset_after:
            return {**super().tensors(), self._named("bias"): self.cast(self.recurrent_bias)}
        kernel = self.cast(self.recurrent_kernel)
        gates, candidate = tf.split(kernel, [2 * self.units, self.units], axis=1)
        return {self._named("gates"): gates, self._named("candidate"): candidate}

    def step(self, ops: StepOps, x: tf.Tensor, state: State) -> State:
        """See ``Cell``."""
        (h,) = state
        if self.reset_after:
            product = ops.product(self._named("state"), self.output(state))
            return (ops.apply(_GRU_RESET_AFTER, x, product, ops.tensors[self._named("bias")], h)[0],)
        x_gates, x_candidate = tf.split(x, [2 * self.units, self.units], axis=-1)
        gates = x_gates + ops.product(self._named("gates"), self.output(state))
        z, r = tf.split(ops.sigmoid(tf.cast(gates, tf.float32)), 2, axis=-1)
        reset = tf.cast(r * h, self.compute_dtype)
        candidate = x_candidate + ops.product(self._named("candidate"), reset)
        return (h + z * (ops.tanh(tf.cast(candidate, tf.float32)) - h),)


def _lstm(z: tf.Tensor, c: tf.Tensor) -> Sequence[tf.Tensor]:
    """(gates [R, 4 n], c) -> new h and c, and what the gradient needs. Casts follow splits: fewer bytes to copy."""
    i, f, g, o = (tf.cast(gate, tf.float32) for gate in tf.split(z, 4, axis=-1))
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    c = f * c + i * g
    tanh_c = tf.tanh(c)
    return tf.cast(o * tanh_c, z.dtype), c, i, f, g, o, tanh_c


def _lstm_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    of_h, of_c, *_ = upstream
    (_, _, i, f, g, o, tanh_c), (z, c) = y, x
    of_o = None
    if of_h is not None:
        of_h = tf.cast(of_h, tf.float32)
        of_o = of_h * tanh_c
        inner = tf.raw_ops.TanhGrad(y=tanh_c, dy=of_h * o)
        of_c = inner if of_c is None else of_c + inner
    gates = [
        tf.raw_ops.SigmoidGrad(y=i, dy=of_c * g),
        tf.raw_ops.SigmoidGrad(y=f, dy=of_c * c),
        tf.raw_ops.TanhGrad(y=g, dy=of_c * i),
        tf.zeros_like(o) if of_o is None else tf.raw_ops.SigmoidGrad(y=o, dy=of_o),
    ]
    return tf.concat([tf.cast(gate, z.dtype) for gate in gates], axis=-1), of_c * f


def _gru_reset_after(x: tf.Tensor, product: tf.Tensor, bias: tf.Tensor, h: tf.Tensor) -> Sequence[tf.Tensor]:
    """(x [R, 3 n], product of h with U [R, 3 n], its bias [3 n], h) -> new h, and what the gradient needs."""
    units = h.shape[-1]
    x_gates, x_candidate = tf.split(x, [2 * units, units], axis=-1)
    gates, candidate = tf.split(product + bias, [2 * units, units], axis=-1)
    gates = tf.sigmoid(tf.cast(x_gates + gates, tf.float32))
    z, r = tf.split(gates, 2, axis=-1)
    state_candidate = tf.cast(candidate, tf.float32)
    candidate = tf.tanh(tf.cast(x_candidate, tf.float32) + r * state_candidate)
    return h + z * (candidate - h), gates, z, r, candidate, state_candidate


def _gru_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    (of_h, *_), (_, gates, z, r, candidate, state_candidate), (inputs, _, _, h) = upstream, y, x
    of_candidate = of_h * z
    inner = tf.raw_ops.TanhGrad(y=candidate, dy=of_candidate)
    of_gates = tf.concat([of_h * (candidate - h), inner * state_candidate], axis=-1)
    of_gates = tf.cast(tf.raw_ops.SigmoidGrad(y=gates, dy=of_gates), inputs.dtype)
    of_x = tf.concat([of_gates, tf.cast(inner, inputs.dtype)], axis=-1)
    of_product = tf.concat([of_gates, tf.cast(inner * r, inputs.dtype)], axis=-1)
    return of_x, of_product, column_sums(of_product), of_h - of_candidate


_LSTM = Operation(_lstm, _lstm_gradient)
_GRU_RESET_AFTER = Operation(_gru_reset_after, _gru_gradient)


def make_cell(config: RecurrentConfig, units: int, name: str) -> Cell:
    """Return the cell of the model section with n units."""
    if config.cell == "gru":
        return GRUCell(units, reset_after=config.reset_after, name=name)
    return (LSTMCell if config.cell == "lstm" else SimpleCell)(units, name=name)


def run_cell(cell: Cell, projected: tf.Tensor, state: State) -> list[tf.Tensor]:
    """Run a cell over time steps.

    Args:
        cell: the cell.
        projected: products of its inputs: [L, B, G n].
        state: initial state.

    Returns:
        The output of each step [L, B, n], and what the state has besides, [L, B, n] each.
    """

    def step(ops: StepOps, t: tf.Tensor, inputs: Any, state: State) -> tuple[State, list[tf.Tensor]]:
        state = cell.step(ops, inputs[0], state)
        return state, [cell.output(state), *state[1:]]

    return scan(step, [projected], state, cell.tensors())
