"""Weights and operations of recurrent models: against the built model, TensorFlow's own count, and the lesson."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_recurrent_model import VARIANTS

from nmt.config.schema import RecurrentConfig
from nmt.models.build import build_model, weight_shapes
from nmt.models.registry import count_weights, flops
from nmt.models.weights import weight_name
from nmt.runtime import tf


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_the_count_of_weights_is_that_of_the_model(settings: dict[str, Any]) -> None:
    config = RecurrentConfig(width=8, **settings)
    model, shapes = build_model(config, 20, 20), weight_shapes(config, 20, 20)
    assert shapes == {weight_name(weight): list(weight.shape) for weight in model.weights}
    assert count_weights(config, {"source": 20, "target": 20}) == model.count_params()


def test_the_lessons_lstm_has_the_weights_that_it_prints() -> None:
    config = RecurrentConfig(embedding_width=10, tie_embeddings="shared", attention="none")
    assert count_weights(config, {"source": 100, "target": 100}) == 2_194_508


@pytest.mark.parametrize(("bidirectional", "weights"), [(False, 660), (True, 1320)])
def test_a_gru_of_ten_units_has_the_weights_that_the_lesson_prints(bidirectional: bool, weights: int) -> None:
    config = RecurrentConfig(
        cell="gru", reset_after=True, width=10, bidirectional=bidirectional, first_state="linear", attention="general"
    )
    shapes = weight_shapes(config, 5, 5)
    assert sum(math.prod(shape) for name, shape in shapes.items() if name.startswith("encoder/")) == weights


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_products_are_counted_as_they_are_computed(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    config = RecurrentConfig(width=8, **settings)
    model = build_model(config, 20, 20)
    # No word twice: what depends on the word alone is computed once for each.
    source, target = tf.constant([[4, 5, 6, 7, 3]]), tf.constant([[2, 5, 6, 7, 8, 9, 4, 3]])
    counted, plain = [], tf.matmul

    def matmul(a: tf.Tensor, b: tf.Tensor, transpose_a: bool = False, transpose_b: bool = False) -> tf.Tensor:
        product = plain(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        counted.append(2 * int(tf.size(product)) * a.shape[-2 if transpose_a else -1])
        return product

    monkeypatch.setattr(tf, "matmul", matmul)
    model.output_projection().logits(model.teacher_forcing(source, target).states)
    assert sum(counted) == flops(config, np.array([5]), np.array([7]), 20)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=2, max_size=8), st.sampled_from([*VARIANTS])
)
def test_it_adds_up_over_batches(pairs: list[tuple[int, int]], variant: str) -> None:
    config, (source, target) = RecurrentConfig(width=8, **VARIANTS[variant]), np.array(pairs).T
    first, rest = (flops(config, source[part], target[part], 50) for part in (slice(1), slice(1, None)))
    assert first + rest == flops(config, source, target, 50)
