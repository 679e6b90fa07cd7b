"""Exchanges between hosts, as far as a single process can test them."""

import numpy as np
import pytest

from nmt.cluster.group import BUCKET, Group, buckets, tree_sum
from nmt.cluster.summation import sum_of_parts
from nmt.runtime import tf


@pytest.mark.parametrize("hosts", range(1, 12))
def test_a_graph_keeps_the_order_of_the_tree(hosts: int) -> None:
    """TensorFlow's graph optimizer rewrites a tree of additions as a sequential sum if it can."""
    parts = np.random.default_rng(hosts).normal(size=[hosts, 1000]).astype(np.float32)
    summed = tf.function(tree_sum)([*map(tf.constant, parts)])
    np.testing.assert_array_equal(summed, sum_of_parts(list(parts)))


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


def test_a_process_that_is_alone_opens_no_port_and_exchanges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for opening in ("group.wait_for_all", "group._join"):
        monkeypatch.setattr(f"nmt.cluster.{opening}", pytest.fail)
    group = Group()
    assert group.is_chief and group.share(5) == range(5)
    assert group.flags(True) == [True]
    gradients, sums = [tf.ones([2])], tf.ones([3], tf.float64)
    assert group.total(gradients, sums) == (gradients, sums)

    def check() -> None:
        """Do not stop."""

    assert group.check_on_all_hosts(check, KeyError) is check
