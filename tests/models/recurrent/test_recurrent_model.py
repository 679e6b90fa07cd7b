"""The recurrent model: the contract of ``Seq2SeqModel``, and the paper's equations where a part has no Keras twin."""

from typing import Any

import numpy as np
import pytest
from model_variants import RECURRENT
from pydantic import ValidationError
from test_scan import unrolled

from nmt.config.schema import ModelConfig, RecurrentConfig
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.layers.unpadding import Unpadding
from nmt.models.recurrent import cells, decoder
from nmt.models.recurrent.decoder import BahdanauDecoder
from nmt.models.recurrent.model import Recurrent
from nmt.models.weights import weight_name
from nmt.runtime import keras, tf
from nmt.training.optimization.losses import cross_entropy

SOURCE = tf.constant([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0], [5, 3, 0, 0, 0]])
TARGET = tf.constant([[2, 5, 6, 7, 8, 9, 3], [2, 9, 4, 3, 0, 0, 0], [2, 3, 4, 5, 3, 0, 0]])


def build(variant: str = "bahdanau", precision: Any = "float32", **settings: Any) -> Recurrent:
    keras.utils.set_random_seed(7)
    config = RecurrentConfig(**{"width": 8, "dropout": 0.3, **RECURRENT[variant], **settings})
    model = build_model(config, 20, 20, precision)
    assert isinstance(model, Recurrent)
    return model


def logits(model: Seq2SeqModel, source: tf.Tensor, target: tf.Tensor) -> np.ndarray:
    return model(source, target).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("variant", RECURRENT)
def test_gradients_are_those_of_a_loop_that_tensorflow_differentiates(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(variant)

    def gradients() -> list[np.ndarray]:
        with tf.GradientTape() as tape:
            forced = model.teacher_forcing(SOURCE, TARGET, dropout_seed=tf.constant([1, 2], tf.int64))
            loss = cross_entropy(model.output_projection().logits(forced.states), forced.targets, 0.1).objective
        parts = tape.gradient(loss, model.trainable_variables)
        missing = [
            weight_name(weight) for weight, part in zip(model.trainable_variables, parts, strict=True) if part is None
        ]
        assert not missing
        return [tf.convert_to_tensor(part).numpy() for part in parts]

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
