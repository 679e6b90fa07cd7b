"""The batches of a plan reach TensorFlow in order, framed, padded and as int32."""

import numpy as np

from nmt.data.batching import batch_dataset
from nmt.data.token_arrays import Sequences, Split

PAD, BOS, EOS = 0, 2, 3

FOUR = Split(
    Sequences.from_rows([[5, 6], [7], [8, 9, 10], [11]], 100),
    Sequences.from_rows([[20], [21, 22], [23], [24, 25, 26]], 100),
)
PLAN = [np.array([1, 0]), np.array([2, 3])]


def batches(*, source_bos: bool = True) -> list[tuple[list, list]]:
    """Return the batches of the plan above as lists."""
    dataset = batch_dataset(FOUR, PLAN, source_bos=source_bos)
    return [(source.numpy().tolist(), target.numpy().tolist()) for source, target in dataset]


def test_batches_come_in_the_order_of_the_plan_source_before_target() -> None:
    assert batches() == [
        ([[BOS, 7, EOS, PAD], [BOS, 5, 6, EOS]], [[BOS, 21, 22, EOS], [BOS, 20, EOS, PAD]]),
        (
            [[BOS, 8, 9, 10, EOS], [BOS, 11, EOS, PAD, PAD]],
            [[BOS, 23, EOS, PAD, PAD], [BOS, 24, 25, 26, EOS]],
        ),
    ]


def test_without_bos_only_the_source_lacks_it() -> None:
    assert batches(source_bos=False)[0] == (
        [[7, EOS, PAD], [5, 6, EOS]],
        [[BOS, 21, 22, EOS], [BOS, 20, EOS, PAD]],
    )


def test_input_and_expected_output_of_the_decoder_are_the_target_shifted_by_one() -> None:
    for _, target in batches():
        for row in target:
            shifted, expected = row[:-1], row[1:]
            words = [id_ for id_ in row if id_ > EOS]
            assert shifted[: len(words) + 1] == [BOS, *words]
            assert [id_ for id_ in expected if id_ != PAD] == [*words, EOS]


def test_batches_are_int32_and_can_be_gone_through_again() -> None:
    dataset = batch_dataset(FOUR, PLAN, source_bos=True)
    assert [spec.dtype.name for spec in dataset.element_spec] == ["int32", "int32"]
    first, second = ([source.numpy().tolist() for source, _ in dataset] for _ in range(2))
    assert first == second
