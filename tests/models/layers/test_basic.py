"""Layers against NumPy, and the layers of encoder and decoder against the layers of keras_hub with the same weights."""

import keras_hub
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras_twins import copy_attention, normal

from nmt.config.schema import TransformerConfig
from nmt.models.build import build_model
from nmt.models.layers.attention import rotate
from nmt.models.layers.basic import (
    Dropout,
    LayerNormalization,
    WordDropout,
)
from nmt.models.layers.layer import make_weights
from nmt.models.transformer.blocks import DecoderLayer, EncoderLayer, FeedForward, SublayerConnection
from nmt.runtime import keras, tf

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
D_MODEL, D_FF, HEADS = 8, 12, 2
SOURCE = tf.constant([[5, 6, 7, 3, 0], [5, 3, 0, 0, 0], [4, 5, 6, 7, 3]])
TARGET = tf.constant([[2, 5, 6, 0], [2, 5, 6, 7], [2, 0, 0, 0]])


def randomise(part: keras.Layer, seed: int = 1) -> None:
    """Give every weight random values, also biases and norms, whose initial values hide mistakes."""
    random = np.random.default_rng(seed)
    for weight in part.weights:
        if np.issubdtype(np.dtype(weight.dtype), np.floating):  # and not the seeds of dropout
            weight.assign(random.normal(1 if weight.name == "gamma" else 0, 0.5, weight.shape))


# --- embeddings


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 6), st.floats(10, 1e5), st.integers(0, 50))
def test_rotary_positions_equal_keras_hub(length: int, pairs: int, base: float, start: int) -> None:
    heads = normal(2, 3, 2, length, 2 * pairs)  # [B, H, L, d]
    hub = keras_hub.layers.RotaryEmbedding(base, sequence_axis=2, feature_axis=3)
    ours = rotate(heads, start + tf.range(length), base)
    np.testing.assert_allclose(ours, hub(heads, start_index=start), rtol=1e-4, atol=1e-4)


# --- the blocks of a layer


def test_dropout_acts_on_the_block_alone_and_in_training_alone() -> None:
    connection = SublayerConnection(LayerNormalization(D_MODEL, 1e-6), Dropout(0.75, "block"), "pre")
    x, output = tf.fill([1, 20, D_MODEL], 10.0), tf.ones([1, 20, D_MODEL])
    make_weights(connection)
    assert set(np.unique(connection(x, output, tf.constant([1, 1], tf.int64)))) == {10, 14}  # kept ones make up
    np.testing.assert_array_equal(connection(x, output), x + output)


# --- the whole model against a stack of keras_hub's layers


def hub_layer(ours: EncoderLayer | DecoderLayer) -> keras.layers.Layer:
    """Return keras_hub's layer with our weights."""
    decodes = isinstance(ours, DecoderLayer)
    attention = ours.self_attention if decodes else ours.attention
    connection = ours.target_connection if decodes else ours.attention_connection
    kind = keras_hub.layers.TransformerDecoder if decodes else keras_hub.layers.TransformerEncoder
    hub = kind(
        ours.feed_forward.inner.units, attention.heads, layer_norm_epsilon=connection.norm.epsilon,
        normalize_first=connection.placement == "pre",
    )  # fmt: skip
    hub.build(*[(None, None, D_MODEL)] * (1 + decodes))
    copy_attention(attention, hub._self_attention_layer)
    hub._self_attention_layer_norm.set_weights(connection.norm.get_weights())
    if decodes:
        copy_attention(ours.cross_attention, hub._cross_attention_layer)
        hub._cross_attention_layer_norm.set_weights(ours.cross_attention_connection.norm.get_weights())
    hub._feedforward_intermediate_dense.set_weights(ours.feed_forward.inner.get_weights())
    hub._feedforward_output_dense.set_weights(ours.feed_forward.outer.get_weights())
    hub._feedforward_layer_norm.set_weights(ours.feed_forward_connection.norm.get_weights())
    return hub


@pytest.mark.parametrize(
    ("placement", "tie_embeddings", "positions"),
    [
        ("post", "output", "sinusoidal"),
        ("pre", "none", "sinusoidal"),
        ("post", "all", "learned"),
        ("pre", "output", "learned"),
    ],
)
def test_transformer_and_its_gradients_equal_a_stack_of_keras_hub_layers(
    placement: str, tie_embeddings: str, positions: str
) -> None:
    config = TransformerConfig(
        encoder_layers=2, decoder_layers=2, d_model=D_MODEL, d_ff=D_FF, heads=HEADS, norm_placement=placement,
        layer_norm_epsilon=1e-4, tie_embeddings=tie_embeddings, positions=positions, max_positions=6,
    )  # fmt: skip
    model = build_model(config, 9, 9)
    randomise(model)
    matrices, tokens = [model.source_embedding.matrix.value, model.target_embedding.matrix.value], TARGET != 0
    if tie_embeddings == "none":
        matrices += [weight.value for weight in model.output_layer.weights]

    def embedded(ids: tf.Tensor, matrix: tf.Variable, added: keras.Layer) -> tf.Tensor:
        x = tf.gather(matrix, ids) * D_MODEL**0.5
        if positions == "sinusoidal":
            return x + keras_hub.layers.SinePositionEncoding()(x)
        hub = keras_hub.layers.PositionEmbedding(config.max_positions)
        hub.build(x.shape)
        hub.position_embeddings.assign(added.matrix)
        return x + hub(x)

    def stack() -> tf.Tensor:
        source = embedded(SOURCE, matrices[0], model.source_positions)
        for layer in model.encoder_layers:
            source = hub_layer(layer)(source, padding_mask=SOURCE != 0)
        if placement == "pre":
            source = model.encoder_norm(source)
        x = embedded(TARGET, matrices[1], model.target_positions)
        for layer in model.decoder_layers:
            x = hub_layer(layer)(x, source, decoder_padding_mask=tokens, encoder_padding_mask=SOURCE != 0)
        if placement == "pre":
            x = model.decoder_norm(x)
        kernel, bias = matrices[2:] or (tf.transpose(matrices[1]), 0.0)
        return x @ kernel + bias

    results = []
    for call in (lambda: model(SOURCE, TARGET), stack):
        with tf.GradientTape() as tape:
            logits = call()[tokens]
            total = tf.reduce_sum(logits * normal(99, *logits.shape))
        results.append([logits, *map(tf.convert_to_tensor, tape.gradient(total, matrices))])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def test_word_dropout_turns_its_share_of_words_into_unk_and_leaves_the_special_ids() -> None:
    ids = tf.constant(np.tile(np.arange(8), (50, 40)))  # 0 pad, 1 unk, 2 bos, 3 eos, then words
    layer, seed = WordDropout(0.3, "words"), tf.constant([1, 1], tf.int64)
    dropped = layer(ids, seed).numpy()
    assert set(dropped[dropped != ids.numpy()]) == {1}
    np.testing.assert_array_equal(dropped[ids.numpy() < 4], ids.numpy()[ids.numpy() < 4])
    assert np.mean(dropped[ids.numpy() >= 4] == 1) == pytest.approx(0.3, abs=0.03)
    np.testing.assert_array_equal(layer(ids, seed), dropped)
    np.testing.assert_array_equal(layer(ids), ids)


def test_feed_forward_drops_a_share_of_its_inner_activation() -> None:
    """With the identity as outer matrix, the output is the inner activation after dropout."""
    width = 64
    layer = FeedForward(width, width, Dropout(0.25, "inner"))
    x, seed = tf.constant(normal(1, 100, width)), tf.constant([1, 1], tf.int64)
    make_weights(layer)
    layer.outer.kernel.assign(np.eye(width))
    plain, used = layer(x).numpy(), layer(x, seed).numpy()
    active = plain > 0
    kept = used != 0
    assert not kept[~active].any()
    np.testing.assert_allclose(used, np.where(kept, plain / 0.75, 0), **CLOSE)
    assert np.mean(kept[active]) == pytest.approx(0.75, abs=0.03)
