"""Dropout of a part of a batch: what the whole batch drops there."""

from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Config
from nmt.runtime import tf
from nmt.training.state import TrainState

TRANSFORMER = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 12, "heads": 2}
RECURRENT = {"architecture": "recurrent", "width": 8}
DROPOUT = {"dropout": 0.4, "word_dropout": 0.3}


@pytest.mark.parametrize("remove_padding", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model",
    [
        {**TRANSFORMER, **DROPOUT, "attention_dropout": 0.3, "feed_forward_dropout": 0.3},
        {**RECURRENT, **DROPOUT},
        pytest.param({**RECURRENT, **DROPOUT, "input_feeding": False}, marks=pytest.mark.slow),
    ],
    ids=["transformer", "recurrent", "without input feeding"],
)
def test_parts_of_a_batch_have_the_states_of_the_whole(model: dict[str, Any], remove_padding: bool) -> None:
    state = TrainState(
        Config.model_validate({"model": model, "training": {"precision": "float32"}}), {"source": 30, "target": 30}
    )
    random = np.random.default_rng(1)
    source, target = random.integers(4, 30, [5, 6]), random.integers(4, 30, [5, 5])
    for row, (first, second) in enumerate([(6, 5), (2, 4), (3, 2), (5, 5), (1, 3)]):
        source[row, first:], target[row, second:] = 0, 0
    source, target, seed = (tf.constant(source, tf.int32), tf.constant(target, tf.int32), tf.constant([1, 7], tf.int64))

    def states(rows: tuple[int, int] | None = None, dropout: bool = True) -> np.ndarray:
        forced = state.model.teacher_forcing(
            source, target, remove_padding=remove_padding, dropout_seed=seed if dropout else None,
            rows=None if rows is None else tf.constant(rows),
        )  # fmt: skip
        found, real = forced.states.numpy(), forced.targets.numpy() != 0
        return found[real]

    parts = [states(rows) for rows in ((0, 2), (2, 3), (3, 5))]
    np.testing.assert_allclose(np.concatenate(parts), states(), rtol=1e-5, atol=1e-6)
    assert not np.allclose(states(), states(dropout=False), atol=1e-2)
