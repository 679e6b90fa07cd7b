"""Basic layers: linear, layer norm, dropout, embeddings, position embeddings.

Shapes: B batch, L length of either side, D model, V vocabulary, N real tokens.
"""

import math
import zlib
from typing import Any

from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import Projection, dropout, layer_normalization, linear, sizes
from nmt.models.layers.positions import BASE, angle_rates
from nmt.runtime import keras, on_host, tf
from nmt.tokenizers.base import FIRST_WORD, UNK


def sinusoids(positions: tf.Tensor, d_model: int, base: float = BASE) -> tf.Tensor:
    """Return the sinusoidal encoding of integers of any shape [...]: float32 [..., D]."""
    angles = tf.cast(positions, tf.float32)[..., tf.newaxis] * angle_rates(d_model, base)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
    return tf.reshape(pairs, [*sizes(positions), d_model])


def small_values() -> keras.initializers.Initializer:
    """Return a normal initializer with deviation 0.02, for matrices of any width (Devlin et al. 2019)."""
    return keras.initializers.RandomNormal(stddev=0.02)


class TokenEmbedding(Layer):
    """A vector for each id; the same matrix can serve as output layer (Vaswani et al. 2017, section 3.4)."""

    def __init__(self, vocabulary: int, d_model: int, *, scaled: bool, biased: bool = False, **kwargs: Any) -> None:
        """Take V, D, whether vectors are multiplied by sqrt(D), and whether the output layer has a bias."""
        super().__init__(**kwargs)
        self.biased = biased
        self.factor = math.sqrt(d_model) if scaled else 1.0
        # With this deviation, scaled vectors and tied logits have unit variance.
        self.declare("matrix", (vocabulary, d_model), keras.initializers.RandomNormal(stddev=d_model**-0.5))
        if biased:
            self.declare("bias", (vocabulary,), "zeros")

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the vectors of ids: [...] -> [..., D]."""
        return tf.gather(tf.cast(self.matrix, self.compute_dtype), ids) * self.factor

    def projection(self) -> Projection:
        """Return the matrix as output layer."""
        bias = self.cast(self.bias) if self.biased else None
        return Projection(tf.cast(self.matrix, self.compute_dtype), bias, transposed=True)


class SinusoidalTokenEmbedding(Layer):
    """A fixed vector for each id: the encoding of the id as if it were a position. Nothing is trained."""

    def __init__(self, d_model: int, *, scaled: bool, base: float = BASE, **kwargs: Any) -> None:
        """Take D, whether vectors are multiplied by sqrt(D), and the base of the sinusoids."""
        super().__init__(**kwargs)
        self.d_model = d_model
        self.base = base
        self.factor = math.sqrt(d_model) if scaled else 1.0

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the vectors of ids: [...] -> [..., D]."""
        return tf.cast(sinusoids(ids, self.d_model, self.base) * self.factor, self.compute_dtype)


class SinusoidalPositions(Layer):
    """Adds the sinusoidal encoding of each position, for sentences of any length."""

    def __init__(self, base: float = BASE, **kwargs: Any) -> None:
        """Take the base of the sinusoids."""
        super().__init__(**kwargs)
        self.base = base

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to tokens [N, D] at positions [N]; shaped as x."""
        return x + tf.cast(sinusoids(positions, x.shape[-1], self.base), x.dtype)


class LearnedPositions(Layer):
    """Adds a trained vector for each position, of which there are ``max_positions``."""

    def __init__(self, max_positions: int, d_model: int, **kwargs: Any) -> None:
        """Take the number of positions and D. The vectors start at zero, unless the model sets an initializer."""
        super().__init__(**kwargs)
        self.declare("matrix", (max_positions, d_model), "zeros")

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to tokens [N, D] at positions [N]; shaped as x."""
        return x + tf.gather(tf.cast(self.matrix, x.dtype), positions)


class NoPositions(Layer):
    """Adds nothing: for models whose attention knows the positions."""

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Return x."""
        return x


class Linear(Layer):
    """x W + b, with the weight names and initial values of Keras's Dense."""

    def __init__(self, width: int, units: int, blocks: Blocks | None = Blocks(), **kwargs: Any) -> None:  # noqa: B008 - immutable
        """Take the widths of input and output, and the blocks of W, see ``WeightSpec``; None for an output layer."""
        super().__init__(**kwargs)
        self.units = units
        self.declare("kernel", (width, units), keras.initializers.GlorotUniform(), blocks)
        self.declare("bias", (units,), "zeros")

    def call(self, x: tf.Tensor, factor: float = 1.0) -> tf.Tensor:
        """Return factor x W + b: [..., D] -> [..., units]."""
        return joint_linear(x, [self], self.compute_dtype, factor)

    def projection(self) -> Projection:
        """Return matrix and bias as output layer."""
        return Projection(self.cast(self.kernel), self.cast(self.bias), transposed=False)


def joint_linear(x: tf.Tensor, layers: list[Linear], dtype: str, factor: float = 1.0) -> tf.Tensor:
    """Apply several linear layers to one input as one matrix product: [..., D] -> [..., sum of their units].

    ``factor`` scales the kernels, which have fewer elements than x, before they are rounded to ``dtype``.
    """
    kernels = [layer.kernel.value if factor == 1 else layer.kernel.value * factor for layer in layers]
    kernels = [tf.cast(kernel, dtype) for kernel in kernels]
    biases = [tf.cast(layer.bias.value, dtype) for layer in layers]
    if len(layers) == 1:
        return linear(x, kernels[0], biases[0])
    return linear(x, tf.concat(kernels, axis=1), tf.concat(biases, axis=0))


class LayerNormalization(Layer):
    """Normalizes each vector to mean 0 and variance 1, then scales and shifts it (Ba et al. 2016)."""

    def __init__(self, width: int, epsilon: float, **kwargs: Any) -> None:
        """Take D and the number that is added to the variance."""
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.declare("gamma", (width,), "ones")
        self.declare("beta", (width,), "zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Normalize x, [..., D], in float32 whatever the compute precision; the type of x is kept."""
        gamma, beta = (tf.cast(weight.value, tf.float32) for weight in (self.gamma, self.beta))
        return layer_normalization(x, gamma, beta, self.epsilon)


class SeededDropout(Layer):
    """Base of dropout layers: a rate, and a number by which each layer draws from a stream of its own."""

    def __init__(self, rate: float, name: str) -> None:
        """Take the rate, and a name that no other dropout of the model has: the name chooses the stream."""
        super().__init__(name=name.replace("/", "_"))
        self.rate = rate
        self.number = zlib.crc32(name.encode()) >> 1

    def own_seed(self, seed: tf.Tensor) -> tf.Tensor:
        """Return this layer's seed from the seed of the step: int64 [2] both."""
        with on_host():
            return seed + tf.constant([self.number << 32, 0], tf.int64)  # the run's seed has the lower 32 bits


class Dropout(SeededDropout):
    """Sets a share of its input to zero in training (Srivastava et al. 2014).

    The layer keeps no state. The dropped elements are a function of the run's seed, the step, the layer's name and the
    number of elements, so a resumed run drops the same ones. With padding removed, [N, D], it drops other elements
    than on padded rows, [B, L, D], at the same rate.
    """

    def call(self, x: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Return x with dropout by a seed, int64 [2] (run, step); x itself without a seed."""
        if seed is None or self.rate == 0:
            return x
        return dropout(x, self.rate, self.own_seed(seed))


class WordDropout(SeededDropout):
    """Replaces a share of the words by unk in training (Sennrich and Zhang 2019, section 3.2).

    The model learns to translate around unknown words and depends less on its own mistakes earlier in a translation.
    """

    def call(self, ids: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Return ids, int32 of any shape, with word dropout by a seed, int64 [2]; unchanged without a seed."""
        if seed is None or self.rate == 0:
            return ids
        random = tf.random.stateless_uniform(tf.shape(ids), self.own_seed(seed))
        return tf.where((ids >= FIRST_WORD) & (random < self.rate), UNK, ids)
