"""The scan: the outputs and gradients of a loop that TensorFlow differentiates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nmt.models.recurrent.scan import StepOps, Tensors, scan
from nmt.runtime import tf

T, B, D, F, S = 5, 3, 4, 6, 7


def unrolled(step: Any, inputs: Sequence[tf.Tensor], state: Any, tensors: Tensors) -> list[tf.Tensor]:
    """The scan as a Python loop."""
    ops, by_step = StepOps(tensors), []
    for t in range(inputs[0].shape[0]):
        state, outputs = step(ops, tf.constant(t), [part[t] for part in inputs], state)
        by_step.append(outputs)
    return [tf.stack(parts) for parts in zip(*by_step, strict=True)]


def step(ops: StepOps, t: tf.Tensor, inputs: Sequence[tf.Tensor], state: Any) -> tuple[Any, list[tf.Tensor]]:
    """Take a step with all operations, among them a matrix for each sentence and a result without gradient."""
    h, (c,) = state
    wide = ops.tanh(inputs[0] + ops.product("wide", h) + ops.tensors["bias"])
    weights = ops.softmax(ops.product("scores", wide))
    unused = ops.sigmoid(wide)
    c = c + ops.sigmoid(ops.product("narrow", wide)) * tf.cast(t + 1, c.dtype)
    h = ops.tanh(ops.product("context", weights) + c * inputs[1])
    return (h, (c,)), [h, weights + 0 * tf.reduce_sum(tf.stop_gradient(unused))]


def arguments() -> tuple[list[tf.Tensor], Any, Tensors]:
    random = np.random.default_rng(1)

    def tensor(*shape: int) -> tf.Tensor:
        return tf.constant(random.normal(size=shape))

    matrices = {"wide": tensor(D, F), "scores": tensor(B, F, S), "narrow": tensor(F, D), "context": tensor(B, S, D)}
    return [tensor(T, B, F), tensor(T, B, D)], (tensor(B, D), (tensor(B, D),)), {**matrices, "bias": tensor(F)}


@pytest.mark.parametrize(("steps", "traced"), [(T, False), (T, True), (1, False)])
def test_outputs_and_gradients_are_those_of_an_unrolled_loop(steps: int, traced: bool) -> None:
    inputs, state, tensors = arguments()
    inputs = [part[:steps] for part in inputs]
    weights = [tf.constant(np.random.default_rng(2).normal(size=(steps, B, width))) for width in (D, S)]

    def run(loop: Any) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        flat = tf.nest.flatten([inputs, state, tensors])
        with tf.GradientTape() as tape:
            tape.watch(flat)
            outputs = loop(step, inputs, state, tensors)
            loss = sum(tf.reduce_sum(output * weight) for output, weight in zip(outputs, weights, strict=True))
        return outputs, tape.gradient(loss, flat)

    expected = run(unrolled)
    outputs = tf.function(run, autograph=False)(scan) if traced else run(scan)
    for ours, theirs in zip(tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
