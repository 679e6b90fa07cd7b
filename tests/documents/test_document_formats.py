"""Document formats: other programs read the translated files, which keep all bytes except the texts."""

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
import polib
import pysubs2
import pytest
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from nmt.documents.formats import FORMATS, read_document, translate_texts
from nmt.errors import DataError

SRT = """\
1
00:00:01,000 --> 00:00:03,500
A man is sleeping
on a <i>couch</i>.

2
00:00:04,000 --> 00:00:06,000
{\\an8}- Two & two.
- A woman.
"""
VTT = """\
WEBVTT - a test

NOTE A man
stays.

STYLE
::cue { color: red }

one
00:01.000 --> 00:03.000 position:10% align:start
<v Bob>A man &amp; a <c.red>dog</c>
run.

00:04.000 --> 00:05.000
A woman."""
PO = r"""# Translators
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#, c-format
msgid "A man named %s.\n"
msgstr ""

msgid "A dog"
msgstr "Ein Hund"

msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] ""
msgstr[1] ""

msgctxt "menu"
msgid ""
"A \"big\" dog"
" runs\t\\."
msgstr ""

#~ msgid "A cat"
#~ msgstr ""
"""
HTML = b"<!doctype html>\r\n<meta charset=windows-1252>\n<title>A caf\xe9</title><P Class=x>A <b>man</b> runs.</p\n>\n"


def word_document() -> bytes:
    """Return a .docx file with a heading, runs, a link, a table, a header, a footer and a field."""
    document = docx.Document()
    document.add_heading("A man", 1)
    paragraph = document.add_paragraph("A man ")
    paragraph.add_run("sleeping").bold = True
    paragraph.add_run(" on a\tcouch.")
    link = OxmlElement("w:hyperlink")
    link.append(paragraph.add_run("Click here")._r)
    paragraph._p.append(link)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "A girl", "A ball"
    document.sections[0].header.paragraphs[0].text = "A boy"
    document.sections[0].footer.paragraphs[0].text = "A dog"
    field = document.add_paragraph("Page ")
    for kind in ("begin", "end"):
        sign = OxmlElement("w:fldChar")
        sign.set(qn("w:fldCharType"), kind)
        field.add_run()._r.append(sign)
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def translate_to_upper(name: str, content: bytes) -> bytes:
    """Return a document whose texts are in upper case instead of translated."""
    document = read_document(name, content)
    texts = translate_texts(document.texts, lambda lines: [line.upper() for line in lines], lambda *_: None)
    return document.render(texts)


def test_a_message_with_branches_is_translated_as_a_whole() -> None:
    message = "{n, plural,\n one {# dog}\n other {# dogs}\n}"
    texts = translate_texts([message, "a dog\na cat"], lambda lines: [line.upper() for line in lines], lambda *_: None)
    assert texts == [message.upper(), "A DOG\nA CAT"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "text"), [("a.srt", SRT), ("a.vtt", VTT), ("a.po", PO), ("a.html", HTML.decode("cp1252"))]
)
def test_a_text_file_that_is_not_translated_has_the_same_bytes(name: str, text: str, end: str) -> None:
    content = text.replace("\r\n", "\n").replace("\n", end).encode("cp1252" if name == "a.html" else "utf-8-sig")
    document = read_document(name, content)
    if name == "a.po":
        assert document.texts[1:] == ["%d dog", "%d dogs", 'A "big" dog runs\t\\.']
    assert document.render(document.texts) == content
    assert len(document.render([text.upper() for text in document.texts])) >= len(content)


def test_cues_keep_times_lines_and_settings() -> None:
    before, after = (pysubs2.SSAFile.from_string(text, format_="srt", keep_html_tags=True)
                     for text in (SRT, translate_to_upper("a.srt", SRT.encode()).decode()))  # fmt: skip
    assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
    assert [cue.text for cue in after] == [
        r"A MAN IS SLEEPING\NON A <i>COUCH</i>.",
        r"{\an8}- TWO & TWO.\N- A WOMAN.",
    ]
    expected = VTT
    for old, new in (
        ("A man &", "A MAN &"),
        ("dog<", "DOG<"),
        ("&amp; a", "&amp;\na"),  # the lines are balanced
        ("</c>\nrun.", "</c> RUN."),
        ("\na <c", "\nA <c"),
        ("A w", "A W"),
        ("oman", "OMAN"),
    ):
        expected = expected.replace(old, new)
    assert translate_to_upper("a.vtt", VTT.encode()).decode() == expected


def test_untranslated_entries_of_a_catalogue_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_bytes(translate_to_upper("a.po", PO.encode()))
    entries = {entry.msgid: entry for entry in polib.pofile(str(path))}
    assert entries["A man named %s.\n"].msgstr == "A MAN NAMED %s.\n"
    assert entries["A dog"].msgstr == "Ein Hund"
    assert entries["%d dog"].msgstr_plural == {0: "%D DOG", 1: "%D DOGS"}
    assert entries['A "big" dog runs\t\\.'].msgstr == 'A "BIG" DOG RUNS\t\\.'
    assert entries["A cat"].obsolete and not entries["A cat"].msgstr
    single_form = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n'
    assert translate_to_upper("a.po", single_form.encode()).decode() == single_form.replace('[0] ""', '[0] "B"')


def formatted_paragraphs(document: Any) -> list[Any]:
    """Return style, runs as (text, bold), and links of every paragraph."""
    paragraphs = [
        *document.paragraphs,
        *document.sections[0].header.paragraphs,
        *document.sections[0].footer.paragraphs,
    ]
    paragraphs += [paragraph for cell in document.tables[0].rows[0].cells for paragraph in cell.paragraphs]
    runs = [[(run.text, run.bold) for run in paragraph.runs if run.text] for paragraph in paragraphs]
    return [
        (paragraph.style.name, run, [link.text for link in paragraph.hyperlinks])
        for paragraph, run in zip(paragraphs, runs, strict=True)
    ]


def test_paragraphs_of_word_keep_styles_runs_and_links() -> None:
    document = read_document("a.docx", word_document())
    before = docx.Document(io.BytesIO(document.render(document.texts)))
    assert formatted_paragraphs(before) == formatted_paragraphs(docx.Document(io.BytesIO(word_document())))
    after = formatted_paragraphs(docx.Document(io.BytesIO(translate_to_upper("a.docx", word_document()))))
    upper = [(style, [(text.upper(), bold) for text, bold in runs], [text.upper() for text in links])
             for style, runs, links in formatted_paragraphs(before)]  # fmt: skip
    expected, translated = (
        [(style, "".join(text for text, _ in runs), [run for run in runs if run[1]], links)
         for style, runs, links in paragraphs]
        for paragraphs in (upper, after)
    )  # fmt: skip
    assert translated == expected
    fields = docx.Document(io.BytesIO(translate_to_upper("a.docx", word_document()))).element.body.iter(qn("w:fldChar"))
    assert [field.get(qn("w:fldCharType")) for field in fields] == ["begin", "end"]


def with_xml(xml: str) -> bytes:
    content = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word_document())) as old,
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, xml if name == "word/document.xml" else old.read(name))
    return content.getvalue()


ENTITIES = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
ENTITY_BOMB = f'<!DOCTYPE x [<!ENTITY a0 "aaaaaaaaaa">{ENTITIES}]><x>&a9;</x>'


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.docx", b"no zip", "is not a Word document"),
        ("a.docx", with_xml("<a>" * 100_000), "is not a Word document"),
        ("a.docx", with_xml(ENTITY_BOMB), "is not a Word document"),
        ("a.docx", with_xml(" " * 65 * 2**20), "it unpacks to"),
        ("a.html", b"<meta charset=utf-8>\xff", "is not in the encoding utf-8"),
        ("a.html", b"<meta charset=hex>aa", "declares the encoding hex"),
        ("a.srt", b"1\n\xff", "line 2 is not UTF-8"),
        ("a.po", b'msgid "\xff"', "line 1 is not UTF-8"),
    ],
)  # fmt: skip
def test_damaged_files_get_a_message(name: str, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document(name, content)


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_bytes_are_a_document_or_get_a_message(suffix: str) -> None:
    for content in (
        b"",
        b"\0" * 10,
        b"PK\3\4",
        b"-->\n" * 1_000,
        b"<" * 10_000,
        b'msgid "' * 10_000,
        b"\n\n-->\n<b>" * 1_000,
    ):
        try:
            document = read_document(f"a{suffix}", content)
        except DataError:
            continue
        assert isinstance(document.render(document.texts), bytes)
