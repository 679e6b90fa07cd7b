"""Tensor operations with few passes over memory.

On a processor with matrix units, products are a small part of a training step; reading and writing take the rest.
Gradients are written out where automatic differentiation takes more passes; the numbers are the same. Name scopes mark
the operations in a trace of TensorFlow's profiler.

Shapes: N tokens or rows, D input width, F output width, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple

from nmt import runtime
from nmt.runtime import tf

# Dropout compares random bytes: a quarter of the random bits that floats would take.
BYTE_VALUES = 256


def sizes(x: tf.Tensor) -> list[int | tf.Tensor]:
    """Return the size of each dimension of x: a number where it is static, else an int32 scalar.

    Static sizes cost no operation; outside of traced functions all sizes are static.
    """
    known = x.shape.as_list()
    if None not in known:
        return known
    return [dynamic if size is None else size for size, dynamic in zip(known, tf.unstack(tf.shape(x)), strict=True)]


def flat_rows(x: tf.Tensor) -> tf.Tensor:
    """Return x, [..., D], as a matrix of rows: [N, D]."""
    return x if x.shape.rank == 2 else tf.reshape(x, [-1, sizes(x)[-1]])


def shaped_like(rows: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Return rows, [N, F], with the leading dimensions of x, [..., D]: [..., F]."""
    return rows if x.shape.rank == 2 else tf.reshape(rows, [*sizes(x)[:-1], rows.shape[-1]])


def linear(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None, *, transposed: bool = False) -> tf.Tensor:
    """Return x kernel + bias: [..., D], [D, F] ([F, D] if ``transposed``) and [F] -> [..., F]."""
    rows = tf.matmul(flat_rows(x), kernel, transpose_b=True) if transposed else _product(flat_rows(x), kernel)
    return shaped_like(rows if bias is None else add_bias(rows, bias), x)


def _product(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Return x kernel: [N, D], [D, F] -> [N, F]."""
    if not (runtime.SLOW_STRIDES and x.dtype == tf.float32):
        return tf.matmul(x, kernel)

    @tf.custom_gradient
    def product(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.matmul(upstream, kernel, transpose_b=True), transposed_product(x, upstream)

        return tf.matmul(x, kernel), gradient

    return product(x, kernel)


def transposed_product(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Return left^T right, the form of a kernel's gradient: [N, D], [N, F] -> [D, F].

    Without AVX-512, a float32 product packs columns first. If their elements lie a multiple of 1,024 bytes apart, they
    share a few places of the cache, and the product takes nearly twice as long. Some more columns, of zeros, change the
    distance. The numbers are the same to the bit.
    """
    narrow, wide = sorted([left.shape[1], right.shape[1]])
    packs_slowly = wide % 256 == 0 and wide >= 512 and (narrow <= 256 or wide == 512)
    if not (runtime.SLOW_STRIDES and left.dtype == tf.float32 and packs_slowly):
        return tf.matmul(left, right, transpose_a=True)
    zeros = tf.zeros([tf.shape(left)[0], 16], left.dtype)
    if right.shape[1] == wide:
        return tf.matmul(left, tf.concat([right, zeros], axis=1), transpose_a=True)[:, :wide]
    return tf.matmul(tf.concat([left, zeros], axis=1), right, transpose_a=True)[:wide]


class Projection(NamedTuple):
    """Output layer: from decoder states to logits."""

    matrix: tf.Tensor
    """Matrix [D, V], or [V, D] if ``transposed``."""
    bias: tf.Tensor | None
    """Bias [V]; None: no bias."""
    transposed: bool
    """Whether the matrix is the transpose, as the matrix of an embedding is."""

    def logits(self, states: tf.Tensor) -> tf.Tensor:
        """Return the logits of decoder states: [..., D] -> [..., V]."""
        return linear(states, self.matrix, self.bias, transposed=self.transposed)


@tf.custom_gradient
def add_bias(x: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, tf.Tensor]]]:
    """Add the bias, [F], to each row of x, [N, F]. The bias's gradient, a sum of rows, is computed as a product."""

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return upstream, column_sums(upstream)

    return x + bias, gradient


def column_sums(x: tf.Tensor) -> tf.Tensor:
    """Return the sums of the columns, added in float32 whatever the type of x: [N, F] -> [F]."""
    with tf.name_scope("column_sums"):
        return tf.squeeze(tf.matmul(tf.ones([1, tf.shape(x)[0]], x.dtype), x), 0)  # on a GPU a slice is a copy


def layer_normalization(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al. 2016).

    Args:
        x: [..., D] of any floating type; the arithmetic is float32.
        gamma: float32 [D].
        beta: float32 [D].
        epsilon: added to the variance.

    Returns:
        The shape and type of x.
    """
    with tf.name_scope("layer_norm"):
        return shaped_like(_normalized_rows(flat_rows(x), gamma, beta, epsilon), x)


def _normalized_rows(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Return the layer normalization of rows [N, D], with a gradient of few passes."""

    @tf.custom_gradient
    def normalized(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple]]:
        # Means over the last axis as matrix products: faster than sums, here and in the gradient.
        evenly = tf.fill([x.shape[-1], 1], 1 / x.shape[-1])
        centred = tf.cast(x, tf.float32)
        centred -= tf.matmul(centred, evenly)
        scale = tf.math.rsqrt(tf.matmul(tf.square(centred), evenly) + epsilon)
        standard = centred * scale

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            with tf.name_scope("layer_norm"):
                upstream = tf.cast(upstream, tf.float32)
                along = upstream * standard
                weights = tf.expand_dims(gamma, 1) / x.shape[-1]
                mean, mean_along = tf.matmul(upstream, weights), tf.matmul(along, weights)
                downstream = (upstream * gamma - mean - standard * mean_along) * scale
                return tf.cast(downstream, x.dtype), column_sums(along), column_sums(upstream)

        return tf.cast(standard * gamma + beta, x.dtype), gradient

    return normalized(x, gamma, beta)


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Set a share of x to zero and scale the rest up (inverted dropout, Srivastava et al. 2014).

    The dropped elements are a pure function of ``seed``, int64 [2], and the number of elements of x. A random byte
    decides for each element, so a rate above 0 is rounded to 1/256 .. 255/256. The scale uses the rounded rate.
    """
    if rate == 0:
        return x
    with tf.name_scope("dropout"):
        return x * (_kept(x, rate, seed) * tf.cast(dropout_scale(rate), x.dtype))


def dropout_scale(rate: float) -> float:
    """Return the scale of ``dropout``: 1 / (1 - rate) with the rounded rate."""
    return BYTE_VALUES / (BYTE_VALUES - _bytes_dropped(rate))


def _bytes_dropped(rate: float) -> int:
    """Return how many of the 256 values of a byte drop an element."""
    return min(max(1, round(BYTE_VALUES * rate)), BYTE_VALUES - 1) if rate else 0


def _kept(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Return 0 where an element of x is dropped, else 1, in the shape and dtype of x."""
    count = tf.size(x)
    words = tf.random.stateless_uniform([(count + 3) // 4], seed, minval=None, maxval=None, dtype=tf.uint32)
    random = tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:count]
    return tf.cast(tf.reshape(random, tf.shape(x)) >= tf.constant(_bytes_dropped(rate), tf.uint8), x.dtype)


def relu_dropout(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Return dropout(max(0, x)) without the scale. The caller scales the next matrix, which has fewer elements.

    The function drops the same elements as ``dropout``. Its gradient passes where the result is above zero.
    """

    @tf.custom_gradient
    def dropped(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        active = tf.nn.relu(x)
        with tf.name_scope("dropout"):
            active *= _kept(x, rate, seed)
        return active, lambda upstream: tf.raw_ops.ReluGrad(gradients=upstream, features=active)

    return dropped(x)
