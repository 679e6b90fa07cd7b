"""Java properties: values are translated, and all other bytes stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.formats import read_document


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("# note", None, ""),
        ("  ! note \\\n", None, ""),
        ("a=One", "One", "a=One x"),
        ("  a.b : One\r\n", "One", "  a.b : One x\r\n"),
        ("a One two", "One two", "a One two x"),
        (r"a\ b\=c=\ One", " One", r"a\ b\=c=\ One x"),
        ("a=One \\\n   two\\\n\tthree\nb=", "One twothree", "a=One twothree x\nb="),
        (r"a=caf\u00e9\t\n\\", "café\t\n\\", r"a=caf\u00e9\t\n\\ x"),
        ("a=", None, ""),
        ("a", None, ""),
        (r"a=\ud83d\ude00 b", "😀 b", r"a=\ud83d\ude00 b x"),
        (r"a=\ud83d", None, ""),
        ("a={0} isn''t", "{0} isn't", "a={0} isn''t x"),
        ("a=It isn't", "It isn't", "a=It isn't x"),
    ],
)
def test_values_are_read_and_written_with_their_escapes(line: str, text: str | None, expected: str) -> None:
    document = read_document("a.properties", line.encode())
    assert document.texts == ([] if text is None else [text])
    assert document.render([f"{text} x" for text in document.texts]).decode() == (expected or line)


@pytest.mark.parametrize(
    ("content", "translation", "expected"),
    [
        (b"a=b\n", "bahçe 公园", rb"a=bah\u00e7e \u516c\u56ed" + b"\n"),
        (b"# caf\xe9\na=b\n", "bahçe حديقة", b"# caf\xe9\na=bah\xe7e \\u062d\\u062f\\u064a\\u0642\\u0629\n"),
        ("# café\na=b\n".encode(), "पार्क Grüße", "# café\na=पार्क Grüße\n".encode()),
        (b"a={0} b\n", "l'{0} b", b"a=l''{0} b\n"),
        (b"a={0} b\n", "b", b"a={0} b\n"),
    ],
)
def test_the_encoding_stays(content: bytes, translation: str, expected: bytes) -> None:
    assert read_document("a.properties", content).render([translation]) == expected


PARTS = [
    "#",
    "!",
    "a",
    "b c",
    "=",
    ":",
    " ",
    "\\",
    "\n",
    "\r\n",
    "\t",
    "\\u00e9",
    "\\u12",
    "é",
    "公园",
    "\\\n",
    "{0}",
    "'",
    "''",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=25))
def test_unchanged_values_have_the_same_bytes(parts: list[str]) -> None:
    content = "".join(parts).encode()
    document = read_document("a.properties", content)
    assert document.render(document.texts) == content
    new = read_document("a.properties", document.render([f"x {text}" for text in document.texts]))
    assert new.texts == [f"x {text}" for text in document.texts]
