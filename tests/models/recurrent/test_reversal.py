"""Reversing a sequence: attention learns it, and its alignment is the anti-diagonal."""

from typing import Any

import numpy as np
import pytest
from learning import training_step

from nmt.config.model import RecurrentConfig
from nmt.models.build import build_model
from nmt.runtime import keras, tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD

WORDS, LENGTH, STEPS = 10, 6, 250
ATTENTIONS: dict[str, dict[str, Any]] = {
    "bahdanau": {"cell": "gru", "bidirectional": True, "first_state": "backward", "attention": "additive",
                 "step": "bahdanau"},
    "luong": {"cell": "lstm", "attention": "general", "bidirectional": True, "first_state": "linear"},
}  # fmt: skip


def batch(random: np.random.Generator, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    words = random.integers(FIRST_WORD, FIRST_WORD + WORDS, [count, LENGTH])
    bos, eos = (np.full([count, 1], id_) for id_ in (BOS, EOS))
    rows = np.concatenate([words, eos], axis=1), np.concatenate([bos, words[:, ::-1], eos], axis=1)
    return tf.constant(rows[0], tf.int32), tf.constant(rows[1], tf.int32)


@pytest.mark.parametrize("settings", ATTENTIONS.values(), ids=ATTENTIONS)
def test_a_reversal_is_learnt_along_the_anti_diagonal(settings: dict[str, Any]) -> None:
    keras.utils.set_random_seed(1)
    model = build_model(RecurrentConfig(width=48, dropout=0, **settings), FIRST_WORD + WORDS, FIRST_WORD + WORDS)
    step, random = training_step(model, 0.005), np.random.default_rng(1)
    accuracy = [float(step(*batch(random, 64))[1]) for _ in range(STEPS)]
    assert np.mean(accuracy[-10:]) > 0.95
    source, target = batch(random, 50)
    weights = tf.reduce_mean(model.cross_attention(source, target[:, :-1])[0, 0], axis=0).numpy()
    assert weights[:LENGTH, :LENGTH].argmax(axis=1).tolist() == list(range(LENGTH - 1, -1, -1))
