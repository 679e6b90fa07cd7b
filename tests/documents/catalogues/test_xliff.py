"""XLIFF: untranslated units get a target with the tags of their source, and all other bytes stay."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.formats import read_document, translate_texts
from nmt.errors import DataError

STATE = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
NAMESPACE = "{urn:oasis:names:tc:xliff:document:1.2}"
FIRST = (
    '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    '<file original="a>b" source-language="en" target-language="de"><body>\n{}\n</body></file></xliff>\n'
)
SECOND = (
    '<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">\n{}\n'
    "</file></xliff>\n"
)


def translated(content: bytes, target: str = "de") -> str:
    """Return a file with texts in upper case."""
    document = read_document("a.xlf", content)
    texts = translate_texts(document.texts, lambda lines: [line.upper() for line in lines], lambda *_: None)
    return document.render(texts, "en", target).decode()


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("<trans-unit id='1'><source>a</source></trans-unit>",
         f"<trans-unit id='1'><source>a</source><target{STATE}>A</target></trans-unit>"),
        ("<trans-unit>\n  <source>a</source>\n  <note>n</note></trans-unit>",
         f"<trans-unit>\n  <source>a</source>\n  <target{STATE}>A</target>\n  <note>n</note></trans-unit>"),
        ("<trans-unit><source>a &lt;b <g id='1'>c<x id='2'/></g></source><target/></trans-unit>",
         f"<trans-unit><source>a &lt;b <g id='1'>c<x id='2'/></g></source>"
         f"<target{STATE}>A &lt;B <g id='1'>C<x id='2'/></g></target></trans-unit>"),
        ("<trans-unit><source>a</source><target state='new' xml:lang='de'>a</target></trans-unit>",
         '<trans-unit><source>a</source><target state="needs-review-translation" xml:lang=\'de\' '
         'state-qualifier="mt-suggestion">A</target></trans-unit>'),
        ("<trans-unit><source>a <bpt id='1'>&lt;b></bpt>b<ept id='1'>&lt;/b></ept> <ph id='2'>x<sub>y</sub></ph>"
         "</source></trans-unit>",
         "<trans-unit><source>a <bpt id='1'>&lt;b></bpt>b<ept id='1'>&lt;/b></ept> <ph id='2'>x<sub>y</sub></ph>"
         f"</source><target{STATE}>A <bpt id='1'>&lt;b></bpt>B<ept id='1'>&lt;/b></ept> <ph id='2'>x<sub>y</sub></ph>"
         "</target></trans-unit>"),
        ("<trans-unit><source>a. b.</source><seg-source><mrk mid='0' mtype='seg'>a.</mrk> <mrk mid='1' mtype='seg'>b."
         "</mrk></seg-source></trans-unit>",
         "<trans-unit><source>a. b.</source><seg-source><mrk mid='0' mtype='seg'>a.</mrk> <mrk mid='1' mtype='seg'>b."
         f"</mrk></seg-source><target{STATE}><mrk mid='0' mtype='seg'>A.</mrk> <mrk mid='1' mtype='seg'>B.</mrk>"
         "</target></trans-unit>"),
        ("<trans-unit><source><mrk mtype='protected'>n</mrk> <![CDATA[a<b]]></source></trans-unit>",
         "<trans-unit><source><mrk mtype='protected'>n</mrk> <![CDATA[a<b]]></source>"
         f"<target{STATE}><mrk mtype='protected'>n</mrk> A&lt;B</target></trans-unit>"),
    ],
)  # fmt: skip
def test_a_unit_gets_a_target(unit: str, expected: str) -> None:
    assert translated(FIRST.format(unit).encode()) == FIRST.format(expected)


@pytest.mark.parametrize(
    "unit",
    [
        "<trans-unit><source>a</source><target>b</target></trans-unit>",
        "<trans-unit approved='yes'><source>a</source><target state='new'>b</target></trans-unit>",
        "<trans-unit><source>a</source><target state='final'/></trans-unit>",
        "<group translate='no'><trans-unit><source>a</source></trans-unit></group>",
        "<trans-unit><source>{0} <x id='1'/></source></trans-unit>",
        "<trans-unit><source/></trans-unit>",
        "<!-- <trans-unit><source>a</source></trans-unit> -->",
    ],
)
def test_other_units_stay(unit: str) -> None:
    content = FIRST.format(unit)
    assert translated(content.encode()) == content


def test_sub_elements_with_sources_of_their_own_are_no_units() -> None:
    alternative = "<alt-trans><source>x</source><target>y</target></alt-trans>"
    unit = f"<trans-unit><source>a</source>{alternative}</trans-unit>"
    expected = f"<trans-unit><source>a</source><target{STATE}>A</target>{alternative}</trans-unit>"
    assert translated(FIRST.format(unit).encode()) == FIRST.format(expected)


def test_segments_of_xliff_2_get_a_target_and_a_state() -> None:
    text = (
        "<unit id='1'><segment state='initial' subState='x:y'>\n <source>a <pc id='1'>b</pc> <sc id='2'/>c"
        "<ec startRef='2'/> <mrk id='m' translate='no'>d</mrk></source></segment>"
        "<ignorable><source> </source></ignorable><segment id='s'><source>e</source></segment>"
        "<segment state='final'><source>f</source></segment>"
        "<segment><source>g</source><target>h</target></segment></unit>"
        "<unit id='2' translate='no'><segment><source>i</source></segment></unit>"
    )
    target = "<target>A <pc id='1'>B</pc> <sc id='2'/>C<ec startRef='2'/> <mrk id='m' translate='no'>d</mrk></target>"
    expected = text.replace("d</mrk></source>", f"d</mrk></source>\n {target}").replace(
        "<segment state='initial' subState='x:y'>", '<segment state="translated">'
    )
    segment = "<segment id='s'{}><source>e</source>{}"
    expected = expected.replace(segment.format("", ""), segment.format(' state="translated"', "<target>E</target>"))
    assert translated(SECOND.format(text).encode()) == SECOND.format(expected)
    assert read_document("a.xlf", SECOND.format(text).encode()).note == "Not translated: 1 protected unit."


@pytest.mark.parametrize("language", ["de", "zh", "ar", "hi", "tr"])
@pytest.mark.parametrize(("form", "name"), [(FIRST, "target-language"), (SECOND, "trgLang")])
def test_the_target_language_is_declared(form: str, name: str, language: str) -> None:
    unit = "<trans-unit><source>a</source></trans-unit>" if form is FIRST else (
        "<unit id='1'><segment><source>a</source></segment></unit>"
    )  # fmt: skip
    content = form.format(unit).replace(f' {name}="de"', "")
    assert f'{name}="{language}"' in translated(content.encode(), language)
    assert name not in translated(content.encode(), "target")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_the_encoding_stays(encoding: str) -> None:
    text = FIRST.format("<trans-unit><source>é</source></trans-unit>")
    text = text.replace("?>", f' encoding="{encoding.removesuffix("-sig")}"?>')
    document = read_document("a.xlf", text.encode(encoding))
    assert document.render(document.texts) == text.encode(encoding)
    [target] = [
        element.text for element in ET.fromstring(document.render(["公园 ب पा ş"])).iter() if "target" in element.tag
    ]
    assert target == "公园 ب पा ş"


def test_a_translation_that_loses_a_tag_is_left_out() -> None:
    content = FIRST.format("<trans-unit><source>a <g id='1'>b</g> {n}</source></trans-unit>").encode()
    document = read_document("a.xlf", content)
    [text] = document.texts
    begin, end = re.findall("[\U00100000-\U0010ffff]", text)
    for wrong in ("x {n}", text.replace("{n}", "n"), f"{end}x{begin} {{n}}"):
        assert document.render([wrong]) == content
        assert document.note == "Left untranslated, as a translation changed placeholders or tags: 1 text."
    assert b"<g id='1'>y</g> x {n}" in document.render([f"{begin}y{end} x {{n}}\x0b"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<xliff><a></xliff>", "line 1, character 13 is not well-formed XML: mismatched tag"),
        (b'<!DOCTYPE x [<!ENTITY a "aa">]><xliff>&a;</xliff>', "declares entities"),
        (b"\xff\xfe", "is not well-formed XML"),
        (b'<?xml version="1.0" encoding="hex"?><a/>', "encoding that nmt does not read"),
        (b"<xliff>\xff</xliff>", "is not well-formed XML"),
    ],
)
def test_damaged_files_get_a_message(content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document("a.xliff", content)


INLINE = st.recursive(
    st.sampled_from(
        ["a", "Haus ", "&amp;", "公园", "حديقة ", "पार्क", "bahçe", "<x/>", "<ph id='1'>&lt;</ph>", "<!--c-->", " "]
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"<g id='1'>{''.join(parts)}</g>"),
    max_leaves=5,
)  # fmt: skip
UNITS = st.builds(
    lambda source, target, name: f"<{name}>\n<source>{''.join(source)}</source>{target}</{name}>",
    st.lists(INLINE, max_size=3),
    st.sampled_from(["", "<target/>", "<target>x</target>", "<target state='new'>x</target>", "<note>n</note>"]),
    st.sampled_from(["trans-unit", "segment"]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(UNITS, max_size=4), st.randoms(use_true_random=False))
def test_a_file_stays_well_formed(units: list[str], random) -> None:  # type: ignore[no-untyped-def]
    content = FIRST.format("\n".join(units)).encode()
    document = read_document("a.xlf", content)
    assert document.render(document.texts, "en", "de") == content
    texts = ["".join(random.sample(text, len(text))) for text in document.texts]
    old, new = ET.fromstring(content), ET.fromstring(document.render(texts, "en", "de"))
    for first, second in zip(old.iter(f"{NAMESPACE}source"), new.iter(f"{NAMESPACE}source"), strict=True):
        assert ET.tostring(first).rstrip() == ET.tostring(second).rstrip()
