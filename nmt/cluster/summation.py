"""Summation tree of a step: the order in which the gradients of its micro-batches are added, on any hosts.

Floating-point sums depend on their order. A step of K micro-batches is a binary tree over them: node [a, b) is the sum
of [a, m) and [m, b) with m = a + ceil((b - a) / 2). W hosts take nodes of this tree by halving as well, so that each
adds below its node and all add above the nodes what a single host adds there.
"""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar


class Addition(NamedTuple):
    """Addition of a micro-batch to a slot, and of slots to each other afterwards."""

    micro_batch: int
    """Number of the micro-batch in the step, from 0."""
    slot: int
    """Slot that its gradients are added to; slots begin with zeros."""
    merged: tuple[int, ...]
    """Slots that are then added to the slot before them, in this order, and set to zeros."""


Value = TypeVar("Value")


def shares(node: range, hosts: int) -> list[range]:
    """Return the micro-batches of a node that each of W hosts computes, by rank; the node has at least W."""
    if hosts == 1:
        return [node]
    left, middle = (hosts + 1) // 2, _middle(node)
    return [*shares(node[:middle], left), *shares(node[middle:], hosts - left)]


def _middle(node: Sequence[object]) -> int:
    return (len(node) + 1) // 2


def additions(share: range, slot: int = 0) -> list[Addition]:
    """Return the additions that sum a share in the order of the tree; ``slot`` holds the sum at the end.

    The gradients of a micro-batch are added to a slot as soon as they are computed; n micro-batches take about log2(n)
    slots.
    """
    if len(share) == 1:
        return [Addition(share[0], slot, ())]
    middle = _middle(share)
    right = slot if len(share) - middle == 1 else slot + 1  # a single one needs no slot of its own
    *found, last = [*additions(share[:middle], slot), *additions(share[middle:], right)]
    return [*found, last._replace(merged=(*last.merged, right)) if right > slot else last]


def slots(micro_batches: int) -> int:
    """Return the number of slots that the additions of a share of n micro-batches take."""
    return 1 + max(addition.slot for addition in additions(range(micro_batches)))


def sum_of_parts(parts: Sequence[Value], add: Callable[[Value, Value], Value] = operator.add) -> Value:
    """Return the sum of the hosts' parts, in the order of their ranks, as the tree adds them."""
    if len(parts) == 1:
        return parts[0]
    middle = _middle(parts)
    return add(sum_of_parts(parts[:middle], add), sum_of_parts(parts[middle:], add))
