"""Each format gives back the pairs that were written, with their places, or says what is wrong and where."""

import gzip
import json
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.data.sources import text_file as text_files
from nmt.data.sources.formats import Pair, read_pairs, unit_of
from nmt.data.sources.text_file import TextFile, Unreadable, find_text_file
from nmt.errors import DataError, NotFoundError

THOROUGH = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
STRANGE = [
    "",
    "go",
    "Grüß Gott!",
    "a\u2028b",
    "c\x85d",
    "\x0c\x0b\x1c",
    "e\u2029",
    "\ufefff",
    "a\0b",
    "😀",
    "<seg>&amp;",
]
STRANGE_PAIRS = [Pair(text, text[::-1]) for text in STRANGE]
# Line ends and tabs separate; a \r at a line's end belongs to it. Half surrogates are no text.
TEXTS = st.sampled_from(STRANGE) | st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]))
PAIRS = st.lists(st.tuples(TEXTS, TEXTS).map(lambda pair: Pair(*pair)), max_size=8)
Writer = Callable[[str, bytes | str], Path]


@pytest.fixture
def corpus(tmp_path: Path) -> Writer:
    """Write a corpus and return its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def read(*paths: Path, **config: object) -> list[tuple[int, Pair | Unreadable]]:
    """Read one file, or two sides."""
    return list(read_pairs([TextFile(path) for path in paths], DataConfig.model_validate(config)))


def pairs_of(*paths: Path, **config: object) -> list[Pair | Unreadable]:
    return [pair for _, pair in read(*paths, **config)]


def faults(*paths: Path, **config: object) -> list[str]:
    return [item.message for _, item in read(*paths, **config) if isinstance(item, Unreadable)]


# --- what is written is read


def unit(*segments: tuple[str, str]) -> str:
    return "<tu>" + "".join(f"<tuv xml:lang={quoteattr(a)}><seg>{b}</seg></tuv>" for a, b in segments) + "</tu>"


def a_tmx(*units: str) -> str:
    return f'<tmx version="1.4"><header srclang="en"/><body>{"".join(units)}</body></tmx>'


def tmx(pairs: list[Pair]) -> str:
    units = (unit(("en", escape(source)), ("de", escape(target))) for source, target in pairs)
    return '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">' + a_tmx(*units)


WRITERS: dict[str, Callable[[list[Pair]], bytes]] = {
    "a.tsv": lambda pairs: "".join(f"{source}\t{target}\n" for source, target in pairs).encode(),
    "a.jsonl": lambda pairs: "".join(json.dumps(pair._asdict()) + "\n" for pair in pairs).encode(),
    "a.pkl": lambda pairs: pickle.dumps(np.array(pairs, dtype=str).reshape(-1, 2)),
    "a.tmx": lambda pairs: tmx(pairs).encode(),
}


def in_xml(text: str) -> bool:
    """XML has no control characters, and no non-characters; white space at the ends of a segment is layout."""
    return text == text.strip(" \t\r\n") and not any(
        ord(character) < 32 or character in "\ufffe\uffff" for character in text
    )


def packed(path: Path, content: bytes, packing: str) -> TextFile:
    """Write content as it is, gzipped, in a zip archive, or gzipped in one."""
    if "gz" in packing:
        path, content = path.with_name(path.name + ".gz"), gzip.compress(content, mtime=0)
    if "zip" not in packing:
        path.write_bytes(content)
        return TextFile(path)
    with zipfile.ZipFile(path.parent / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"folder/{path.name}", content)
        archive.writestr("_about.txt", "notes")
    return find_text_file(str(path.parent / "a.zip"), [])


@pytest.mark.parametrize("name", WRITERS)
@THOROUGH
@given(pairs=PAIRS, packing=st.sampled_from(["plain", "gz", "zip", "gz in zip"]))
@example(pairs=STRANGE_PAIRS, packing="plain")
@example(pairs=STRANGE_PAIRS, packing="gz")
@example(pairs=STRANGE_PAIRS, packing="zip")
def test_any_pairs_come_back_from_each_format(tmp_path: Path, name: str, packing: str, pairs: list[Pair]) -> None:
    pairs = list(pairs)
    if name.endswith(".tmx"):
        pairs = [pair for pair in pairs if in_xml(pair.source) and in_xml(pair.target)]
    if name.endswith(".pkl"):  # NumPy drops NULs at the end of a string
        pairs = [Pair(*(text.rstrip("\0") for text in pair)) for pair in pairs]
    if name.endswith(".tsv") and pairs:
        pairs[0] = Pair(pairs[0].source.removeprefix("\ufeff"), pairs[0].target)
    file = packed(tmp_path / name, WRITERS[name](pairs), packing)
    expected = [(number, pair) for number, pair in enumerate(pairs, start=1)]
    assert list(read_pairs([file], DataConfig())) == expected


@THOROUGH
@given(pairs=PAIRS, packing=st.sampled_from(["plain", "gz", "zip"]))
@example(pairs=STRANGE_PAIRS, packing="plain")
@example(pairs=STRANGE_PAIRS, packing="zip")
def test_any_pairs_come_back_from_two_files(tmp_path: Path, packing: str, pairs: list[Pair]) -> None:
    pairs = list(pairs)
    if pairs:
        pairs[0] = Pair(*(text.removeprefix("\ufeff") for text in pairs[0]))
    files = []
    for column, name in enumerate(["a.en", "a.de"]):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        files.append(packed(folder / name, "".join(f"{pair[column]}\n" for pair in pairs).encode(), packing))
    assert [pair for _, pair in read_pairs(files, DataConfig())] == pairs


# --- TSV


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        ("go\tgeh\tCC-BY 2.0\tattribution\n", [("go", "geh")]),
        ("go\tgeh\r\nstop\thalt\r\n", [("go", "geh"), ("stop", "halt")]),
        ("\ufeffgo\tgeh\n", [("go", "geh")]),
        ("go\tgeh\n\ufeffstop\thalt\n", [("go", "geh"), ("\ufeffstop", "halt")]),
        ("a\rb\tc\x0cd\n", [("a\rb", "c\x0cd")]),
    ],
)
def test_two_columns_are_read_as_they_stand(corpus: Writer, content: str, pairs: list[tuple[str, str]]) -> None:
    assert pairs_of(corpus("a.tsv", content)) == pairs


TABLE = "id\ten\tde\n1\tgo\tgeh\n2\tstop\thalt\n"


@pytest.mark.parametrize(
    ("config", "pairs"),
    [
        ({"source_column": 2, "target_column": 3, "header": True}, [("go", "geh"), ("stop", "halt")]),
        ({"source_column": "en", "target_column": "de"}, [("go", "geh"), ("stop", "halt")]),
        ({"source_column": "de", "target_column": 2}, [("geh", "go"), ("halt", "stop")]),
        ({"source_column": 3}, [("geh", "go"), ("halt", "stop")]),
        ({"source_column": 1}, [("1", "go"), ("2", "stop")]),
        ({"source_column": 3, "header": False}, [("de", "en"), ("geh", "go"), ("halt", "stop")]),
        ({}, [("go", "geh"), ("stop", "halt")]),
        ({"header": True}, [("go", "geh"), ("stop", "halt")]),
        ({"source_language": "de", "target_language": "en"}, [("geh", "go"), ("halt", "stop")]),
    ],
)
def test_columns_are_chosen_by_number_or_name(corpus: Writer, config: dict, pairs: list[tuple[str, str]]) -> None:
    assert pairs_of(corpus("a.tsv", TABLE), **config) == pairs


@pytest.mark.parametrize("line", [b"stop", b"big\tgro\xdf"])
def test_a_line_that_is_no_pair_is_named_and_the_others_are_read(corpus: Writer, line: bytes) -> None:
    path = corpus("a.tsv", b"go\tgeh\n" + line + b"\nrun\tlauf\n")
    (fault,) = faults(path)
    assert fault.startswith(f"{path}, line 2 ")
    assert [number for number, _ in read(path)] == [1, 2, 3]
    assert unit_of([TextFile(path)]) == "line"


def test_a_line_without_end_is_dropped_and_never_in_memory(corpus: Writer) -> None:
    path = corpus("a.tsv", "go\tgeh\n" + "x" * 3 * text_files.MAX_LINE + "\nstop\thalt\n")
    (_, first), (number, fault), (last, second) = read(path)
    assert (first, second, number, last) == (("go", "geh"), ("stop", "halt"), 2, 3)
    assert isinstance(fault, Unreadable) and fault.is_dropped
    assert "a.tsv, line 2 is longer than 1,048,576 bytes" in fault.message


# --- two files


def test_two_files_of_different_length_are_refused_with_both(corpus: Writer) -> None:
    en, de = corpus("a.en", "go\nstop\nrun\nwalk\n"), corpus("a.de", "geh\nhalt\n")
    for files in ((en, de), (de, en)):
        with pytest.raises(DataError, match=r"has 2 lines, .* has 4"):
            read(*files)


def test_a_side_that_is_not_utf_8_takes_its_partner_along(corpus: Writer) -> None:
    en, de = corpus("a.en", "go\nbig\nrun\n"), corpus("a.de", b"geh\ngro\xdf\nlauf\n")
    assert [pair for pair in pairs_of(en, de) if isinstance(pair, Pair)] == [("go", "geh"), ("run", "lauf")]
    assert faults(en, de)[0].startswith(f"{de}, line 2 ")


# --- pickles


def test_a_pickled_array_of_pairs_is_read_as_it_stands(corpus: Writer) -> None:
    path = corpus("a.PKL", pickle.dumps(np.array([["go", "geh"], ["a\tb\n", "größer \u2028"]])))
    assert read(path) == [(1, Pair("go", "geh")), (2, Pair("a\tb\n", "größer \u2028"))]
    assert type(pairs_of(path)[0].source) is str  # type: ignore[union-attr]
    assert unit_of([TextFile(path)]) == "row"


@pytest.mark.parametrize("array", [["go", "geh"], [[["go", "geh"]]], "go"])
def test_a_pickled_array_of_another_shape_is_refused(corpus: Writer, array: object) -> None:
    with pytest.raises(DataError, match="of shape"):
        read(corpus("a.pkl", pickle.dumps(np.array(array))))


def test_a_packed_pickle_is_read_by_the_same_reader_that_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for packing in ("gz", "zip"):
        file = packed(tmp_path / "a.pkl", b"cos\nmkdir\n(Vran\ntR.", packing)
        with pytest.raises(DataError, match="could run code; nothing was run"):
            list(read_pairs([file], DataConfig()))
    assert not Path("ran").exists()


# --- JSON Lines


def test_fields_are_called_by_name(corpus: Writer) -> None:
    path = corpus(
        "a.jsonl", '{"en": "a", "de": "geh", "en": "go", "n": 1e999}\n'
    )  # the last value counts, as everywhere
    assert pairs_of(path, source_column="en", target_column="de") == [("go", "geh")]


@pytest.mark.parametrize(
    "line",
    [
        "{", "[" * 100_000, '{"a":' * 100_000, '{"source": "a", "target": "b", "n": ' + "9" * 5000 + "}",
        '{"source": "a", "target": "b"} {}', '{"source": "a\0", "target": "b"}', '{"source": "a", "target": 1e999}',
        '{"source": "a", "target": "b", "target": ["c"]}', "{" + ", ".join(f'"k{n}": {n}' for n in range(50_000)) + "}",
        "", "[]", '"text"', "5", '{"source": "a"}', '{"source": "a", "target": null}',
        '{"source": "a", "target": "\\ud800"}',
    ],
    ids=lambda line: line[:40],
)  # fmt: skip
def test_a_line_of_json_that_is_no_pair_is_named(corpus: Writer, line: str) -> None:
    path = corpus("a.jsonl", f'{{"source": "go", "target": "geh"}}\n{line}\n')
    (message,) = faults(path)
    assert f"{path}, line 2 " in message and len(message) < 1000
    assert pairs_of(path)[0] == ("go", "geh")


# --- TMX


def test_languages_of_a_tmx_are_chosen_by_name(corpus: Writer) -> None:
    path = corpus("a.tmx", a_tmx(unit(("DE-de", "geh"), ("fr", "va"), ("en-GB", "go")), unit(("fr", "x"))))
    pair, fault = pairs_of(path, source_column="en", target_column="de")
    assert pair == ("go", "geh") and isinstance(fault, Unreadable)
    with pytest.raises(DataError, match="de-de, en-gb, fr"):
        read(path)


def test_messages_about_a_tmx_name_few_of_many_languages(corpus: Writer) -> None:
    many = unit(*((f"{n:0200}", "x") for n in range(2_000)))
    (message,) = faults(corpus("a.tmx", a_tmx(unit(("en", "go"), ("de", "geh")), many)))
    with pytest.raises(DataError, match="and 1990 more in one unit") as caught:
        read(corpus("b.tmx", a_tmx(many)))
    assert max(len(message), len(str(caught.value))) < 1200


def test_markup_inside_a_segment_is_left_out_and_highlighted_text_kept(corpus: Writer) -> None:
    segment = 'Press <bpt i="1">&lt;b&gt;</bpt>the <hi>red</hi> button<ept i="1">&lt;/b&gt;</ept>.\n  '
    path = corpus("a.tmx", a_tmx(unit(("en", segment), ("de", "<![CDATA[a < b]]> &#228;"))))
    assert pairs_of(path) == [("Press the red button.", "a < b ä")]


def test_a_tmx_says_its_encoding_itself(corpus: Writer) -> None:
    text = a_tmx(unit(("en", "go"), ("de", "größer")))
    assert pairs_of(corpus("a.tmx", text.encode("utf-16"))) == [("go", "größer")]


LAUGHS = '<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "billion laughs": f"<!DOCTYPE tmx [{LAUGHS}]>" + a_tmx(unit(("en", "&i;"), ("de", "x"))),
    "external entity": '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    + a_tmx(unit(("en", "&x;"), ("de", "x"))),
    "parameter entity": '<!DOCTYPE tmx [<!ENTITY % x SYSTEM "http://localhost/x.dtd"> %x;]>' + a_tmx(),
    "entity of a DTD": '<!DOCTYPE tmx SYSTEM "http://localhost/tmx14.dtd">'
    + a_tmx(unit(("en", "&nbsp;"), ("de", "x"))),
    "attributes by default": f"<!DOCTYPE tmx [<!ATTLIST tuv x CDATA '{'x' * 1000}'>]>" + a_tmx("<tuv/>" * 1000),
    "elements": f"<!DOCTYPE tmx [<!ELEMENT a {'(' * 1000}",
}
UNBOUNDED = {  # what expat would keep in memory
    "comment": "<!--" + "x" * 3 * 2**20,
    "attribute": "<tu a='" + "x" * 3 * 2**20,
    "depth": "<tu>" * 200_000,
    "names": "".join(f"<a{n}/>" for n in range(20_000)),
    "languages": unit(*((f"{n:0200}", "") for n in range(9_000))),
    "segment": unit(("en", "x" * 2**21), ("de", "x")),
}
REFUSED = {
    **{name: (text, "must not declare entities or attributes") for name, text in HOSTILE.items()},
    **{name: (f"<tmx><body>{inside}</body></tmx>", "longer than|more than") for name, inside in UNBOUNDED.items()},
    **{name: (f"<?xml version='1.0' encoding='{name}'?>" + a_tmx(), "encoding that nmt does not read")
       for name in ("utf-7", "utf-32", "rot13", "idna", "undefined", "nonsense")},
    **{text: (text, r"line 1, character \d+ is not well-formed XML: ")
       for text in ("", "<tmx>", "<tmx></body></tmx>", "&x;", "plain", a_tmx(unit(("en", "a & b"))))},
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_tmx_that_is_hostile_or_not_well_formed_is_refused(corpus: Writer, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(corpus("a.tmx", text))


# --- packed files


BOMB = (b"a" * 2**16 + b"\tb\n") * 2**6  # 4 MB that shrink to 4 kB


def archive(folder: Path, *members: tuple[str | zipfile.ZipInfo, str | bytes], kind: int = zipfile.ZIP_STORED) -> Path:
    """Write a zip archive of these members, and return its path."""
    with zipfile.ZipFile(folder / "a.zip", "w", kind) as file:
        for name, content in members:
            file.writestr(name, content)
    return folder / "a.zip"


def pairs_in(path: Path | str) -> list[Pair | Unreadable]:
    return [pair for _, pair in read_pairs([find_text_file(str(path), [])], DataConfig())]


@pytest.mark.parametrize("packing", ["gz", "zip", "gz in zip"])
def test_a_file_that_unpacks_to_implausibly_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(text_files, "FREE_EXPANSION", 2**20)
    file = packed(tmp_path / "a.tsv", BOMB, packing)
    with pytest.raises(DataError, match=r"grows to at most 200 times its size.*unpack it and give the plain file"):
        list(read_pairs([file], DataConfig()))


@pytest.mark.parametrize("packing", ["gz", "zip", "gz in zip"])
def test_a_damaged_packed_file_is_refused_in_words(tmp_path: Path, packing: str) -> None:
    """Cut anywhere, or with a byte changed: the pairs as they are or a message, never a traceback."""
    rows = [f"{number} {number**7}\t{number**5}" for number in range(300)]
    content = "\n".join(rows).encode()
    path = packed(tmp_path / "a.tsv", content, packing).path
    whole = path.read_bytes()
    refused = 0
    for place in range(1, len(whole), max(1, len(whole) // 60)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            try:
                assert pairs_in(path) == [tuple(row.split("\t")) for row in rows]
            except (DataError, NotFoundError) as error:
                assert str(error).count("\n") == 0
                refused += 1
    assert refused > 100


def test_members_of_an_archive_are_chosen_by_name(tmp_path: Path) -> None:
    path = archive(tmp_path, ("train/a.en", "go\n"), ("train/a.de", "geh\n"))
    for name, error in ((path, DataError), (f"{path}/train/a.dee", NotFoundError)):
        with pytest.raises(error, match=r"train/a\.de"):
            find_text_file(str(name), [])
    sides = [find_text_file(f"{path}/train/a.{side}", []) for side in ("en", "de")]
    assert [pair for _, pair in read_pairs(sides, DataConfig())] == [("go", "geh")]


def test_a_member_is_never_written_to_the_disk(tmp_path: Path) -> None:
    assert pairs_in(archive(tmp_path, ("../../escaped.tsv", "go\tgeh\n"))) == [("go", "geh")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]
    assert not (tmp_path.parent.parent / "escaped.tsv").exists()


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_packed_without_a_bound_on_its_blocks_is_refused(tmp_path: Path, kind: int) -> None:
    """A thousand bytes of it can become hundreds of megabytes in a single step."""
    with pytest.raises(DataError, match="compressed by a method that nmt does not read"):
        pairs_in(archive(tmp_path, ("a.tsv", "go\tgeh\n"), kind=kind))


def test_an_archive_cannot_raise_the_limit_by_saying_that_it_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "FREE_EXPANSION", 1)
    monkeypatch.setattr(text_files, "MAX_EXPANSION", 2)
    members = ("a.tsv", f"go\t{'h' * 2**10}\n" * 2**11), ("_more", random.Random(0).randbytes(2**19))
    path = archive(tmp_path, *members, kind=zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 20
    content[place : place + 4] = (2**31).to_bytes(4, "little")  # the packed size, in the directory
    path.write_bytes(content)
    # Some versions of zipfile notice first that the size is wrong.
    with pytest.raises(DataError, match=r"grows to at most 2 times its size|is damaged or cut off"):
        pairs_in(path)


@pytest.mark.parametrize(("place", "value"), [(-6, 2**31 - 1), (-6, 2**32 - 1), (-10, 2**31)])
def test_a_directory_that_points_nowhere_is_refused_in_words(tmp_path: Path, place: int, value: int) -> None:
    path = packed(tmp_path / "a.tsv", b"go\tgeh\n", "zip").path
    content = bytearray(path.read_bytes())
    content[len(content) + place : len(content) + place + 4] = value.to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged or cut off"):
        pairs_in(path)


def test_members_whose_names_a_terminal_would_obey_are_passed_over(tmp_path: Path) -> None:
    names = "\x1b[2J.tsv", zipfile.ZipInfo("\0"), "a.tsv"  # the second ends where it begins
    assert find_text_file(str(archive(tmp_path, *((name, "go\tgeh\n") for name in names))), []).member == "a.tsv"


@pytest.mark.parametrize(
    ("name", "stem"),
    [("deu-eng.zip", "deu-eng"), ("pairs.tsv.gz", "pairs"), ("a.b.pkl", "a.b"), ("train.en", "train"), ("a", "a")],
)
def test_a_dataset_is_called_after_its_file(name: str, stem: str) -> None:
    assert TextFile(Path("data") / name).stem == stem
