"""Sinusoidal position encoding (Vaswani et al. 2017, section 3.5) in NumPy, for layers and plots."""

import numpy as np

BASE = 10_000.0
"""Base in the paper. The wavelengths rise from 2 pi to nearly base x 2 pi positions."""


def angle_rates(d_model: int, base: float = BASE) -> np.ndarray:
    """Return 1 / base^(2i / d_model) for i = 0 .. d_model/2 - 1: radians per position, float32 [D/2]."""
    return (base ** (-np.arange(0, d_model, 2) / d_model)).astype(np.float32)


def sinusoidal_encoding(length: int, d_model: int, base: float = BASE) -> np.ndarray:
    """Return the encoding of positions 0 .. length - 1: sines in even columns, cosines in odd ones, float32 [L, D]."""
    angles = np.arange(length, dtype=np.float32)[:, None] * angle_rates(d_model, base)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model)
