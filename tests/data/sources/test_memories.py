"""Memories and catalogues as corpora: every unit becomes pairs, or is counted with the reason why not."""

import gzip
import io
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.data.prepare import prepare
from nmt.data.sources import text_file
from nmt.data.sources.corpus_files import find_corpus
from nmt.data.sources.formats import Pair, read_pairs, unit_of
from nmt.data.sources.memories import catalogue, reading
from nmt.data.sources.memories.reading import memory_languages
from nmt.data.sources.text_file import TextFile, Unreadable, find_text_file
from nmt.errors import DataError

THOROUGH = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
Writer = Callable[[str, bytes | str], Path]


@pytest.fixture
def corpus(tmp_path: Path) -> Writer:
    """Write a corpus and return its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def numbered(path: Path, **config: object) -> list[tuple[int, Pair | Unreadable]]:
    return list(read_pairs([find_text_file(str(path), [])], DataConfig.model_validate(config)))


def items(path: Path, **config: object) -> list[Pair | Unreadable]:
    return [item for _, item in numbered(path, **config)]


def pairs(path: Path, **config: object) -> list[Pair]:
    return [item for item in items(path, **config) if isinstance(item, Pair)]


def reasons(path: Path, **config: object) -> Counter[str]:
    return Counter(item.reason for item in items(path, **config) if isinstance(item, Unreadable))


# --- TMX


def tuv(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def tmx(*units: str, source: str = "en") -> str:
    body = "\n".join(f"<tu>{unit}</tu>" for unit in units)
    return f'<tmx version="1.4"><header srclang="{source}"/><body>\n{body}\n</body></tmx>'


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('Several<ph type="lb"/>women', "Several women"),
        ("Mehrere<ph x='1'>&lt;br/&gt;</ph>Frauen", "Mehrere Frauen"),
        ("महिलाएँ<ph/>बाहर", "महिलाएँ बाहर"),
        ("نساء<ph/>خارج", "نساء خارج"),
        ("kadınlar<ph/>ışık", "kadınlar ışık"),
        ("女人<ph/>在外面", "女人在外面"),
        ("ผู้<ph/>หญิง", "ผู้หญิง"),
        ("Several <ph/>women", "Several women"),
        ("Press <ph>%s</ph>.", "Press ."),
        ("10<ph/>%", "10%"),
        ("<ph/>Go<ph/>", "Go"),
        ("one<ph/><ph/>two", "one two"),
        ("one<it pos='begin'>&lt;p></it>two", "one two"),
        ("<bpt i='1'>&lt;b></bpt>S<ept i='1'>&lt;/b></ept>ave", "Save"),
        ("un<hi>believ</hi>able", "unbelievable"),
        ("see<bpt i='1'>&lt;a title='<sub>a note</sub>'></bpt> here<ept i='1'/>", "see here"),
        ("a <hi>b<ph>x</ph>c</hi>", "a b c"),
    ],
)
def test_a_placeholder_between_letters_is_a_space_and_other_codes_are_nothing(
    corpus: Writer, segment: str, text: str
) -> None:
    assert pairs(corpus("a.tmx", tmx(tuv("en", segment) + tuv("de", "x")))) == [(text, "x")]


def test_further_translations_are_pairs_of_their_own(corpus: Writer) -> None:
    units = (
        tuv("en", "go") + tuv("de", "geh") + tuv("de", "los"),
        tuv("en", "stop") + tuv("en", "halt!") + tuv("de", "halt"),
        tuv("en", "a") + tuv("en", "b") + tuv("de", "x") + tuv("de", "y"),
        tuv("en-GB", "colour") + tuv("en-US", "color") + tuv("de-DE", "Farbe"),
    )
    path = corpus("a.tmx", tmx(*units))
    expected = [("go", "geh"), ("go", "los"), ("stop", "halt"), ("halt!", "halt"), ("a", "x"), ("a", "y"), ("b", "x")]
    assert pairs(path) == [*expected, ("colour", "Farbe"), ("color", "Farbe")]
    assert [number for number, _ in numbered(path)] == [1, 1, 2, 2, 3, 3, 3, 4, 4]


@pytest.mark.parametrize("invalid", [b"&#x1F;", b"&#31;", b"\x1f", b"\x00", b"&#xD800;", b"&#x0000;", b"&#1114112;"])
@pytest.mark.parametrize("padding", [0, 2**16 - 130, 2**16 - 128, 2**16 - 126])
def test_a_character_that_xml_lacks_costs_its_unit(corpus: Writer, invalid: bytes, padding: int) -> None:
    first = tuv("en", "x" * padding) + tuv("de", "y")
    bad = tuv("en", "go?up") + tuv("de", "geh &#228;")
    text = tmx(first, bad, tuv("en", "stop") + tuv("de", "halt")).encode()
    path = corpus("a.tmx", text.replace(b"?", invalid))
    assert pairs(path)[1:] == [("go\x1aup", "geh ä"), ("stop", "halt")]


def test_the_report_counts_a_unit_with_an_invalid_character(
    corpus: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = [tuv("en", f"Go {n}!") + tuv("de", f"Geh {n}!") for n in range(30)]
    path = corpus("a.tmx", tmx(*good, tuv("en", "go &#x1F;up") + tuv("de", "geh")))
    manifest = prepare(path, DataConfig(), "a").manifest
    assert (manifest.read, manifest.dropped) == (31, {"control characters": 1})
    assert "unit 31: 'go \\x1aup'" in manifest.report.places["control characters"][0]


def test_invalid_characters_outside_segments_cost_nothing(corpus: Writer) -> None:
    note = "<note>a&#x1F;b</note><prop type='x'>\x01</prop>"
    path = corpus("a.tmx", tmx(note + tuv("en", "go<ph>&#2;</ph>") + tuv("de", "geh")))
    assert pairs(path) == [("go", "geh")]


def test_the_message_about_broken_xml_names_line_and_character(corpus: Writer) -> None:
    text = tmx(tuv("en", "go") + tuv("de", "geh"), tuv("en", "black & white") + tuv("de", "x"))
    with pytest.raises(DataError, match=r"a\.tmx, line 3, character \d+ is not well-formed XML: .*text editor"):
        items(corpus("a.tmx", text))


@pytest.mark.parametrize(
    ("header", "expected"),
    [("en", ("go", "geh")), ("DE", ("geh", "go")), ("de_DE", ("geh", "go")), ("*all*", ("go", "geh")),
     ("fr", ("go", "geh")), ("", ("go", "geh"))],
)  # fmt: skip
def test_the_header_chooses_the_source_language(corpus: Writer, header: str, expected: tuple[str, str]) -> None:
    path = corpus("a.tmx", tmx(tuv("en-US", "go") + tuv("de", "geh"), source=header))
    assert pairs(path) == [expected]
    assert pairs(path, source_column="en", target_column="de") == [("go", "geh")]


def test_a_first_unit_without_translation_does_not_decide_the_languages(corpus: Writer) -> None:
    path = corpus("a.tmx", tmx(tuv("en", "only"), tuv("en", "go") + tuv("de", "geh")))
    assert pairs(path) == [("go", "geh")] and reasons(path) == {"no such language": 1}
    with pytest.raises(DataError, match="no unit has two languages"):
        items(corpus("b.tmx", tmx(tuv("en", "only"))))


def test_varieties_of_a_language_are_that_language_unless_a_variety_is_named(corpus: Writer) -> None:
    units = [tuv(code, "go") + tuv("pt-BR", "vai") for code in ("en-US", "en", "en-GB")]
    path = corpus("a.tmx", tmx(*units, source="*all*"))
    assert len(pairs(path)) == 3
    assert len(pairs(path, source_column="en", target_column="pt")) == 3
    assert len(pairs(path, source_column="en-US", target_column="pt-BR")) == 2
    assert reasons(path, source_column="en-US", target_column="pt-BR") == {"no such language": 1}
    both = corpus("b.tmx", tmx(tuv("zh-Hans", "后") + tuv("zh-Hant", "後"), source="zh-Hant"))
    assert pairs(both) == [("後", "后")]


def test_other_spellings_of_a_code_are_the_code(corpus: Writer) -> None:
    path = corpus("a.tmx", tmx(tuv("deu", "geh") + tuv("zh_CN", "去"), tuv("DE", "komm") + tuv("zho-cn", "来")))
    assert len(pairs(path)) == 2
    assert len(pairs(path, source_column="ger", target_column="zh_cn")) == 2
    assert memory_languages(TextFile(path), DataConfig()) == ("de", "zh-cn")


# --- XLIFF


def xliff_1(*units: str) -> str:
    return (
        '<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file source-language="en-US" target-language="de" original="a"><header><note>n</note></header><body>'
        f"<group>{''.join(units)}</group></body></file></xliff>"
    )


def xliff_2(*segments: str) -> str:
    return (
        '<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">'
        '<unit id="u"><notes><note>n</note></notes><originalData><data id="d">&lt;br></data></originalData>'
        "<mtc:matches><mtc:match><source>no</source><target>nein</target></mtc:match></mtc:matches>"
        f"{''.join(segments)}<ignorable><source> </source></ignorable></unit></file></xliff>"
    )


def test_translated_units_of_xliff_1_are_pairs(corpus: Writer) -> None:
    path = corpus("a.xlf", xliff_1(
        '<trans-unit id="1"><source>Go<x id="1"/>up</source><seg-source><mrk mtype="seg">Go up</mrk></seg-source>'
        '<target state="final">Geh <g id="2">hoch</g></target><note>no</note>'
        "<alt-trans><source>x</source><target>y</target></alt-trans></trans-unit>",
        "<trans-unit><source>Stop</source><target>Halt</target></trans-unit>",
        "<trans-unit><source>Run</source></trans-unit>",
        "<trans-unit><source>Run</source><target/></trans-unit>",
        '<trans-unit><source>Run</source><target state="new">Run</target></trans-unit>',
        '<trans-unit><source>Run</source><target state="needs-review-translation">Lauf</target></trans-unit>',
    ))  # fmt: skip
    assert pairs(path) == [("Go up", "Geh hoch"), ("Stop", "Halt")]
    assert reasons(path) == {"untranslated": 3, "not reviewed": 1}
    assert memory_languages(TextFile(path), DataConfig()) == ("en-us", "de")
    assert unit_of([TextFile(path)]) == "unit"


def test_translated_segments_of_xliff_2_are_pairs(corpus: Writer) -> None:
    path = corpus("a.xliff", xliff_2(
        '<segment state="final"><source>Go<ph id="1" dataRef="d"/>up</source><target>Geh <pc id="2">hoch</pc></target>'
        "</segment>",
        "<segment><source>Stop</source><target>Halt</target></segment>",
        '<segment state="initial"><source>Run</source><target>Run</target></segment>',
        "<segment><source>Run</source></segment>",
        '<segment state="translated"><source>a<cp hex="001F"/></source><target>b</target></segment>',
    ))  # fmt: skip
    assert pairs(path) == [("Go up", "Geh hoch"), ("Stop", "Halt"), ("a\x1a", "b")]
    assert reasons(path) == {"untranslated": 2}
    assert memory_languages(TextFile(path), DataConfig()) == ("en", "de")
    assert pairs(path, source_column="de", target_column="en")[1] == ("Halt", "Stop")


def test_an_unfinished_unit_is_shown_with_its_line(corpus: Writer) -> None:
    path = corpus("a.xlf", xliff_1("\n<trans-unit><source>Run</source></trans-unit>"))
    (item,) = items(path)
    assert isinstance(item, Unreadable) and item.is_dropped and item.text == "Run"
    assert item.message == f"{path}, line 2 is untranslated: 'Run'"


HOSTILE = {
    "entities": ('<!DOCTYPE xliff [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><xliff>&b;</xliff>', "must not declare"),
    "depth": ("<xliff>" + "<group>" * 200_000, "nests more than"),
    "text": (xliff_1("<trans-unit><source>" + "x" * 2**21), "longer than"),
    "names": ("<xliff>" + "".join(f"<a{n}/>" for n in range(20_000)), "more than"),
    "comment": ("<xliff><!--" + "x" * 3 * 2**20, "longer than"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_xliff_is_refused(corpus: Writer, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        items(corpus("a.xlf", text))


# --- catalogues

HEADER = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset={}\\n"\n'
PLURALS = {
    "de": "nplurals=2; plural=(n != 1);",
    "fr": "nplurals=2; plural=n > 1;",
    "ja": "nplurals=1; plural=0;",
    "ru": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "ar": "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;",
}


def po(*entries: str, language: str = "de", charset: str = "UTF-8") -> str:
    return HEADER.format(language, charset) + "\n" + "\n\n".join(entries) + "\n"


def test_translated_entries_of_a_catalogue_are_pairs(corpus: Writer) -> None:
    path = corpus("a.po", po(
        '#: a.c:1\nmsgctxt "menu"\nmsgid "Go\\n"\n"up"\nmsgstr "Geh "\n"\\"hoch\\"\\t\\x41\\102"',
        '#, fuzzy, c-format\n#| msgid "Stopp"\nmsgid "Stop"\nmsgstr "Halt"',
        'msgid "Run"\nmsgstr ""',
        '#~ msgid "Old"\n#~ msgstr "Alt"',
        'msgid "Tight"\nmsgstr "Eng"\nmsgid "On" msgstr "An"',
    ))  # fmt: skip
    assert pairs(path) == [("Go\nup", 'Geh "hoch"\tAB'), ("Tight", "Eng"), ("On", "An")]
    assert reasons(path) == {"fuzzy": 1, "untranslated": 1, "obsolete": 1}
    assert memory_languages(TextFile(path), DataConfig()) == ("msgid", "de")
    assert unit_of([TextFile(path)]) == "line"
    assert pairs(path, source_column="en", target_column="de") == pairs(path)
    assert pairs(path, source_column="de", target_column="msgid")[1] == ("Eng", "Tight")
    found = [(number, item.text) for number, item in numbered(path) if isinstance(item, Unreadable)]
    assert found == [(15, "Stop"), (18, "Run"), (21, "Old")]


@pytest.mark.parametrize(
    ("language", "forms", "expected"),
    [
        ("de", 2, [("file", "0"), ("files", "1")]),
        ("fr", 2, [("file", "0"), ("files", "1")]),
        ("ja", 1, [("files", "0")]),
        ("ru", 3, [("file", "0"), ("files", "2")]),
        ("ar", 6, [("file", "1"), ("files", "3")]),
    ],
)
def test_plural_forms_are_those_for_one_and_for_some(
    corpus: Writer, language: str, forms: int, expected: list[tuple[str, str]]
) -> None:
    translations = "\n".join(f'msgstr[{form}] "{form}"' for form in range(forms))
    header = HEADER.format(language, "UTF-8") + f'"Plural-Forms: {PLURALS[language]}\\n"\n\n'
    path = corpus("a.po", header + f'msgid "file"\nmsgid_plural "files"\n{translations}\n')
    assert pairs(path) == expected


@pytest.mark.parametrize("rule", ["", "n", "n%0", "0 ** n", "__import__('os')", "((" * 400, "n" * 2000])
def test_a_wrong_plural_rule_is_the_rule_of_english(corpus: Writer, rule: str) -> None:
    header = HEADER.format("de", "UTF-8") + f'"Plural-Forms: nplurals=2; plural={rule};\\n"\n\n'
    path = corpus("a.po", header + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] "y"\n')
    assert pairs(path) in ([("a", "x"), ("b", "y")], [("a", "y")])


@pytest.mark.parametrize(
    ("charset", "word"),
    [("ISO-8859-1", "größer"), ("utf-8", "größer"), ("GBK", "中\\"), ("Shift_JIS", "表"), ("KOI8-R", "больше"),
     ("windows-1256", "نساء"), ("ISO-8859-9", "ışık")],
)  # fmt: skip
def test_the_header_says_the_charset(corpus: Writer, charset: str, word: str) -> None:
    escaped = word.replace("\\", "\\\\")
    text = po(f'msgid "big"\nmsgstr "{escaped}"', charset=charset)
    assert pairs(corpus("a.po", text.encode(charset))) == [("big", word)]


def test_a_line_in_another_charset_costs_its_entry(corpus: Writer) -> None:
    text = po('msgid "big"\nmsgstr "größer"', 'msgid "go"\nmsgstr "geh"').encode("latin-1")
    path = corpus("a.po", text)
    assert pairs(path) == [("go", "geh")] and reasons(path) == {"broken entry": 1}
    for charset in ("UTF-7", "UTF-16", "idna", "nonsense"):
        with pytest.raises(DataError, match="which nmt does not read"):
            items(corpus("b.po", po(charset=charset)))


@pytest.mark.parametrize("line", ['msgstr * (asterisk)"', "garbage", 'msgstr "open', "<<<<<<< HEAD", 'msgid "twice"'])
def test_a_broken_line_costs_its_entry(corpus: Writer, line: str) -> None:
    path = corpus("a.po", po('msgid "go"\nmsgstr "geh"', f'#: x\nmsgid "bad"\n{line}', '#: y\nmsgid "a"\nmsgstr "b"'))
    assert pairs(path) == [("go", "geh"), ("a", "b")]
    texts = [item.text for item in items(path) if isinstance(item, Unreadable) and item.reason == "broken entry"]
    assert texts[0] == line and len(texts) == 1 + line.startswith("msgid")


def test_giant_lines_and_entries_of_a_catalogue_are_refused(corpus: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MAX_ENTRY", 1000)
    with pytest.raises(DataError, match="line 337: the entry is longer than 1,000 characters"):
        items(corpus("a.po", po('msgid "a"\n' + '"x"\n' * 1000)))
    with pytest.raises(DataError, match=r"line 6 is longer than 1,048,576 bytes"):
        items(corpus("a.po", po('"' + "x" * 2**20)))


@st.composite
def catalogues(draw: st.DrawFn) -> polib.POFile:
    """Return a catalogue of polib, which writes and reads what msgfmt does."""
    file = polib.POFile()
    file.metadata = {"Language": "de", "Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": PLURALS["de"]}
    texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)
    for _ in range(draw(st.integers(0, 6))):
        entry = polib.POEntry(msgid=draw(texts), obsolete=draw(st.booleans()))
        entry.flags = draw(st.sampled_from([[], ["fuzzy"], ["c-format"], ["c-format", "fuzzy"]]))
        if draw(st.booleans()):
            entry.msgid_plural = draw(texts)
            entry.msgstr_plural = {0: draw(texts | st.just("")), 1: draw(texts | st.just(""))}
        else:
            entry.msgstr = draw(texts | st.just(""))
        entry.msgctxt = draw(st.none() | texts)
        file.append(entry)
    return file


@THOROUGH
@given(file=catalogues())
def test_each_entry_of_a_catalogue_is_its_pairs_or_is_counted(tmp_path: Path, file: polib.POFile) -> None:
    expected = Counter[object]()
    for entry in file:
        sides = [(entry.msgid, entry.msgstr)]
        if entry.msgid_plural:
            sides = [(entry.msgid, entry.msgstr_plural[0]), (entry.msgid_plural, entry.msgstr_plural[1])]
        for source, target in sides[:1] if entry.obsolete else sides:
            is_plain = not entry.obsolete and target.strip() and not entry.fuzzy
            expected[(source, target) if is_plain else None] += 1
    path = tmp_path / "a.po"
    path.write_bytes(str(file).encode())
    assert Counter(item if isinstance(item, Pair) else None for item in items(path)) == expected


# --- archives


def tar(**files: str | bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return content.getvalue()


CATALOGUES = {
    "docs__a.po": po('msgid "go"\nmsgstr "geh"'),
    "docs__" + "b" * 300 + ".po": po('msgid "stop"\nmsgstr "halt"', 'msgid "run"\nmsgstr ""'),
    "docs__c.po": po('msgid "go"\nmsgstr "va"', language="fr"),
}


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
def test_an_archive_of_catalogues_is_a_corpus(corpus: Writer, tmp_path: Path, name: str) -> None:
    if name == "a.zip":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, text in CATALOGUES.items():
                archive.writestr(member.replace("__", "/"), text)
            archive.writestr("__MACOSX/docs/._a.po", b"\0\1")
        path = tmp_path / name
    else:
        content = tar(**CATALOGUES, readme="see docs")
        path = corpus(name, gzip.compress(content) if name.endswith(".gz") else content)
    assert pairs(path) == [("go", "geh"), ("stop", "halt")]
    assert reasons(path) == {"untranslated": 1, "other language": 1}
    assert memory_languages(find_text_file(str(path), []), DataConfig()) == ("msgid", "de")
    assert pairs(path, source_column="msgid", target_column="fr") == [("go", "va")]


def test_catalogues_in_a_folder_are_in_the_two_languages_of_the_first(tmp_path: Path) -> None:
    for name, text in {"__main__.po": 'msgstr ""', "license.po": 'msgstr "geh"', "z.po": 'msgstr "halt"'}.items():
        language = "fr" if name == "z.po" else "de"
        (tmp_path / name).write_text(po(f'msgid "go"\n{text}', language=language))
    files = find_corpus([str(tmp_path)], [], "files", DataConfig())
    assert [shard.name for shard in files[0].shards] == ["__main__.po", "license.po", "z.po"]
    found = [item for _, item in read_pairs(files, DataConfig())]
    assert found[1] == ("go", "geh")
    assert [item.reason for item in found if isinstance(item, Unreadable)] == ["untranslated", "other language"]
    assert memory_languages(files[0], DataConfig()) == ("msgid", "de")


def test_a_catalogue_in_utf_16_is_read(corpus: Writer) -> None:
    assert pairs(corpus("a.po", 'msgid "go"\nmsgstr "größer, أكبر"\n'.encode("utf-16"))) == [("go", "größer, أكبر")]


def test_a_zip_of_catalogues_has_no_notes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("README.txt", "__main__.po", "license.po"):
            archive.writestr(name, po('msgid "go"\nmsgstr "geh"'))
    [file] = find_corpus([str(tmp_path / "a.zip")], [], "files", DataConfig())
    assert [item for _, item in read_pairs([file], DataConfig())] == [("go", "geh")] * 2


def test_a_tar_without_memories_is_named_with_the_remedy(corpus: Writer) -> None:
    path = corpus("a.tar", tar(**{"train.en": "go\n", "train.de": "geh\n"}))
    with pytest.raises(DataError, match=r"a\.tar holds train\.en, train\.de\..* Unpack it with tar -xf"):
        items(path)


def test_a_damaged_tar_is_refused(corpus: Writer) -> None:
    content = tar(**{"a.po": po('msgid "go"\nmsgstr "geh"' * 60)})
    assert len(content) > 3000
    for damaged in (content[:1000], content[:700], b"\xff" * 2000, content[:100] + b"x" + content[101:]):
        with pytest.raises(DataError, match="damaged or cut off"):
            items(corpus("a.tar", damaged))


def test_an_archive_that_unpacks_to_implausibly_much_is_refused(
    corpus: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "FREE_EXPANSION", 2**18)
    monkeypatch.setattr(reading, "FREE_EXPANSION", 2**18)
    bomb = po(*['msgid "a"\nmsgstr "b"'] * 30_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(4):
            archive.writestr(f"{n}.po", bomb)
    with pytest.raises(DataError, match="at most 200 times its size"):
        items(tmp_path / "a.zip")
    with pytest.raises(DataError, match="at most 200 times its size"):
        items(corpus("a.tar.gz", gzip.compress(tar(**{"a.po": bomb}))))


# --- what is read adds up


@st.composite
def unit_texts(draw: st.DrawFn) -> str:
    """Return a unit of TMX with any number of segments in three languages."""
    texts = st.sampled_from(["go", "geh &#228;", "a<ph/>b", "", "&#2;", "क", "<hi>x</hi>"])
    languages = st.sampled_from(["en", "en-GB", "de", "fr"])
    return "".join(tuv(draw(languages), draw(texts)) for _ in range(draw(st.integers(0, 5))))


@THOROUGH
@given(units=st.lists(unit_texts(), max_size=6))
@example(units=[""])
def test_no_unit_of_a_tmx_is_lost(tmp_path: Path, units: list[str]) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(tmx(*units), encoding="utf-8")
    read = list(read_pairs([TextFile(path)], DataConfig(source_column="en", target_column="de")))
    assert {number for number, _ in read} == set(range(1, len(units) + 1))
    for number, unit in enumerate(units, start=1):
        sources, targets = unit.count('"en'), unit.count('"de')
        expected = sources + targets - 1 if sources and targets else 1
        found = [item for place, item in read if place == number]
        assert len(found) == expected
        assert isinstance(found[0], Pair) == bool(sources and targets)


@THOROUGH
@given(text=st.text(max_size=40), placeholder=st.booleans())
def test_text_without_codes_stays_as_it_is(text: str, placeholder: bool) -> None:
    reader = reading.TmxReader("a")
    clean = "".join(character for character in text if character.isprintable()).strip()
    content = tmx(tuv("en", escape(clean) + ("<ph/>" if placeholder else "")) + tuv("de", "x")).encode()
    (unit,) = reader.read(io.BytesIO(content))
    assert unit.segments[0] == ("en", clean)


KINDS = {
    "a.tmx": tmx(
        *(tuv("en", f"Go {n}!") + tuv("de", f"Geh {n}!") + tuv("de", f"Los {n}!") for n in range(20)),
        tuv("en", "only"), tuv("en", "Go &#x1F;up") + tuv("de", "Geh"), tuv("en", "Go 1!") + tuv("de", "Geh 1!"),
    ),
    "a.xlf": xliff_1(
        *(f"<trans-unit><source>Go {n}!</source><target>Geh {n}!</target></trans-unit>" for n in range(20)),
        "<trans-unit><source>Run</source></trans-unit>",
        '<trans-unit><source>Run</source><target state="needs-adaptation">Lauf</target></trans-unit>',
    ),
    "a.po": po(
        *(f'msgid "Go {n}!"\nmsgstr "Geh {n}!"' for n in range(20)),
        'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""', '#, fuzzy\nmsgid "c"\nmsgstr "d"', "#: e\nnothing",
    ),
}  # fmt: skip
DROPPED = {
    "a.tmx": {"no such language": 1, "control characters": 1, "duplicates": 1},
    "a.xlf": {"untranslated": 1, "not reviewed": 1},
    "a.po": {"untranslated": 1, "fuzzy": 1, "broken entry": 1},
}


@pytest.mark.parametrize("name", KINDS)
def test_pairs_read_are_those_kept_and_those_dropped_by_reason(
    corpus: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    config = DataConfig(drop_unreadable=name == "a.tmx", drop_duplicates=True)
    manifest = prepare(corpus(name, KINDS[name]), config, "a").manifest
    assert manifest.dropped == DROPPED[name]
    kept = sum(split.pairs for split in manifest.splits.values())
    assert manifest.read == kept + sum(manifest.dropped.values()) == len(items(tmp_path / name))
