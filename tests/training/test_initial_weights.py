"""Initial weights: word vectors of the corpus against NumPy, and the embeddings that a run starts from."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from tiny_runs import prepare_pairs, tiny

from nmt.data.dataset import Dataset
from nmt.data.token_arrays import Sequences, Split
from nmt.models.build import build_model
from nmt.models.weights import weights_of
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.training import initial_weights
from nmt.training.initial_weights import cooccurrence_vectors, set_word_vectors


def split_of(pairs: list[tuple[list[int], list[int]]], vocabulary: int) -> Split:
    source, target = zip(*pairs, strict=True)
    return Split(Sequences.from_rows(source, vocabulary), Sequences.from_rows(target, vocabulary))


def vectors_of(split: Split, vocabulary: int, first_target: int, width: int, seed: int = 1) -> np.ndarray:
    return cooccurrence_vectors(split, vocabulary, first_target, width, np.random.default_rng(seed))


def cosines_by_numpy(pairs: list[tuple[list[int], list[int]]], vocabulary: int, first: int, width: int) -> np.ndarray:
    """Return the cosines [V, V] of the vectors by their definition, from a dense matrix."""
    there = np.zeros((vocabulary, len(pairs)))
    for number, (source, target) in enumerate(pairs):
        there[[*source, *(first + id_ for id_ in target)], number] = 1
    frequencies = np.maximum(there.sum(1, keepdims=True), 1)
    weighted = there * np.log(len(pairs) / frequencies) / np.sqrt(np.maximum(there.sum(0), 1))
    left, values, _ = np.linalg.svd(weighted, full_matrices=False)
    vectors = left[:, :width] * np.sqrt(values[:width])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def random_pairs(generator: np.random.Generator, count: int, words: int) -> list[tuple[list[int], list[int]]]:
    def sentence() -> list[int]:
        return generator.integers(0, words, generator.integers(1, 6)).tolist()

    return [(sentence(), sentence()) for _ in range(count)]


@pytest.mark.parametrize("first_target", [0, 20])
def test_vectors_follow_the_definition(first_target: int) -> None:
    pairs = random_pairs(np.random.default_rng(3), 150, 20)
    vectors = vectors_of(split_of(pairs, 20), 20 + first_target, first_target, 8)
    expected = cosines_by_numpy(pairs, 20 + first_target, first_target, 8)
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-4)


def test_vectors_do_not_depend_on_the_number_of_threads() -> None:
    words, width = 1_500, 256  # products of smaller matrices have one thread in any case
    split = split_of(random_pairs(np.random.default_rng(4), 2_000, words), words)
    vectors = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            vectors.append(vectors_of(split, words, 0, width))
    np.testing.assert_array_equal(*vectors)


def test_the_seed_turns_the_vectors_and_keeps_their_angles() -> None:
    split = split_of(random_pairs(np.random.default_rng(3), 50, 12), 12)
    first, again, rotated = (vectors_of(split, 12, 0, 6, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, rotated, atol=0.1)
    assert np.allclose(first @ first.T, rotated @ rotated.T, atol=1e-4)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(2, 9), st.integers(0, 99))
def test_every_corpus_has_vectors(count: int, words: int, width: int, seed: int) -> None:
    pairs = random_pairs(np.random.default_rng(seed), count, words)
    vectors = vectors_of(split_of(pairs, words), 2 * words, words, width)
    lengths = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (2 * words, width)
    assert np.all(np.isclose(lengths, 1, atol=1e-4) | (lengths == 0))


def test_evenly_spaced_pairs_of_a_large_corpus_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = random_pairs(np.random.default_rng(3), 200, 20)
    monkeypatch.setattr(initial_weights, "MOST_PAIRS", 100)
    chosen = [pairs[index] for index in np.linspace(0, 199, 100).astype(int)]
    of_all, of_chosen = (vectors_of(split_of(part, 20), 20, 0, 8) for part in (pairs, chosen))
    assert np.array_equal(of_all, of_chosen)


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return prepare_pairs()


@pytest.mark.parametrize("model", [{}, {"architecture": "recurrent", "layers": 1, "width": 16}], ids=str)
def test_embeddings_are_replaced_and_nothing_else(dataset: Dataset, model: dict) -> None:
    vocabulary = dataset.manifest.vocabulary
    built = build_model(tiny(model).model, *vocabulary.values())
    before = weights_of(built)
    set_word_vectors(built, dataset, seed=1)
    changed = {name for name, array in weights_of(built).items() if not np.array_equal(array, before[name])}
    assert changed == {"source_embedding/matrix", "target_embedding/matrix"}
    split = dataset.split("train")
    for name, sequences in {"source": split.source, "target": split.target}.items():
        old, new = before[f"{name}_embedding/matrix"], weights_of(built)[f"{name}_embedding/matrix"]
        length = np.sqrt((old**2).sum(axis=1).mean())
        pairs = np.bincount(np.concatenate([np.unique(sequences[row]) for row in range(len(sequences))]))
        spoken = np.flatnonzero((pairs > 0) & (pairs < len(sequences)))
        assert np.allclose(np.linalg.norm(new[spoken], axis=1), length, rtol=1e-3)
        silent = np.setdiff1d(np.arange(vocabulary[name]), spoken)
        assert name == "target" or len(silent) > 4, "one word stands in every source sentence"
        assert {PAD, BOS, EOS} <= set(silent)
        assert np.array_equal(new[silent], old[silent])


def test_a_shared_matrix_has_the_words_of_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = prepare_pairs(joint_vocabulary=True)
    model = build_model(tiny({"tie_embeddings": "all"}).model, *dataset.manifest.vocabulary.values())
    set_word_vectors(model, dataset, seed=1)
    assert model.source_embedding is model.target_embedding
    matrix = np.asarray(model.source_embedding.matrix)
    expected = vectors_of(dataset.split("train"), len(matrix), 0, 16)
    rows = expected.any(axis=1)
    directions = matrix[rows] / np.linalg.norm(matrix[rows], axis=1, keepdims=True)
    assert np.allclose(directions, expected[rows], atol=1e-5)
