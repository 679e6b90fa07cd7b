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


def shares(micro_batches: int, hosts: int) -> list[range]:
    """Return the micro-batches of a step that each host computes, in the order of their ranks.

    Args:
        micro_batches: K, at least ``hosts``.
        hosts: W, at least 1.
    """
    return _shares(range(micro_batches), hosts)


def _shares(node: range, hosts: int) -> list[range]:
    if hosts == 1:
        return [node]
    left = (hosts + 1) // 2
    middle = _middle(node)
    return [*_shares(node[:middle], left), *_shares(node[middle:], hosts - left)]


def _middle(node: Sequence[object]) -> int:
    return (len(node) + 1) // 2


def additions(share: range) -> list[Addition]:
    """Return the additions that sum a share in the order of the tree; slot 0 holds the sum at the end.

    The gradients of a micro-batch are added to a slot as soon as they are computed; n micro-batches take about log2(n)
    slots.
    """
    found: list[Addition] = []

    def add(node: range, slot: int) -> None:
        if len(node) == 1:
            found.append(Addition(node[0], slot, ()))
            return
        middle = _middle(node)
        add(node[:middle], slot)
        if len(node) - middle == 1:
            add(node[middle:], slot)
            return
        add(node[middle:], slot + 1)
        last = found.pop()
        found.append(last._replace(merged=(*last.merged, slot + 1)))

    add(share, 0)
    return found


def slots(micro_batches: int) -> int:
    """Return the number of slots that the additions of a share of n micro-batches take."""
    return 1 + max(addition.slot for addition in additions(range(micro_batches)))


def sum_of_parts(parts: Sequence[Value], add: Callable[[Value, Value], Value] = operator.add) -> Value:
    """Return the sum of the hosts' parts, in the order of their ranks, as the tree adds them."""
    if len(parts) == 1:
        return parts[0]
    middle = _middle(parts)
    return add(sum_of_parts(parts[:middle], add), sum_of_parts(parts[middle:], add))
