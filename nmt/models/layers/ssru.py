"""The simpler simple recurrent unit (SSRU), in place of self-attention in a decoder.

Source: Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation".

Shapes: B batch, T target length, K beams, D model, N real tokens or live beams.
"""

from collections.abc import Callable
from typing import Any

from nmt.models.layers.layer import Blocks, Layer
from nmt.models.layers.ops import linear
from nmt.models.layers.unpadding import TokenLayout
from nmt.runtime import keras, tf


class SSRU(Layer):
    """Recurrence f_t = sigmoid(x_t W_f + b_f), c_t = f_t c_{t-1} + (1 - f_t) (x_t W), with the output max(0, c_t).

    The matrix products do not depend on earlier tokens, so a whole sentence needs two, and only the elementwise part
    goes from token to token. The recurrence is computed in float32.
    """

    def __init__(self, d_model: int, **kwargs: Any) -> None:
        """Take D."""
        super().__init__(**kwargs)
        self.declare("kernel", (d_model, d_model), keras.initializers.GlorotUniform(), Blocks())
        self.declare("forget_kernel", (d_model, d_model), keras.initializers.GlorotUniform(), Blocks())
        self.declare("forget_bias", (d_model,), "zeros")

    def call(
        self, x: tf.Tensor, state: tf.Tensor | None = None, layout: TokenLayout | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Read whole targets, or with a state one token of each beam.

        Args:
            x: target positions, [B, T, D], or with a layout [N, D]; with a state, a token of each beam, [N, D].
            state: c of each beam after the earlier tokens: float32 [B, K, D].
            layout: layout of x; None: padded rows.

        Returns:
            The output, shaped as x, and c at each position, float32 [B, T, D]; with a state, the new state.
        """
        products = linear(x, tf.concat([self.cast(self.kernel), self.cast(self.forget_kernel)], axis=1), None)
        if layout is not None:
            products = layout.restore(products)
        terms, gates = tf.split(tf.cast(products, tf.float32), 2, axis=-1)
        forget = tf.sigmoid(gates + tf.cast(self.forget_bias.value, tf.float32))
        terms *= 1 - forget
        cells = linear_recurrence(forget, terms) if state is None else forget * state + terms
        output = tf.cast(tf.nn.relu(cells), self.compute_dtype)
        return (output if layout is None else layout.flatten(output)), cells


def linear_recurrence(factors: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
    """Return c with c_t = factors_t c_{t-1} + terms_t and c_0 = 0, along the second axis: [B, T, D] each.

    The gradient with respect to terms is such a recurrence, too, from the last position to the first.
    """
    by_step = [1, 0, 2]

    @tf.custom_gradient
    def run(factors: tf.Tensor, terms: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, tf.Tensor]]]:
        cells = _loop(factors, terms)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            following = tf.concat([factors[1:], tf.zeros_like(factors[:1])], axis=0)
            of_terms = tf.reverse(_loop(tf.reverse(following, [0]), tf.reverse(upstream, [0])), [0])
            before = tf.concat([tf.zeros_like(cells[:1]), cells[:-1]], axis=0)
            return of_terms * before, of_terms

        return cells, gradient

    return tf.transpose(run(tf.transpose(factors, by_step), tf.transpose(terms, by_step)), by_step)


def _loop(factors: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
    """Return the recurrence along the first axis: [T, B, D] each."""
    length, step_shape = tf.shape(factors)[0], factors.shape[1:]

    def array() -> tf.TensorArray:
        return tf.TensorArray(factors.dtype, length, element_shape=step_shape)

    read_factors, read_terms = array().unstack(factors), array().unstack(terms)

    def body(t: tf.Tensor, cell: tf.Tensor, cells: tf.TensorArray) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        cell = read_factors.read(t) * cell + read_terms.read(t)
        return t + 1, cell, cells.write(t, cell)

    start = tf.constant(0), tf.zeros_like(terms[0]), array()
    return tf.while_loop(lambda t, *_: t < length, body, start)[2].stack()
