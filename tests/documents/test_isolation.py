"""Documents that are read and written in a process of their own."""

import pytest
from test_document_formats import with_xml

from nmt.documents import isolation
from nmt.documents.isolation import Rendered, Texts, read_isolated, render_isolated
from nmt.errors import DataError

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def test_a_document_is_read_and_written_in_another_process() -> None:
    assert read_isolated("a.html", b"<p>Haus</p><p></p>", 4) == Texts(["Haus"], 4)
    assert read_isolated("a.html", b"<p>Haus</p>", 3) == Texts([], 4)
    expected = Rendered('<p lang="zh">公园</p>\n<script>b</script>'.encode(), "Not translated: 1 script.")
    page = b"<p lang=en>a</p>\n<script>b</script>"
    assert render_isolated("a.html", page, ["公园"], "en", "zh") == expected


def test_the_message_about_a_damaged_document_arrives() -> None:
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        read_isolated("a.srt", b"1\n\xff", 100)


def test_reading_a_document_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MOST_SECONDS", 0.01)
    with pytest.raises(DataError, match="takes more than"):
        read_isolated("a.html", b"<b>" * 100_000, 100)


def test_a_small_file_with_many_tags_is_refused() -> None:
    content = with_xml(f"<w:document {W}><w:body>{'<w:p/>' * 1_100_000}</w:body></w:document>")
    with pytest.raises(DataError, match="more than 1,000,000 tags and attributes"):
        read_isolated("a.docx", content, 100)
