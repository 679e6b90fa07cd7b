"""Sums of gradients: the order of the tree, zeros between steps, micro-batches that a short step lacks."""

import numpy as np
import pytest

from nmt.cluster.group import Group
from nmt.cluster.summation import additions
from nmt.runtime import tf
from nmt.training.optimization.accumulation import GradientAccumulator, all_reduce
from nmt.training.optimization.nonfinite import NonFiniteTracker


def summed_as_a_tree(terms: np.ndarray) -> np.ndarray:
    if len(terms) == 1:
        return terms[0]
    middle = -(-len(terms) // 2)
    return summed_as_a_tree(terms[:middle]) + summed_as_a_tree(terms[middle:])


@pytest.mark.parametrize(("count", "present"), [(1, 1), (2, 2), (3, 3), (4, 4), (4, 3), (7, 7), (8, 8), (8, 5)])
def test_micro_batches_are_added_in_the_order_of_the_tree(count: int, present: int) -> None:
    random = np.random.default_rng(count)
    matrices, vectors = random.normal(size=[count, 3, 5]).astype(np.float32), random.normal(size=[count, 3])
    matrices[present:], vectors[present:] = 0, 0
    sums = GradientAccumulator([tf.Variable(tf.ones([3, 5]))], range(count))
    add, merge = tf.function(sums.add), tf.function(sums.merge)
    for _ in range(2):
        for addition in additions(range(count)):
            number = addition.micro_batch
            if number < present:
                add([tf.constant(matrices[number])], tf.constant(vectors[number]), tf.constant(7, tf.int64),
                    tf.constant(addition.slot))  # fmt: skip
            for slot in addition.merged:
                merge(slot)
        gradients, totals, _ = all_reduce([sums], Group(), NonFiniteTracker())
        np.testing.assert_array_equal(gradients[0], summed_as_a_tree(matrices))
        np.testing.assert_array_equal(totals, summed_as_a_tree(vectors))
        sums.clear()
        assert not any(np.any(variable) for slot in sums.slots for variable in slot)
