"""An epoch's plan holds every pair once and depends on seed and epoch alone; rows are framed and padded."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch_plan import length_batches, pad_rows, plan_epoch
from nmt.data.token_arrays import Sequences, Split

PAD, BOS, EOS = 0, 2, 3
QUICK = settings(deadline=None, max_examples=30)
LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=80)
BATCH_SIZES = st.integers(1, 30)
SEEDS = st.integers(0, 2**32 - 1)


def split_of(lengths: list[tuple[int, int]]) -> Split:
    """Return a split with sentences of those lengths (source, target)."""
    source, target = ([[4 + n % 90] * pair[side] for n, pair in enumerate(lengths)] for side in (0, 1))
    return Split(Sequences.from_rows(source, 100), Sequences.from_rows(target, 100))


def as_lists(plan: list[np.ndarray]) -> list[list[int]]:
    """Return a plan that can be compared."""
    return [indices.tolist() for indices in plan]


@pytest.fixture(scope="module")
def corpus() -> Split:
    """A thousand pairs, short ones more often, with targets about as long as their sources."""
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


@pytest.mark.parametrize("sort_by_length", [False, True])
def test_seeds_and_epochs_differ_in_order_and_in_the_pairs_that_meet(corpus: Split, sort_by_length: bool) -> None:
    plans = [
        as_lists(plan_epoch(corpus, 32, seed=seed, epoch=epoch, sort_by_length=sort_by_length))
        for seed in range(3)
        for epoch in range(3)
    ]
    assert len({str(plan) for plan in plans}) == 9
    together = {str(sorted(sorted(batch) for batch in plan)) for plan in plans}
    assert len(together) == 9


def test_pairs_are_batched_by_length_of_target_then_of_source() -> None:
    lengths = [(2, 1), (3, 2), (3, 1), (2, 2), (1, 1), (1, 2)]  # targets of 1 with sources falling, of 2 rising
    plan = plan_epoch(split_of(lengths), 1, seed=1, epoch=1, sort_by_length=True)
    assert sorted(as_lists(plan)) == [[0], [1], [2], [3], [4], [5]]
    pairs = plan_epoch(split_of(lengths), 2, seed=1, epoch=1, sort_by_length=True)
    assert sorted(sorted(batch) for batch in as_lists(pairs)) == [[0, 2], [1, 3], [4, 5]]


def test_sorted_batches_do_not_come_in_order_of_length(corpus: Split) -> None:
    plan = plan_epoch(corpus, 32, seed=1, epoch=1, sort_by_length=True)
    means = [float(corpus.target.lengths[batch].mean()) for batch in plan]
    assert means != sorted(means)
    assert means != sorted(means, reverse=True)
    assert abs(np.corrcoef(range(len(means)), means)[0, 1]) < 0.6


# --- batches by tokens


def snake(pair: tuple[int, int]) -> tuple[int, int]:
    """Order pairs by target length; sources rise where targets with their eos are odd, and fall where they are even."""
    source, target = pair
    return target, source if target % 2 == 0 else -source


def token_plan(split: Split, batch_size: int, seed: int = 1, epoch: int = 1) -> list[list[int]]:
    return as_lists(plan_epoch(split, batch_size, seed=seed, epoch=epoch, sort_by_length=False, batch_type="tokens"))


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


def test_batches_by_tokens_are_mixed_anew_and_come_in_random_order(corpus: Split) -> None:
    plans = [token_plan(corpus, 200, epoch=epoch) for epoch in range(3)]
    assert len({str(sorted(map(sorted, plan))) for plan in plans}) == 3
    means = [float(corpus.target.lengths[batch].mean()) for batch in plans[0]]
    assert abs(np.corrcoef(range(len(means)), means)[0, 1]) < 0.6


def padding_share(split: Split, plan: list[np.ndarray]) -> float:
    """Return the share of padding among all ids of both sides."""
    padding = cells = 0
    for indices in plan:
        for sequences in (split.source, split.target):
            lengths = sequences.lengths[indices]
            cells += int(lengths.max()) * len(indices)
            padding += int((lengths.max() - lengths).sum())
    return padding / cells


def test_sorting_by_length_saves_most_of_the_padding(corpus: Split) -> None:
    shares = {
        is_sorted: padding_share(corpus, plan_epoch(corpus, 32, seed=1, epoch=1, sort_by_length=is_sorted))
        for is_sorted in (False, True)
    }
    assert shares[False] > 0.5  # or there would be nothing to save
    assert shares[True] < 0.2
    assert shares[True] < shares[False] / 3


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


def test_empty_sequences_are_in_no_length_batch() -> None:
    assert length_batches([], 4) == length_batches([0, 0], 4) == []
    assert as_lists(length_batches([3, 0, 1, 3, 2], 2)) == [[2, 4], [0, 3]]


# --- rows

THREE = Sequences.from_rows([[5, 6], [7], [8, 9, 10]], 100)


@pytest.mark.parametrize(
    ("indices", "bos", "rows"),
    [
        ([0, 1], False, [[5, 6, EOS], [7, EOS, PAD]]),
        ([0, 1], True, [[BOS, 5, 6, EOS], [BOS, 7, EOS, PAD]]),
        ([2, 0], True, [[BOS, 8, 9, 10, EOS], [BOS, 5, 6, EOS, PAD]]),
        ([2], False, [[8, 9, 10, EOS]]),
        ([1, 1], False, [[7, EOS], [7, EOS]]),
    ],
)
def test_rows_are_framed_and_padded(indices: list[int], bos: bool, rows: list[list[int]]) -> None:
    padded = pad_rows(THREE, np.array(indices), bos=bos)
    assert padded.tolist() == rows
    assert padded.dtype == np.int32


@QUICK
@given(LENGTHS, st.booleans())
def test_padded_rows_hold_their_sentences_and_nothing_else(lengths: list[tuple[int, int]], bos: bool) -> None:
    sequences = split_of(lengths).source
    rows = pad_rows(sequences, np.arange(len(lengths)), bos=bos)
    for index, row in enumerate(rows.tolist()):
        sentence = [BOS] * bos + sequences[index].tolist() + [EOS]
        assert row == sentence + [PAD] * (len(row) - len(sentence))
    assert rows.shape == (len(lengths), max(source for source, _ in lengths) + 1 + bos)
