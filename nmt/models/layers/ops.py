"""The arithmetic between matrix products, written to touch memory as seldom as TensorFlow's operations allow.

On a processor with matrix units the products themselves are a small part of a training step; the rest is reading and
writing. Gradients are written out where automatic differentiation would take more passes, and are the same numbers.

The scopes name what is computed, for those who trace a step (see nmt.benchmark.profiler).

Shapes: N tokens or rows of any number, D width, F width of an output, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple

from nmt.runtime import tf

# Dropout compares bytes, a quarter of the random numbers that floats would need.
BYTE_VALUES = 256


def sizes(x: tf.Tensor) -> list[int | tf.Tensor]:
    """Return the size of each dimension of x: a number where it is known, which takes no operation; else int32 scalar.

    Outside of compiled functions every size is known.
    """
    known = x.shape.as_list()
    if None not in known:
        return known
    return [at_run if size is None else size for size, at_run in zip(known, tf.unstack(tf.shape(x)), strict=True)]


def on_rows(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Apply a function of rows, [N, D] -> [N, F], to x: [..., D] -> [..., F]."""
    if x.shape.rank == 2:
        return function(x)
    rows = function(tf.reshape(x, [-1, x.shape[-1]]))
    return tf.reshape(rows, [*sizes(x)[:-1], rows.shape[-1]])


def linear(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None) -> tf.Tensor:
    """Return x kernel + bias: [..., D], [D, F] and [F] -> [..., F]."""

    def product(rows: tf.Tensor) -> tf.Tensor:
        return tf.matmul(rows, kernel) if bias is None else add_bias(tf.matmul(rows, kernel), bias)

    return on_rows(product, x)


class Projection(NamedTuple):
    """What turns the decoder's states into logits."""

    matrix: tf.Tensor
    """[D, V], or [V, D] if ``transposed``, as embeddings are."""
    bias: tf.Tensor | None
    """[V]."""
    transposed: bool

    def logits(self, states: tf.Tensor) -> tf.Tensor:
        """[..., D] -> [..., V]."""

        def product(rows: tf.Tensor) -> tf.Tensor:
            logits = tf.matmul(rows, self.matrix, transpose_b=self.transposed)
            return logits if self.bias is None else add_bias(logits, self.bias)

        return on_rows(product, states)


@tf.custom_gradient
def add_bias(x: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, tf.Tensor]]]:
    """Add [F] to each row of [N, F]; the bias's gradient, a sum of rows, is a product with ones."""

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return upstream, column_sums(upstream)

    return x + bias, gradient


def column_sums(x: tf.Tensor) -> tf.Tensor:
    """Sum [N, F] over N -> [F], adding up in float32 whatever the type of x."""
    with tf.name_scope("column_sums"):
        return tf.matmul(tf.ones([1, tf.shape(x)[0]], x.dtype), x)[0]


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
        return on_rows(lambda rows: _normalized_rows(rows, gamma, beta, epsilon), x)


def _normalized_rows(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    @tf.custom_gradient
    def normalized(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple]]:
        # Means over the last axis are matrix products, which are faster than sums, here and in the gradient.
        evenly = tf.fill([x.shape[-1], 1], 1 / x.shape[-1])
        centred = tf.cast(x, tf.float32)
        centred -= tf.matmul(centred, evenly)
        scale = tf.math.rsqrt(tf.matmul(tf.square(centred), evenly) + epsilon)
        standard = centred * scale

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            with tf.name_scope("layer_norm"):
                upstream = tf.cast(upstream, tf.float32)
                along = upstream * standard
                weights = gamma[:, tf.newaxis] / x.shape[-1]
                mean, mean_along = tf.matmul(upstream, weights), tf.matmul(along, weights)
                downstream = (upstream * gamma - mean - standard * mean_along) * scale
                return tf.cast(downstream, x.dtype), column_sums(along), column_sums(upstream)

        return tf.cast(standard * gamma + beta, x.dtype), gradient

    return normalized(x, gamma, beta)


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Set a share of x to zero and scale up the rest to make up for it (Srivastava et al. 2014).

    Which elements is a pure function of ``seed``, int64 [2], and the number of elements of x. A random byte decides on
    each, so a rate above 0 is rounded to a 256th, at least one and at most 255 of them; the scale goes with that rate.
    """
    if rate == 0:
        return x
    with tf.name_scope("dropout"):
        return x * (_kept(x, rate, seed) * tf.cast(dropout_scale(rate), x.dtype))


def dropout_scale(rate: float) -> float:
    """Return what ``dropout`` scales up by."""
    return BYTE_VALUES / (BYTE_VALUES - _bytes_dropped(rate))


def _bytes_dropped(rate: float) -> int:
    return min(max(1, round(BYTE_VALUES * rate)), BYTE_VALUES - 1) if rate else 0


def _kept(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Return 0 where an element of x falls, 1 elsewhere: shaped and typed as x."""
    count = tf.size(x)
    words = tf.random.stateless_uniform([(count + 3) // 4], seed, minval=None, maxval=None, dtype=tf.uint32)
    random = tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:count]
    return tf.cast(tf.reshape(random, tf.shape(x)) >= tf.constant(_bytes_dropped(rate), tf.uint8), x.dtype)


def relu_dropout(x: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Return dropout(max(0, x)), but not scaled up: the weights that it is multiplied by next can be, and are fewer.

    The same elements fall as in ``dropout``. The gradient passes where the result is above zero, so that one look at
    it answers for both.
    """

    @tf.custom_gradient
    def dropped(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        active = tf.nn.relu(x)
        with tf.name_scope("dropout"):
            active *= _kept(x, rate, seed)
        return active, lambda upstream: tf.raw_ops.ReluGrad(gradients=upstream, features=active)

    return dropped(x)
