"""Masks to the letter, attention against NumPy and Keras, packed rows, dropout of the weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras_twins import copy_attention

from nmt.models.layers.attention import (
    MASKED_SCORE,
    MultiHeadAttention,
    causal_mask,
    normalize,
    padding_mask,
    scaled_dot_product_attention,
)
from nmt.models.layers.basic import Dropout
from nmt.models.layers.layer import make_weights
from nmt.models.layers.unpadding import Unpadding
from nmt.runtime import keras, tf

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SIZES = st.integers(1, 4)


def normal(seed: int, *shape: int) -> np.ndarray:
    """Return standard normal numbers, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def some_mask(seed: int, *shape: int) -> np.ndarray:
    """Return a random mask in which every row has a key to look at."""
    mask = np.random.default_rng(seed).random(shape) < 0.5
    mask[..., -1] |= ~mask.any(axis=-1)
    return mask


# --- norms


@given(SIZES, SIZES, SIZES, st.integers(1, 6), st.sampled_from([1e-6, 1e-2]))
def test_normalized_keys_and_queries_equal_keras(
    batch: int, heads: int, length: int, size: int, epsilon: float
) -> None:
    x = normal(1, batch, heads, length, size)
    norm = keras.layers.RMSNormalization(epsilon=epsilon)
    np.testing.assert_allclose(normalize(x, [3], epsilon), norm(x), **CLOSE)
    joined = x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)
    over_all_heads = keras.layers.RMSNormalization(epsilon=epsilon)(joined)
    expected = np.reshape(over_all_heads, (batch, length, heads, size)).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(normalize(x, [1, 3], epsilon), expected, **CLOSE)


def test_attention_with_a_norm_does_not_depend_on_the_lengths_of_queries_and_keys() -> None:
    attention = MultiHeadAttention(heads=2, head_size=4, d_model=8, norm_epsilon=1e-12)
    make_weights(attention)
    x, source = tf.constant(normal(1, 2, 3, 8)), tf.constant(normal(2, 2, 5, 8))
    query, keys_values = attention.queries(x), attention.keys_values(source)
    longer = attention.keys_values(3 * source)  # without biases, keys are longer and values are too
    np.testing.assert_allclose(attention.queries(3 * x), query, **CLOSE)
    np.testing.assert_allclose(longer.keys, keys_values.keys, **CLOSE)
    np.testing.assert_allclose(longer.values, 3 * keys_values.values, **CLOSE)


# --- masks


def test_padding_mask_lets_through_all_but_padding() -> None:
    ids = tf.constant([[2, 7, 3, 0], [2, 1, 5, 3], [0, 0, 0, 0]])
    assert padding_mask(ids).numpy().tolist() == (ids != 0)[:, None, None].numpy().tolist()


def test_look_ahead_mask_lets_through_positions_up_to_the_query() -> None:
    assert causal_mask(4)[0, 0].numpy().tolist() == np.tri(4, dtype=bool).tolist()


# --- scaled dot-product attention


def attention_in_numpy(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    scores = np.einsum("bhtd,bhkd->bhtk", query.astype(np.float64), key.astype(np.float64)) * scale
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhtk,bhkd->bhtd", weights, value), weights


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, SIZES, SIZES, SIZES, st.integers(0, 10_000), st.floats(0.1, 2))
def test_attention_equals_numpy(b: int, h: int, t: int, k: int, d: int, seed: int, scale: float) -> None:
    query, key, value = normal(seed, b, h, t, d), normal(seed + 1, b, h, k, d), normal(seed + 2, b, h, k, d)
    mask = some_mask(seed, b, 1, t, k)
    context, weights = scaled_dot_product_attention(query, key, value, mask, scale)
    expected_context, expected_weights = attention_in_numpy(query, key, value, mask, scale)
    np.testing.assert_allclose(context, expected_context, **CLOSE)
    np.testing.assert_allclose(weights, expected_weights, **CLOSE)
    assert not weights.numpy()[~np.broadcast_to(mask, weights.shape)].any()


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_a_masked_weight_is_exactly_zero_beside_very_low_scores(dtype: tf.DType) -> None:
    assert np.isfinite(tf.cast(MASKED_SCORE, dtype).numpy().astype(np.float32))
    query, key = tf.constant([[[[100.0]]]], dtype), tf.constant([[[[-100.0], [5.0], [-100.0]]]], dtype)
    _, weights = scaled_dot_product_attention(query, key, key, tf.constant([True, False, True]), 1.0)
    assert tf.cast(weights, tf.float32).numpy().ravel().tolist() == [0.5, 0.0, 0.5]


def test_a_row_that_may_look_nowhere_stays_finite() -> None:
    query, key, value = (normal(seed, 1, 1, 2, 4) for seed in range(3))
    context, weights = scaled_dot_product_attention(query, key, value, np.zeros((1, 1, 2, 2), bool), 1.0)
    assert np.isfinite(context).all()
    np.testing.assert_allclose(tf.reduce_sum(weights, axis=-1), np.ones((1, 1, 2)), **CLOSE)


# --- several heads


def pair_of_attentions(
    heads: int, head_size: int, d_model: int
) -> tuple[MultiHeadAttention, keras.layers.MultiHeadAttention]:
    """Return our attention and the one of Keras with the same random weights."""
    ours = MultiHeadAttention(heads, head_size, d_model)
    make_weights(ours)
    for number, weight in enumerate(ours.weights):
        weight.assign(0.5 * normal(number, *weight.shape))
    theirs = keras.layers.MultiHeadAttention(heads, head_size)
    theirs.build((1, 1, d_model), (1, 1, d_model))
    copy_attention(ours, theirs)
    return ours, theirs


@pytest.mark.parametrize(("heads", "head_size"), [(2, 4), (4, 2), (1, 8), (2, 3), (4, 5)])
@pytest.mark.parametrize("kind", ["cross", "self", "self, unmasked"])
def test_attention_of_heads_equals_that_of_keras(heads: int, head_size: int, kind: str) -> None:
    x, memory, ids = normal(1, 2, 4, 8), normal(2, 2, 4, 8), tf.constant([[5, 6, 3, 0], [5, 6, 7, 3]])
    source = memory if kind == "cross" else x
    mask = {"cross": padding_mask(ids)[:, 0], "self": some_mask(2, 2, 4, 4), "self, unmasked": None}[kind]
    ours, theirs = pair_of_attentions(heads, head_size, 8)
    outputs = ours(ours.queries(x), ours.keys_values(source), None if mask is None else mask[:, None])
    expected = theirs(x, source, attention_mask=mask, return_attention_scores=True)
    for ours_part, keras_part in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(ours_part, keras_part, **CLOSE)


# --- rows without their padding

IDS = tf.constant([[2, 5, 3, 0], [2, 3, 0, 0], [0, 0, 0, 0], [2, 5, 6, 3]])
PLACES = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [3, 0], [3, 1], [3, 2], [3, 3]]


def test_unpacking_puts_tokens_back_and_zeros_where_padding_was() -> None:
    unpadding, rows = Unpadding.of(IDS), normal(1, *IDS.shape, 3)
    tokens = unpadding.flatten(tf.constant(rows))
    np.testing.assert_array_equal(tokens, [rows[row, column] for row, column in PLACES])
    assert unpadding.positions.numpy().tolist() == [column for _, column in PLACES]
    unpacked = unpadding.restore(tokens)
    np.testing.assert_array_equal(unpacked, np.where(IDS[..., tf.newaxis] != 0, rows, 0))
    np.testing.assert_array_equal(unpadding.flatten(unpacked), tokens)


# --- dropout of the weights


def test_dropout_hides_a_share_of_the_weights_from_the_values_and_returns_them_whole() -> None:
    """With the identity as values, the context is the weights after dropout."""
    query, key = tf.constant(normal(1, 2, 3, 50, 4)), tf.constant(normal(2, 2, 3, 40, 4))
    value = tf.eye(40, batch_shape=[2, 3])
    dropout, seed = Dropout(0.25, "weights"), tf.constant([1, 1], tf.int64)
    used, weights = scaled_dot_product_attention(query, key, value, None, 0.5, lambda part: dropout(part, seed))
    _, plain = scaled_dot_product_attention(query, key, value, None, 0.5)
    np.testing.assert_array_equal(weights, plain)
    kept = used.numpy() != 0
    np.testing.assert_allclose(used, np.where(kept, plain / 0.75, 0), **CLOSE)
    assert np.mean(kept) == pytest.approx(0.75, abs=0.02)
