"""A batch plan has every pair once and depends only on seed and epoch; rows have special tokens and padding."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch_plan import length_batches, pad_rows, pairs_of_epoch, pairs_seen, plan_epoch
from nmt.data.token_arrays import Sequences, Split
from nmt.training.input_pipeline import batch_dataset

PAD, BOS, EOS = 0, 2, 3
QUICK = settings(deadline=None, max_examples=30)
LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=80)
BATCH_SIZES = st.integers(1, 30)
SEEDS = st.integers(0, 2**32 - 1)
BY_TOKENS: dict[str, Any] = {"sort_by_length": False, "batch_type": "tokens"}


def split_of(lengths: list[tuple[int, int]]) -> Split:
    """Return a split with sentences of the given lengths (source, target)."""
    source, target = ([[4 + n % 90] * pair[side] for n, pair in enumerate(lengths)] for side in (0, 1))
    return Split(Sequences.from_rows(source, 100), Sequences.from_rows(target, 100))


def as_lists(plan: list[np.ndarray]) -> list[list[int]]:
    """Return a batch plan as lists, which can be compared."""
    return [indices.tolist() for indices in plan]


@pytest.fixture(scope="module")
def corpus() -> Split:
    """A thousand pairs, mostly short, with targets about as long as their sources."""
    random = np.random.default_rng(0)
    source = 1 + random.geometric(0.2, 1000)
    target = np.maximum(1, source + random.integers(-2, 3, 1000))
    return split_of(list(zip(source.tolist(), target.tolist(), strict=True)))


# --- the plan of an epoch


@pytest.mark.parametrize("sort_by_length", [False, True])
@settings(max_examples=60)
@given(LENGTHS, BATCH_SIZES, SEEDS, st.integers(0, 10**6))
def test_a_plan_holds_every_pair_once_in_full_batches_and_is_a_function_of_seed_and_epoch(
    sort_by_length: bool, lengths: list[tuple[int, int]], batch_size: int, seed: int, epoch: int
) -> None:
    split = split_of(lengths)
    plan = as_lists(plan_epoch(split, batch_size, seed=seed, epoch=epoch, sort_by_length=sort_by_length))
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    full, rest = divmod(len(lengths), batch_size)
    assert sorted(map(len, plan)) == sorted([batch_size] * full + [rest] * (rest > 0))
    np.random.seed(epoch % 1000)  # the global generator must not matter
    assert plan == as_lists(plan_epoch(split, batch_size, seed=seed, epoch=epoch, sort_by_length=sort_by_length))


@pytest.mark.parametrize("settings", [{"sort_by_length": False}, {"sort_by_length": True}, BY_TOKENS], ids=str)
def test_seeds_and_epochs_differ_in_order_and_in_the_pairs_that_meet(corpus: Split, settings: dict[str, Any]) -> None:
    size = 200 if settings == BY_TOKENS else 32
    plans = [as_lists(plan_epoch(corpus, size, seed=seed, epoch=epoch, **settings)) for seed in (0, 1, 2)
             for epoch in (0, 1, 2)]  # fmt: skip
    assert len({str(plan) for plan in plans}) == 9
    assert len({str(sorted(sorted(batch) for batch in plan)) for plan in plans}) == 9
    means = [float(corpus.target.lengths[batch].mean()) for batch in plans[0]]
    assert abs(np.corrcoef(range(len(means)), means)[0, 1]) < 0.6  # batches do not come in order of length


def test_pairs_are_batched_by_length_of_target_then_of_source() -> None:
    lengths = [(2, 1), (3, 2), (3, 1), (2, 2), (1, 1), (1, 2)]  # targets of 1 with sources falling, of 2 rising
    plan = plan_epoch(split_of(lengths), 1, seed=1, epoch=1, sort_by_length=True)
    assert sorted(as_lists(plan)) == [[0], [1], [2], [3], [4], [5]]
    pairs = plan_epoch(split_of(lengths), 2, seed=1, epoch=1, sort_by_length=True)
    assert sorted(sorted(batch) for batch in as_lists(pairs)) == [[0, 2], [1, 3], [4, 5]]


CORPORA = st.lists(st.tuples(st.integers(1, 40), st.floats(0, 3)), min_size=1, max_size=4).filter(
    lambda corpora: any(weight >= 1 for _, weight in corpora)
)


@QUICK
@given(CORPORA, BATCH_SIZES, SEEDS, st.integers(0, 10**6), st.sampled_from(["sentences", "tokens"]))
def test_a_plan_holds_each_pair_as_often_as_the_weight_of_its_corpus_says(
    corpora: list[tuple[int, float]], size: int, seed: int, epoch: int, unit: Any
) -> None:
    pairs = sum(count for count, _ in corpora)
    split = split_of([(1 + n % 5, 1 + n % 7) for n in range(pairs)])
    plan, again = (
        as_lists(plan_epoch(split, size, seed=seed, epoch=epoch, batch_type=unit, corpora=corpora)) for _ in range(2)
    )
    assert plan == again
    times = np.bincount([index for batch in plan for index in batch], minlength=pairs)
    for (count, weight), counts in zip(corpora, np.split(times, np.cumsum([n for n, _ in corpora])[:-1]), strict=True):
        assert set(counts.tolist()) <= {int(weight), int(weight) + 1}
        assert abs(counts.sum() - weight * count) <= 0.5 + 1e-9
        assert counts.sum() == pairs_seen(count, weight)


@pytest.mark.parametrize("settings", [{"sort_by_length": False}, {"sort_by_length": True}, BY_TOKENS], ids=str)
def test_weights_of_1_change_no_bit_and_a_share_is_drawn_anew_each_epoch(
    corpus: Split, settings: dict[str, Any]
) -> None:
    plain = as_lists(plan_epoch(corpus, 64, seed=3, epoch=2, **settings))
    assert as_lists(plan_epoch(corpus, 64, seed=3, epoch=2, corpora=[(300, 1), (700, 1.0)], **settings)) == plain
    drawn = [pairs_of_epoch([(300, 0), (700, 0.5)], seed=seed, epoch=epoch) for seed in (1, 2) for epoch in (1, 2)]
    assert len({str(sorted(pairs.tolist())) for pairs in drawn}) == 4


# --- batches by tokens


def snake(pair: tuple[int, int]) -> tuple[int, int]:
    """Order pairs by target length; sources rise where targets with their eos are odd, and fall where they are even."""
    source, target = pair
    return target, source if target % 2 == 0 else -source


def token_plan(split: Split, batch_size: int, seed: int = 1, epoch: int = 1) -> list[list[int]]:
    return as_lists(plan_epoch(split, batch_size, seed=seed, epoch=epoch, **BY_TOKENS))


@QUICK
@given(LENGTHS, st.integers(1, 60), SEEDS, st.integers(0, 10**6))
def test_batches_by_tokens_hold_every_pair_once_and_keep_to_their_size(
    lengths: list[tuple[int, int]], batch_size: int, seed: int, epoch: int
) -> None:
    plan = token_plan(split_of(lengths), batch_size, seed, epoch)
    assert plan == token_plan(split_of(lengths), batch_size, seed, epoch)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    for batch in plan:
        source, target = (len(batch) * (1 + max(lengths[index][side] for index in batch)) for side in (0, 1))
        assert len(batch) == 1 or (target <= batch_size and source <= 2 * batch_size)


@QUICK
@given(LENGTHS, st.integers(1, 60))
def test_no_pair_more_would_have_fitted_in_a_batch_by_tokens(lengths: list[tuple[int, int]], batch_size: int) -> None:
    plan = token_plan(split_of(lengths), batch_size)
    # As they were cut: of batches that begin alike those of like pairs come first, and of these the last is short.
    in_order = sorted(plan, key=lambda batch: (snake(lengths[batch[0]]), snake(lengths[batch[-1]]), -len(batch)))
    for batch, following in itertools.pairwise(in_order):
        more = [lengths[index] for index in [*batch, following[0]]]
        assert (
            len(more) * (1 + max(target for _, target in more)) > batch_size
            or len(more) * (1 + max(source for source, _ in more)) > 2 * batch_size
        )


# --- batches by length


@QUICK
@given(st.lists(st.integers(0, 9), max_size=80), BATCH_SIZES)
def test_length_batches_hold_every_sequence_once_in_order_of_length(lengths: list[int], size: int) -> None:
    batches = length_batches(lengths, size)
    order = [index for batch in as_lists(batches) for index in batch]
    assert order == sorted((index for index, length in enumerate(lengths) if length), key=lambda i: lengths[i])
    full, remainder = divmod(len(order), size)
    assert [len(batch) for batch in batches] == [size] * full + [remainder] * (remainder > 0)
    assert all(batch.dtype == np.int64 for batch in batches)
    assert as_lists(length_batches(np.array(lengths, np.int32), size)) == as_lists(batches)


# --- rows


@QUICK
@given(LENGTHS, st.booleans())
def test_padded_rows_hold_their_framed_sentences_and_nothing_else(lengths: list[tuple[int, int]], bos: bool) -> None:
    sequences = split_of(lengths).source
    order = np.arange(len(lengths))[::-1]
    rows = pad_rows(sequences, order, bos=bos)
    assert (rows.dtype, rows.shape) == (np.int32, (len(lengths), max(source for source, _ in lengths) + 1 + bos))
    for index, row in zip(order, rows.tolist(), strict=True):
        sentence = [BOS] * bos + sequences[index].tolist() + [EOS]
        assert row == sentence + [PAD] * (len(row) - len(sentence))


# --- batches as TensorFlow gets them

FOUR = Split(
    Sequences.from_rows([[5, 6], [7], [8, 9, 10], [11]], 100),
    Sequences.from_rows([[20], [21, 22], [23], [24, 25, 26]], 100),
)
PLAN = [np.array([1, 0]), np.array([2, 3])]


@pytest.mark.parametrize("source_bos", [True, False])
def test_batches_come_in_the_order_of_the_plan_source_before_target(source_bos: bool) -> None:
    sources = [[[BOS, 7, EOS, PAD], [BOS, 5, 6, EOS]], [[BOS, 8, 9, 10, EOS], [BOS, 11, EOS, PAD, PAD]]]
    expected = [
        ([row[not source_bos :] for row in sources[0]], [[BOS, 21, 22, EOS], [BOS, 20, EOS, PAD]]),
        ([row[not source_bos :] for row in sources[1]], [[BOS, 23, EOS, PAD, PAD], [BOS, 24, 25, 26, EOS]]),
    ]
    dataset = batch_dataset(FOUR, PLAN, source_bos=source_bos)
    assert [spec.dtype.name for spec in dataset.element_spec] == ["int32", "int32"]
    for _ in range(2):  # it can be gone through again
        assert [(source.numpy().tolist(), target.numpy().tolist()) for source, target in dataset] == expected
