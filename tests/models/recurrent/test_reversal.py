"""Reversing a sequence: attention learns it, and its alignment is the anti-diagonal."""

from typing import Any

import numpy as np
import pytest

from nmt.config.model import RecurrentConfig
from nmt.config.training import TrainingConfig
from nmt.models.build import build_model
from nmt.runtime import keras, tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD
from nmt.training.optimization.losses import cross_entropy
from nmt.training.optimization.optimizer import Adam

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
    optimizer, random = Adam(model.trainable_variables, TrainingConfig()), np.random.default_rng(1)

    @tf.function
    def step(source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            forced = model.teacher_forcing(source, target)
            sums = cross_entropy(model.output_projection().logits(forced.states), forced.targets)
            loss = sums.objective / sums.tokens
        optimizer.apply(tape.gradient(loss, model.trainable_variables), tf.constant(0.005))
        return sums.correct / sums.tokens

    accuracy = [float(step(*batch(random, 64))) for _ in range(STEPS)]
    assert np.mean(accuracy[-10:]) > 0.95
    source, target = batch(random, 50)
    weights = tf.reduce_mean(model.cross_attention(source, target[:, :-1])[0, 0], axis=0).numpy()
    assert weights[:LENGTH, :LENGTH].argmax(axis=1).tolist() == list(range(LENGTH - 1, -1, -1))
