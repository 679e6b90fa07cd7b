"""Random numbers for layers, and Keras layers with the weights of ours, to compare with."""

import numpy as np

from nmt.models.layers.attention import MultiHeadAttention
from nmt.runtime import keras, tf


def copy_attention(ours: MultiHeadAttention, theirs: keras.layers.MultiHeadAttention) -> None:
    """Give ``theirs``, which is built, the weights of ``ours``."""
    for ours_part, keras_part in (
        (ours.query, theirs.query_dense),  # [D, H * d] and [D, H, d]
        (ours.key, theirs.key_dense),
        (ours.value, theirs.value_dense),
        (ours.output_projection, theirs.output_dense),  # [H * d, D] and [H, d, D]
    ):
        keras_part.kernel.assign(tf.reshape(ours_part.kernel, keras_part.kernel.shape))
        keras_part.bias.assign(tf.reshape(ours_part.bias, keras_part.bias.shape))


def normal(seed: int, *shape: int) -> tf.Tensor:
    """Return standard normal numbers, the same for the same seed."""
    return tf.constant(np.random.default_rng(seed).standard_normal(shape), tf.float32)
