"""Weights and operations of recurrent models: against the built model, TensorFlow's own count, and the lesson."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_recurrent_model import VARIANTS

from nmt.config.model import RecurrentConfig
from nmt.models.accounting import count_weights, summary
from nmt.models.build import build_model
from nmt.models.recurrent.accounting import flops, parts
from nmt.runtime import tf


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_parts_count_the_weights_of_the_model(settings: dict[str, Any]) -> None:
    config = RecurrentConfig(width=8, **settings)
    rows = parts(config, 20, 20)
    model = build_model(config, 20, 20)
    assert count_weights(rows) == model.count_params()
    assert all(row.name in summary(rows) for row in rows)
    sizes = {weight.path.split("/", 1)[1]: weight.value.shape.num_elements() for weight in model.weights}
    for row in rows:
        prefix = {"attention": "decoder/attention/", "first_state": "first_state_"}.get(row.name, f"{row.name}/")
        if row.name.startswith(("forward", "backward")):
            prefix = f"encoder/{row.name}/cell/"
        elif row.name.startswith("decoder_"):
            prefix = f"decoder/cell_{row.name[len('decoder_') :]}/"
        elif row.name in ("maxout", "attentional"):
            prefix = f"decoder/{row.name}_kernel"
        assert row.sublayers == () or sum(inner.weights for inner in row.sublayers) == row.weights
        for inner in row.sublayers:  # the decoder has the matrices of what its lowest cell reads besides
            shared = inner.name in ("context_kernel", "feeding_kernel")
            assert inner.weights == sizes.pop(f"decoder/{inner.name}" if shared else prefix + inner.name)
        if not row.sublayers and row.weights:
            found = [path for path in sizes if path.startswith(prefix)]
            assert row.weights == sum(sizes.pop(path) for path in found)
    assert not sizes
    names = {"source", "target", *(row.name for row in rows)}
    for row in rows:
        reads = {name.strip("()") for part in (row, *row.sublayers) for name in part.inputs}
        assert reads <= names | {inner.name for inner in row.sublayers}
    read = {name.strip("()") for row in rows for name in row.inputs}
    assert names - read == {"output_layer"} | ({"first_state"} & (names - read))


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
    assert sum(counted) == flops(config, np.array([5]), np.array([7]), 20).forward


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=2, max_size=8), st.sampled_from([*VARIANTS])
)
def test_it_adds_up_over_batches(pairs: list[tuple[int, int]], variant: str) -> None:
    config, (source, target) = RecurrentConfig(width=8, **VARIANTS[variant]), np.array(pairs).T
    first, rest = (flops(config, source[part], target[part], 50) for part in (slice(1), slice(1, None)))
    assert first.plus(rest) == flops(config, source, target, 50)
