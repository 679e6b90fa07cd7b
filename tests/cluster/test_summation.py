"""The summation tree gives the same additions in the same order, whatever the number of hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.cluster.summation import additions, shares, slots, sum_of_parts

SIZES = st.integers(1, 40)


def tree(node: list[str]) -> str:
    """Return the sum of a node as text with brackets."""
    if len(node) == 1:
        return node[0]
    middle = -(-len(node) // 2)
    return f"({tree(node[:middle])}+{tree(node[middle:])})"


class Term(str):
    """Text that records additions. The empty text is zero."""

    __slots__ = ()

    def __add__(self, other: str, /) -> "Term":
        return Term(f"({self!s}+{other!s})") if self and other else Term(f"{self!s}{other!s}")


def summed(share: range, present: int) -> Term:
    """Return the sum of a share, added as a host adds it in a step with fewer micro-batches."""
    held = [Term("")] * slots(len(share))
    for addition in additions(share):
        if addition.micro_batch < present:
            held[addition.slot] += Term(str(addition.micro_batch))
        for slot in addition.merged:
            held[slot - 1] += held[slot]
            held[slot] = Term("")
    assert not any(held[1:])
    return held[0]


@given(SIZES, st.data())
def test_several_hosts_add_like_a_single_host(count: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(1, count))
    present = data.draw(st.integers(1, count))
    parts = [summed(share, present) for share in shares(range(count), hosts)]
    assert sum_of_parts(parts) == summed(range(count), present)
    if present == count:
        assert sum_of_parts(parts) == tree([str(number) for number in range(count)])


@given(SIZES, st.data())
def test_each_micro_batch_is_computed_by_one_host_in_order(count: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(1, count))
    host_shares = shares(range(count), hosts)
    assert len(host_shares) == hosts
    assert [number for share in host_shares for number in share] == list(range(count))
    for share in host_shares:
        assert [addition.micro_batch for addition in additions(share)] == list(share)


@pytest.mark.parametrize(("micro_batches", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 3), (16, 4), (5, 2)])
def test_slots_grow_with_the_logarithm(micro_batches: int, expected: int) -> None:
    assert slots(micro_batches) == expected
