"""Summation tree: it fixes the order in which the gradients of micro-batches are added, on any number of hosts.

Floating-point sums depend on their order. So the K micro-batches of a step are the leaves of a fixed binary tree: node
[a, b) is the sum of [a, m) and [m, b) with m = a + ceil((b - a) / 2). The same halving assigns a node to each of W
hosts. A host adds the micro-batches below its node, and all hosts together add the sums of these nodes. So the order
does not depend on the number of hosts.
"""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar


class Addition(NamedTuple):
    """Addition of a micro-batch's gradients to a slot, followed by merges of slots."""

    micro_batch: int
    """Number of the micro-batch in the step, from 0."""
    slot: int
    """Slot to which the gradients of the micro-batch are added. Slots start with zeros."""
    merged: tuple[int, ...]
    """Slots to merge afterwards, in this order: each is added to the slot before it, and then set to zeros."""


Value = TypeVar("Value")


def shares(node: range, hosts: int) -> list[range]:
    """Return the micro-batches of each of W hosts, by rank, for a node with at least W micro-batches."""
    if hosts == 1:
        return [node]
    left, middle = (hosts + 1) // 2, _middle(node)
    return [*shares(node[:middle], left), *shares(node[middle:], hosts - left)]


def _middle(node: Sequence[object]) -> int:
    return (len(node) + 1) // 2


def additions(share: range, slot: int = 0) -> list[Addition]:
    """Return the additions that sum the micro-batches of a share in the order of the tree. ``slot`` gets the sum.

    The gradients of a micro-batch are added to a slot as soon as they are computed. So n micro-batches need only about
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
