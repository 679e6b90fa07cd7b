"""Basic layers: linear, layer norm, dropout, embeddings, position embeddings; how layers make their weights.

Shapes: B batch, L length of either side, D model, V vocabulary, N real tokens.
"""

import math
import zlib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from nmt.models.layers.ops import Projection, dropout, layer_normalization, linear, sizes
from nmt.models.layers.positions import BASE, angle_rates
from nmt.runtime import keras, on_host, tf
from nmt.tokenizers.base import FIRST_WORD, UNK


def sinusoids(positions: tf.Tensor, d_model: int, base: float = BASE) -> tf.Tensor:
    """Return the sinusoidal encoding of integers of any shape [...]: float32 [..., D]."""
    angles = tf.cast(positions, tf.float32)[..., tf.newaxis] * angle_rates(d_model, base)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
    return tf.reshape(pairs, [*sizes(positions), d_model])


WEIGHTS_LEFT: ContextVar[float] = ContextVar("weights_left", default=math.inf)
"""Number of weights that layers may still make: those of a model that does not fit its file stop before memory ends."""


class WeightLimitError(Exception):
    """A layer would make more weights than are left."""


class Layer(keras.layers.Layer):
    """A Keras layer, called without most of what Keras does around ``call``.

    Keras searches every argument for masks, dtypes to cast and shapes to build from; for a short sentence that takes
    longer than the arithmetic. Here tensors arrive in the right dtype, and a mask is an ordinary argument.
    """

    @tf.autograph.experimental.do_not_convert  # nothing in a layer for autograph to convert; as Keras has it
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the weights if there are none yet, and return what ``call`` returns."""
        if not self.built:
            self.build(args[0].shape)
        with tf.name_scope(self.name):
            return self.call(*args, **kwargs)

    def add_weight(self, *, shape: tuple[int, ...], **kwargs: Any) -> keras.Variable:
        """Make a weight, if it is among the ``WEIGHTS_LEFT``."""
        WEIGHTS_LEFT.set(WEIGHTS_LEFT.get() - math.prod(shape))
        if WEIGHTS_LEFT.get() < 0:
            raise WeightLimitError
        return super().add_weight(shape=shape, **kwargs)

    def cast(self, weight: keras.Variable) -> tf.Tensor:
        """Return a weight in the compute precision."""
        return tf.cast(weight.value, self.compute_dtype)


def make_weights(
    layer: keras.layers.Layer, width: int, initialize: Callable[[keras.layers.Layer], None] = lambda layer: None
) -> None:
    """Make the weights of a layer and of those in it, in the order in which they were set, unless they are made.

    Keras makes weights at the first call, after tracing every layer for shapes that are known before; that takes
    seconds.

    Args:
        layer: the layer.
        width: input width of layers that name none.
        initialize: called with each layer that has weights, to replace its initializers.
    """
    if layer.built:  # it serves twice, or has no weights
        return
    if isinstance(layer, Composite):
        with keras.name_scope(layer.name):
            for part in layer._flatten_layers(recursive=False, include_self=False):
                make_weights(part, width, initialize)
        layer.built = True
        return
    initialize(layer)
    layer.build((None, width))


def small_values() -> keras.initializers.Initializer:
    """Return a normal initializer of deviation 0.02 for matrices of any width (Devlin et al. 2019)."""
    return keras.initializers.RandomNormal(stddev=0.02)


class TokenEmbedding(Layer):
    """A vector for each id; the same matrix can serve as output layer (Vaswani et al. 2017, section 3.4)."""

    def __init__(self, vocabulary: int, d_model: int, *, scaled: bool, biased: bool = False, **kwargs: Any) -> None:
        """Take V, D, whether vectors are multiplied by sqrt(D), and whether the output layer has a bias."""
        super().__init__(**kwargs)
        self.vocabulary, self.biased = vocabulary, biased
        self.d_model = d_model
        self.factor = math.sqrt(d_model) if scaled else 1.0
        # Unit variance of scaled vectors and of tied logits.
        self.kernel_initializer = keras.initializers.RandomNormal(stddev=d_model**-0.5)

    def build(self, input_shape: Any) -> None:
        """Make the matrix [V, D], and a bias [V] if the output layer has one."""
        shape = (self.vocabulary, self.d_model)
        self.matrix = self.add_weight(name="matrix", shape=shape, initializer=self.kernel_initializer)
        if self.biased:
            self.bias = self.add_weight(name="bias", shape=shape[:1], initializer="zeros")

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """[...] -> [..., D]."""
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
        """[...] -> [..., D]."""
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
        """Take the number of positions and D."""
        super().__init__(**kwargs)
        self.max_positions = max_positions
        self.d_model = d_model

    def build(self, input_shape: Any) -> None:
        """Make the matrix [max_positions, D]."""
        shape = (self.max_positions, self.d_model)
        self.matrix = self.add_weight(name="matrix", shape=shape, initializer=small_values())

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to tokens [N, D] at positions [N]; shaped as x."""
        return x + tf.gather(tf.cast(self.matrix, x.dtype), positions)


class NoPositions(Layer):
    """Adds nothing: for models whose attention knows the positions."""

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Return x."""
        return x


class Composite(Layer):
    """A layer made of layers, with no weights of its own."""

    def build(self, *shapes: Any, **named_shapes: Any) -> None:
        """Make no weights: each inner layer makes its own."""


class Linear(Layer):
    """x W + b, with the weight names and initial values of Keras's Dense."""

    def __init__(self, units: int, width: int | None = None, **kwargs: Any) -> None:
        """Take the width of the output, and that of the input; None: what ``build`` is given."""
        super().__init__(**kwargs)
        self.units, self.width = units, width
        self.kernel_initializer = keras.initializers.GlorotUniform()

    def build(self, input_shape: Any) -> None:
        """Make the kernel, Glorot uniform (2010) unless the model sets another initializer, and a zero bias."""
        shape = (self.width or input_shape[-1], self.units)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=self.kernel_initializer)
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x: tf.Tensor, factor: float = 1.0) -> tf.Tensor:
        """Return factor x W + b: [..., D] -> [..., units]."""
        return joint_linear(x, [self], self.compute_dtype, factor)

    def projection(self) -> Projection:
        """Return matrix and bias as output layer."""
        return Projection(self.cast(self.kernel), self.cast(self.bias), transposed=False)


def joint_linear(x: tf.Tensor, layers: list[Linear], dtype: str, factor: float = 1.0) -> tf.Tensor:
    """Apply several linear layers to one input as one matrix product: [..., D] -> [..., sum of their units].

    ``factor`` scales the kernels instead of x, before they are rounded to ``dtype``: they have fewer elements.
    """
    for layer in layers:
        if not layer.built:
            layer.build(x.shape)
    kernels = [layer.kernel.value if factor == 1 else layer.kernel.value * factor for layer in layers]
    kernels = [tf.cast(kernel, dtype) for kernel in kernels]
    biases = [tf.cast(layer.bias.value, dtype) for layer in layers]
    if len(layers) == 1:
        return linear(x, kernels[0], biases[0])
    return linear(x, tf.concat(kernels, axis=1), tf.concat(biases, axis=0))


class LayerNormalization(Layer):
    """Normalizes each vector to mean 0 and variance 1, then scales and shifts it (Ba et al. 2016)."""

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        """Take what is added to the variance."""
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Make scale and shift [D]: float32 in training, whatever the compute precision."""
        width = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=width, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=width, initializer="zeros", autocast=False)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """[..., D] -> [..., D]."""
        gamma, beta = (tf.cast(weight.value, tf.float32) for weight in (self.gamma, self.beta))
        return layer_normalization(x, gamma, beta, self.epsilon)


class SeededDropout(Layer):
    """Base of dropout layers: a rate, and a seed of its own for each layer."""

    def __init__(self, rate: float, name: str) -> None:
        """Take the rate, and a name that is unique in the model."""
        super().__init__(name=name.replace("/", "_"))
        self.built = True  # it has no weights
        self.rate = rate
        self.number = zlib.crc32(name.encode()) >> 1

    def own_seed(self, seed: tf.Tensor) -> tf.Tensor:
        """Return this layer's seed from the seed of the step: int64 [2] both."""
        with on_host():
            return seed + tf.constant([self.number << 32, 0], tf.int64)  # the run's seed has the lower 32 bits


class Dropout(SeededDropout):
    """Sets a share of its input to zero in training (Srivastava et al. 2014).

    Keeps no state: the dropped elements are a function of the run's seed, the step, the layer's name and the number
    of elements, so a resumed run draws the same numbers. With padding removed, [N, D], it drops other elements than on
    padded rows, [B, L, D], at the same rate.
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
