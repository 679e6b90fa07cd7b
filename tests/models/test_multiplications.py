"""Multiplications of a sentence pair by arithmetic: those of the products that a forward pass computes."""

from typing import Any

import pytest

from nmt.config.schema import Config
from nmt.models.build import build_model
from nmt.models.layers import basic
from nmt.runtime import tf

TRANSFORMERS: list[dict[str, Any]] = [
    {"heads": 4, "encoder_layers": 2, "decoder_layers": 3, "d_ff": 24},
    {"head_size": 5, "heads": 2, "tie_embeddings": "none", "encoder_feed_forward": False, "decoder_layers": 1},
]
RECURRENT: list[dict[str, Any]] = [
    {"attention": "none", "bidirectional": True, "encoder_width": 4, "layers": 2},
    {"cell": "gru", "step": "bahdanau", "attention": "additive", "bidirectional": True, "first_state": "backward",
     "maxout_width": 5, "embedding_width": 6},
    {"cell": "gru", "step": "bahdanau", "attention": "none", "reset_after": True},
    {"attention": "general", "bidirectional": True, "encoder_width": 4, "first_state": "linear"},
    {"attention": "concat", "attention_width": 5, "cell": "simple", "window": "local-p"},
    {"attention": "dot", "input_feeding": True, "layers": 2, "tie_embeddings": "all"},
]  # fmt: skip


@pytest.mark.parametrize(
    "section",
    [{"d_model": 8, **varied} for varied in TRANSFORMERS]
    + [{"architecture": "recurrent", "width": 8, **varied} for varied in RECURRENT],
    ids=str,
)
def test_products_are_counted_as_they_are_computed(section: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config.model_validate({"model": section}).model
    model = build_model(config, 20, 20)
    # No word twice: what depends on the word alone is computed once for each.
    source, target = tf.constant([[4, 5, 6, 7, 3]]), tf.constant([[2, 5, 6, 7, 8, 9, 4, 3]])
    counted, plain = [], tf.matmul

    def matmul(a: tf.Tensor, b: tf.Tensor, **transposed: bool) -> tf.Tensor:
        product = plain(a, b, **transposed)
        counted.append(int(tf.size(product)) * a.shape[-2 if transposed.get("transpose_a") else -1])
        return product

    monkeypatch.setattr(tf, "matmul", matmul)
    monkeypatch.setattr(basic, "layer_normalization", lambda x, *_: x)  # whose means are products
    model.output_projection().logits(model.teacher_forcing(source, target).states)
    assert sum(counted) == config.multiplications(5, 7, 20)
