"""Everything in a document besides its text stays, and is read as other programs read it."""

import gettext
import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_document_formats import translate_to_upper, with_xml

from nmt.documents.formats import read_document
from nmt.documents.html import Markup, Page
from nmt.errors import DataError

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.vtt", "WEBVTT\n\n0:01.000 --> 0:03.000\na <0:02.000>b", "WEBVTT\n\n0:01.000 --> 0:03.000\nA <0:02.000>B"),
        ("a.srt", "1\n0:00:01,0 --> 0:00:02,0\n \na b\n", "1\n0:00:01,0 --> 0:00:02,0\n \nA B\n"),
        ("a.srt", "1\n0:00:01,0 --> 0:00:02,0\na\n \nb\n\nc\n", "1\n0:00:01,0 --> 0:00:02,0\nA\nB\n\nc\n"),
        ("a.srt", "\ufeff0:00:01,0 --> 0:00:02,0\na\n", "\ufeff0:00:01,0 --> 0:00:02,0\nA\n"),
        ("a.srt", "1\n0:1,0 --> 0:2,0\na\n2\n0:3,0 --> 0:4,0\nb", "1\n0:1,0 --> 0:2,0\nA\n2\n0:3,0 --> 0:4,0\nB"),
        ("a.srt", "1\r0:1,0 --> 0:2,0\ra\rb\r\r", "1\r0:1,0 --> 0:2,0\rA\rB\r\r"),
        ("a.srt", "1\n0:1,0 --> 0:2,0\nin --> out\n", "1\n0:1,0 --> 0:2,0\nIN --> OUT\n"),
        ("a.srt", "1\n0:1,0 --> 0:2,0\n<i>- I <3 you\n- b</i>\n", "1\n0:1,0 --> 0:2,0\n<i>- I <3 YOU\n- B</i>\n"),
        ("a.srt", "1\n0:1,0 --> 0:2,0\na <br \tx> b\n", "1\n0:1,0 --> 0:2,0\nA <br \tx> B\n"),
    ],
)
def test_cues_stay_cues(name: str, text: str, expected: str) -> None:
    assert translate_to_upper(name, text.encode()).decode() == expected


def test_no_line_of_a_translated_cue_is_empty() -> None:
    document = read_document("a.srt", b"1\n0:1,0 --> 0:2,0\na\nb\nc\n\n2\n")
    assert document.texts == ["a b c"]
    assert document.render(["x"]) == b"1\n0:1,0 --> 0:2,0\nx\n\n2\n"
    assert document.render(["x\n\ny"]) == b"1\n0:1,0 --> 0:2,0\nx\ny\n\n2\n"


@pytest.mark.parametrize(
    ("charset", "msgid", "text"),
    [
        ("UTF-8", r"caf\303\251 \x41\a\v\\n", "café A\a\v\\n"),
        ("ISO-8859-1", r"caf\351", "café"),
        ("CHARSET", "über", "über"),
        ("UTF-8", "公园 حديقة पार्क bahçe", "公园 حديقة पार्क bahçe"),
    ],
)
def test_escapes_of_a_catalogue_are_characters(charset: str, msgid: str, text: str) -> None:
    content = f'{HEADER.format(charset)}  msgid "{msgid}"\n  msgstr ""\n'.encode()
    document = read_document("a.po", content)
    assert document.texts == [text]
    expected = content.replace(b'  msgstr ""', b'  msgstr "x"')
    assert document.render(["x"]) == expected.replace(b"=CHARSET", b"=UTF-8")


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs gettext")
@pytest.mark.parametrize("charset", ["ISO-8859-1", "UTF-8", "CHARSET", "Shift_JIS"])
@pytest.mark.parametrize("translation", ['Über\a\\ "x"', "公园", "“Bahçe”"])
def test_gettext_reads_a_translated_catalogue(charset: str, translation: str, tmp_path: Path) -> None:
    content = f'{HEADER.format(charset)}msgid "one"\nmsgstr ""\n\nmsgid "two"\nmsgstr "zwei"\n'.encode()
    (tmp_path / "a.po").write_bytes(read_document("a.po", content).render([translation]))
    subprocess.run(["msgfmt", "-c", "a.po", "-o", "a.mo"], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "a.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    assert (catalogue.gettext("one"), catalogue.gettext("two")) == (translation, "zwei")
    assert polib.pofile(str(tmp_path / "a.po")).find("two").msgstr == "zwei"


def test_a_catalogue_in_another_charset_gets_a_message() -> None:
    with pytest.raises(DataError, match="charset punycode, which nmt does not read"):
        read_document("a.po", HEADER.format("punycode").encode())


def test_text_after_entities_and_comments_of_a_run_is_translated() -> None:
    text = "<w:r><w:t>one &foo; two<!-- c --> three</w:t></w:r>"
    xml = f'<!DOCTYPE x [<!ENTITY foo "bar">]><w:document {W}><w:body><w:p>{text}</w:p></w:body></w:document>'
    document = read_document("a.docx", with_xml(xml))
    unchanged = zipfile.ZipFile(io.BytesIO(document.render(document.texts))).read("word/document.xml")
    assert text.encode() in unchanged
    new = zipfile.ZipFile(io.BytesIO(translate_to_upper("a.docx", with_xml(xml)))).read("word/document.xml").decode()
    for part in ("ONE ", "&foo;", " TWO", "<!-- c -->", " THREE"):
        assert part in new


@pytest.mark.parametrize("text", ["\ue0fe0\ue0fe", "&#xe0fe;0&#xe0fe;", "\ue0fe"])
def test_private_characters_of_a_page_are_text(text: str) -> None:
    html = f'<p title="one">{text}<img alt="two"></p>'.encode()
    document = read_document("a.html", html)
    assert document.texts[-2:] == ["one", "two"]
    new = document.render([*document.texts[:-2], "eins", "zwei"])
    assert new == html.replace(b"one", b"eins").replace(b"two", b"zwei")
    assert b'alt="two"' in document.render([f"\ue0fe0\ue0fe {document.texts[0]}", *document.texts[1:]])


@pytest.mark.parametrize("charset", ["idna", "punycode", "hex", "utf-7", "unicode_escape", "rot13", "undefined"])
def test_encodings_that_no_browser_reads_get_a_message(charset: str) -> None:
    with pytest.raises(DataError, match=f"declares the encoding {charset}"):
        Page(f"<meta charset={charset}>aa".encode(), "a.html")


def test_encodings_are_read_as_in_browsers() -> None:
    assert Page(b"<meta charset=latin1><p>\x93a\x94", "a.html").texts == ["“a”"]
    assert Page(b"<meta charset=utf-16le><p>ab", "a.html").texts == ["ab"]
    assert Page("\ufeff<meta charset=latin1><p>ü".encode(), "a.html").texts[-1] == "ü"


def test_character_references_may_have_any_length() -> None:
    assert Markup(f"<p>&#{'0' * 5_000}65; &#{'9' * 5_000}; &#{'0' * 5_000}; &#x41;").texts == ["A \ufffd \ufffd A"]


PIECES = {
    ".html": [
        "<p>", "</p>", "<b title='a'>", "</b>", "<!-- x", "-->", "<", "&amp;", "\ue0fe1\ue0fe", "<pre>", "<br>",
        "<kbd>a</kbd>", "+", "<input type=submit value=", "<meta name=description content='", "'", '"', ">",
        "<option label=b&amp;c>", "<iframe srcdoc='<p>'>", "</iframe>", "<img translate=no alt=", "<template>",
    ],
    ".md": [
        "# ", "> ", "- ", "- [ ] ", "1. ", "    ", "---\n", "```\n", "| a | b |\n|---|---|\n", "[^1]: ", "[r]: /u\n",
        "[r]", "*", "_", "**", "~~", "`", "[", "](u)", "![", "  \n", "\\", "&amp;", "<b>", "<div>\n", "<http://a.b>",
        "http://a.b/", "\0", "::: a\n", ":::\n", "!!! a\n", "{{< a >}}\n", "{% raw %}\n",
        "{% endraw %}\n", "$$\n", "$a$", ": a\n", ":a:", "<A b={c}>", "import 'a'\n", "title: a\n", "<p title=a>\n",
        '=== "a"\n',
    ],
    ".srt": ["0:0:1,0 --> 0:0:2,0", "1", "- ", "{\\an8}", "<i>", "</i>", "-->"],
    ".vtt": ["WEBVTT", "0:01.000 --> 0:02.000", "<0:01.500>", "<v A>", "&lt;", "NOTE", "<c.x>", "</c>", "-->"],
}  # fmt: skip
COMMON = ["\n", "\r\n", "\n\n", " ", "\t", "one", "Haus", "公园", "حديقة", "पार्क", "bahçe", "\U00100001", "\u2028"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(PIECES)).flatmap(
    lambda suffix: st.tuples(st.just(suffix), st.lists(st.sampled_from(PIECES[suffix] + COMMON), max_size=30))
))  # fmt: skip
def test_a_document_whose_texts_stay_has_the_same_bytes(generated: tuple[str, list[str]]) -> None:
    suffix, parts = generated
    content = "".join(parts).encode()
    document = read_document(f"a{suffix}", content)
    assert document.render(document.texts) == content
