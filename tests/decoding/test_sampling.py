"""Greedy search over scripted logits, whose every answer is known, and over a small Transformer."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt import runtime
from nmt.config.schema import Config, TransformerConfig
from nmt.decoding.sampling import step_search
from nmt.decoding.search import SearchLimits
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.models.build import build_model
from nmt.models.layers.unpadding import BeamLayout
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

VOCABULARY = 9


class Progress(NamedTuple):
    """The cache of scripted steps: which sentences are left, how many steps were taken, and what each beam has said."""

    rows: tf.Tensor  # int32 [B]
    count: tf.Tensor  # int32 scalar
    said: tf.Tensor  # int32 [B, K]: a number for all that a beam has said so far

    def reorder(self, parents: tf.Tensor) -> "Progress":
        return self._replace(said=tf.gather(self.said, parents, batch_dims=1))

    def select(self, rows: tf.Tensor) -> "Progress":
        return Progress(tf.gather(self.rows, rows), self.count, tf.gather(self.said, rows))


class Script:
    """A step function that reads its logits [B, N, V] from a table and notes the tokens that it is given."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table.astype(np.float32)
        self.given: list[list[int]] = []

    def __call__(self, tokens: tf.Tensor, cache: Progress) -> tuple[tf.Tensor, None, Progress]:
        if tf.executing_eagerly():
            assert tokens.shape == (len(cache.rows), 1)
            self.given.append(tokens[:, 0].numpy().tolist())
        logits = tf.gather(tf.constant(self.table)[:, cache.count, tf.newaxis], cache.rows)
        return BeamLayout.of(tokens).flatten(logits), None, cache._replace(count=cache.count + 1)

    def start(self, beams: int = 1) -> Progress:
        size = len(self.table)
        return Progress(tf.range(size), tf.constant(0), tf.zeros([size, beams], tf.int32))

    def search(self, limits: list[int], prefixes: list[list[int]] | None = None) -> np.ndarray:
        forced = None if prefixes is None else tf.constant(prefixes)
        tokens = step_search(self, self.start(), SearchLimits(tf.constant(limits), forced)).tokens.numpy()
        assert tokens.shape == (len(limits), 1, max(limits)) and tokens.dtype == np.int32
        return tokens[:, 0, : max(1, int((tokens != PAD).any(axis=(0, 1)).sum()))]


def saying(*rows: list[int]) -> Script:
    """Return a script in which these ids have the largest logit."""
    return Script(np.eye(VOCABULARY)[np.array(rows)])


# --- scripted


def test_each_step_is_given_the_tokens_just_found_the_first_one_bos() -> None:
    script = saying([5, 6, EOS], [4, EOS, 7])
    script.search([9, 9])
    assert script.given == [[BOS, BOS], [5, 4], [6]], "a sentence that has ended is computed no more"


def greedy_in_python(table: np.ndarray, limits: list[int]) -> list[list[int]]:
    rows = []
    for logits, limit in zip(table, limits, strict=True):
        row: list[int] = []
        while len(row) < limit and EOS not in row:
            allowed = [id_ for id_ in range(VOCABULARY) if id_ not in (PAD, BOS)]
            row.append(max(allowed, key=lambda id_: logits[len(row), id_]))
        rows.append(row)
    longest = max(map(len, rows))
    return [row + [PAD] * (longest - len(row)) for row in rows]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 10_000))
def test_search_equals_a_loop_over_sentences(limits: list[int], seed: int) -> None:
    table = np.random.default_rng(seed).standard_normal((len(limits), 6, VOCABULARY))
    table[:, :, EOS] += 0.5  # ends come early and late
    table[:, :, [PAD, BOS]] += 1e9  # never said, however likely
    found = Script(table).search(limits)
    assert found.tolist() == greedy_in_python(table, limits)
    assert found.shape[1] <= max(limits)


def test_a_prefix_is_said_first_and_what_follows_is_searched_for() -> None:
    script = saying([5, 6, EOS, 8], [4, 7, 7, EOS], [8, 7, 6, EOS])
    found = script.search([4, 4, 4], [[7, PAD], [8, 8], [PAD, PAD]])
    assert found.tolist() == [[7, 6, EOS, PAD], [8, 8, 7, EOS], [8, 7, 6, EOS]]


# --- with a Transformer

SOURCES = [[BOS, 5, 6, EOS], [BOS, 8, EOS], [BOS, 7, 4, 4, 5, 6, EOS], [BOS, 6, 5, EOS], [BOS, 4, 8, 7, EOS]]
LIMITS = [8, 3, 7, 5, 8]


@pytest.mark.parametrize(("norm", "seed"), [("post", 6), ("pre", 2)])  # weights that say different things
def test_search_with_a_cache_equals_decoding_anew_at_every_step(norm: str, seed: int) -> None:
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=2, d_model=8, d_ff=16, heads=2, norm_placement=norm, tie_embeddings="none"
    )
    runtime.start(1)
    model, random = build_model(config, VOCABULARY, VOCABULARY), np.random.default_rng(seed)
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
