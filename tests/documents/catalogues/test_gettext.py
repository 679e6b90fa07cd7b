"""gettext catalogues: ``msgfmt -c`` accepts a translated catalogue, whatever a translator returns."""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from random import Random

import polib
import pytest
from conftest import CORPORA
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.catalogues.plural_forms import plural_forms, rule_of
from nmt.documents.document import Document
from nmt.documents.formats import read_document, translate_texts

needs_gettext = pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs msgfmt of gettext")
HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: {}\\n"\n\n'
TWO_FORMS = HEADER.format("nplurals=2; plural=(n != 1);")
TEMPLATE = """#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: PACKAGE VERSION\\n"
"Language: \\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

#, c-format
msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] ""
msgstr[1] ""

msgid "one man"
msgid_plural "%d men"
msgstr[0] ""
msgstr[1] ""
"""


def translated(text: str, translations: dict[str, str], target: str = "de", name: str = "a.po") -> str:
    """Return a catalogue with the translations of texts, in which ~N stands for placeholder N."""
    document = read_document(name, text.encode())
    texts = []
    for source in document.texts:
        marks = re.findall("[\U0010a000-\U0010ffff]", source)
        shown = source
        for number, mark in enumerate(marks):
            shown = shown.replace(mark, f"~{number}")
        translation = translations.get(shown, source)
        for number, mark in enumerate(marks):
            translation = translation.replace(f"~{number}", mark)
        texts.append(translation)
    return document.render(texts, "en", target).decode()


def check(content: bytes, folder: Path) -> None:
    """Let msgfmt check a catalogue."""
    path = folder / "checked.po"
    path.write_bytes(content)
    result = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr + content.decode(errors="replace")


@pytest.mark.parametrize(
    ("flag", "source", "shown", "translation", "expected", "fuzzy"),
    [
        ("c", "%ld of %s", "~0 of ~1", "~0 von ~1", "%ld von %s", False),
        ("c", "%ld of %s", "~0 of ~1", "~1 von ~0", "%s von %ld", True),
        ("c", "%s of %s", "~0 of ~1", "~1 von ~0", "%s von %s", True),
        ("c", "%1$s of %2$s", "~0 of ~1", "~1 von ~0", "%2$s von %1$s", False),
        ("c", "%s dogs", "~0 dogs", "Hunde", "Hunde%s", True),
        ("c", "%s/%d dogs", "~0 dogs", "Hunde ~0", "Hunde %s/%d", False),
        ("c", "100% sure", "100% sure", "100% sicher", "100% sicher", False),
        ("c", "100% sure", "100% sure", "sicher", "sicher", True),
        ("c", "%d dogs", "~0 dogs", "~0 % der Hunde", "%d % der Hunde", True),
        ("no-c", "100% sure", "100% sure", "sicher %s", "sicher %s", False),
        ("python", "%(n)d of %(m)s", "~0 of ~1", "~1 的 ~0", "%(m)s 的 %(n)d", False),
        ("python-brace", "{n:>{w}} {}", "~0 ~1", "~1 ~0", "{} {n:>{w}}", False),
        ("python-brace", "{} {}", "~0 ~1", "~1 ~0", "{} {}", True),
        ("qt", "%1 of %L2", "~0 of ~1", "~1 من ~0", "%L2 من %1", False),
        ("kde", "%1%", "~0%", "%~0", "%%1", False),
        ("ruby", "%{n} dogs", "~0 dogs", "~0 कुत्ते", "%{n} कुत्ते", False),
        ("sh", "$n ${m}", "~0 ~1", "~1 ~0", "${m} $n", False),
        ("", "{n} dogs", "{n} dogs", "{n} köpek", "{n} köpek", False),
        ("", "{n} dogs", "{n} dogs", "köpek", "köpek", True),
    ],
)
def test_a_translation_that_changes_placeholders_is_fuzzy(
    flag: str, source: str, shown: str, translation: str, expected: str, fuzzy: bool
) -> None:
    flags = f"#, {flag}-format\n" if flag else ""
    text = f'{TWO_FORMS}{flags}msgid "{source}"\nmsgstr ""\n'
    marked = (f"#, fuzzy, {flag}-format\n" if flag else "#, fuzzy\n") if fuzzy else flags
    assert translated(text, {shown: translation}) == f'{TWO_FORMS}{marked}msgid "{source}"\nmsgstr "{expected}"\n'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fuzzy_entries_are_translated_anew(end: str) -> None:
    text = (
        '#. a\n#, fuzzy, c-format\n#| msgid ""\n#| "x"\nmsgid "a"\nmsgstr ""\n"alt"\n\n'
        '# b\n#, fuzzy\nmsgid "b"\nmsgstr "alt"\n\n#, c-format, fuzzy\nmsgctxt "x"\nmsgid "c"\nmsgstr "alt"\n\n'
        '#, fuzzy\n#~ msgid "d"\n#~ msgstr "alt"\n\nmsgid "e"\nmsgstr "fertig"\n'
    )
    expected = (
        '#. a\n#, c-format\nmsgid "a"\nmsgstr "A"\n\n# b\nmsgid "b"\nmsgstr "B"\n\n'
        '#, c-format\nmsgctxt "x"\nmsgid "c"\nmsgstr "C"\n\n'
        '#, fuzzy\n#~ msgid "d"\n#~ msgstr "alt"\n\nmsgid "e"\nmsgstr "fertig"\n'
    )
    content = text.replace("\n", end).encode()
    document = read_document("a.po", content)
    assert document.texts == ["a", "b", "c"]
    assert document.render(["A", "B", "C"]).decode() == expected.replace("\n", end)
    assert document.note == "Not translated: 1 obsolete message."


def test_translations_are_marked_fuzzy_on_request() -> None:
    document = read_document("a.po", b'# a\n#: b\nmsgid "a"\nmsgstr ""\n\n#, c-format\nmsgid "b"\nmsgstr ""\n')
    document.needs_review = True
    expected = '# a\n#: b\n#, fuzzy\nmsgid "a"\nmsgstr "公园"\n\n#, c-format\nmsgid "b"\nmsgstr ""\n'
    assert document.render(["公园", "b"]).decode() == expected
    assert document.render(["a", "ب"]).decode().endswith('#, fuzzy, c-format\nmsgid "b"\nmsgstr "ب"\n')


@pytest.mark.parametrize(
    ("source", "plain", "translation", "expected"),
    [
        ("&File", "File", "Datei", "Datei(&F)"),
        ("&File", "File", "ficheiro", "&ficheiro"),
        ("Save &As...", "Save As...", "Speichern als...", "Speichern &als..."),
        ("_Open book", "Open book", "Buch öffnen", "Buch öffnen(_O)"),
        ("E_xit", "Exit", "Text und Exit", "Te_xt und Exit"),
        ("~Edit:", "Edit:", "编辑:", "编辑(~E):"),
        ("&File...", "File...", "ملف...", "ملف(&F)..."),
        ("&File", "File", "फ़ाइल", "फ़ाइल(&F)"),
        ("&File", "File", "Dosya", "Dosya(&F)"),
        ("&Save %s", "Save %s", "%s guardar", "%s guardar(&S)"),
    ],
)
def test_accelerators_stay(source: str, plain: str, translation: str, expected: str) -> None:
    text = f'msgid "{source}"\nmsgstr "{{}}"\n'
    assert read_document("a.po", text.format("").encode()).texts == [plain]
    assert translated(text.format(""), {plain: translation}) == text.format(expected)


@pytest.mark.parametrize(
    "text", ["AT&T", "R&D", "Tom & Jerry", "&amp; so", "file_name", "the _fields", "Use the _fields of a class.",
             "~/file", "~user/file", "a?b&c=d", "Find && &Replace", "__init__", "PYTHON_HOME", "1 & 2"]
)  # fmt: skip
def test_other_signs_are_no_accelerators(text: str) -> None:
    assert read_document("a.po", f'msgid "{text}"\nmsgstr ""\n'.encode()).texts == [text]


@needs_gettext
@pytest.mark.parametrize(
    ("target", "forms"),
    [
        ("de", ["%d Hund", "%d Hunde"]),
        ("zh", ["%d Hunde"]),
        ("ar", ["%d Hunde", "%d Hund"] + ["%d Hunde"] * 4),
        ("hi", ["%d Hund", "%d Hunde"]),
        ("tr", ["%d Hund", "%d Hunde"]),
        ("ru", ["%d Hund", "%d Hunde", "%d Hunde"]),
    ],
)
def test_a_template_becomes_a_catalogue_of_the_target(target: str, forms: list[str], tmp_path: Path) -> None:
    translations = {"~0 dog": "~0 Hund", "~0 dogs": "~0 Hunde", "one man": "ein Mann", "%d men": "%d Männer"}
    content = translated(TEMPLATE, translations, target, "a.pot")
    check(content.encode(), tmp_path)
    catalogue = polib.pofile(content)
    assert [*catalogue.find("%d dog").msgstr_plural.values()] == forms
    # In Russian the form of 1 is that of 21, and in Hindi that of 0, so "one man" would be wrong.
    men = catalogue.find("one man").msgstr_plural.values()
    assert ("ein Mann" in men) == (target in ("de", "ar", "tr"))
    assert catalogue.metadata["Language"] == target
    assert "fuzzy" not in content


@pytest.mark.parametrize("language", ["de", "zh", "ar", "hi", "tr", "ru", "pl", "cy", "ga", "pt-BR", "sr-Latn", "xx"])
def test_the_plural_rule_of_a_language_is_complete(language: str) -> None:
    forms = plural_forms(rule_of(language))
    assert forms is not None
    assert forms.one < forms.number <= 6


def test_a_filled_form_stays() -> None:
    text = f'{TWO_FORMS}msgid "a"\nmsgid_plural "b"\nmsgstr[0] "eins"\nmsgstr[1] ""\n'
    assert translated(text, {"a": "x", "b": "y"}) == text.replace('[1] ""', '[1] "y"')


SOURCES = [
    ("", "{n} dogs in %s"), ("c-format", "%ld of %s and %*d"), ("c-format", "%1$s of %2$d"), ("c-format", "50% done"),
    ("python-format", "%(n)d dogs of %(m)s"), ("python-format", "50% of them"), ("python-brace-format", "{a} of {b!r}"),
    ("qt-format", "%1 of %2, %n"), ("kde-format", "<b>%1</b> %2"), ("ruby-format", "%{n} of %<m>d"),
    ("php-format", "%1$s, %2$s"), ("java-format", "{0} isn''t {1}"), ("csharp-format", "{0} of {1:d}"),
    ("perl-brace-format", "{a} {b}"), ("objc-format", "%@ and %d"), ("sh-format", "$a and ${b}"),
    ("c-format", "\\n %s \\n"), ("javascript-format", "%s, %d"), ("lua-format", "%s %d"), ("boost-format", "%1% %2%"),
    ("c-format", "%s/%s in %d"), ("c-format", "%1$s-%2$s"), ("python-format", "%(a)s = %(b)s of %(c)d"),
]  # fmt: skip


@needs_gettext
@pytest.mark.parametrize("plural", ["nplurals=1; plural=0;", "nplurals=2; plural=(n != 1);", rule_of("ar")])
def test_msgfmt_accepts_any_translation(plural: str, tmp_path: Path) -> None:
    random = Random(1)
    for _ in range(10):
        entries = []
        for number in range(60):
            flag, source = random.choice(SOURCES)
            flags = f"#, {flag}\n" if flag else ""
            singular = f'{flags}msgid "{source} {number}"\n'
            if number % 3 and source.count("%") + source.count("{") > 1:
                entries.append(f'{singular}msgstr ""\n')
            else:
                entries.append(f'{singular}msgid_plural "many {source}"\nmsgstr[0] ""\nmsgstr[1] ""\n')
        entries = [entry for entry in entries if "\\n" not in entry or "plural" not in entry]
        document = read_document("a.po", (HEADER.format(plural) + "\n".join(entries)).encode())
        check(document.render(mangled_texts(document, random), "en", "de"), tmp_path)
        assert document.note.startswith("Marked fuzzy")


def mangled(text: str, random: Random) -> str:
    """Return a text whose signs are sometimes lost, doubled or exchanged."""
    characters = [*text]
    for _ in range(random.choice([0, 0, 1, 2, 5])):
        place = random.randrange(len(characters))
        change = random.choice(["lose", "double", "exchange", "insert"])
        if change == "lose" and len(characters) > 1:
            del characters[place]
        elif change == "double":
            characters.insert(place, characters[place])
        elif change == "insert":
            characters.insert(place, random.choice(["%", "% d", "{", "}", "'", "\n", "%s", "\\", '"', "é", "公", "$x"]))
        else:
            other = random.randrange(len(characters))
            characters[place], characters[other] = characters[other], characters[place]
    return "".join(characters)


def mangled_texts(document: Document, random: Random) -> list[str]:
    """Return the mangled texts of a document."""
    return translate_texts(document.texts, lambda lines: [mangled(line, random) for line in lines], lambda *_: None)


@needs_gettext
@pytest.mark.skipif(not CORPORA, reason="needs the corpora")
def test_msgfmt_accepts_real_catalogues_with_mangled_translations(tmp_path: Path) -> None:
    random = Random(1)
    entries = list[polib.POEntry]()
    with tarfile.open(Path(str(CORPORA)) / "python-docs-es.tar.gz") as archive:
        for member in archive:
            if member.name.endswith((".po",)) and "library/" in member.name and len(entries) < 500:
                catalogue = polib.pofile(archive.extractfile(member).read().decode())  # type: ignore[union-attr]
                entries += [entry for entry in catalogue if not entry.obsolete and "%" in entry.msgid]
    text = TWO_FORMS
    for number, entry in enumerate(entries[:500]):
        entry.msgstr, entry.msgctxt = "", str(number)
        text += f"{entry}\n"
    document = read_document("a.po", text.encode())
    check(document.render([f"{text} x" for text in document.texts], "en", "es"), tmp_path)
    assert not document.note
    check(document.render(mangled_texts(document, random), "en", "es"), tmp_path)
    assert document.note


PARTS = [
    "#, fuzzy\n", "#, c-format\n", "#| msgid \"x\"\n", "#~ msgid \"o\"\n", "# c\n", "\n", "msgctxt \"c\"\n",
    "msgid \"one %s\"\n", "msgid \"\"\n",
    "\"two\\n\"\n", "msgid_plural \"ones\"\n", "msgstr \"\"\n", "msgstr[0] \"\"\n",
    "msgstr[1] \"\"\n", "msgstr \"done\"\n", "\r\n", "\"Language: \\n\"\n", "\"公园 &File\"\n", "domain \"d\"\n", " ",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20), st.booleans())
def test_an_unchanged_catalogue_has_the_same_bytes(parts: list[str], needs_review: bool) -> None:
    content = "".join(parts).encode()
    document = read_document("a.po", content)
    document.needs_review = needs_review
    assert document.render(document.texts, "en", "de") == content
    assert isinstance(document.render([f"x{text}" for text in document.texts], "en", "de"), bytes)
