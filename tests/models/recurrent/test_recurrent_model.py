"""The recurrent model: the contract of ``Seq2SeqModel``, and the paper's equations where a part has no Keras twin."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from test_scan import unrolled

from nmt.config.schema import ModelConfig, RecurrentConfig
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.models.recurrent import cells, decoder
from nmt.models.recurrent.decoder import BahdanauDecoder
from nmt.models.recurrent.model import Recurrent
from nmt.models.weights import weight_name
from nmt.runtime import keras, tf
from nmt.tokenizers.base import PAD
from nmt.training.optimization.losses import cross_entropy

SOURCE = tf.constant([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0], [5, 3, 0, 0, 0]])
TARGET = tf.constant([[2, 5, 6, 7, 8, 9, 3], [2, 9, 4, 3, 0, 0, 0], [2, 3, 4, 5, 3, 0, 0]])
BIDIRECTIONAL: dict[str, Any] = {"bidirectional": True, "encoder_width": 4}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"attention": "none"},
    "plain of bahdanau": {"attention": "none", "step": "bahdanau", "cell": "gru"},
    "bidirectional": {"attention": "none", **BIDIRECTIONAL, "layers": 2},
    "reversed": {"attention": "none", "reverse_source": True, "cell": "gru", "layers": 2},
    "bahdanau": {
        "cell": "gru", "step": "bahdanau", "attention": "additive", "bidirectional": True, "first_state": "backward",
        "maxout_width": 5, "embedding_width": 6,
    },
    "bahdanau, reset after": {
        "cell": "gru", "step": "bahdanau", "attention": "additive", "reset_after": True, "first_state": "linear",
    },
    "bahdanau, two layers of lstm": {"step": "bahdanau", "attention": "general", "layers": 2, **BIDIRECTIONAL},
    "bahdanau, local-p": {"step": "bahdanau", "attention": "concat", "window": "local-p", "window_half_width": 2},
    "luong, dot": {"attention": "dot", "layers": 2},
    "luong, general": {"attention": "general", **BIDIRECTIONAL, "first_state": "linear"},
    "luong, concat": {"attention": "concat", "attention_width": 5, "cell": "simple"},
    "luong, scaled": {"attention": "scaled-dot", "first_state": "zero", "cell": "gru", "reset_after": True},
    "luong, local-m": {"attention": "dot", "window": "local-m", "window_half_width": 1},
    "luong, local-p": {"attention": "general", "window": "local-p", "window_half_width": 2},
    "feeding": {"attention": "general", "input_feeding": True, "layers": 2},
    "feeding, concat": {"attention": "concat", "input_feeding": True, "cell": "gru"},
    "feeding, local-m": {"attention": "dot", "input_feeding": True, "window": "local-m", "window_half_width": 1},
    "feeding, local-p": {"attention": "general", "input_feeding": True, "window": "local-p", "window_half_width": 2},
    "tied": {"attention": "dot", "tie_embeddings": "all"},
    "shared": {"attention": "dot", "tie_embeddings": "shared", "embedding_width": 3},
}  # fmt: skip


def build(variant: str = "bahdanau", precision: Any = "float32", **settings: Any) -> Recurrent:
    keras.utils.set_random_seed(7)
    config = RecurrentConfig(**{"width": 8, "dropout": 0.3, **VARIANTS[variant], **settings})
    model = build_model(config, 20, 20, precision)
    assert isinstance(model, Recurrent)
    return model


def logits(model: Seq2SeqModel, source: tf.Tensor, target: tf.Tensor) -> np.ndarray:
    return model(source, target).numpy()


@pytest.fixture(params=VARIANTS, scope="module")
def model(request: pytest.FixtureRequest) -> Recurrent:
    return build(request.param)


def test_steps_with_state_give_the_logits_of_teacher_forcing(model: Recurrent) -> None:
    whole, encoded = logits(model, SOURCE, TARGET), model.encode(SOURCE)
    state = model.initial_state(encoded, 1)
    weights = model.cross_attention(SOURCE, TARGET)
    for t in range(TARGET.shape[1]):
        output = model.step(TARGET[:, t : t + 1], encoded, state, attention=True)
        state = output.state
        real, found = TARGET[:, t].numpy() != PAD, BeamLayout.of(TARGET[:, t : t + 1]).restore(output.logits)
        np.testing.assert_allclose(found[:, 0][real], whole[:, t][real], atol=1e-5)
        if weights is None:
            assert output.attention is None
        else:
            np.testing.assert_allclose(output.attention[:, 0][real], weights[0, 0, :, t][real], atol=1e-5)
    assert (weights is None) == (model.config.attention == "none")


def test_padding_and_batch_mates_change_nothing(model: Recurrent) -> None:
    whole = logits(model, SOURCE, TARGET)
    for row, (source, target) in enumerate([(5, 7), (3, 4), (2, 5)]):
        alone = logits(model, SOURCE[row : row + 1, :source], TARGET[row : row + 1, :target])
        np.testing.assert_allclose(alone[0], whole[row, :target], atol=1e-5)


def test_the_states_of_real_tokens_are_those_of_rows(model: Recurrent) -> None:
    rows = model.teacher_forcing(SOURCE, TARGET, remove_padding=False)
    flat = model.teacher_forcing(SOURCE, TARGET)
    unpadding = Unpadding.of(TARGET[:, 1:])
    np.testing.assert_array_equal(flat.targets, unpadding.flatten(rows.targets))
    np.testing.assert_allclose(flat.states, unpadding.flatten(rows.states), atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_are_those_of_a_loop_that_tensorflow_differentiates(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(variant)

    def gradients() -> list[np.ndarray]:
        with tf.GradientTape() as tape:
            forced = model.teacher_forcing(SOURCE, TARGET, dropout_seed=tf.constant([1, 2], tf.int64))
            loss = cross_entropy(model.output_projection().logits(forced.states), forced.targets, 0.1).objective
        found = tape.gradient(loss, model.trainable_variables)
        missing = [
            weight_name(weight) for weight, part in zip(model.trainable_variables, found, strict=True) if part is None
        ]
        assert not missing
        return [tf.convert_to_tensor(part).numpy() for part in found]

    ours = gradients()
    for module in (cells, decoder):
        monkeypatch.setattr(module, "scan", unrolled)
    for weight, part, expected in zip(model.trainable_variables, ours, gradients(), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-3, atol=2e-5, err_msg=weight_name(weight))
        assert np.any(expected), weight_name(weight)


def test_a_step_of_bahdanau_is_the_papers_equations() -> None:
    """Context by s_{t-1}, then s_t = GRU(s_{t-1}, [e; c]) and the maxout of U s_t + V e + C c."""
    model = build("bahdanau, reset after", layers=1)
    part = model.decoder
    assert isinstance(part, BahdanauDecoder)
    encoded = model.encode(SOURCE[:1])
    (source,), ((s,),) = encoded.source, encoded.first.layers
    s, h = s.numpy()[0], source.annotations.numpy()[0]
    scores = np.tanh(s @ part.attention.query_kernel.numpy() + h @ part.attention.key_kernel.numpy())
    scores = (scores @ part.attention.score_kernel.numpy())[:, 0]
    alpha = np.exp(scores) / np.exp(scores).sum()
    c, e = alpha @ h, model.target_embedding.matrix.numpy()[2]
    cell = part.cells[0]
    x = e @ cell.kernel.numpy() + c @ part.context_kernel.numpy() + cell.bias.numpy()
    product = s @ cell.recurrent_kernel.numpy() + cell.recurrent_bias.numpy()
    z, r = (1 / (1 + np.exp(-(x[a:b] + product[a:b]))) for a, b in ((0, 8), (8, 16)))
    new = (1 - z) * s + z * np.tanh(x[16:] + r * product[16:])
    both = np.concatenate([new, c, e]) @ part.maxout_kernel.numpy()
    expected = np.maximum(both[:8], both[8:]) @ model.output_layer.kernel.numpy() + model.output_layer.bias.numpy()
    np.testing.assert_allclose(logits(model, SOURCE[:1], TARGET[:1, :1])[0, 0], expected, atol=1e-5)


def test_an_attentional_state_is_tanh_of_context_and_state_and_is_fed() -> None:
    model = build("feeding", layers=1)
    encoded = model.encode(SOURCE[:1])
    state = model.initial_state(encoded, 1)
    part = model.decoder
    for token in (2, 5):
        fed = state.step.fed[0].numpy()[0, 0]
        h, c = (tensor.numpy()[0, 0] for tensor in state.step.layers[0])
        cell = part.cells[0]
        x = model.target_embedding.matrix.numpy()[token] @ cell.kernel.numpy() + fed @ part.feeding_kernel.numpy()
        i, f, g, o = np.split(x + h @ cell.recurrent_kernel.numpy() + cell.bias.numpy(), 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        output = model.step(tf.constant([[token]]), encoded, state, attention=True)
        context = output.attention.numpy()[0, 0] @ encoded.source[0].annotations.numpy()[0]
        expected = np.tanh(np.concatenate([context, h]) @ part.attentional_kernel.numpy())
        np.testing.assert_allclose(output.state.step.fed[0][0, 0], expected, atol=1e-5)
        state = output.state


@pytest.mark.parametrize("first_state", ["final", "linear", "backward", "zero"])
def test_the_decoder_starts_from_what_first_state_names(first_state: str) -> None:
    model = build("luong, general", first_state=first_state)
    encoded = model.encode(SOURCE)
    unpadding = Unpadding.of(SOURCE)
    embedded = model.source_embedding(unpadding.flatten(SOURCE))
    forward, backward = (direction(embedded, unpadding)[1] for direction in model.encoder.layers[0])
    state = [tf.concat(parts, axis=-1) for parts in zip(forward, backward, strict=True)]
    if first_state == "zero":
        state = [tf.zeros_like(part) for part in state]
    elif first_state != "final":
        given = state if first_state == "linear" else backward
        state = [tf.tanh(bridge(part)) for bridge, part in zip(model.bridges[0], given, strict=True)]
    for ours, expected in zip(encoded.first.layers[0], state, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_dropout_is_a_function_of_seed_and_step_and_off_without_a_seed(model: Recurrent) -> None:
    def states(*seed: int) -> np.ndarray:
        return model.teacher_forcing(
            SOURCE, TARGET, dropout_seed=tf.constant(seed, tf.int64) if seed else None
        ).states.numpy()  # fmt: skip

    np.testing.assert_array_equal(states(1, 2), states(1, 2))
    assert not np.allclose(states(1, 2), states(1, 3)) and not np.allclose(states(1, 2), states(2, 2))
    np.testing.assert_array_equal(states(), states())
    assert not np.allclose(states(), states(1, 2))


def test_half_the_precision_keeps_float32_weights_unless_they_are_trained(model: Recurrent) -> None:
    trained = build_model(model.config, 20, 20, "float16", trained=True)
    kernels = [weight for weight in trained.weights if weight.name in ("kernel", "recurrent_kernel", "matrix")]
    assert kernels and not any(weight.dtype != "float16" or np.any(weight.numpy()) for weight in kernels)
    half = build_model(model.config, 20, 20, "bfloat16")
    for ours, other in zip(half.weights, model.weights, strict=True):
        ours.assign(other)
    assert {weight.dtype for weight in half.weights} == {"float32"}
    np.testing.assert_allclose(tf.cast(half(SOURCE, TARGET), tf.float32), logits(model, SOURCE, TARGET), atol=0.05)


def test_initial_values_can_be_uniform() -> None:
    model = build("feeding", initializer="uniform", width=32)
    for weight in model.weights:
        if weight.name.endswith("kernel"):
            assert 0.09 < np.abs(weight).max() <= 0.1, weight_name(weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "dot", "encoder_width": 9, "first_state": "linear"}, "a dot product needs the width"),
        ({"attention": "none", "input_feeding": True}, "input_feeding is true and attention is none"),
        ({"step": "bahdanau", "input_feeding": True}, "input_feeding is true and step is bahdanau"),
        ({"first_state": "backward"}, "There is no backward direction"),
        (
            {"bidirectional": True, "first_state": "backward", "attention": "none"},
            "Nothing would read the last layer's forward direction",
        ),
        ({"first_state": "zero", "attention": "none"}, "would know nothing of the source"),
        ({"bidirectional": True, "first_state": "linear", "reverse_source": True}, "in both directions already"),
        ({"reset_after": True}, "Only a GRU has a reset gate"),
        ({"tie_embeddings": "output", "embedding_width": 5}, "Set embedding_width: 512"),
    ],
)
def test_what_contradicts_is_refused_in_words(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate({"architecture": "recurrent", **settings})
