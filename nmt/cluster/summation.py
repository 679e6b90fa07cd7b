"""Summation tree: the order in which the gradients of a step's micro-batches are added, on any number of hosts.

Floating-point sums depend on their order. So the K micro-batches of a step are the leaves of a fixed binary tree: node
[a, b) is the sum of [a, m) and [m, b) with m = a + ceil((b - a) / 2). The same halving gives each of W hosts a node. A
host adds the micro-batches below its node, and all hosts together add above these nodes. So the order does not depend
on the number of hosts.
"""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar


class Addition(NamedTuple):
    """Addition of a micro-batch to a slot, and the merges of slots that follow."""

    micro_batch: int
    """Number of the micro-batch in the step, from 0."""
    slot: int
    """Slot to which its gradients are added. Slots start with zeros."""
    merged: tuple[int, ...]
    """Slots that are then, in this order, added to the slot before them and set to zeros."""


Value = TypeVar("Value")


def shares(node: range, hosts: int) -> list[range]:
    """Return the share of each of W hosts in the micro-batches of a node, by rank. The node has at least W of them."""
    if hosts == 1:
        return [node]
    left, middle = (hosts + 1) // 2, _middle(node)
    return [*shares(node[:middle], left), *shares(node[middle:], hosts - left)]


def _middle(node: Sequence[object]) -> int:
    return (len(node) + 1) // 2


def additions(share: range, slot: int = 0) -> list[Addition]:
    """Return the additions that sum a share in the order of the tree. At the end ``slot`` holds the sum.

    The gradients of a micro-batch are added to a slot as soon as they are computed. So n micro-batches need about
    log2(n) slots.
    """
    if len(share) == 1:
        return [Addition(share[0], slot, ())]
    middle = _middle(share)
    right = slot if len(share) - middle == 1 else slot + 1  # a single micro-batch is added directly
    *earlier, last = [*additions(share[:middle], slot), *additions(share[middle:], right)]
    if right > slot:
        last = last._replace(merged=(*last.merged, right))
    return [*earlier, last]


def slots(micro_batches: int) -> int:
    """Return the number of slots for a share of n micro-batches."""
    return 1 + max(addition.slot for addition in additions(range(micro_batches)))


def sum_of_parts(parts: Sequence[Value], add: Callable[[Value, Value], Value] = operator.add) -> Value:
    """Return the sum of the hosts' parts, given by rank, in the order of the tree."""
    if len(parts) == 1:
        return parts[0]
    middle = _middle(parts)
    return add(sum_of_parts(parts[:middle], add), sum_of_parts(parts[middle:], add))
