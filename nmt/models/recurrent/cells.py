"""Recurrent cells: LSTM, GRU, simple.

The products of the inputs with W need no state, so one matrix product computes them for all time steps. Each step adds
the product of its state with U.

Shapes: R rows (sentences, or beams of sentences), M input width, n state width, G gates.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import column_sums, linear
from nmt.models.recurrent.scan import Operation, StepOps, Tensors, scan
from nmt.runtime import keras, tf

State = tuple[tf.Tensor, ...]
"""State of a cell, [R, n] each: first the output h, then the further tensors that the cell keeps."""


class Cell(Layer, abc.ABC):
    """A cell with the weights and the order of gates of the Keras layer of its kind."""

    gates: ClassVar[int]
    """G: state widths in the product of an input."""
    state_types: ClassVar[tuple[str | None, ...]]
    """Type of each tensor of the state; None: the compute precision."""

    def __init__(self, width: int, units: int, **kwargs: Any) -> None:
        """Take M and n."""
        super().__init__(**kwargs)
        self.units = units
        columns = self.gates * units
        self.declare("kernel", (width, columns), keras.initializers.GlorotUniform(), Blocks())
        self.declare("recurrent_kernel", (units, columns), keras.initializers.Orthogonal(), Blocks())
        self.declare("bias", (columns,), "zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return the products of inputs with W, plus the bias: [..., M] -> [..., G n]."""
        return linear(x, self.cast(self.kernel), self.cast(self.bias))

    def tensors(self) -> Tensors:
        """Return the tensors that ``step`` reads, by name."""
        return {self._named("state"): self.cast(self.recurrent_kernel)}

    def input_tensors(self) -> Tensors:
        """Return the tensors that ``project`` reads, by name."""
        return {self._named("input"): self.cast(self.kernel), self._named("input_bias"): self.cast(self.bias)}

    def project(self, ops: StepOps, x: tf.Tensor) -> tf.Tensor:
        """Return within a step the products that ``call`` returns: [R, M] -> [R, G n]."""
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

    def __init__(self, width: int, units: int, **kwargs: Any) -> None:
        """Take M and n."""
        super().__init__(width, units, **kwargs)
        self.specs["bias"].initializer = self._initial_bias

    def _initial_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        """Return 1 for the forget gate and 0 for the other gates: [4 n]."""
        gates = [keras.ops.full([self.units], value, dtype=dtype) for value in (0.0, 1.0, 0.0, 0.0)]
        return keras.ops.concatenate(gates)

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

    def __init__(self, width: int, units: int, *, reset_after: bool, **kwargs: Any) -> None:
        """Take M, n, and whether the reset gate applies after the product with U."""
        super().__init__(width, units, **kwargs)
        self.reset_after = reset_after
        if reset_after:
            self.declare("recurrent_bias", (self.gates * units,), "zeros")

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
    """Compute a step of ``LSTMCell``.

    Args:
        z: W x + U h + b: [R, 4 n].
        c: float32 [R, n].

    Returns:
        The new h and c, and the tensors that the gradient reads.
    """
    # The split comes before the cast, so that fewer bytes are copied.
    i, f, g, o = (tf.cast(gate, tf.float32) for gate in tf.split(z, 4, axis=-1))
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    c = f * c + i * g
    tanh_c = tf.tanh(c)
    return tf.cast(o * tanh_c, z.dtype), c, i, f, g, o, tanh_c


def _lstm_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    dh, dc, *_ = upstream
    _, _, i, f, g, o, tanh_c = y
    z, c = x
    if dh is None:
        d_output_gate = tf.zeros_like(o)
    else:
        dh = tf.cast(dh, tf.float32)
        d_output_gate = tf.raw_ops.SigmoidGrad(y=o, dy=dh * tanh_c)
        inner = tf.raw_ops.TanhGrad(y=tanh_c, dy=dh * o)
        dc = inner if dc is None else dc + inner
    gates = [
        tf.raw_ops.SigmoidGrad(y=i, dy=dc * g),
        tf.raw_ops.SigmoidGrad(y=f, dy=dc * c),
        tf.raw_ops.TanhGrad(y=g, dy=dc * i),
        d_output_gate,
    ]
    return tf.concat([tf.cast(gate, z.dtype) for gate in gates], axis=-1), dc * f


def _gru_reset_after(x: tf.Tensor, product: tf.Tensor, bias: tf.Tensor, h: tf.Tensor) -> Sequence[tf.Tensor]:
    """Compute a step of ``GRUCell`` with ``reset_after``.

    Args:
        x: products of the input with W, bias included: [R, 3 n].
        product: products of h with U: [R, 3 n].
        bias: bias of these products: [3 n].
        h: float32 [R, n].

    Returns:
        The new h, and the tensors that the gradient reads.
    """
    units = h.shape[-1]
    x_gates, x_candidate = tf.split(x, [2 * units, units], axis=-1)
    gates, candidate = tf.split(product + bias, [2 * units, units], axis=-1)
    gates = tf.sigmoid(tf.cast(x_gates + gates, tf.float32))
    z, r = tf.split(gates, 2, axis=-1)
    state_candidate = tf.cast(candidate, tf.float32)
    candidate = tf.tanh(tf.cast(x_candidate, tf.float32) + r * state_candidate)
    return h + z * (candidate - h), gates, z, r, candidate, state_candidate


def _gru_gradient(upstream: Sequence[Any], y: Sequence[tf.Tensor], x: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    dh = upstream[0]
    _, gates, z, r, candidate, state_candidate = y
    inputs, _, _, h = x
    d_candidate = dh * z
    inner = tf.raw_ops.TanhGrad(y=candidate, dy=d_candidate)
    d_gates = tf.concat([dh * (candidate - h), inner * state_candidate], axis=-1)
    d_gates = tf.cast(tf.raw_ops.SigmoidGrad(y=gates, dy=d_gates), inputs.dtype)
    dx = tf.concat([d_gates, tf.cast(inner, inputs.dtype)], axis=-1)
    d_product = tf.concat([d_gates, tf.cast(inner * r, inputs.dtype)], axis=-1)
    return dx, d_product, column_sums(d_product), dh - d_candidate


_LSTM = Operation(_lstm, _lstm_gradient)
_GRU_RESET_AFTER = Operation(_gru_reset_after, _gru_gradient)


def make_cell(config: RecurrentConfig, width: int, units: int, name: str) -> Cell:
    """Return the cell of the model section for inputs of width M and states of width n."""
    if config.cell == "gru":
        return GRUCell(width, units, reset_after=config.reset_after, name=name)
    if config.cell == "lstm":
        return LSTMCell(width, units, name=name)
    return SimpleCell(width, units, name=name)


def run_cell(cell: Cell, projected: tf.Tensor, state: State) -> list[tf.Tensor]:
    """Run a cell over time steps.

    Args:
        cell: the cell.
        projected: products of its inputs with W: [L, B, G n].
        state: initial state.

    Returns:
        The outputs of all steps, [L, B, n], and the further tensors of the state at all steps, [L, B, n] each.
    """

    def step(ops: StepOps, t: tf.Tensor, inputs: Any, state: State) -> tuple[State, list[tf.Tensor]]:
        state = cell.step(ops, inputs[0], state)
        return state, [cell.output(state), *state[1:]]

    return scan(step, [projected], state, cell.tensors())
