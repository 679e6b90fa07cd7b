"""Documents of Word and OpenDocument: what is text, what stays, and the same bytes if nothing changes."""

import io
import re
import zipfile
from typing import Any

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from nmt.documents.formats import read_document, translate_texts
from nmt.errors import DataError
from nmt.tokenizers.marks import MARK, PAIRED

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"
PARTS = ("footnotes", "endnotes", "comments", "header1", "footer1")
ODF = "urn:oasis:names:tc:opendocument:xmlns:"
ODF_NAMES = {name: f"{ODF}{name}:1.0" for name in ("office", "text", "style", "table")} | {
    "fo": f"{ODF}xsl-fo-compatible:1.0",
    "draw": f"{ODF}drawing:1.0",
    "svg": f"{ODF}svg-compatible:1.0",
    "xlink": "http://www.w3.org/1999/xlink",
    "rsid": "http://openoffice.org/2009/office",
    "dc": "http://purl.org/dc/elements/1.1/",
}
XMLNS = " ".join(f'xmlns:{name}="{uri}"' for name, uri in ODF_NAMES.items())


def packed(members: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, text in members.items():
            file.writestr(name, text, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return content.getvalue()


def word(body: str, **parts: str) -> bytes:
    """Return a Word document with this body, and further parts such as footnotes."""
    names = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    names += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    names += ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    kinds = {"document": "document.main"} | {name: name.rstrip("1") for name in parts}
    types = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{TYPES}.{kind}+xml"/>' for name, kind in kinds.items()
    )
    contents = {"document": f"<w:body>{body}</w:body>"} | parts
    return packed(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f"{types}</Types>"
        }
        | {f"word/{name}.xml": f'<w:{name} xmlns:w="{W}" {names}>{xml}</w:{name}>' for name, xml in contents.items()}
    )


def odt(body: str, styles: str = "", footer: str = "") -> bytes:
    """Return an OpenDocument text with this body, automatic styles, and a footer."""
    content = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content += f"<office:body><office:text>{body}</office:text></office:body>"
    masters = f"<office:master-styles><style:footer>{footer}</style:footer></office:master-styles>"
    return packed({
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document-content {XMLNS}>{content}</office:document-content>",
        "styles.xml": f"<office:document-styles {XMLNS}>{masters}</office:document-styles>",
    })  # fmt: skip


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(code: str, result: str) -> str:
    """Return a field with a code and a result."""
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )  # fmt: skip
    return f"{begin}<w:r><w:instrText>{code}</w:instrText></w:r>{separate}{result}{end}"


def plain_texts(name: str, content: bytes) -> list[str]:
    """Return the texts of a document with "|" in place of tags and "_" in place of pieces."""
    return [MARK.sub("_", PAIRED.sub("|", text)) for text in read_document(name, content).texts]


def upper(name: str, content: bytes, part: str) -> str:
    """Return a part of a document in upper case."""
    document = read_document(name, content)
    texts = translate_texts(document.texts, lambda lines: [line.upper() for line in lines], lambda *_: None)
    with zipfile.ZipFile(io.BytesIO(document.render(texts))) as file:
        return file.read(part).decode()


def without_names(xml: str) -> str:
    """Return XML without the declarations of its encoding and its namespaces."""
    return re.sub(r' xmlns:\w+="[^"]*"|<\?xml.*?>\s*', "", xml)


@pytest.mark.parametrize(
    ("paragraph", "texts"),
    [
        (run("a man") + "<w:r><w:br/></w:r>" + run("two dogs"), ["a man", "two dogs"]),
        ("<w:r><w:t>a man</w:t><w:tab/><w:t>2 dogs</w:t><w:cr/><w:t>c</w:t></w:r>", ["a man", "2 dogs", "c"]),
        (run("see ") + f"<w:hyperlink>{run('a dog')}</w:hyperlink>" + run("."), ["see |a dog|."]),
        (f"<w:hyperlink>{run('a')}<w:r><w:br/></w:r>{run('b')}</w:hyperlink>" + run("c"), ["a", "b", "c"]),
        (run("see ") + field('HYPERLINK "x"', run("a dog")) + run("."), ["see |a dog|."]),
        (run("page ") + field("PAGE", run("5")) + run(" of it"), ["page _______ of it"]),
        (field("TOC", run("a dog") + field("PAGEREF x", run("5"))) + run(" x"), ["|a dog_______| x"]),
        ('<w:fldSimple w:instr="HYPERLINK x">' + run("a dog") + "</w:fldSimple>" + run(" runs"), ["|a dog| runs"]),
        ('<w:fldSimple w:instr="DATE">' + run("May") + "</w:fldSimple>" + run(" it is"), [" it is"]),
        (f"<w:ins>{run('a dog')}</w:ins><w:del><w:r><w:delText>b</w:delText></w:r></w:del>", ["a dog"]),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('a dog')}</w:sdtContent></w:sdt>", ["a dog"]),
        (f"<w:smartTag>{run('a dog')}</w:smartTag>{run(' runs')}", ["|a dog| runs"]),
        (run("non") + "<w:r><w:noBreakHyphen/></w:r>" + run("stop"), ["non\u2011stop"]),
        ('<w:r><w:fldChar w:fldCharType="begin"/></w:r>' + run("never ended"), ["never ended"]),
        (run("a ") + run("b", "<w:rPr><w:b/></w:rPr>") + "<w:bookmarkEnd/>" + run("c"), ["a |b_|c"]),
    ],
)
def test_texts_of_word(paragraph: str, texts: list[str]) -> None:
    content = word(f"<w:p>{paragraph}</w:p>")
    assert [re.sub("_+", "_", text) for text in plain_texts("a.docx", content)] == [
        re.sub("_+", "_", text) for text in texts
    ]
    new = without_names(upper("a.docx", content, "word/document.xml"))
    before = without_names(zipfile.ZipFile(io.BytesIO(content)).read("word/document.xml").decode())
    assert signs(new) == signs(before)
    assert re.sub("<.*?>", "", new.replace("\u2011", "")).upper() == re.sub("<.*?>", "", before).upper()


def signs(xml: str) -> list[str]:
    """Return all tags that are neither runs nor texts."""
    return [
        tag for tag in re.findall("<[^/?].*?>", xml) if not re.match("<(w:r|w:t|w:rPr|w:b|w:noBreakHyphen)[ />]", tag)
    ]


def test_all_parts_of_word_are_translated() -> None:
    names = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
    parts = {
        part: f"<w:{names[part]}><w:p>{run(part)}</w:p></w:{names[part]}>"
        if part in names
        else f"<w:p>{run(part)}</w:p>"
        for part in PARTS
    }
    content = word(f"<w:p>{run('body')}</w:p>", **parts)
    assert sorted(plain_texts("a.docx", content)) == sorted(["body", *PARTS])
    for part in PARTS:
        assert f">{part.upper()}</w:t>" in upper("a.docx", content, f"word/{part}.xml")


def test_the_copy_of_a_text_box_gets_the_same_translation() -> None:
    box = f"<w:txbxContent><w:p>{run('a box')}</w:p></w:txbxContent>"
    both = f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
    content = word(f"<w:p>{run('one')}<w:r><mc:AlternateContent>{both}</mc:AlternateContent></w:r>{run(' two')}</w:p>")
    assert plain_texts("a.docx", content) == ["one_ two", "a box"]
    assert upper("a.docx", content, "word/document.xml").count("A BOX") == 2


def test_what_stays_is_counted() -> None:
    equation = "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>"
    shape = '<w:r><w:drawing><wp:docPr descr="a dog"/></w:drawing></w:r>'
    date = field("DATE", run("May"))
    document = read_document(
        "a.docx", word(f"<w:p>{run('a')}{equation * 2}{shape}{date}{field('PAGE', run('1'))}</w:p>")
    )
    assert document.note == "Not translated: 2 equations, 1 alternative text, 1 field."
    frame = "<draw:frame><draw:object/><svg:desc>a dog</svg:desc></draw:frame><text:title>T</text:title>"
    document = read_document("a.odt", odt(f"<text:p>a{frame}<text:page-number>1</text:page-number></text:p>"))
    assert document.note == "Not translated: 1 field, 1 embedded object, 1 alternative text."


@pytest.mark.parametrize(
    ("paragraph", "texts"),
    [
        ("a man<text:line-break/>two dogs<text:tab/>c", ["a man", "two dogs", "c"]),
        ('see <text:a xlink:href="x">a dog</text:a>.', ["see |a dog|."]),
        ('<text:span text:style-name="B">a<text:line-break/>b</text:span>c', ["a", "b|c|"]),
        ("a<text:s text:c='3'/>b  \n c", ["a   b c"]),
        ("\n  a\n b", ["a b"]),
        ('<text:span text:style-name="T1">a m</text:span><text:span text:style-name="T2">an</text:span>', ["a man"]),
        ('a <text:span text:style-name="B">big</text:span> dog', ["a |big| dog"]),
        ("a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>n</text:p></text:note-body>"
         "</text:note> b", ["a_ b", "n"]),
        ("a<office:annotation><dc:creator>Me</dc:creator><text:p>c</text:p></office:annotation> b", ["a_ b", "c"]),
        ("<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame>a", ["a", "box"]),
        ("page <text:page-number>1</text:page-number> of", ["page _ of"]),
    ],
)  # fmt: skip
def test_texts_of_opendocument(paragraph: str, texts: list[str]) -> None:
    text = '<style:style style:name="{}" style:family="text"><style:text-properties {}/></style:style>'
    styles = text.format("T1", 'rsid:rsid="1"') + text.format("T2", 'rsid:rsid="2" fo:language="en"')
    content = odt(f"<text:p>{paragraph}</text:p>", styles + text.format("B", 'fo:font-weight="bold"'))
    assert plain_texts("a.odt", content) == texts
    new, before = (etree.fromstring(xml) for xml in (
        upper("a.odt", content, "content.xml").encode(), zipfile.ZipFile(io.BytesIO(content)).read("content.xml")
    ))  # fmt: skip
    assert shown(new) == shown(before)


def shown(root: Any) -> str:
    """Return the text of OpenDocument in upper case, with its spaces as a reader shows them.

    A reader leaves out the spaces at both ends of a paragraph.
    """
    for paragraph in root.iter(f"{{{ODF}text:1.0}}p"):
        if not paragraph.getparent().tag.endswith("}note"):  # within another paragraph
            paragraph.tail = f"\u2029{paragraph.tail or ''}"
    for spaces in root.iter(f"{{{ODF}text:1.0}}s"):
        spaces.text = "\u2002" * int(spaces.get(f"{{{ODF}text:1.0}}c", "1"))
    text = re.sub(" ?\u2029 ?", "\u2029", re.sub("[ \n]+", " ", "".join(root.itertext())))
    return text.replace("\u2002", " ").strip().upper()


def test_deleted_text_stays_and_headers_are_translated() -> None:
    deletion = "<text:changed-region><text:deletion><text:p>old</text:p></text:deletion></text:changed-region>"
    changes = f"<text:tracked-changes>{deletion}</text:tracked-changes>"
    content = odt(f"{changes}<text:h>new</text:h>", footer="<text:p>foot</text:p>")
    assert plain_texts("a.odt", content) == ["new", "foot"]
    assert ">FOOT<" in upper("a.odt", content, "styles.xml") and ">old<" in upper("a.odt", content, "content.xml")
    with zipfile.ZipFile(io.BytesIO(read_document("a.odt", content).render(["neu", "foot"]))) as file:
        first = file.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


WORDS = ["a dog", " Haus ", "公园", "حديقة", "पार्क", "bahçe", " ", "\U00100001", "&amp;"]
WORD_PARTS = [
    *(run(text, style) for text in WORDS for style in ("", "<w:rPr><w:b/></w:rPr>")), "<w:r><w:tab/></w:r>",
    "<w:r><w:br/></w:r>", f"<w:hyperlink>{run('x')}</w:hyperlink>", field("HYPERLINK x", run("y")),
    field("DATE", run("z")), '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>', "<w:proofErr/>",
    "</w:p><w:p>", "<w:bookmarkStart/>", f"<w:ins>{run('new')}<w:r><w:br/></w:r></w:ins>",
]  # fmt: skip
ODF_PARTS = [
    *WORDS, "<text:tab/>", "<text:s/>", '<text:span text:style-name="B">b </text:span>', "<text:a>link</text:a>",
    "</text:p><text:p>", "<text:note><text:p>note</text:p></text:note>", "<text:line-break/>", "<text:bookmark/>",
    "<text:a>two<text:line-break/>lines</text:a>",
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.tuples(st.just("a.docx"), st.lists(st.sampled_from(WORD_PARTS), max_size=12)),
        st.tuples(st.just("a.odt"), st.lists(st.sampled_from(ODF_PARTS), max_size=12)),
    )
)
def test_generated_documents_keep_their_bytes_and_all_text(generated: tuple[str, list[str]]) -> None:
    name, parts = generated
    paragraphs = "".join(parts)
    is_word = name == "a.docx"
    content = word(f"<w:p>{paragraphs}</w:p>") if is_word else odt(f"<text:p>{paragraphs}</text:p>")
    part = "word/document.xml" if is_word else "content.xml"
    document = read_document(name, content)
    assert document.render(document.texts) == content
    before = etree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read(part))
    after = etree.fromstring(upper(name, content, part).encode())
    if is_word:
        assert "".join(after.itertext()).upper() == "".join(before.itertext()).upper()
        assert len([*after.iter(f"{{{W}}}fldChar")]) == len([*before.iter(f"{{{W}}}fldChar")])
    else:
        assert shown(after) == shown(before)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.odt", b"PK", "is not an OpenDocument text"),
        ("a.odt", packed({"mimetype": "x"}), "is not an OpenDocument text"),
        ("a.odt", odt("<a>" * 300 + "</a>" * 300), "is not an OpenDocument text"),
        ("a.odt", odt("<text:p a='b'/>" * 600_000), "more than 1,000,000 tags"),
        ("a.docx", packed({"[Content_Types].xml": "<Types/>"}), "it has no main part"),
        ("a.docx", word("", header1="</w:header1><a>"), "is not a Word document"),
    ],
)
def test_damaged_packages_get_a_message(name: str, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document(name, content)


def test_python_docx_reads_a_translated_document() -> None:
    document = docx.Document()
    document.add_paragraph("a man").add_run(" runs").add_break()
    document.add_paragraph("two dogs", style="List Bullet")
    content = io.BytesIO()
    document.save(content)
    translated = read_document("a.docx", content.getvalue()).render(["ein Mann", "zwei Hunde"])
    paragraphs = docx.Document(io.BytesIO(translated)).paragraphs
    assert [(paragraph.text, paragraph.style.name) for paragraph in paragraphs] == [
        ("ein Mann\n", "Normal"), ("zwei Hunde", "List Bullet"),
    ]  # fmt: skip
