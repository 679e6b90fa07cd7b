"""Messages in JSON: strings are translated, and all other bytes stay."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.formats import read_document
from nmt.errors import DataError


def translated(text: str, target: str = "de", name: str = "a.json") -> str:
    """Return a file with "x" behind its texts."""
    document = read_document(name, text.encode())
    return document.render([f"{text} x" for text in document.texts], "en", target).decode()


def test_strings_of_any_depth_are_translated() -> None:
    text = '{\n\t"a" : "Hello {{name}}",\r\n  "n": 1.50, "b": {"c": ["One", true, {"d": "Tw\\"o\\n"}]}, "a": "x" }'
    expected = text.replace("{{name}}", "{{name}} x").replace("One", "One x").replace('\\"o\\n', '\\"o\\n x\\n')
    assert translated(text) == expected.replace(' "x" ', ' "x x" ')


def test_a_file_in_ascii_stays_in_ascii() -> None:
    document = read_document("a.json", rb'{"a": "caf\u00e9", "b": "c"}')
    assert document.texts == ["café", "c"]
    assert document.render(["公园", "bahçe 😀"]) == rb'{"a": "\u516c\u56ed", "b": "bah\u00e7e \ud83d\ude00"}'
    raw = read_document("a.json", '\ufeff{"a": "café"}'.encode())
    assert raw.render(["حديقة"]) == '\ufeff{"a": "حديقة"}'.encode()
    half = rb'{"a": "\ud83d", "b": "c"}'
    assert read_document("a.json", half).render(["d"]) == half.replace(b'"c"', b'"d"')


def test_messages_of_browser_extensions_keep_descriptions_and_placeholders() -> None:
    text = (
        '{"a": {"message": "One", "description": "Two", "placeholders": {"n": {"content": "$1", "example": "Bob"}}},'
        ' "b": {"message": "Three"}}'
    )
    assert translated(text) == text.replace("One", "One x").replace("Three", "Three x")
    assert read_document("a.json", text.encode()).note == "Not translated: 1 description."


@pytest.mark.parametrize(("target", "locale"), [("de", "de"), ("zh-Hant", "zh_Hant"), ("target", "en")])
def test_resource_bundles_keep_their_metadata(target: str, locale: str) -> None:
    text = '{"@@locale": "en", "a": "One", "@a": {"description": "Two", "placeholders": {"n": {"type": "int"}}}}'
    expected = text.replace("One", "One x").replace('"en"', f'"{locale}"')
    assert translated(text, target, "a.arb") == expected
    assert read_document("a.arb", text.encode()).note == "Not translated: 1 description."


def test_a_message_that_loses_a_placeholder_stays() -> None:
    document = read_document("a.json", b'{"a": "{n} dogs", "b": "{n} cats"}')
    assert document.render(["dogs", "{n} kedi"]) == b'{"a": "{n} dogs", "b": "{n} kedi"}'
    assert document.note == "Left untranslated, as a translation changed placeholders or tags: 1 text."


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": "b" "c"}', b"[" * 200_000, b'{"a": 1,}'])
def test_other_files_get_a_message(content: bytes) -> None:
    with pytest.raises(DataError, match="is not JSON"):
        read_document("a.json", content)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["公园", "حديقة", "पार्क", "bahçe", "@a"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(max_size=3) | st.sampled_from(["message", "@a", "@@locale"]), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


def skeleton(value: Any) -> Any:
    """Return a value without its strings."""
    if isinstance(value, dict):
        return {key: skeleton(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [skeleton(inner) for inner in value]
    return "" if isinstance(value, str) else value


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_everything_but_strings_stays(value: Any, indent: int | None, ascii_: bool) -> None:
    content = json.dumps(value, indent=indent, ensure_ascii=ascii_).encode("utf-8", "replace")
    document = read_document("a.json", content)
    assert document.render(document.texts, "en", "de") == content
    new = document.render([f'{text} "\\\n' for text in document.texts], "en", "de")
    assert skeleton(json.loads(new)) == skeleton(json.loads(content))
