"""Operations with gradients written out: values and gradients equal those of the plain formulas."""

from collections.abc import Callable

import numpy as np
import pytest
from conftest import ROUNDS_BFLOAT16
from hypothesis import given, settings
from hypothesis import strategies as st
from keras_twins import normal

from nmt import runtime
from nmt.models.layers.ops import (
    column_sums,
    dropout,
    dropout_scale,
    layer_normalization,
    linear,
    relu_dropout,
)
from nmt.runtime import keras, tf

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
SIZES = st.integers(1, 6)


def with_gradients(function: Callable[..., tf.Tensor], *inputs: tf.Tensor) -> list[tf.Tensor]:
    """Return the result, and the gradients of a weighted sum of it."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
        total = tf.reduce_sum(result * tf.cast(normal(99, *result.shape), result.dtype))
    return [result, *tape.gradient(total, inputs)]


def same(
    ours: Callable[..., tf.Tensor], plain: Callable[..., tf.Tensor], *inputs: tf.Tensor, rounding: float | None = None
) -> None:
    close = CLOSE if rounding is None else {"rtol": rounding}
    for part, expected in zip(with_gradients(ours, *inputs), with_gradients(plain, *inputs), strict=True):
        assert part.shape == expected.shape
        assert part.dtype == expected.dtype
        np.testing.assert_allclose(tf.cast(part, tf.float32), tf.cast(expected, tf.float32), **close)


@settings(max_examples=20, deadline=None)
@given(SIZES, SIZES, SIZES, st.integers(0, 1000))
def test_linear_is_product_plus_bias(n: int, d: int, f: int, seed: int) -> None:
    inputs = normal(seed, n, d), normal(seed + 1, d, f), normal(seed + 2, f)
    same(linear, lambda x, kernel, bias: tf.matmul(x, kernel) + bias, *inputs)
    same(lambda x, kernel: linear(x, kernel, None), tf.matmul, *inputs[:2])


@ROUNDS_BFLOAT16
@pytest.mark.parametrize(("d", "f"), [(3, 512), (512, 3), (512, 512), (3, 513), (400, 768)])
def test_products_of_processors_without_avx512_have_the_same_gradients(
    monkeypatch: pytest.MonkeyPatch, d: int, f: int
) -> None:
    monkeypatch.setattr(runtime, "SLOW_STRIDES", True)
    same(lambda x, kernel: linear(x, kernel, None), tf.matmul, normal(1, 7, d), normal(2, d, f))


def test_columns_of_bfloat16_are_summed_in_float32() -> None:
    ones = tf.ones([3000, 2], tf.bfloat16)  # summed in bfloat16 they would stick at 256
    assert column_sums(ones).numpy().tolist() == [3008, 3008]  # 3,000 rounded to 8 bits
    np.testing.assert_allclose(column_sums(normal(1, 50, 4)), tf.reduce_sum(normal(1, 50, 4), axis=0), **CLOSE)


@settings(max_examples=20, deadline=None)
@given(SIZES, st.integers(2, 9), st.sampled_from([1e-6, 1e-3, 0.5]), st.integers(0, 1000))
def test_layer_normalization_equals_keras(n: int, d: int, epsilon: float, seed: int) -> None:
    x, gamma, beta = normal(seed, 2, n, d), normal(seed + 1, d), normal(seed + 2, d)

    def plain(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + epsilon) * gamma + beta

    def ours(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
        return layer_normalization(x, gamma, beta, epsilon)

    result, *gradients = with_gradients(ours, x, gamma, beta)
    for part, expected in zip(gradients, with_gradients(plain, x, gamma, beta)[1:], strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(expected))))  # two near-equal numbers have steep gradients
        np.testing.assert_allclose(part / scale, expected / scale, **CLOSE)
    theirs = keras.layers.LayerNormalization(epsilon=epsilon)
    theirs.build(x.shape)
    theirs.set_weights([gamma, beta])
    np.testing.assert_allclose(result, theirs(x), **CLOSE)


def test_layer_normalization_computes_bfloat16_in_float32() -> None:
    x = tf.cast(100 + normal(1, 5, 64), tf.bfloat16)  # in bfloat16 the mean alone would be off by half a unit
    gamma, beta = normal(2, 64), normal(3, 64)
    exact = layer_normalization(tf.cast(x, tf.float32), gamma, beta, 1e-6)
    rounded = layer_normalization(x, gamma, beta, 1e-6)
    assert rounded.dtype == tf.bfloat16
    np.testing.assert_array_equal(rounded, tf.cast(exact, tf.bfloat16))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_dropout_keeps_its_share_and_the_mean(rate: float, dtype: tf.DType) -> None:
    x = tf.ones([400, 501], dtype)
    result = tf.cast(dropout(x, rate, tf.constant([1, 2], tf.int64)), tf.float32).numpy()
    dropped = round(256 * rate) / 256
    deviation = np.sqrt(dropped * (1 - dropped) / result.size)
    assert np.mean(result == 0) == pytest.approx(dropped, abs=5 * deviation)
    assert np.unique(result[result > 0]) == pytest.approx([1 / (1 - dropped)], rel=4e-3)
    assert np.std(np.mean(result == 0, axis=0)) == pytest.approx(np.sqrt(dropped * (1 - dropped) / 400), rel=0.2)


def test_dropout_passes_the_gradient_of_what_it_kept() -> None:
    x, seed = normal(1, 30, 7), tf.constant([3, 4], tf.int64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = dropout(x, 0.5, seed)
    np.testing.assert_array_equal(tape.gradient(result, x), tf.where(result == 0, 0.0, 2.0))


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_relu_dropout_is_dropout_of_relu_that_is_not_scaled_up(rate: float, dtype: tf.DType) -> None:
    x, seed = tf.cast(normal(1, 30, 7), dtype), tf.constant([3, 4], tf.int64)
    factor = tf.cast(dropout_scale(rate), dtype)
    same(
        lambda x: relu_dropout(x, rate, seed) * factor,
        lambda x: tf.cast(dropout(tf.cast(tf.nn.relu(x), tf.float32), rate, seed), dtype),
        x,
        rounding=2**-7 if dtype == tf.bfloat16 else None,
    )


def test_the_smallest_rate_still_drops_and_none_drops_all() -> None:
    x, seed = tf.ones([200, 300]), tf.constant([1, 1], tf.int64)
    assert 0.002 < np.mean(dropout(x, 1e-6, seed).numpy() == 0) < 0.006  # a 256th
    assert 0.002 < np.mean(dropout(x, 1 - 1e-6, seed).numpy() != 0) < 0.006
    np.testing.assert_array_equal(dropout(x, 0.0, seed), x)
