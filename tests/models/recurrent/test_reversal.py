"""Reversing a sequence: attention learns it, and its alignment is the anti-diagonal."""

from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Config, RecurrentConfig
from nmt.config.training import TrainingConfig
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD
from nmt.training.optimization.gradient_sums import Sums
from nmt.training.optimization.update import Update

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


@pytest.mark.slow
@pytest.mark.parametrize("settings", ATTENTIONS.values(), ids=ATTENTIONS)
def test_a_reversal_is_learnt_along_the_anti_diagonal(settings: dict[str, Any]) -> None:
    model, training = RecurrentConfig(width=48, dropout=0, **settings), TrainingConfig(label_smoothing=0)
    update = Update.of(Config(model=model, training=training), dict.fromkeys(["source", "target"], FIRST_WORD + WORDS))
    random = np.random.default_rng(1)
    for step in range(STEPS):
        if step == STEPS - 10:
            update.totals.set(Sums())
        update.take([batch(random, 64)], 0.005, 1 + step)
    assert update.totals.read().means[1] > 0.95
    source, target = batch(random, 50)
    weights = tf.reduce_mean(update.model.cross_attention(source, target[:, :-1])[0, 0], axis=0).numpy()
    assert weights[:LENGTH, :LENGTH].argmax(axis=1).tolist() == list(range(LENGTH - 1, -1, -1))
