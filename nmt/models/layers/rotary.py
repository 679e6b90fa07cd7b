"""Rotary position embedding (Su et al. 2021, "RoFormer", section 3.2).

Shapes: B batch, H heads, L length of either side, d head size.
"""

from nmt.models.layers.ops import sizes
from nmt.models.layers.positions import BASE, angle_rates
from nmt.runtime import tf


class RotaryPositions:
    """Turns queries and keys by their positions, so that their products depend on the distance of two positions.

    Channels i and i + d/2 are the coordinates of a point in a plane, which position p turns by p / base^(2i / d). No
    vector of the position is added to the words then.
    """

    def __init__(self, base: float = BASE) -> None:
        """Take the base of the angles."""
        self.base = base

    def __call__(self, heads: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Turn vectors [..., L, d] by positions int32 [L], or all of them by one position, [1]; shaped as the input."""
        angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * angle_rates(sizes(heads)[-1], self.base)
        cosines, sines = tf.cast(tf.cos(angles), heads.dtype), tf.cast(tf.sin(angles), heads.dtype)
        x, y = tf.split(heads, 2, axis=-1)
        return tf.concat([x * cosines - y * sines, x * sines + y * cosines], axis=-1)
