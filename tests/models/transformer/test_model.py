"""The contract of encode, decode and cache in every variant of the model, its parameters and its summary."""

import functools
import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from model_variants import BOOK, SMALL, TRANSFORMERS
from pytest import MonkeyPatch

from nmt.config.loading import find_config, load_config
from nmt.config.schema import TransformerConfig
from nmt.errors import DataError
from nmt.models.build import build_model, weight_shapes
from nmt.models.layers.basic import Dropout, LayerNormalization
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.models.transformer.blocks import TransformerState
from nmt.models.transformer.model import Transformer, TransformerEncoderOutput
from nmt.models.weights import Shapes, weights_of
from nmt.runtime import keras, tf
from nmt.tokenizers.base import PAD
from nmt.training.optimization.losses import cross_entropy

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SHALLOW = {"decoder_layers": 1}
VOCABULARY = 9
SOURCE = tf.constant([[2, 5, 6, 7, 4, 3], [2, 8, 3, 0, 0, 0], [2, 4, 4, 6, 3, 0]])
TARGET = tf.constant([[2, 5, 6, 7, 3], [2, 4, 0, 0, 0], [2, 8, 8, 5, 0]])
B, S, T = *SOURCE.shape, TARGET.shape[1]


def small(**changes: Any) -> TransformerConfig:
    return TransformerConfig(**{**SMALL, **changes})


def built(config: TransformerConfig) -> Transformer:
    return build_model(config, VOCABULARY, VOCABULARY)


def randomise(model: Transformer) -> Transformer:
    """Give every weight random values, also biases and norms, whose initial values hide mistakes."""
    random = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(random.normal(1 if weight.name == "gamma" else 0, 0.5, weight.shape))
    return model


@functools.cache
def variant(name: str) -> Transformer:
    return randomise(built(small(**TRANSFORMERS[name])))


@pytest.fixture(params=TRANSFORMERS)
def model(request: pytest.FixtureRequest) -> Transformer:
    """A model of each variant with random weights, which tests do not change."""
    return variant(request.param)


def decode(
    model: Transformer,
    target: tf.Tensor,
    memory: TransformerEncoderOutput,
    unpadding: Unpadding | None = None,
    dropout_seed: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return the logits of whole targets."""
    states = model.decode_states(target, memory, unpadding=unpadding, dropout_seed=dropout_seed)
    return model.output_projection().logits(states)


def take_step(
    model: Transformer, tokens: tf.Tensor, memory: TransformerEncoderOutput, state: TransformerState
) -> tuple[tf.Tensor, TransformerState]:
    """Return the logits of a step, and the state after it."""
    output = model.step(tokens, memory, state)
    return BeamLayout.of(tokens).restore(output.logits), output.state


# --- shapes


def test_each_kind_of_dropout_acts_on_its_sides_in_training_alone() -> None:
    model = built(small(**SHALLOW, dropout=0.5, attention_dropout=0.25, feed_forward_dropout=0.125))
    dropouts = {part: part.rate for part in model._flatten_layers() if isinstance(part, Dropout)}
    assert Counter(dropouts.values()) == {0.5: 2 + 2 + 3, 0.25: 1 + 2, 0.125: 1 + 1}
    memory, seed = model.encode(SOURCE), tf.constant([1, 1], tf.int64)
    assert len({part.number for part in dropouts}) == len(dropouts)  # no two draw the same
    of_rate = {rate: [part for part in dropouts if dropouts[part] == rate] for rate in (0.25, 0.125)}
    for only in ([], [model.source_dropout], [model.target_dropout], *of_rate.values()):
        for part, rate in dropouts.items():
            part.rate = rate if part in only else 0
        encoded = [model.encode(SOURCE, dropout_seed=given).layers[0].keys for given in (seed, None)]
        decoded = [decode(model, TARGET, memory, dropout_seed=given) for given in (seed, None)]
        assert np.allclose(*encoded, **CLOSE) == (only in ([], [model.target_dropout]))
        assert np.allclose(*decoded, **CLOSE) == (only in ([], [model.source_dropout]))


# --- the cache


@pytest.mark.slow
def test_beams_that_part_and_sentences_that_leave_give_the_logits_of_their_own_past(model: Transformer) -> None:
    random, beams = np.random.default_rng(1), 3
    memory, left = model.encode(SOURCE), np.arange(B)
    cache = model.initial_state(memory, beams)
    past = np.zeros([B, beams, 0], np.int32)
    for step in range(5):
        if step in (0, 3):  # the middle sentence leaves, and so do columns that no beam sees
            kept = np.arange(B) if step == 0 else np.array([0, 2])
            past, left = past[kept], left[kept]
            cache = cache.select(tf.constant(kept, tf.int32))
            memory = tf.nest.map_structure(lambda part, rows=kept: tf.gather(part, rows), memory)
            if model.config.decoder == "attention":
                assert cache.visible.shape[2] == cache.visible.numpy().any(axis=1).sum(axis=-1).max(initial=0)
        tokens = random.integers(4, VOCABULARY, [len(left), beams, 1])
        past = np.concatenate([past, tokens], axis=2)
        logits, cache = take_step(model, tf.constant(tokens[..., 0], tf.int32), memory, cache)
        assert logits.shape == (len(left), beams, VOCABULARY)
        for beam in range(beams):
            alone = model.encode(tf.gather(SOURCE, left))
            expected = decode(model, tf.constant(past[:, beam], tf.int32), alone)[:, -1]
            np.testing.assert_allclose(logits[:, beam], expected, **CLOSE)
        parents = random.integers(0, beams, [len(left), beams])
        cache, past = cache.reorder(tf.constant(parents)), np.take_along_axis(past, parents[..., None], axis=1)


def test_beams_that_have_ended_change_no_logits_of_the_live(model: Transformer) -> None:
    random, beams = np.random.default_rng(2), 3
    memory = model.encode(SOURCE)
    _, cache = take_step(model, tf.fill([B, beams], 2), memory, model.initial_state(memory, beams))
    tokens = random.integers(4, VOCABULARY, [B, beams])
    expected, after = take_step(model, tf.constant(tokens, tf.int32), memory, cache)
    for _ in range(3):
        live = random.random([B, beams]) < 0.5
        live[0, 0] |= not live.any()
        some = tf.constant(np.where(live, tokens, PAD), tf.int32)
        output = model.step(some, memory, cache)
        assert len(output.logits) == 8  # 1 to 9 live beams take as many rows
        logits, cache_of_live = take_step(model, some, memory, cache)
        np.testing.assert_allclose(logits.numpy()[live], expected.numpy()[live], **CLOSE)
        if model.config.decoder == "attention":
            np.testing.assert_array_equal(cache_of_live.visible, after.visible)
        else:
            for cells, expected_cells in zip(cache_of_live.layers, after.layers, strict=True):
                np.testing.assert_allclose(cells.numpy()[live], expected_cells.numpy()[live], **CLOSE)


# --- which positions attention reads


def test_a_target_token_changes_the_logits_from_its_position_on_and_none_before(model: Transformer) -> None:
    memory, before = model.encode(SOURCE), model(SOURCE, TARGET).numpy()
    for column in range(1, T):
        changed = TARGET.numpy()
        changed[:, column] = 1
        after = decode(model, tf.constant(changed), memory).numpy()
        np.testing.assert_allclose(after[:, :column], before[:, :column], **CLOSE)
        assert (np.abs(after - before).max(axis=-1)[:, column:] > 1e-4).all()


def test_every_source_token_changes_all_logits_of_its_sentence_alone(model: Transformer) -> None:
    before = model(SOURCE, TARGET).numpy()
    for column in range(np.count_nonzero(SOURCE[0])):
        changed = SOURCE.numpy()
        changed[0, column] = 1
        difference = np.abs(model(tf.constant(changed), TARGET).numpy() - before).max(axis=-1)
        assert (difference[0] > 1e-4).all()
        assert not difference[1:].any()


# --- computing nothing for padding

EXPECTED = tf.constant([[5, 6, 7, 3, 0], [4, 3, 0, 0, 0], [8, 8, 5, 3, 0]])


def test_every_weight_has_a_gradient_which_packing_does_not_change(model: Transformer) -> None:
    weights, unpadding = [weight.value for weight in model.trainable_weights], Unpadding.of(EXPECTED)
    with tf.GradientTape() as of_packed, tf.GradientTape() as of_rows:
        packed = decode(model, TARGET, model.encode(SOURCE), unpadding=unpadding)
        of_tokens = cross_entropy(packed, unpadding.flatten(EXPECTED))
        of_all = cross_entropy(decode(model, TARGET, model.encode(SOURCE, remove_padding=False)), EXPECTED)
        packed_mean, rows_mean = of_tokens.objective / of_tokens.tokens, of_all.objective / of_all.tokens
    gradients = of_packed.gradient(packed_mean, weights), of_rows.gradient(rows_mean, weights)
    for weight, packed_part, rows_part in zip(model.trainable_weights, *gradients, strict=True):
        assert packed_part is not None, weight.path
        np.testing.assert_allclose(tf.convert_to_tensor(packed_part), tf.convert_to_tensor(rows_part), **CLOSE)
        if not weight.path.endswith("key/bias"):  # which softmax takes out again
            assert np.abs(tf.convert_to_tensor(packed_part)).max() > 0, weight.path


def test_dropout_of_attention_weights_is_the_same_for_packed_tokens_as_for_rows() -> None:
    model, seed = randomise(built(small(dropout=0.0, attention_dropout=0.5))), tf.constant([1, 1], tf.int64)
    unpadding = Unpadding.of(EXPECTED)
    packed, rows = (model.encode(SOURCE, remove_padding=packed, dropout_seed=seed) for packed in (True, False))
    of_tokens = decode(model, TARGET, packed, unpadding=unpadding, dropout_seed=seed)
    of_rows = unpadding.flatten(decode(model, TARGET, rows, dropout_seed=seed))
    np.testing.assert_allclose(of_tokens, of_rows, **CLOSE)
    assert not np.allclose(of_rows, unpadding.flatten(model(SOURCE, TARGET)), atol=1e-2)


def test_dropout_of_nothing_costs_no_operation() -> None:
    model = built(small(dropout=0.0))

    @tf.function
    def learn(seed: tf.Tensor | None) -> tf.Tensor:
        return decode(model, TARGET, model.encode(SOURCE, dropout_seed=seed), dropout_seed=seed)

    seeded, plain = (learn.get_concrete_function(seed).graph for seed in (tf.constant([1, 1], tf.int64), None))
    # The seed itself is an operation, the placeholder of an argument.
    assert len(seeded.get_operations()) == len(plain.get_operations()) + 1


# --- variants of the model


def test_sinusoidal_words_have_no_weights_and_the_base_of_positions() -> None:
    ids, encoding = tf.constant([4, 0, 8]), sinusoidal_encoding(9, 8, base=100)
    for scaled, side in product([False, True], ["source", "target"]):
        model = built(small(**{**BOOK, "scale_embeddings": scaled}, position_base=100.0))
        embedding, positions = getattr(model, f"{side}_embedding"), getattr(model, f"{side}_positions")
        assert embedding.weights == []
        np.testing.assert_allclose(embedding(ids), encoding[ids.numpy()] * (8**0.5 if scaled else 1), **CLOSE)
        np.testing.assert_allclose(positions(tf.zeros([3, 8]), ids), encoding[ids.numpy()], **CLOSE)


def test_scaled_embeddings_are_unscaled_ones_with_larger_matrices() -> None:
    config = small(**SHALLOW, tie_embeddings="none")
    scaled, plain = (randomise(built(config.model_copy(update={"scale_embeddings": on}))) for on in (True, False))
    assert not np.allclose(scaled(SOURCE, TARGET), plain(SOURCE, TARGET), atol=1e-3)
    for embedding in (plain.source_embedding, plain.target_embedding):
        embedding.matrix.assign(embedding.matrix * 8**0.5)
    np.testing.assert_allclose(scaled(SOURCE, TARGET), plain(SOURCE, TARGET), **CLOSE)


@pytest.mark.parametrize(("norm", "count"), [("post", 2 + 3), ("pre", 2 + 3 + 2)])
def test_layer_norm_epsilon_reaches_every_norm(norm: str, count: int) -> None:
    model = built(small(**SHALLOW, norm_placement=norm, layer_norm_epsilon=0.01))
    norms = [part for part in model._flatten_layers() if isinstance(part, LayerNormalization)]
    assert [part.epsilon for part in norms] == [0.01] * count


@pytest.mark.parametrize("tie_embeddings", ["none", "output", "all"])
@pytest.mark.parametrize("initializer", ["glorot", "small"])
def test_initial_values(initializer: str, tie_embeddings: str) -> None:
    config = small(
        d_model=64, d_ff=256, initializer=initializer, tie_embeddings=tie_embeddings, positions="learned",
        max_positions=100,
    )  # fmt: skip
    keras.utils.set_random_seed(3)
    for weight in build_model(config, 100, 100).weights:
        values, place = weight.numpy(), str(weight.path)
        if values.ndim == 1:
            assert np.unique(values).tolist() == [float("gamma" in place)], place
            continue
        expected = np.sqrt(2 / sum(values.shape)) if "kernel" in place else 64**-0.5
        if initializer == "small" or "positions" in place:
            expected = 0.02
        # Of n normal values the deviation is off by 1 / sqrt(2 n) of itself, 0.011 for 64 x 64, and the mean by 0.016.
        assert values.std() == pytest.approx(expected, rel=0.06), place
        assert abs(values.mean()) < 0.08 * expected, place


def test_cross_attention_that_copies_adds_half_of_a_like_word() -> None:
    model = built(small(d_model=64, heads=2, initializer="small", cross_attention_initializer="copying"))
    words = keras.random.normal((1, 5, 64), seed=4)
    for layer in model.decoder_layers:
        copying, plain = layer.cross_attention, layer.self_attention
        for kernel in (copying.query.kernel, copying.key.kernel, copying.value.kernel):
            assert kernel.numpy().std() > plain.query.kernel.numpy().std()
        output, weights = copying(copying.queries(4 * words), copying.keys_values(4 * words))
        assert np.mean(weights, axis=(0, 1)).argmax(axis=-1).tolist() == [0, 1, 2, 3, 4]
        likeness = np.sum(output * words) / np.sum(words * words) / 4
        assert likeness == pytest.approx(0.5, abs=0.2)
    models = []
    for name in ("same", "copying"):
        keras.utils.set_random_seed(3)
        models.append(built(small(cross_attention_initializer=name)))
    changed = {
        weight.path.split("/", 1)[1]
        for weight, changed_weight in zip(models[0].weights, models[1].weights, strict=True)
        if not np.array_equal(weight, changed_weight)
    }
    kernels = {f"cross_attention/{name}/kernel" for name in ("query", "key", "value", "output")}
    assert {name.partition("/")[2] for name in changed} == kernels


@pytest.mark.parametrize(
    ("d_model", "heads", "base"), [(64, 4, 10_000.0), (64, 1, 10_000.0), (256, 4, 100.0), (4, 2, 10_000.0)]
)
def test_two_heads_of_each_layer_start_with_attention_to_neighbors(d_model: int, heads: int, base: float) -> None:
    keys = {"positions": "rotary", "self_attention_initializer": "neighbors", "initializer": "small"}
    model = built(small(d_model=d_model, heads=heads, position_base=base, **keys))
    words = keras.random.normal((1, 9, d_model), seed=4)
    for layers, offsets in ((model.encoder_layers, (-1, 1)), (model.decoder_layers, (-1, -2))):
        for layer in layers:
            attention = layer.attention if layers is model.encoder_layers else layer.self_attention
            _, weights = attention(*attention.queries_keys_values(words))
            for head, offset in enumerate(offsets[:heads]):
                looks_at = np.argmax(weights[0, head], axis=-1)
                assert looks_at[2:-2].tolist() == [position + offset for position in range(2, 7)]
            assert not np.any(attention.query.bias.numpy().reshape(heads, -1)[2:])
    models = []
    for name in ("same", "neighbors"):
        keras.utils.set_random_seed(3)
        models.append(built(small(positions="rotary", self_attention_initializer=name)))
    changed = {
        "/".join(weight.path.split("/")[-3:])
        for weight, changed_weight in zip(models[0].weights, models[1].weights, strict=True)
        if not np.array_equal(weight, changed_weight)
    }
    biases = {f"{block}/{name}/bias" for block in ("attention", "self_attention") for name in ("query", "key")}
    assert changed == biases


def test_an_ablated_encoder_layer_lacks_the_named_parts_alone() -> None:
    """The layer equals blocks with the same weights, joined by hand without the parts that are left out."""
    x, mask = tf.random.stateless_normal([2, 4, 8], [1, 2]), tf.ones([2, 1, 1, 4], tf.bool)
    for norm, residual, normed, feeds in product(["post", "pre"], *[[True, False]] * 3):
        keys = {"encoder_residual": residual, "encoder_norm": normed, "encoder_feed_forward": feeds}
        config = small(**SHALLOW, norm_placement=norm, **keys)
        layer, expected = randomise(built(config)).encoder_layers[0], x
        for connection in [layer.attention_connection, *([layer.feed_forward_connection] if feeds else [])]:
            inner = connection.norm(expected) if normed and norm == "pre" else expected
            if connection is layer.attention_connection:
                output, _ = layer.attention(*layer.attention.queries_keys_values(inner), mask)
            else:
                output = layer.feed_forward(inner)
            expected = expected + output if residual else output
            expected = connection.norm(expected) if normed and norm == "post" else expected
        np.testing.assert_allclose(layer(x, mask)[0], expected, **CLOSE)


# --- building


def test_layers_of_the_lesson_have_the_weights_that_it_prints() -> None:
    lesson = load_config(find_config("book.yaml")).model
    assert (lesson.d_model, lesson.d_ff, lesson.heads * lesson.head_size) == (512, 2048, 64)
    weights = Counter[str]()
    for name, shape in weight_shapes(lesson, 2404, 3864).items():
        layer, part, *_ = name.split("/")
        weights[layer] += math.prod(shape)
        weights[f"{layer}/{part}"] += math.prod(shape)
    attentions = ("encoder_1/attention", "decoder_1/self_attention", "decoder_1/cross_attention")
    assert {weights[name] for name in attentions} == {131_776}
    assert weights["encoder_1/feed_forward"] == weights["decoder_1/feed_forward"] == 2_099_712
    assert {weights[f"encoder_{n}"] for n in range(1, 7)} == {2_233_536}
    assert {weights[f"decoder_{n}"] for n in range(1, 7)} == {2_365_312}


def test_a_giant_model_is_refused_before_memory_is_spent_on_it() -> None:
    giant = small(d_model=65_536, d_ff=2**20, heads=1024)  # 2 TB
    shapes = weight_shapes(giant, 1_000_000, 1_000_000)
    assert sum(map(math.prod, shapes.values())) > 5 * 10**11

    def refuse(seen: Shapes) -> None:
        assert seen == shapes
        raise DataError("too large")

    with pytest.raises(DataError, match="too large"):
        build_model(giant, 1_000_000, 1_000_000, trained=True, check_shapes=refuse)


FIRST_VALUES = {
    "source_embedding/matrix": -0.442, "target_embedding/matrix": 0.2087,
    "encoder_1/attention/query/kernel": 0.003, "encoder_1/attention/key/kernel": -0.0162,
    "encoder_1/attention/value/kernel": -0.3842, "encoder_1/attention/output/kernel": 0.1321,
    "encoder_1/feed_forward/inner/kernel": 0.1217, "encoder_1/feed_forward/outer/kernel": -0.4578,
    "decoder_1/self_attention/query/kernel": -0.2764, "decoder_1/self_attention/key/kernel": 0.1734,
    "decoder_1/self_attention/value/kernel": 0.6065, "decoder_1/self_attention/output/kernel": -0.0944,
    "decoder_1/cross_attention/query/kernel": -0.276, "decoder_1/cross_attention/key/kernel": 0.5881,
    "decoder_1/cross_attention/value/kernel": 0.391, "decoder_1/cross_attention/output/kernel": 0.2845,
    "decoder_1/feed_forward/inner/kernel": -0.4506, "decoder_1/feed_forward/outer/kernel": -0.2765,
}  # fmt: skip


def first_values(seed: int, **changes: Any) -> dict[str, float]:
    """Return the first value of every matrix, drawn from a seed."""
    config = TransformerConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=16, heads=2, **changes)
    weights = weights_of(build_model(config, 20, 30, "float32", seed=seed))
    return {name: float(matrix.flat[0]) for name, matrix in weights.items() if matrix.ndim > 1}


def test_a_seed_gives_the_weights_that_it_gave_in_earlier_versions() -> None:
    assert first_values(1) == {name: pytest.approx(value, abs=6e-5) for name, value in FIRST_VALUES.items()}


def test_no_two_parts_and_no_two_seeds_start_alike() -> None:
    values = [v for seed in (1, 2) for v in first_values(seed, tie_embeddings="none", positions="learned").values()]
    assert len({*values}) == len(values) == 2 * (len(FIRST_VALUES) + 3)


def test_building_does_not_touch_the_precision_of_the_process(monkeypatch: MonkeyPatch) -> None:
    def set_dtype_policy(policy: Any) -> None:
        raise AssertionError("a thread of the caller would make layers of this precision")

    keras.config.set_dtype_policy("mixed_float16")
    monkeypatch.setattr(keras.config, "set_dtype_policy", set_dtype_policy)
    try:
        model = build_model(small(**SHALLOW), VOCABULARY, VOCABULARY, "bfloat16")
        assert keras.layers.Dense(1).compute_dtype == "float16"
    finally:
        monkeypatch.undo()
        keras.config.set_dtype_policy("float32")
    assert {layer.compute_dtype for layer in model._flatten_layers()} == {"bfloat16"}
    assert {weight.dtype for weight in model.weights} == {"float32"}
