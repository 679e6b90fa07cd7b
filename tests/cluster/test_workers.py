"""What workers exchange, as far as one process can tell."""

import numpy as np
import pytest

from nmt.cluster.summation import sum_of_parts
from nmt.cluster.workers import BUCKET, Workers, buckets, check_together, tree_sum
from nmt.runtime import tf


@pytest.mark.parametrize("workers", range(1, 12))
def test_a_graph_keeps_the_order_of_the_tree(workers: int) -> None:
    """TensorFlow's graph optimizer makes a sum in turn of a tree of additions, if it can."""
    parts = np.random.default_rng(workers).normal(size=[workers, 1000]).astype(np.float32)
    found = tf.function(tree_sum)(tf.constant(parts))
    np.testing.assert_array_equal(found, sum_of_parts(list(parts)))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([5], [[5]]),
        ([BUCKET, 1], [[BUCKET], [1]]),
        ([1, 2, BUCKET], [[1, 2], [BUCKET]]),
        ([3 * BUCKET, 7, 7], [[3 * BUCKET], [7, 7]]),
    ],
)
def test_buckets_are_bounded_and_in_order(sizes: list[int], expected: list[list[int]]) -> None:
    assert [sizes[bucket] for bucket in buckets(sizes)] == expected


def test_one_worker_exchanges_nothing() -> None:
    workers = Workers()
    assert workers.share(5) == range(5)
    assert list(workers.turns([1, 2, 3])) == [1, 2, 3]
    assert workers.any(True) and not workers.any(False)
    gradients, sums = [tf.ones([2])], tf.ones([3], tf.float64)
    assert workers.total(gradients, sums) == (gradients, sums)

    def check() -> None:
        """Never stops."""

    assert check_together(workers, check, KeyError) is check


def test_a_worker_sends_its_slices_and_their_sums_to_all_others() -> None:
    workers = Workers()
    workers.count = 8
    assert workers.bytes_sent(1000) == 2 * 7 * 4 * 1000 / 8
