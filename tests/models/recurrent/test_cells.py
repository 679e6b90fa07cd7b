"""Cells, read in either direction: against the Keras layers with the same weights."""

from typing import Any

import numpy as np
import pytest

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.layer import make_weights
from nmt.models.layers.unpadding import Unpadding
from nmt.models.recurrent.cells import Cell, make_cell
from nmt.models.recurrent.encoder import Direction
from nmt.runtime import keras, tf

B, T, M, N = 3, 6, 5, 4
LENGTHS = [6, 2, 4]
KINDS = [("lstm", False), ("gru", False), ("gru", True), ("simple", False)]


def build(kind: str, reset_after: bool, seed: int = 1) -> Cell:
    keras.utils.set_random_seed(seed)
    cell = make_cell(RecurrentConfig(cell=kind, reset_after=reset_after), M, N, "cell")
    make_weights(cell)
    random = np.random.default_rng(seed)
    for weight in cell.weights:
        weight.assign(random.normal(size=weight.shape))
    return cell


def keras_layer(cell: Cell, kind: str, reset_after: bool, **options: Any) -> keras.layers.Layer:
    """Return the Keras layer with the weights of a cell. Its z is 1 - ours, so the columns of z change their sign."""
    options |= {"return_sequences": True, "return_state": True}
    if kind == "gru":
        layer = keras.layers.GRU(N, reset_after=reset_after, **options)
    else:
        layer = (keras.layers.LSTM if kind == "lstm" else keras.layers.SimpleRNN)(N, **options)
    layer.build((None, None, M))
    sign = np.ones(cell.gates * N)
    if kind == "gru":
        sign[:N] = -1
    biases = np.stack([cell.bias, cell.recurrent_bias]) if reset_after else cell.bias.numpy()
    layer.set_weights([cell.kernel.numpy() * sign, cell.recurrent_kernel.numpy() * sign, biases * sign])
    return layer


@pytest.mark.parametrize(("kind", "reset_after"), KINDS)
@pytest.mark.parametrize("backward", [False, True])
def test_a_direction_is_the_keras_layer_over_the_real_tokens(kind: str, reset_after: bool, backward: bool) -> None:
    cell = build(kind, reset_after)
    mask = np.arange(T) < np.array(LENGTHS)[:, None]
    x = tf.random.stateless_normal([B, T, M], [1, 2]) * mask[..., None].astype(np.float32)
    unpadding = Unpadding.of(tf.constant(mask.astype(np.int32)))
    outputs, state = Direction(cell, backward=backward)(unpadding.flatten(x), unpadding)
    theirs, *final = keras_layer(cell, kind, reset_after, go_backwards=backward)(x, mask=tf.constant(mask))
    if backward:  # Keras gives the outputs in the order of its steps, padding first
        theirs = theirs[:, ::-1]
    np.testing.assert_allclose(unpadding.restore(outputs) * mask[..., None], theirs * mask[..., None], atol=1e-6)
    for ours, part in zip(state, final, strict=True):
        np.testing.assert_allclose(ours, part, rtol=1e-5, atol=1e-6)


def test_the_forget_gate_starts_open_and_state_kernels_orthogonal() -> None:
    cell = make_cell(RecurrentConfig(cell="lstm"), M, N, "cell")
    make_weights(cell)
    np.testing.assert_array_equal(cell.bias, [0] * N + [1] * N + [0] * 2 * N)
    np.testing.assert_allclose(cell.recurrent_kernel @ tf.transpose(cell.recurrent_kernel), np.eye(N), atol=1e-6)
