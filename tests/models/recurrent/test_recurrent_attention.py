"""Attention: against the Keras layers, against NumPy, and against itself where two forms are equal."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import RecurrentConfig
from nmt.models.layers.layer import make_weights
from nmt.models.recurrent.attention import Attention
from nmt.models.recurrent.scan import StepOps
from nmt.runtime import keras, tf

B, S, Q, N = 3, 7, 4, 6
LENGTHS = np.array([7, 3, 5])
SCORES = ["additive", "concat", "dot", "general", "scaled-dot"]
H = np.random.default_rng(1).normal(size=(B, S, N)).astype(np.float32)
STATES = np.random.default_rng(2).normal(size=(B, Q, N)).astype(np.float32)


def build(**settings: Any) -> Attention:
    keras.utils.set_random_seed(3)
    attention = Attention(RecurrentConfig(width=N, **settings))
    make_weights(attention)
    return attention


def attend(attention: Attention, states: np.ndarray = STATES, lengths: np.ndarray = LENGTHS) -> tuple[Any, Any]:
    """Return contexts [B, Q, N] and weights [B, Q, S]."""
    source = attention.source(tf.constant(H), tf.constant(lengths, tf.int32))
    ops = StepOps(attention.tensors(source))
    rows = tf.reshape(tf.constant(states), [-1, N])
    context, weights = attention(ops, rows, tf.range(states.shape[1]), S, source.lengths)
    return context.numpy().reshape(*states.shape), weights.numpy().reshape(*states.shape[:2], S)


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    scores = np.where(allowed, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def real(lengths: np.ndarray = LENGTHS) -> np.ndarray:
    return (np.arange(S) < lengths[:, None])[:, None, :]


def test_dot_with_a_trained_scale_is_keras_attention() -> None:
    attention = build(attention="scaled-dot")
    attention.scale.assign(0.7)
    layer = keras.layers.Attention(use_scale=True)
    mask = tf.constant(real()[:, 0])
    layer([tf.constant(STATES), tf.constant(H)])
    layer.set_weights([np.float32(0.7)])
    theirs, scores = layer([tf.constant(STATES), tf.constant(H)], mask=[None, mask], return_attention_scores=True)
    context, weights = attend(attention)
    np.testing.assert_allclose(weights, scores, atol=1e-6)
    np.testing.assert_allclose(context, theirs, atol=1e-6)


@pytest.mark.parametrize("kind", ["additive", "concat"])
def test_additive_is_keras_additive_attention_of_projected_states_and_annotations(kind: str) -> None:
    attention = build(attention=kind, attention_width=5)
    query = STATES @ attention.query_kernel.numpy()
    keys = H @ attention.key_kernel.numpy()
    layer = keras.layers.AdditiveAttention()
    mask = tf.constant(real()[:, 0])
    inputs = [tf.constant(query), tf.constant(H[..., :5]), tf.constant(keys)]
    layer(inputs)
    layer.set_weights([attention.score_kernel.numpy()[:, 0]])
    _, scores = layer(inputs, mask=[None, mask], return_attention_scores=True)
    np.testing.assert_allclose(attend(attention)[1], scores, atol=1e-6)


def test_general_with_the_identity_is_dot() -> None:
    general = build(attention="general")
    general.key_kernel.assign(np.eye(N))
    for ours, theirs in zip(attend(general), attend(build(attention="dot")), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("kind", SCORES)
def test_a_window_over_the_whole_sentence_is_global(kind: str) -> None:
    local = build(attention=kind, window="local-m", window_half_width=S)
    for ours, theirs in zip(attend(local), attend(build(attention=kind)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_monotonic_window_goes_along_and_stops_at_the_end() -> None:
    attention = build(attention="dot", window="local-m", window_half_width=1)
    weights = attend(attention)[1]
    for sentence, length in enumerate(LENGTHS):
        for t in range(Q):
            centre = min(t, length - 1)
            assert np.flatnonzero(weights[sentence, t]).tolist() == [
                i for i in range(length) if abs(i - centre) <= 1
            ], (sentence, t)


def test_a_predictive_window_is_the_papers_equations() -> None:
    attention = build(attention="general", window="local-p", window_half_width=2)
    inner = np.tanh(STATES @ attention.position_kernel.numpy()) @ attention.position_score_kernel.numpy()
    attention.position_score_kernel.assign(4 * attention.position_score_kernel)
    p = LENGTHS[:, None] / (1 + np.exp(-(inner[..., 0] * 4)))
    places = np.arange(S)
    allowed = real() & (np.abs(places - np.floor(p)[..., None]) <= 2)
    scores = np.einsum("bqn,mn,bsm->bqs", STATES, attention.key_kernel.numpy(), H)
    expected = softmax(scores, allowed) * np.exp(-((places - p[..., None]) ** 2) / (2 * (2 / 2) ** 2))
    context, weights = attend(attention)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(context, weights @ H, atol=1e-5)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(SCORES), st.sampled_from(["global", "local-m", "local-p"]), st.integers(1, 8),
    st.lists(st.integers(1, S), min_size=B, max_size=B), st.floats(0.1, 20),
)  # fmt: skip
def test_weights_sum_to_one_over_real_tokens(
    kind: str, window: str, half_width: int, lengths: list[int], size: float
) -> None:
    attention = build(attention=kind, window=window, window_half_width=half_width)
    _, weights = attend(attention, STATES * np.float32(size), np.array(lengths))
    sums = weights.sum(axis=-1)
    assert (weights >= 0).all() and not weights[~np.broadcast_to(real(np.array(lengths)), weights.shape)].any()
    if window == "local-p":
        assert (sums <= 1 + 1e-5).all() and (sums > 0).all()
    else:
        np.testing.assert_allclose(sums, 1, atol=1e-5)
