"""Beam search compared with two independent oracles: an exhaustive list of translations, and a plain loop."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.decoding.beam import beam_search, coverage_penalty, length_penalty
from nmt.decoding.search import Hypotheses, SearchLimits, draw, largest, mask_repeats, sample, step_search
from nmt.models.layers.unpadding import BeamLayout
from nmt.runtime import tf

PAD, BOS, EOS, V, S = 0, 2, 3, 6, 3
ALLOWED = [1, EOS, 4, 5]
LONGEST = 4


class Past(NamedTuple):
    """Cache of a toy model, whose logits depend on the sentence and on all earlier tokens."""

    rows: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, K]: the tokens so far as digits in base V

    def reorder(self, parents: tf.Tensor) -> "Past":
        return self._replace(prefix=tf.gather(self.prefix, parents, batch_dims=1))

    def select(self, rows: tf.Tensor) -> "Past":
        return Past(tf.gather(self.rows, rows), tf.gather(self.prefix, rows))


class Toy:
    """Model of a language of V ids: tables of logits and attention for every possible prefix."""

    def __init__(self, seed: int, size: int, spread: float = 1.5) -> None:
        random = np.random.default_rng(seed)
        self.size = size
        self.logits = random.normal(0, spread, [size, V**LONGEST * 3, V]).astype(np.float32)
        self.attention = random.dirichlet(np.ones(S), [size, V**LONGEST * 3]).astype(np.float32)

    def __call__(self, tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        prefix = past.prefix * V + tokens
        at = tf.stack([tf.broadcast_to(past.rows[:, tf.newaxis], tf.shape(prefix)), prefix], axis=-1)
        logits = BeamLayout.of(tokens).flatten(tf.gather_nd(self.logits, at))
        return logits, tf.gather_nd(self.attention, at), past._replace(prefix=prefix)

    def start(self, beams: int) -> Past:
        return Past(tf.range(self.size), tf.zeros([self.size, beams], tf.int32))

    def score(self, row: int, tokens: tuple[int, ...], alpha: float = 0.0, beta: float = 0.0) -> float:
        """Return the score of equation 14 of Wu et al. 2016, computed with Python floats."""
        prefix, total, coverage = BOS, 0.0, np.zeros(S)
        for token in tokens:
            logits = self.logits[row, prefix].astype(np.float64)
            total += logits[token] - math.log(np.exp(logits).sum())
            coverage += self.attention[row, prefix]
            prefix = prefix * V + token
        return total / ((5 + len(tokens)) / 6) ** alpha + beta * np.log(np.minimum(coverage, 1)).sum()

    def beam(self, limits: list[int], beams: int, n_best: int = 1, **numbers: Any) -> Hypotheses:
        covered = tf.ones([self.size, S], tf.bool)
        task = SearchLimits(tf.constant(limits))
        return beam_search(self, self.start(beams), task, beams=beams, n_best=n_best, covered=covered, **numbers)


def words(row: np.ndarray) -> tuple[int, ...]:
    return tuple(int(id_) for id_ in row if id_ != PAD)


def everything(limit: int) -> list[tuple[int, ...]]:
    """Return all possible hypotheses: those that end with eos, and those cut off at the limit."""
    inner = [id_ for id_ in ALLOWED if id_ != EOS]
    whole = [(*tokens, EOS) for length in range(limit) for tokens in itertools.product(inner, repeat=length)]
    return whole + list(itertools.product(inner, repeat=limit))


def repeats(tokens: tuple[int, ...], size: int) -> bool:
    """Return whether an n-gram occurs twice."""
    grams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)] if size else []
    return len(set(grams)) < len(grams)


def beam_in_python(
    toy: Toy, row: int, limit: int, beams: int, alpha: float, beta: float, size: int
) -> list[tuple[int, ...]]:
    """Beam search by its definition, without early stop: finished hypotheses keep their slots."""
    alive: list[tuple[int, ...]] = [()]
    ended: list[tuple[int, ...]] = []
    while alive:
        longer = [(*tokens, id_) for tokens in alive for id_ in ALLOWED if not repeats((*tokens, id_), size)]
        ranked = sorted(longer, key=lambda tokens: -toy.score(row, tokens))
        beam = ranked[: beams - len(ended)]
        ended += [tokens for tokens in beam if tokens[-1] == EOS or len(tokens) == limit]
        alive = [tokens for tokens in beam if tokens[-1] != EOS and len(tokens) < limit]
    return sorted(ended, key=lambda tokens: -toy.score(row, tokens, alpha, beta))


PENALTIES = [(0.0, 0.0), (0.6, 0.0), (1.0, 0.0), (0.0, 0.4), (0.8, 0.3)]


@pytest.mark.parametrize(("alpha", "beta"), PENALTIES)
def test_a_beam_as_wide_as_the_language_finds_the_best_hypotheses(alpha: float, beta: float) -> None:
    limits = [1, 2, 3]
    toy, beams = Toy(1, 3), len(everything(3))
    result = toy.beam(limits, beams, n_best=5, alpha=alpha, beta=beta)
    for row, limit in enumerate(limits):
        best = sorted(everything(limit), key=lambda tokens: -toy.score(row, tokens, alpha, beta))[:5]
        rows = [words(tokens) for tokens in result.tokens[row].numpy()]
        assert rows[: len(best)] == best
        expected = [toy.score(row, tokens, alpha, beta) for tokens in best]
        np.testing.assert_allclose(result.scores[row, : len(best)], expected, rtol=1e-5, atol=1e-5)
        assert np.all(result.scores[row, len(best) :].numpy() == -np.inf), "fewer exist"


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 5), st.lists(st.integers(1, LONGEST), min_size=1, max_size=4),
    st.sampled_from(PENALTIES), st.integers(0, 3), st.data(),
)  # fmt: skip
def test_beam_search_with_early_stop_equals_a_plain_loop(
    seed: int, beams: int, limits: list[int], penalties: tuple[float, float], size: int, data: st.DataObject
) -> None:
    alpha, beta = penalties
    n_best = data.draw(st.integers(1, beams))
    toy = Toy(seed, len(limits))
    result = toy.beam(limits, beams, n_best, alpha=alpha, beta=beta, no_repeat_ngram_size=size)
    assert result.tokens.shape == (len(limits), n_best, max(limits))
    for row, limit in enumerate(limits):
        expected = beam_in_python(toy, row, limit, beams, alpha, beta, size)[:n_best]
        assert [words(tokens) for tokens in result.tokens[row].numpy()][: len(expected)] == expected
        scores = [toy.score(row, tokens, alpha, beta) for tokens in expected]
        np.testing.assert_allclose(result.scores[row, : len(scores)], scores, rtol=1e-4, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(1, LONGEST), min_size=1, max_size=5), st.integers(0, 3))
def test_a_beam_of_one_is_greedy_search(seed: int, limits: list[int], size: int) -> None:
    toy, task = Toy(seed, len(limits)), SearchLimits(tf.constant(limits))
    result = toy.beam(limits, 1, alpha=0.6, no_repeat_ngram_size=size)
    expected = step_search(toy, toy.start(1), task, no_repeat_ngram_size=size, scored=True)
    np.testing.assert_array_equal(result.tokens, expected.tokens)
    lengths = [len(words(row)) for row in expected.tokens[:, 0].numpy()]
    np.testing.assert_allclose(result.scores[:, 0] * length_penalty(lengths, 0.6), expected.scores[:, 0], rtol=1e-5)


def test_finished_sentences_are_no_longer_computed() -> None:
    toy, sizes = Toy(3, 4), []

    def counted(tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        sizes.append(len(tokens))
        return toy(tokens, past)

    step_search(counted, toy.start(1), SearchLimits(tf.constant([1, 1, 1, 2])))
    assert sizes in ([4], [4, 1])


def test_the_early_stop_saves_steps() -> None:
    toy, steps = Toy(3, 1), []

    def counted(tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        steps.append(1)
        logits, attention, past = toy(tokens, past)
        return logits + 6.0 * tf.one_hot(EOS, V), attention, past

    beam_search(counted, toy.start(4), SearchLimits(tf.constant([LONGEST])), beams=4)
    assert len(steps) == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_step_receives_padding_for_beams_that_are_not_live(seed: int) -> None:
    toy, live = Toy(seed, 1), []

    def counted(tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        live.append(int(np.sum(tokens.numpy() != PAD)))
        return toy(tokens, past)

    result = beam_search(counted, toy.start(3), SearchLimits(tf.constant([LONGEST])), beams=3, n_best=3)
    lengths = [len(words(row)) for row in result.tokens[0].numpy()]
    # The search begins with one live beam; later a beam is live until its hypothesis ends.
    assert live == [1, *(sum(length > count for length in lengths) for count in range(1, max(lengths)))]


def test_every_beam_begins_with_the_prefix_and_its_score_counts() -> None:
    toy, prefix = Toy(4, 2), [[5, 4], [1, PAD]]
    task = SearchLimits(tf.constant([4, 4]), tf.constant(prefix))
    result = beam_search(toy, toy.start(200), task, beams=200, n_best=3)
    for row, forced in enumerate([(5, 4), (1,)]):
        possible = [tokens for tokens in everything(4) if tokens[: len(forced)] == forced]
        best = sorted(possible, key=lambda tokens: -toy.score(row, tokens))[:3]
        assert [words(tokens) for tokens in result.tokens[row].numpy()] == best
        np.testing.assert_allclose(result.scores[row], [toy.score(row, tokens) for tokens in best], rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12), st.integers(1, 14))
def test_a_token_that_would_repeat_an_n_gram_is_masked(seed: int, count: int, size: int) -> None:
    random = np.random.default_rng(seed)
    tokens = np.where(np.arange(12) < count, random.choice([1, 4], [3, 12]), PAD).astype(np.int32)
    for dtype in (tf.float32, tf.bfloat16):
        logits = tf.cast(random.normal(size=[3, V]), dtype)
        masked = mask_repeats(logits, tf.constant(tokens), tf.constant(count), size).numpy()
        for row, prefix in enumerate(tokens[:, :count].tolist()):
            expected = [-np.inf if repeats((*prefix, id_), size) else logits.numpy()[row, id_] for id_ in range(1, V)]
            if not repeats(tuple(prefix), size):  # a prefix that already has a repeat says nothing
                np.testing.assert_array_equal(masked[row, 1:], expected)


def test_samples_have_no_n_gram_twice_and_a_forced_prefix_is_kept() -> None:
    toy, prefix = Toy(4, 40), [5, 5, 5, PAD]
    task = SearchLimits(tf.fill([40], LONGEST), tf.constant([prefix] * 40))
    numbers = tf.constant(np.random.default_rng(1).random([40, LONGEST], np.float32))
    for result in (
        sample(toy, toy.start(1), task, numbers, no_repeat_ngram_size=1),
        beam_search(toy, toy.start(2), task, beams=2, no_repeat_ngram_size=1),
    ):
        rows = [words(row) for row in result.tokens[:, 0].numpy()]
        assert all(row[:3] == (5, 5, 5) and row[3] != 5 for row in rows) and len({*rows}) > 2


def test_penalties_follow_equation_14() -> None:
    np.testing.assert_allclose(length_penalty(tf.constant([1, 7, 25]), 0.5), [1, math.sqrt(2), math.sqrt(5)], rtol=1e-6)
    coverage = tf.constant([[[0.5, 2.0, 0.0], [1.0, 0.25, 0.0]]])
    penalties = coverage_penalty(coverage, tf.constant([[True, True, False]]), 0.2)
    np.testing.assert_allclose(penalties, [[0.2 * math.log(0.5), 0.2 * math.log(0.25)]], rtol=1e-6)


@pytest.mark.parametrize("vocabulary", [1, 5, 64, 640, 1000])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_search_by_groups_finds_the_largest_values(vocabulary: int, k: int) -> None:
    # Few different values make ties, which the lowest index wins.
    logits = np.random.default_rng(1).integers(0, 50, [4, 2, vocabulary]).astype(np.float32)
    values, places = largest(tf.constant(logits), k)
    expected = np.argsort(-logits, axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=-1))


# --- sampling


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "epsilon", "expected"),
    [
        (1.0, 0, 1.0, 0.0, [0.1, 0.4, 0.2, 0.3]),
        (0.5, 0, 1.0, 0.0, [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        (1.0, 2, 1.0, 0.0, [0, 4 / 7, 0, 3 / 7]),
        (1.0, 9, 1.0, 0.0, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 1, 1.0, 0.0, [0, 1, 0, 0]),
        (1.0, 0, 0.5, 0.0, [0, 4 / 7, 0, 3 / 7]),  # 0.4 is less than 0.5
        (1.0, 0, 0.39, 0.0, [0, 1, 0, 0]),
        (1.0, 3, 0.8, 0.0, [0, 4 / 9, 2 / 9, 3 / 9]),  # after top-k: 4/9, 3/9, 2/9; the first two sum to 7/9 < 0.8
        (1.0, 0, 1.0, 0.15, [0, 4 / 9, 2 / 9, 3 / 9]),
        (0.5, 0, 1.0, 0.15, [0, 16 / 25, 0, 9 / 25]),  # after the temperature: 0.03, 0.53, 0.13, 0.3
        (1.0, 0, 1.0, 0.9, [0, 1, 0, 0]),  # the likeliest token stays
        (1.0, 0, 0.5, 0.35, [0, 1, 0, 0]),
    ],
)
def test_drawn_shares_are_the_probabilities(
    temperature: float, top_k: int, top_p: float, epsilon: float, expected: list[float]
) -> None:
    random = ((np.arange(10_000) + 0.5) / 10_000).astype(np.float32)  # evenly spaced in [0, 1)
    logits = np.tile(np.log(np.array([[0.1, 0.4, 0.2, 0.3]], np.float32)) + 3, [len(random), 1])
    drawn = draw(tf.constant(logits), tf.constant(random), temperature, top_k, top_p, epsilon).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / len(random), expected, atol=2e-4)


@pytest.mark.parametrize(("top_k", "top_p", "epsilon"), [(0, 1.0, 0.0), (3, 1.0, 0.0), (0, 0.7, 0.0), (0, 1.0, 0.3)])
def test_nothing_impossible_is_drawn_at_either_end(top_k: int, top_p: float, epsilon: float) -> None:
    logits = tf.constant([[-np.inf, 1.0, 2.0, -np.inf], [-np.inf, 1.0, 2.0, -np.inf]])
    random = tf.constant([0.0, np.nextafter(np.float32(1), np.float32(0))])
    drawn = draw(logits, random, 1.0, top_k, top_p, epsilon).numpy()
    assert set(drawn.tolist()) <= {1, 2}


def test_samples_of_a_sentence_depend_only_on_its_random_numbers() -> None:
    toy, limits = Toy(6, 4), [4, 3, 4, 2]
    random = np.random.default_rng(1).random([4, 4], np.float32)
    task = SearchLimits(tf.constant(limits))
    together = sample(toy, toy.start(1), task, tf.constant(random), scored=True)
    assert len({words(row) for row in together.tokens[:, 0].numpy()}) > 2
    for row, limit in enumerate(limits):
        start = Past(tf.constant([row]), tf.zeros([1, 1], tf.int32))
        single = sample(toy, start, SearchLimits(tf.constant([limit])), tf.constant(random[row : row + 1]), scored=True)
        tokens = words(single.tokens[0, 0].numpy())
        assert tokens == words(together.tokens[row, 0].numpy())
        np.testing.assert_allclose([single.scores[0, 0], together.scores[row, 0]], toy.score(row, tokens), rtol=1e-5)
