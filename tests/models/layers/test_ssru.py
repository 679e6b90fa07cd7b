"""The SSRU against its equations in NumPy, and its gradient against automatic differentiation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.models.layers.layer import make_weights
from nmt.models.layers.ssru import SSRU, linear_recurrence
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.runtime import keras, tf

D = 6


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def equations(x: np.ndarray, w: np.ndarray, w_f: np.ndarray, b_f: np.ndarray) -> np.ndarray:
    """Return the output for inputs [T, D], as in section 3.1 of Kim et al. 2019."""
    cell, outputs = np.zeros(D), []
    for row in x:
        forget = sigmoid(row @ w_f + b_f)
        cell = forget * cell + (1 - forget) * (row @ w)
        outputs.append(np.maximum(cell, 0))
    return np.stack(outputs)


@pytest.fixture
def layer() -> SSRU:
    keras.utils.set_random_seed(3)
    layer = SSRU(D, name="ssru")
    make_weights(layer)
    layer.forget_bias.assign(np.random.default_rng(0).normal(size=D))
    return layer


def test_the_output_is_that_of_the_equations_with_and_without_padding(layer: SSRU) -> None:
    x = np.random.default_rng(1).normal(size=[2, 5, D]).astype("float32")
    weights = [weight.numpy() for weight in (layer.kernel, layer.forget_kernel, layer.forget_bias)]
    expected = np.stack([equations(rows, *weights) for rows in x])
    np.testing.assert_allclose(layer(tf.constant(x))[0], expected, rtol=1e-5, atol=1e-6)
    assert (expected == 0).any() and (expected > 0).any()
    layout = Unpadding.of(tf.constant([[5, 5, 5, 0, 0], [5, 5, 5, 5, 5]]))
    flat, _ = layer(layout.flatten(tf.constant(x)), layout=layout)
    np.testing.assert_allclose(flat, np.concatenate([expected[0, :3], expected[1]]), rtol=1e-5, atol=1e-6)


def test_a_token_of_each_beam_continues_the_state_of_its_beam(layer: SSRU) -> None:
    x = tf.constant(np.random.default_rng(2).normal(size=[3, 4, D]), tf.float32)  # three beams of four tokens
    whole, cells = layer(x)
    layout = BeamLayout.of(tf.constant([[5, 5, 5]]))
    output, state = layer(layout.flatten(x[tf.newaxis, :, 3]), cells[tf.newaxis, :, 2], layout)
    np.testing.assert_allclose(layout.restore(output)[0], whole[:, 3], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state[0], cells[:, 3], rtol=1e-5, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(length=st.integers(1, 9), batch=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_gradient_is_that_of_automatic_differentiation(length: int, batch: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    factors = tf.constant(random.uniform(size=[batch, length, 2]), tf.float32)
    terms, weights = (tf.constant(random.normal(size=[batch, length, 2]), tf.float32) for _ in range(2))

    def step_by_step() -> tf.Tensor:
        cell, cells = tf.zeros([batch, 2]), []
        for t in range(length):
            cell = factors[:, t] * cell + terms[:, t]
            cells.append(cell)
        return tf.stack(cells, axis=1)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([factors, terms])
        ours, theirs = linear_recurrence(factors, terms), step_by_step()
        losses = [tf.reduce_sum(cells * weights) for cells in (ours, theirs)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    for ours, theirs in zip(*(tape.gradient(loss, [factors, terms]) for loss in losses), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
