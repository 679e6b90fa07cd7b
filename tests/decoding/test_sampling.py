"""Greedy search over a small Transformer; ``test_beam.py`` has the searches over toy models."""

import numpy as np
import pytest

from nmt.config.schema import Config, TransformerConfig
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.models.build import build_model
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

VOCABULARY = 9
SOURCES = [[BOS, 5, 6, EOS], [BOS, 8, EOS], [BOS, 7, 4, 4, 5, 6, EOS], [BOS, 6, 5, EOS], [BOS, 4, 8, 7, EOS]]
LIMITS = [8, 3, 7, 5, 8]


@pytest.mark.parametrize(("norm", "seed"), [("post", 6), ("pre", 2)])  # weights that say different things
def test_search_with_a_cache_equals_decoding_anew_at_every_step(norm: str, seed: int) -> None:
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=2, d_model=8, d_ff=16, heads=2, norm_placement=norm, tie_embeddings="none"
    )
    model, random = build_model(config, VOCABULARY, VOCABULARY, seed=1), np.random.default_rng(seed)
    for weight in model.trainable_weights:
        if len(weight.shape) == 2:  # biases would make it say the same to everything
            weight.assign(random.normal(0, 1, weight.shape))

    def decoded_anew(row: list[int], limit: int) -> list[int]:
        """Return the ids found for a sentence without a cache: all so far are decoded at every step."""
        memory, found = model.encode(tf.constant([row])), [BOS]
        while len(found) <= limit and found[-1] != EOS:
            states = model.decode_states(tf.constant([found]), memory)
            logits = model.output_projection().logits(states)[0, -1].numpy()
            logits[[PAD, BOS]] = -np.inf
            found.append(int(logits.argmax()))
        return found[1:]

    expected = [decoded_anew(row, limit) for row, limit in zip(SOURCES, LIMITS, strict=True)]
    assert len({tuple(row) for row in expected}) > 2  # not one sentence for all
    assert len({EOS in row for row in expected}) == 2  # some end by themselves, some at their limit
    source = np.array([row + [PAD] * (7 - len(row)) for row in SOURCES], np.int32)
    found = TensorFlowEngine(model, Config(model=config)).search_batch(source, np.array(LIMITS, np.int32))
    assert [[id_ for id_ in row if id_ != PAD] for row in found.tokens[:, 0].numpy().tolist()] == expected
