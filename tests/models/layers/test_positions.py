"""Sinusoids of positions in NumPy and in TensorFlow: the formula."""

import numpy as np
import pytest

from nmt.models.layers.basic import sinusoids
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.runtime import tf

CLOSE = {"rtol": 0, "atol": 1e-5}
WIDTHS = pytest.mark.parametrize("d_model", [2, 6, 16, 64])


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


@WIDTHS
def test_sinusoids_are_the_encoding_at_integers_of_any_shape(d_model: int) -> None:
    positions = np.array([[[3, 0], [11, 3]], [[19, 7], [1, 2]]])
    for base in (100.0, 10_000.0):
        result = sinusoids(tf.constant(positions), d_model, base)
        assert result.shape == (*positions.shape, d_model)
        np.testing.assert_allclose(result, sinusoidal_encoding(20, d_model, base)[positions], **CLOSE)
