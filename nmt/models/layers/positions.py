"""Sinusoidal position encoding (Vaswani et al. 2017, section 3.5) in NumPy, for layers and plots."""

import numpy as np

LONGEST_PERIOD = 10_000.0


def angle_rates(d_model: int) -> np.ndarray:
    """Return 1 / 10000^(2i / d_model) for i = 0 .. d_model/2 - 1: radians per position, float32 [D/2]."""
    return (LONGEST_PERIOD ** (-np.arange(0, d_model, 2) / d_model)).astype(np.float32)


def sinusoidal_encoding(length: int, d_model: int) -> np.ndarray:
    """Return the encoding of positions 0 .. length - 1: sines in even columns, cosines in odd ones, float32 [L, D]."""
    angles = np.arange(length, dtype=np.float32)[:, None] * angle_rates(d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model)
