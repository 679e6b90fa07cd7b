"""Lists and ranges of epochs as a user writes them, and the messages about epochs without weights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import NmtError
from nmt.runs.metrics import in_ranges
from nmt.runs.weights import last_epochs, parse_epochs

EPOCHS = st.sets(st.integers(1, 60), min_size=1).map(sorted)


@given(EPOCHS, EPOCHS)
def test_what_is_written_is_read_back(epochs: list[int], others: list[int]) -> None:
    there = sorted({*epochs, *others})
    assert parse_epochs(in_ranges(epochs), there, "run 'a'") == epochs


@given(EPOCHS)
def test_ranges_are_as_few_as_can_be(epochs: list[int]) -> None:
    gaps = sum(1 for epoch in epochs if epoch - 1 not in epochs)
    assert in_ranges(epochs).count(",") == gaps - 1


def test_order_repetition_and_spaces_do_not_matter() -> None:
    assert parse_epochs("7, 3-4,4 ,1", [1, 2, 3, 4, 7], "run 'a'") == [1, 3, 4, 7]


@given(EPOCHS, st.integers(1, 70))
def test_the_last_epochs_end_with_the_last_and_have_no_gap(there: list[int], count: int) -> None:
    wanted = list(range(there[-1] - count + 1, there[-1] + 1))
    if set(wanted) <= set(there):
        assert last_epochs(count, there, "run 'a'") == wanted
    else:
        with pytest.raises(NmtError, match=rf"weights of the last {count} epochs\. .* Choose from {in_ranges(there)} "):
            last_epochs(count, there, "run 'a'")


@pytest.mark.parametrize("text", ["", "a", "1-", "-3", "5-3", "0", "1,,2", "1-2-3", "1.5", "²"])
def test_what_is_no_list_of_epochs_is_refused(text: str) -> None:
    with pytest.raises(NmtError, match=r"names no epochs of run 'a'"):
        parse_epochs(text, [1, 2, 3, 4, 5], "run 'a'")


@pytest.mark.parametrize("missing", ["1", "5-7", "8", "2-9999999999999999"])
def test_epochs_that_are_not_there_are_named_with_those_that_are(missing: str) -> None:
    with pytest.raises(NmtError, match="Choose from 2-3,5 "):
        parse_epochs(missing, [2, 3, 5], "run 'a'")
    for refused in (lambda: parse_epochs(missing, [], "run 'a'"), lambda: last_epochs(2, [], "run 'a'")):
        with pytest.raises(NmtError, match="has no weights yet"):
            refused()
