"""The batches of a plan reach TensorFlow in order, framed, padded and as int32."""

import numpy as np
import pytest

from nmt.data.token_arrays import Sequences, Split
from nmt.training.input_pipeline import batch_dataset

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


@pytest.mark.parametrize("source_bos", [True, False])
def test_batches_come_in_the_order_of_the_plan_source_before_target(source_bos: bool) -> None:
    sources = [[[BOS, 7, EOS, PAD], [BOS, 5, 6, EOS]], [[BOS, 8, 9, 10, EOS], [BOS, 11, EOS, PAD, PAD]]]
    assert batches(source_bos=source_bos) == [
        ([row[not source_bos :] for row in sources[0]], [[BOS, 21, 22, EOS], [BOS, 20, EOS, PAD]]),
        ([row[not source_bos :] for row in sources[1]], [[BOS, 23, EOS, PAD, PAD], [BOS, 24, 25, 26, EOS]]),
    ]


def test_batches_are_int32_and_can_be_gone_through_again() -> None:
    dataset = batch_dataset(FOUR, PLAN, source_bos=True)
    assert [spec.dtype.name for spec in dataset.element_spec] == ["int32", "int32"]
    first, second = ([source.numpy().tolist() for source, _ in dataset] for _ in range(2))
    assert first == second
