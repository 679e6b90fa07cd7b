"""The contract of ``Seq2SeqModel``, for every variant of every architecture."""

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conftest import CUTS_BFLOAT16
from model_variants import RECURRENT, SMALL, TRANSFORMERS

from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.config.training import TrainingConfig
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model, weight_shapes
from nmt.models.layers import basic
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.models.weights import weight_name, weights_of
from nmt.runtime import keras, tf
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.training.optimization.build import build_update
from nmt.training.optimization.totals import TokenTotals

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SOURCE = tf.constant([[2, 5, 6, 7, 4, 3], [2, 8, 3, 0, 0, 0], [2, 4, 4, 6, 3, 0]])
TARGET = tf.constant([[2, 5, 6, 7, 8, 3], [2, 4, 3, 0, 0, 0], [2, 8, 8, 5, 3, 0]])
SECTIONS: dict[str, dict[str, Any]] = {
    **{f"Transformer, {name}": {**SMALL, **keys} for name, keys in TRANSFORMERS.items()},
    **{f"recurrent, {name}": {"architecture": "recurrent", "width": 8, "dropout": 0.3, **keys}
       for name, keys in RECURRENT.items()},
}  # fmt: skip


FAST = (
    "Transformer, post-norm", "Transformer, rotary", "Transformer, book", "Transformer, ssru", "recurrent, plain",
    "recurrent, bahdanau", "recurrent, luong, local-m", "recurrent, feeding",
)  # fmt: skip
"""Variants that differ most from each other. The others are tried by the slow tests."""
VARIANTS = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in SECTIONS]


def build(config: ModelConfig, precision: Any = "float32", *, trained: bool = False) -> Seq2SeqModel:
    return build_model(config, 10, 10, precision, trained=trained)


@pytest.fixture(params=VARIANTS, scope="module")
def model(request: pytest.FixtureRequest) -> Seq2SeqModel:
    """A model of each variant, which tests do not change. No bias is zero, because zeros would hide mistakes."""
    keras.utils.set_random_seed(7)
    model, random = build(ModelConfig.model_validate(SECTIONS[request.param])), np.random.default_rng(1)
    for weight in model.weights:
        weight.assign_add(random.normal(0, 0.1, weight.shape))
    return model


def test_all_weights_are_made_at_once_with_the_shapes_that_weight_shapes_returns(model: Seq2SeqModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = build(model.config)
    made = {weight_name(weight): list(weight.shape) for weight in fresh.weights}
    assert weight_shapes(model.config, 10, 10) == made and len(made) == len(fresh.weights)
    fresh(SOURCE, TARGET)
    assert [weight_name(weight) for weight in fresh.weights] == list(made)


def test_steps_with_state_give_the_logits_and_attention_of_teacher_forcing(model: Seq2SeqModel) -> None:
    whole, encoded = model(SOURCE, TARGET), model.encode(SOURCE)
    state, weights = model.initial_state(encoded, 1), model.cross_attention(SOURCE, TARGET)
    assert (weights is None) == (getattr(model.config, "attention", "") == "none")
    assert model.step(TARGET[:, :1], encoded, state).attention is None
    for t in range(TARGET.shape[1]):
        tokens, real = TARGET[:, t : t + 1], TARGET[:, t].numpy() != PAD
        output = model.step(tokens, encoded, state, attention=True)
        state = output.state
        logits = BeamLayout.of(tokens).restore(output.logits)
        np.testing.assert_allclose(logits[:, 0][real], whole[:, t][real], **CLOSE)
        if weights is None:
            assert output.attention is None
        else:
            expected = tf.reduce_mean(weights[-1], axis=0)[:, t]
            np.testing.assert_allclose(output.attention[:, 0][real], expected[real], **CLOSE)


def test_padding_and_batch_mates_change_nothing(model: Seq2SeqModel) -> None:
    together = model(SOURCE, TARGET)
    for row in range(len(SOURCE)):
        source, target = (ids[row : row + 1, : np.count_nonzero(ids[row])] for ids in (SOURCE, TARGET))
        np.testing.assert_allclose(model(source, target)[0], together[row, : target.shape[1]], **CLOSE)


def test_the_states_of_real_tokens_are_those_of_rows(model: Seq2SeqModel) -> None:
    rows, flat = (model.teacher_forcing(SOURCE, TARGET, remove_padding=removed) for removed in (False, True))
    unpadding = Unpadding.of(TARGET[:, 1:])
    np.testing.assert_array_equal(flat.targets, unpadding.flatten(rows.targets))
    np.testing.assert_allclose(flat.states, unpadding.flatten(rows.states), **CLOSE)


@pytest.mark.slow
def test_dropout_is_a_function_of_seed_and_step_and_off_without_a_seed(model: Seq2SeqModel) -> None:
    def states(*seed: int) -> np.ndarray:
        given = tf.constant(seed, tf.int64) if seed else None
        return model.teacher_forcing(SOURCE, TARGET, dropout_seed=given).states.numpy()

    seeds = [(1, 1), (1, 2), (2, 1), (2**32 - 1, 10**9), ()]
    drawn = [states(*seed) for seed in seeds]
    assert not any(np.allclose(*pair, atol=1e-3) for pair in combinations(drawn, 2))
    for seed, first in zip(seeds[-2:], drawn[-2:], strict=True):
        np.testing.assert_array_equal(states(*seed), first)


@pytest.mark.slow
def test_half_the_precision_gives_nearly_the_logits_with_float32_weights_in_training(model: Seq2SeqModel) -> None:
    exact = model(SOURCE, TARGET).numpy()
    for precision, trained in (("bfloat16", False), ("float16", True)):
        tolerance = 0.2 if precision == "bfloat16" and CUTS_BFLOAT16 else 0.1
        half = build(model.config, precision, trained=trained)
        assert {weight.dtype for weight in half.weights} == {precision if trained else "float32"}
        assert not trained or not any(np.any(weight) for weight in half.weights if weight.name.endswith("kernel"))
        half.set_weights(model.get_weights())
        logits = half(SOURCE, TARGET)
        assert logits.dtype == precision
        np.testing.assert_allclose(tf.cast(logits, tf.float32), exact, rtol=0, atol=tolerance)


def test_products_are_counted_as_they_are_computed(model: Seq2SeqModel, monkeypatch: pytest.MonkeyPatch) -> None:
    # No word twice: the embedding of a word, and its product in the lowest cell, are computed once a batch.
    source, target = tf.constant([[4, 5, 6, 7, 3]]), tf.constant([[2, 5, 6, 7, 8, 9, 4, 3]])
    counted, plain = [], tf.matmul

    def matmul(a: tf.Tensor, b: tf.Tensor, **transposed: bool) -> tf.Tensor:
        product = plain(a, b, **transposed)
        counted.append(int(tf.size(product)) * a.shape[-2 if transposed.get("transpose_a") else -1])
        return product

    monkeypatch.setattr(tf, "matmul", matmul)
    monkeypatch.setattr(basic, "layer_normalization", lambda x, *_: x)  # whose means are products
    model.output_projection().logits(model.teacher_forcing(source, target).states)
    assert sum(counted) == model.config.multiplications(5, 7, 10)


TRACED = "recurrent, luong, local-m"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == TRACED else pytest.mark.slow) for name in SECTIONS]
)
def test_traced_steps_lower_the_loss_and_beams_score_what_the_model_says(name: str) -> None:
    model = ModelConfig.model_validate({**SECTIONS[name], "dropout": 0.0})
    settings, steps, beams = TrainingConfig(precision="float32"), 20, 3
    limits = np.array([3, 6, 5], np.int32)  # sentences leave the search one after another
    update, losses = build_update(Config(model=model, training=settings), {"source": 10, "target": 10}), []
    before = weights_of(update.model)
    for step in range(steps):
        update.totals.set(TokenTotals())
        update.take([(SOURCE, TARGET)], 0.01, 1 + step)
        losses.append(update.totals.read().means[0])
    same = {path for path, weight in weights_of(update.model).items() if np.array_equal(weight, before[path])}
    assert all(path.endswith("key/bias") for path in same)  # which softmax takes out again
    assert np.isfinite(losses).all() and losses[-1] < 0.9 * losses[0]

    config = Config(model=model, decoding=DecodingConfig(beam_size=beams, length_penalty=0))
    hypotheses = TensorFlowEngine(update.model, config).search_batch(
        SOURCE.numpy(), limits, SearchOptions(n_best=beams)
    )
    tokens, scores = hypotheses.tokens.numpy(), hypotheses.scores.numpy()
    assert (np.diff(scores) <= 0).all() and BOS not in tokens
    assert all(len({*map(tuple, rows)}) == beams for rows in tokens.tolist())
    is_eos = tokens == EOS
    lengths = np.where(is_eos.any(axis=-1), is_eos.argmax(axis=-1) + 1, limits[:, None])
    np.testing.assert_array_equal(tokens != PAD, np.arange(tokens.shape[-1]) < lengths[..., None])
    rows = tokens.reshape(len(limits) * beams, -1)
    read = np.pad(rows[:, :-1], [(0, 0), (1, 0)], constant_values=BOS)
    logits = tf.nn.log_softmax(update.model(tf.repeat(SOURCE, beams, axis=0), tf.constant(read)))
    of_tokens = tf.gather(logits, rows, batch_dims=2).numpy() * (rows != PAD)
    np.testing.assert_allclose(of_tokens.sum(axis=1).reshape(scores.shape), scores, atol=1e-4)

    pairs = [[4, 5, 6], [7]], [[5, 6, EOS], [4, EOS]]
    eager, compiled = (
        TensorFlowEngine(update.model, config, few_steps).cross_attention(*pairs) for few_steps in (100, 0)
    )
    assert (eager is None) == (compiled is None)
    for weights, others in zip(eager or (), compiled or (), strict=True):
        np.testing.assert_allclose(weights, others, **CLOSE)
