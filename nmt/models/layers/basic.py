"""What every architecture is made of: linear layers, normalization, dropout, embeddings, feed-forward, residual frames.

Shapes: B batch, L length of either side, D model, F feed-forward, V vocabulary, N tokens that count.
"""

import math
import zlib
from typing import Any, Literal

from nmt.models.layers.ops import Projection, dropout, dropout_scale, layer_normalization, linear, relu_dropout, sizes
from nmt.models.layers.positions import angle_rates
from nmt.runtime import keras, tf
from nmt.tokenizers.base import FIRST_WORD, UNK


def sinusoids(positions: tf.Tensor, d_model: int) -> tf.Tensor:
    """Return the sinusoidal encoding of integers of any shape [...]: float32 [..., D]."""
    angles = tf.cast(positions, tf.float32)[..., tf.newaxis] * angle_rates(d_model)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
    return tf.reshape(pairs, [*sizes(positions), d_model])


class Layer(keras.layers.Layer):
    """A Keras layer, called without most of what Keras does around ``call``.

    Keras looks at every argument for masks to hand on, types to convert and shapes to build from, which for a short
    sentence takes longer than the arithmetic. Here tensors come in the right type, and a mask is an argument like any
    other.
    """

    @tf.autograph.experimental.do_not_convert  # nothing in a layer for autograph to convert; as Keras has it
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what ``call`` does, on weights that are made at the first time if not before."""
        if not self.built:
            self.build(args[0].shape)
        with tf.name_scope(self.name):
            return self.call(*args, **kwargs)


def small_values() -> keras.initializers.Initializer:
    """Return an initializer whose values do not depend on the width of what they are for (Devlin et al. 2019)."""
    return keras.initializers.RandomNormal(stddev=0.02)


class TokenEmbedding(Layer):
    """A vector for each id; the same matrix can serve as output layer (Vaswani et al. 2017, section 3.4)."""

    def __init__(self, vocabulary: int, d_model: int, *, scaled: bool, **kwargs: Any) -> None:
        """Take V, D and whether vectors are multiplied by sqrt(D)."""
        super().__init__(**kwargs)
        self.vocabulary = vocabulary
        self.d_model = d_model
        self.factor = math.sqrt(d_model) if scaled else 1.0
        # Gives scaled vectors and tied logits unit variance.
        self.kernel_initializer = keras.initializers.RandomNormal(stddev=d_model**-0.5)

    def build(self, input_shape: Any) -> None:
        """Make the matrix [V, D]."""
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.vocabulary, self.d_model),
            initializer=self.kernel_initializer,
        )

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """[...] -> [..., D]."""
        return tf.gather(tf.cast(self.matrix, self.compute_dtype), ids) * self.factor

    def projection(self) -> Projection:
        """Return the matrix as output layer."""
        return Projection(tf.cast(self.matrix, self.compute_dtype), None, transposed=True)


class SinusoidalTokenEmbedding(Layer):
    """A fixed vector for each id: the encoding of the id as if it were a position. Nothing is trained."""

    def __init__(self, d_model: int, *, scaled: bool, **kwargs: Any) -> None:
        """Take D and whether vectors are multiplied by sqrt(D)."""
        super().__init__(**kwargs)
        self.d_model = d_model
        self.factor = math.sqrt(d_model) if scaled else 1.0

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """[...] -> [..., D]."""
        return tf.cast(sinusoids(ids, self.d_model) * self.factor, self.compute_dtype)


class SinusoidalPositions(Layer):
    """Adds the sinusoidal encoding of each position, for sentences of any length."""

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to packed x [N, D] at positions [N]; shaped as x."""
        return x + tf.cast(sinusoids(positions, x.shape[-1]), x.dtype)


class LearnedPositions(Layer):
    """Adds a trained vector for each position, of which there are ``max_positions``."""

    def __init__(self, max_positions: int, d_model: int, **kwargs: Any) -> None:
        """Take the number of positions and D."""
        super().__init__(**kwargs)
        self.max_positions = max_positions
        self.d_model = d_model

    def build(self, input_shape: Any) -> None:
        """Make the matrix [max_positions, D]."""
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.max_positions, self.d_model),
            initializer=small_values(),
        )

    def call(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Add to x [B, L, D] at positions [L], or to packed x [N, D] at positions [N]; shaped as x."""
        return x + tf.gather(tf.cast(self.matrix, x.dtype), positions)


class Composite(Layer):
    """A layer made of layers, which make their weights when they are first used."""

    def build(self, *shapes: Any, **named_shapes: Any) -> None:
        """Make no weights of its own."""


class Linear(Layer):
    """x W + b, with the names, the initial values and the weights of Keras's Dense."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        """Take the width of the output."""
        super().__init__(**kwargs)
        self.units = units
        self.kernel_initializer = keras.initializers.GlorotUniform()

    def build(self, input_shape: Any) -> None:
        """Make the matrix, Glorot's uniform (2010) unless the model says otherwise, and the bias, zero."""
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], self.units), initializer=self.kernel_initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x: tf.Tensor, factor: float = 1.0) -> tf.Tensor:
        """Return factor x W + b: [..., D] -> [..., units]."""
        return joint_linear(x, [self], self.compute_dtype, factor)

    def projection(self) -> Projection:
        """Return matrix and bias as output layer."""
        kernel, bias = (tf.cast(weight.value, self.compute_dtype) for weight in (self.kernel, self.bias))
        return Projection(kernel, bias, transposed=False)


def joint_linear(x: tf.Tensor, layers: list[Linear], dtype: str, factor: float = 1.0) -> tf.Tensor:
    """Apply several linear layers to one input as one matrix product: [..., D] -> [..., sum of their units].

    A factor on the input is put on the matrices instead, before they are rounded to ``dtype``.
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
    """Brings each vector to mean 0 and variance 1, then scales and shifts it (Ba et al. 2016)."""

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        """Take what is added to the variance."""
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Make scale and shift [D], in training float32 whatever the precision of the rest."""
        width = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=width, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=width, initializer="zeros", autocast=False)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """[..., D] -> [..., D]."""
        gamma, beta = (tf.cast(weight.value, tf.float32) for weight in (self.gamma, self.beta))  # rounded or not
        return layer_normalization(x, gamma, beta, self.epsilon)


class SeededDropout(Layer):
    """What the kinds of dropout share: a rate, and random numbers of their own."""

    def __init__(self, rate: float, name: str) -> None:
        """Take the share and a name that no other dropout of the model has."""
        super().__init__(name=name.replace("/", "_"))
        self.rate = rate
        self.number = zlib.crc32(name.encode()) >> 1

    def own_seed(self, seed: tf.Tensor) -> tf.Tensor:
        """Return the seed of this layer's random numbers from that of all layers': int64 [2] both."""
        return seed + tf.constant([self.number << 32, 0], tf.int64)  # the run's seed fills the lower half


class Dropout(SeededDropout):
    """Sets a share of its input to zero in training (Srivastava et al. 2014).

    Keeps no state: which elements fall is a function of the run's seed, the step and the layer's name, so a run that
    goes on from any step draws what it would have drawn. It is a function of the number of elements too: on packed
    tokens [N, D] other elements fall than on padded rows [B, L, D], though as many.
    """

    def call(self, x: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Shaped as x; x itself without a seed, int64 [2]: the run's and the step."""
        if seed is None or self.rate == 0:
            return x
        return dropout(x, self.rate, self.own_seed(seed))


class WordDropout(SeededDropout):
    """Replaces a share of the words by unk in training (Sennrich and Zhang 2019, section 3.2).

    The model learns to make do with the rest: it translates around words that it does not know, and is less thrown by
    mistakes of its own in the translation so far.
    """

    def call(self, ids: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Int32 ids of any shape to the same; unchanged without a seed, int64 [2]: the run's and the step."""
        if seed is None or self.rate == 0:
            return ids
        random = tf.random.stateless_uniform(tf.shape(ids), self.own_seed(seed))
        return tf.where((ids >= FIRST_WORD) & (random < self.rate), UNK, ids)


class FeedForward(Composite):
    """max(0, x W1 + b1) W2 + b2, at each position alone (Vaswani et al. 2017, equation 2).

    Training may set a share of max(0, x W1 + b1) to zero.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: Dropout | None = None, **kwargs: Any) -> None:
        """Take D, F and the dropout on the inner activation, if any."""
        super().__init__(**kwargs)
        self.inner = Linear(d_ff, name="inner")
        self.outer = Linear(d_model, name="outer")
        self.dropout = dropout

    def call(self, x: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """[..., D] -> [..., D]."""
        inner = self.inner(x)
        if self.dropout is None or self.dropout.rate == 0 or dropout_seed is None:
            return self.outer(tf.nn.relu(inner))
        rate = self.dropout.rate
        return self.outer(relu_dropout(inner, rate, self.dropout.own_seed(dropout_seed)), dropout_scale(rate))


class Residual(Composite):
    """The frame around a block: dropout, residual sum and layer norm, after the block or before it.

    Post-norm (Vaswani et al. 2017, section 3.1): norm(x + dropout(block(x))). Pre-norm (Xiong et al. 2020):
    x + dropout(block(norm(x))).
    """

    def __init__(
        self, norm: LayerNormalization, dropout: Dropout, placement: Literal["post", "pre"], **kwargs: Any
    ) -> None:
        """Take the layer norm (two frames may share one), the dropout and where the norm stands."""
        super().__init__(**kwargs)
        self.norm = norm
        self.dropout = dropout
        self.placement = placement

    def before(self, x: tf.Tensor) -> tf.Tensor:
        """Return what the block reads of x [..., D]."""
        return self.norm(x) if self.placement == "pre" else x

    def call(self, x: tf.Tensor, output: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """Join the block's output to x: [..., D] each and after."""
        total = x + self.dropout(output, dropout_seed)
        return self.norm(total) if self.placement == "post" else total
