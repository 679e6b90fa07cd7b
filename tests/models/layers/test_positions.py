"""Sinusoidal and learned positions: the formula, the properties that define it, and keras_hub as oracle."""

from collections.abc import Sequence

import keras_hub
import numpy as np
import pytest

from nmt.models.layers.basic import LearnedPositions, SinusoidalPositions, sinusoids
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.runtime import tf

CLOSE = {"rtol": 0, "atol": 1e-5}
WIDTHS = pytest.mark.parametrize("d_model", [2, 6, 16, 64])


def embedded(length: int, d_model: int) -> np.ndarray:
    """Return something to add positions to."""
    return np.random.default_rng(length).standard_normal((2, length, d_model)).astype(np.float32)


# --- the encoding in NumPy


@WIDTHS
@pytest.mark.parametrize("base", [1.5, 100.0, 10_000.0, 1e12])
def test_even_columns_are_sines_and_odd_columns_cosines_of_the_formula(d_model: int, base: float) -> None:
    encoding = sinusoidal_encoding(50, d_model, base)
    assert encoding.dtype == np.float32
    position = np.arange(50.0)
    for i in range(d_model // 2):
        angle = position / base ** (2 * i / d_model)
        np.testing.assert_allclose(encoding[:, 2 * i], np.sin(angle), **CLOSE)
        np.testing.assert_allclose(encoding[:, 2 * i + 1], np.cos(angle), **CLOSE)


# --- the layers


@WIDTHS
def test_sinusoids_are_the_encoding_at_integers_of_any_shape(d_model: int) -> None:
    positions = np.array([[[3, 0], [11, 3]], [[19, 7], [1, 2]]])
    for base in (100.0, 10_000.0):
        result = sinusoids(tf.constant(positions), d_model, base)
        assert result.shape == (*positions.shape, d_model)
        np.testing.assert_allclose(result, sinusoidal_encoding(20, d_model, base)[positions], **CLOSE)


PLACES = pytest.mark.parametrize("positions", [range(12), range(8, 12), [0, 1, 2, 0, 1, 0]], ids=str)


@WIDTHS
@PLACES
def test_sinusoidal_positions_equal_keras_hub(d_model: int, positions: Sequence[int]) -> None:
    x, at = embedded(len(positions), d_model), tf.constant(list(positions))
    theirs = keras_hub.layers.SinePositionEncoding()(x, positions=tf.cast(at, tf.float32))
    np.testing.assert_allclose(sinusoidal_encoding(12, d_model)[list(positions)], theirs[0], **CLOSE)
    np.testing.assert_allclose(SinusoidalPositions()(x, at), x + theirs, **CLOSE)


@PLACES
def test_learned_positions_equal_keras_hub(positions: Sequence[int]) -> None:
    ours, theirs = LearnedPositions(12, 6), keras_hub.layers.PositionEmbedding(12)
    for layer in (ours, theirs):
        layer.build((None, None, 6))
    theirs.position_embeddings.assign(ours.matrix)
    x, at = embedded(len(positions), 6), tf.constant(list(positions))
    np.testing.assert_allclose(ours(x, at), x + theirs(x, positions=at), **CLOSE)
