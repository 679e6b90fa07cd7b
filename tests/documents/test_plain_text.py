"""Plain text: lines are translated, and everything between them stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.documents.plain_text import PlainText
from nmt.errors import DataError


def test_lines_and_paragraphs_stay() -> None:
    document = PlainText("\ufeffone\r\n\r\n  two \U00100001\n\n\n公园".encode(), "a.txt")
    assert (len(document.texts), document.texts[2]) == (3, "公园")
    new = document.render([text.replace("two", "iki").replace("公园", "پارک") for text in document.texts])
    assert new == "\ufeffone\r\n\r\n  iki \U00100001\n\n\nپارک".encode()


def test_other_encodings_get_a_message() -> None:
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        PlainText(b"a\n\xff", "a.txt")


@given(
    st.text()
    | st.lists(st.sampled_from(["a", "\n", "\r", "\u2028", "\x1f", "\x85", " ", "\U0010a000", "حديقة"])).map("".join)
)
def test_unchanged_lines_have_the_same_bytes(text: str) -> None:
    document = PlainText(text.encode(), "a.txt")
    assert document.render(document.texts) == text.encode()
