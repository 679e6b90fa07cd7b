"""Beam search against two oracles that share nothing with it: all translations there are, and a plain loop."""

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
SPEAKABLE = [1, EOS, 4, 5]
LONGEST = 4


class Past(NamedTuple):
    """The cache of a toy model, whose logits depend on the sentence and on all that was said."""

    rows: tf.Tensor  # int32 [B]
    said: tf.Tensor  # int32 [B, K]: the tokens so far as digits to base V

    def reorder(self, parents: tf.Tensor) -> "Past":
        return self._replace(said=tf.gather(self.said, parents, batch_dims=1))

    def select(self, rows: tf.Tensor) -> "Past":
        return Past(tf.gather(self.rows, rows), tf.gather(self.said, rows))


class Toy:
    """A language of V ids: tables of logits and attention for every beginning there is."""

    def __init__(self, seed: int, size: int, spread: float = 1.5) -> None:
        random = np.random.default_rng(seed)
        self.size = size
        self.logits = random.normal(0, spread, [size, V**LONGEST * 3, V]).astype(np.float32)
        self.attention = random.dirichlet(np.ones(S), [size, V**LONGEST * 3]).astype(np.float32)

    def __call__(self, tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        said = past.said * V + tokens
        at = tf.stack([tf.broadcast_to(past.rows[:, tf.newaxis], tf.shape(said)), said], axis=-1)
        logits = BeamLayout.of(tokens).flatten(tf.gather_nd(self.logits, at))
        return logits, tf.gather_nd(self.attention, at), past._replace(said=said)

    def start(self, beams: int) -> Past:
        return Past(tf.range(self.size), tf.zeros([self.size, beams], tf.int32))

    def score(self, row: int, tokens: tuple[int, ...], alpha: float = 0.0, beta: float = 0.0) -> float:
        """Equation 14 of Wu et al. 2016, in Python's own numbers."""
        said, total, coverage = BOS, 0.0, np.zeros(S)
        for token in tokens:
            logits = self.logits[row, said].astype(np.float64)
            total += logits[token] - math.log(np.exp(logits).sum())
            coverage += self.attention[row, said]
            said = said * V + token
        return total / ((5 + len(tokens)) / 6) ** alpha + beta * np.log(np.minimum(coverage, 1)).sum()

    def beam(self, limits: list[int], beams: int, n_best: int = 1, **numbers: Any) -> Hypotheses:
        covered = tf.ones([self.size, S], tf.bool)
        task = SearchLimits(tf.constant(limits))
        return beam_search(self, self.start(beams), task, beams=beams, n_best=n_best, covered=covered, **numbers)


def words(row: np.ndarray) -> tuple[int, ...]:
    return tuple(int(id_) for id_ in row if id_ != PAD)


def everything(limit: int) -> list[tuple[int, ...]]:
    """All that can be said: what ends by itself, and what is cut off at the limit."""
    inner = [id_ for id_ in SPEAKABLE if id_ != EOS]
    whole = [(*one, EOS) for length in range(limit) for one in itertools.product(inner, repeat=length)]
    return whole + list(itertools.product(inner, repeat=limit))


def repeats(tokens: tuple[int, ...], size: int) -> bool:
    """Whether an n-gram is there twice."""
    grams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)] if size else []
    return len(set(grams)) < len(grams)


def beam_in_python(
    toy: Toy, row: int, limit: int, beams: int, alpha: float, beta: float, size: int
) -> list[tuple[int, ...]]:
    """Beam search without early stop, as its definition says: hypotheses that end take their places along."""
    alive: list[tuple[int, ...]] = [()]
    ended: list[tuple[int, ...]] = []
    while alive:
        longer = [(*one, id_) for one in alive for id_ in SPEAKABLE if not repeats((*one, id_), size)]
        ranked = sorted(longer, key=lambda one: -toy.score(row, one))
        taken = ranked[: beams - len(ended)]
        ended += [one for one in taken if one[-1] == EOS or len(one) == limit]
        alive = [one for one in taken if one[-1] != EOS and len(one) < limit]
    return sorted(ended, key=lambda one: -toy.score(row, one, alpha, beta))


PENALTIES = [(0.0, 0.0), (0.6, 0.0), (1.0, 0.0), (0.0, 0.4), (0.8, 0.3)]


@pytest.mark.parametrize(("alpha", "beta"), PENALTIES)
def test_a_beam_as_wide_as_the_language_finds_the_best_there_is(alpha: float, beta: float) -> None:
    limits = [1, 2, 3]
    toy, beams = Toy(1, 3), len(everything(3))
    found = toy.beam(limits, beams, n_best=5, alpha=alpha, beta=beta)
    for row, limit in enumerate(limits):
        best = sorted(everything(limit), key=lambda one: -toy.score(row, one, alpha, beta))[:5]
        rows = [words(tokens) for tokens in found.tokens[row].numpy()]
        assert rows[: len(best)] == best
        expected = [toy.score(row, one, alpha, beta) for one in best]
        np.testing.assert_allclose(found.scores[row, : len(best)], expected, rtol=1e-5, atol=1e-5)
        assert np.all(found.scores[row, len(best) :].numpy() == -np.inf), "fewer exist"


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 5), st.lists(st.integers(1, LONGEST), min_size=1, max_size=4),
    st.sampled_from(PENALTIES), st.integers(0, 3), st.data(),
)  # fmt: skip
def test_beam_search_is_that_of_a_plain_loop_though_it_stops_early(
    seed: int, beams: int, limits: list[int], penalties: tuple[float, float], size: int, data: st.DataObject
) -> None:
    alpha, beta = penalties
    n_best = data.draw(st.integers(1, beams))
    toy = Toy(seed, len(limits))
    found = toy.beam(limits, beams, n_best, alpha=alpha, beta=beta, no_repeat_ngram_size=size)
    assert found.tokens.shape == (len(limits), n_best, max(limits))
    for row, limit in enumerate(limits):
        expected = beam_in_python(toy, row, limit, beams, alpha, beta, size)[:n_best]
        assert [words(tokens) for tokens in found.tokens[row].numpy()][: len(expected)] == expected
        scores = [toy.score(row, one, alpha, beta) for one in expected]
        np.testing.assert_allclose(found.scores[row, : len(scores)], scores, rtol=1e-4, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(1, LONGEST), min_size=1, max_size=5), st.integers(0, 3))
def test_a_beam_of_one_is_greedy_search(seed: int, limits: list[int], size: int) -> None:
    toy, task = Toy(seed, len(limits)), SearchLimits(tf.constant(limits))
    one = toy.beam(limits, 1, alpha=0.6, no_repeat_ngram_size=size)
    expected = step_search(toy, toy.start(1), task, no_repeat_ngram_size=size, scored=True)
    np.testing.assert_array_equal(one.tokens, expected.tokens)
    lengths = [len(words(row)) for row in expected.tokens[:, 0].numpy()]
    np.testing.assert_allclose(one.scores[:, 0] * length_penalty(lengths, 0.6), expected.scores[:, 0], rtol=1e-5)


def test_sentences_that_have_ended_are_computed_no_more() -> None:
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
def test_a_step_is_given_padding_where_no_beam_is_open(seed: int) -> None:
    toy, live = Toy(seed, 1), []

    def counted(tokens: tf.Tensor, past: Past) -> tuple[tf.Tensor, tf.Tensor, Past]:
        live.append(int(np.sum(tokens.numpy() != PAD)))
        return toy(tokens, past)

    found = beam_search(counted, toy.start(3), SearchLimits(tf.constant([LONGEST])), beams=3, n_best=3)
    lengths = [len(words(row)) for row in found.tokens[0].numpy()]
    # All beams begin as one; then each is open until its hypothesis ends.
    assert live == [1, *(sum(length > count for length in lengths) for count in range(1, max(lengths)))]


def test_every_beam_begins_with_the_prefix_and_its_score_counts() -> None:
    toy, prefix = Toy(4, 2), [[5, 4], [1, PAD]]
    task = SearchLimits(tf.constant([4, 4]), tf.constant(prefix))
    found = beam_search(toy, toy.start(200), task, beams=200, n_best=3)
    for row, forced in enumerate([(5, 4), (1,)]):
        possible = [one for one in everything(4) if one[: len(forced)] == forced]
        best = sorted(possible, key=lambda one: -toy.score(row, one))[:3]
        assert [words(tokens) for tokens in found.tokens[row].numpy()] == best
        np.testing.assert_allclose(found.scores[row], [toy.score(row, one) for one in best], rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12), st.integers(1, 14))
def test_a_token_that_would_repeat_an_n_gram_is_masked(seed: int, count: int, size: int) -> None:
    random = np.random.default_rng(seed)
    tokens = np.where(np.arange(12) < count, random.choice([1, 4], [3, 12]), PAD).astype(np.int32)
    for dtype in (tf.float32, tf.bfloat16):
        logits = tf.cast(random.normal(size=[3, V]), dtype)
        found = mask_repeats(logits, tf.constant(tokens), tf.constant(count), size).numpy()
        for row, said in enumerate(tokens[:, :count].tolist()):
            expected = [-np.inf if repeats((*said, id_), size) else logits.numpy()[row, id_] for id_ in range(1, V)]
            if not repeats(tuple(said), size):  # what a prefix forces may repeat an n-gram before
                np.testing.assert_array_equal(found[row, 1:], expected)


def test_samples_have_no_n_gram_twice_and_a_forced_prefix_is_kept() -> None:
    toy, prefix = Toy(4, 40), [5, 5, 5, PAD]
    task = SearchLimits(tf.fill([40], LONGEST), tf.constant([prefix] * 40))
    numbers = tf.constant(np.random.default_rng(1).random([40, LONGEST], np.float32))
    for found in (
        sample(toy, toy.start(1), task, numbers, no_repeat_ngram_size=1),
        beam_search(toy, toy.start(2), task, beams=2, no_repeat_ngram_size=1),
    ):
        rows = [words(row) for row in found.tokens[:, 0].numpy()]
        assert all(row[:3] == (5, 5, 5) and row[3] != 5 for row in rows) and len({*rows}) > 2


def test_penalties_are_those_of_equation_14() -> None:
    np.testing.assert_allclose(length_penalty(tf.constant([1, 7, 25]), 0.5), [1, math.sqrt(2), math.sqrt(5)], rtol=1e-6)
    coverage = tf.constant([[[0.5, 2.0, 0.0], [1.0, 0.25, 0.0]]])
    found = coverage_penalty(coverage, tf.constant([[True, True, False]]), 0.2)
    np.testing.assert_allclose(found, [[0.2 * math.log(0.5), 0.2 * math.log(0.25)]], rtol=1e-6)


@pytest.mark.parametrize("vocabulary", [1, 5, 64, 640, 1000])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_largest_by_groups_are_the_largest(vocabulary: int, k: int) -> None:
    # few different values, so that there are equals: the first of them come first
    logits = np.random.default_rng(1).integers(0, 50, [4, 2, vocabulary]).astype(np.float32)
    values, places = largest(tf.constant(logits), k)
    expected = np.argsort(-logits, axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=-1))


# --- sampling


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "expected"),
    [
        (1.0, 0, 1.0, [0.1, 0.4, 0.2, 0.3]),
        (0.5, 0, 1.0, [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        (1.0, 2, 1.0, [0, 4 / 7, 0, 3 / 7]),
        (1.0, 9, 1.0, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 1, 1.0, [0, 1, 0, 0]),
        (1.0, 0, 0.5, [0, 4 / 7, 0, 3 / 7]),  # 0.4 is not yet half
        (1.0, 0, 0.39, [0, 1, 0, 0]),
        (1.0, 3, 0.8, [0, 4 / 9, 2 / 9, 3 / 9]),  # of 4/9, 3/9 and 2/9 two have 7/9
    ],
)
def test_drawn_shares_are_the_probabilities(
    temperature: float, top_k: int, top_p: float, expected: list[float]
) -> None:
    random = ((np.arange(10_000) + 0.5) / 10_000).astype(np.float32)  # every part of [0, 1) as often as any other
    logits = np.tile(np.log(np.array([[0.1, 0.4, 0.2, 0.3]], np.float32)) + 3, [len(random), 1])
    drawn = draw(tf.constant(logits), tf.constant(random), temperature, top_k, top_p).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / len(random), expected, atol=2e-4)


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.7)])
def test_nothing_impossible_is_drawn_at_either_end(top_k: int, top_p: float) -> None:
    logits = tf.constant([[-np.inf, 1.0, 2.0, -np.inf], [-np.inf, 1.0, 2.0, -np.inf]])
    drawn = draw(logits, tf.constant([0.0, np.nextafter(np.float32(1), np.float32(0))]), 1.0, top_k, top_p).numpy()
    assert set(drawn.tolist()) <= {1, 2}


def test_samples_of_a_sentence_hang_on_its_numbers_alone() -> None:
    toy, limits = Toy(6, 4), [4, 3, 4, 2]
    random = np.random.default_rng(1).random([4, 4], np.float32)
    task = SearchLimits(tf.constant(limits))
    together = sample(toy, toy.start(1), task, tf.constant(random), scored=True)
    assert len({words(row) for row in together.tokens[:, 0].numpy()}) > 2
    for row, limit in enumerate(limits):
        start = Past(tf.constant([row]), tf.zeros([1, 1], tf.int32))
        alone = sample(toy, start, SearchLimits(tf.constant([limit])), tf.constant(random[row : row + 1]), scored=True)
        said = words(alone.tokens[0, 0].numpy())
        assert said == words(together.tokens[row, 0].numpy())
        np.testing.assert_allclose([alone.scores[0, 0], together.scores[row, 0]], toy.score(row, said), rtol=1e-5)
