"""Keras layers with the weights of ours, to compare with."""

from nmt.models.layers.attention import MultiHeadAttention
from nmt.runtime import keras, tf


def copy_attention(ours: MultiHeadAttention, theirs: keras.layers.MultiHeadAttention) -> None:
    """Give ``theirs``, which is built, the weights of ``ours``."""
    for own, other in (
        (ours.query, theirs.query_dense),  # [D, H * d] and [D, H, d]
        (ours.key, theirs.key_dense),
        (ours.value, theirs.value_dense),
        (ours.output_projection, theirs.output_dense),  # [H * d, D] and [H, d, D]
    ):
        other.kernel.assign(tf.reshape(own.kernel, other.kernel.shape))
        other.bias.assign(tf.reshape(own.bias, other.bias.shape))
