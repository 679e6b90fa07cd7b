"""Text that other programs read line by line."""

from hypothesis import given
from hypothesis import strategies as st

from nmt.storage.text import as_cell

BREAKS = st.sampled_from(list("\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029"))


@given(st.lists(st.text() | BREAKS).map("".join))
def test_a_cell_is_one_line_without_tabs(text: str) -> None:
    cell = as_cell(text)
    assert len(cell.splitlines()) <= 1 and "\t" not in cell
    assert "".join(cell.split()) == "".join(text.split())


def test_a_text_without_breaks_stays() -> None:
    assert as_cell("  ich bin  durstig ") == "  ich bin  durstig "
