"""Tables, records and the files of a corpus: what is recognized, and what is refused with the true cause."""

import bz2
import json
import lzma
from pathlib import Path

import pytest

from nmt.config.data import DataConfig
from nmt.data.sources.columns import choose_columns
from nmt.data.sources.corpus_files import find_corpus
from nmt.data.sources.formats import facts_of, named_columns, read_pairs
from nmt.data.sources.pairs import Pair
from nmt.data.sources.text_file import TextFile, Unreadable, shard_of
from nmt.errors import DataError

LINES = [("go", "geh"), ("größer", "أكبر"), ("你好，世界", "नमस्ते"), ("ışık", 'he said "yes"')]
TSV = "".join(f"{source}\t{target}\n" for source, target in LINES)


def read(path: Path, **config: object) -> list[Pair | Unreadable]:
    return [item for _, item in read_pairs([TextFile(path)], DataConfig.model_validate(config))]


def reasons(items: list[Pair | Unreadable]) -> list[str]:
    return [item.reason for item in items if isinstance(item, Unreadable)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16 be"])
@pytest.mark.parametrize("packing", ["plain", "xz", "bzip2", "bzip2 in parts"])
def test_a_file_is_what_its_first_bytes_say(tmp_path: Path, encoding: str, packing: str) -> None:
    content = b"\xfe\xff" + TSV.encode("utf-16-be") if encoding == "utf-16 be" else TSV.encode(encoding)
    packed = {
        "plain": content, "xz": lzma.compress(content), "bzip2": bz2.compress(content),
        "bzip2 in parts": bz2.compress(content[:9]) + bz2.compress(content[9:]),
    }  # fmt: skip
    path = tmp_path / "a.txt"
    path.write_bytes(packed[packing])
    assert read(path) == LINES
    assert bool(facts_of([TextFile(path)], DataConfig())) == (encoding != "utf-8-sig")


def test_old_line_ends_are_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(TSV.replace("\n", "\r").encode())
    assert read(path) == LINES


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"PAR1", "Parquet"), (b"%PDF-1.4", "PDF"), (b"PK\x03\x04", "zip archive"), (b"\x80\x04", "pickle"),
        (b"SQLite format 3\0", "SQLite"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"), (b"{\\rtf1", "word processor"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">', "TMX"),
        (b"\xef\xbb\xbf<xliff", "XLIFF"), (b'# Catalogue\nmsgid ""\nmsgstr ""\n', "gettext"),
        (b" <!DOCTYPE HTML>", "web page"), (b"a" * 257 + b"ustar", "tar"),
        (("go\tgeh\n" * 60).encode("utf-16-le"), "UTF-16LE without"),
    ],
)  # fmt: skip
def test_other_formats_are_named(tmp_path: Path, start: bytes, name: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(start + b"\0\1")
    with pytest.raises(DataError, match=name):
        read(path)


def test_a_tab_in_a_sentence_is_counted_and_never_cuts_a_translation(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"one {n}\teins\n" for n in range(9)) + "ten\tzehn\tund mehr\n\n")
    items = read(path)
    assert len([item for item in items if isinstance(item, Pair)]) == 9
    assert reasons(items) == ["more columns than most lines: a tab within a sentence?", "blank line"]
    assert all(item.is_dropped for item in items if isinstance(item, Unreadable))
    path.write_text("".join(f"one {n}\teins\tCC BY\n" for n in range(9)))  # a further column in every line
    assert reasons(read(path)) == []
    path.write_text("a\tb\nc\td\te\n" * 9)
    with pytest.raises(DataError, match="9 of the first 18 lines have more columns than most, 2"):
        read(path)


def test_cells_in_quotes_are_read_and_an_open_quote_takes_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('sep=;\nsource;target\n"he said ""go""";"a;b"\n"two\nlines";x\n"open;y\nlast;z\n')
    *pairs, fault, last = read(path)
    assert pairs == [('he said "go"', "a;b"), ("two\nlines", "x")] and last == ("last", "z")
    assert reasons([fault]) == ["quotes that do not end"]


@pytest.mark.parametrize(
    ("first", "is_header"),
    [("English\tGerman", True), ("src\ttgt", True), ("en\tpt-BR", True), ("no\tso", False), ("go\tgeh", False),
     ("English\tEnglisch", False)],
)  # fmt: skip
def test_a_header_is_two_names_of_columns(tmp_path: Path, first: str, is_header: bool) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{first}\nstop\thalt\n{first}\n")
    items = read(path)
    assert items[0] == (("stop", "halt") if is_header else tuple(first.split("\t")))
    assert reasons(items) == (["header repeated"] if is_header else [])
    assert (named_columns([TextFile(path)], DataConfig()) is not None) == is_header
    assert reasons(read(path, header=False)) == []


@pytest.mark.parametrize(
    "record",
    [
        {"translation": {"en": "go", "de": "geh"}}, {"en": "go", "de": "geh"}, {"id": 3, "en": "go", "de": "geh"},
        {"src": "go", "tgt": "geh"}, {"de": "geh", "x": 1, "source": "go", "target": "geh"},
    ],
)  # fmt: skip
def test_fields_are_recognized_by_their_names(tmp_path: Path, record: dict) -> None:
    for name, content in (("a.jsonl", json.dumps(record) + "\n\n"), ("a.json", json.dumps([record], indent=1))):
        (tmp_path / name).write_text(content)
        items = read(tmp_path / name)
        assert items[0] == ("go", "geh") and reasons(items) == (["blank line"] if name == "a.jsonl" else [])


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["id", "sourceLang", "targetLang", "sourceString", "targetString"], ("sourceString", "targetString")),
        (["SRC", "TRG", "src_id", "trg_id"], ("SRC", "TRG")),
        (["source text", "target text"], ("source text", "target text")),
        (["source_lang", "target_lang"], None), (["source", "tgt"], None), (["sources", "target"], None),
        (["target_tokenized", "source_tokenized", "target", "source"], ("source", "target")),
    ],
)  # fmt: skip
def test_usual_names_of_columns(names: list[str], chosen: tuple[str, str] | None) -> None:
    assert choose_columns(names, DataConfig()) == chosen


@pytest.mark.parametrize("first", ["", "number\ta\tid\ttext\n", "id\tde\tx\ty\n"])
def test_numbers_of_sentences_are_no_sentences(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(first + "".join(f"{n}\tgo to {n}\t{n + 7}\tgeh zu {n}\n" for n in range(5)))
    with pytest.raises(DataError, match=r"column 1 holds only numbers") as refused:
        read(path)
    remedy = refused.value.on_command_line()
    assert "data.source_column=2" in remedy and "data.target_column=4" in remedy
    items = read(path, source_column=2, target_column=4)
    assert items[-1] == ("go to 4", "geh zu 4") and not reasons(items)
    path.write_text("".join(f"{n}\t{n + 1}\n" for n in range(5)))  # a corpus of numbers
    assert len(read(path)) == 5


def test_files_of_pairs_are_shards_and_places_name_them(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"part-{number}.tsv").write_text(f"go {number}\tgeh\n")
    (tmp_path / "README.md").write_text("notes")
    for names in ([str(tmp_path)], [str(tmp_path / "part-*.tsv")], [str(tmp_path / f"part-{n}.tsv") for n in (1, 2)]):
        files = find_corpus(names, [], "files", DataConfig())
        items = list(read_pairs(files, DataConfig()))
        assert [item for _, item in items] == [("go 1", "geh"), ("go 2", "geh")]
        assert [(shard_of(files, number)[0][0].name, shard_of(files, number)[1]) for number, _ in items] == [
            ("part-1.tsv", 1), ("part-2.tsv", 1)
        ]  # fmt: skip


def test_sides_in_a_folder_are_found_by_their_languages(tmp_path: Path) -> None:
    for code in ("en", "de"):
        (tmp_path / f"x.{code}").write_text("go\n")
    for config, names in ((DataConfig(), ["x.de", "x.en"]), (DataConfig(source_language="en"), ["x.en", "x.de"])):
        assert [file.name for file in find_corpus([str(tmp_path)], [], "files", config)] == names


def test_one_side_beside_pairs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(TSV)
    (tmp_path / "b.txt").write_text("go\n")
    with pytest.raises(DataError, match=r"a\.tsv holds pairs, and .*b\.txt does not"):
        find_corpus([str(tmp_path / "a.tsv"), str(tmp_path / "b.txt")], [], "files", DataConfig())


def test_blank_lines_at_the_end_of_one_side_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("go\n\n \n")
    (tmp_path / "a.de").write_text("geh\n")
    items = [item for _, item in read_pairs([TextFile(tmp_path / "a.en"), TextFile(tmp_path / "a.de")], DataConfig())]
    assert items[0] == ("go", "geh") and reasons(items) == ["blank line"] * 2


def test_rows_of_parquet_are_pairs(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"translation": [{"en": source, "de": target} for source, target in LINES]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == LINES
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged or no Parquet"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("is_stream", [True, False])
def test_rows_of_arrow_are_pairs(tmp_path: Path, is_stream: bool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"translation": [{"en": source, "de": target} for source, target in LINES]})
    path = tmp_path / "a.arrow"
    open_writer = pyarrow.ipc.new_stream if is_stream else pyarrow.ipc.new_file
    with open_writer(str(path), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=3):
            writer.write_batch(batch)
    assert read(path) == LINES
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="damaged or no Arrow"):
        read(path)


def test_a_saved_data_set_is_a_corpus_and_its_splits_are_named(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    for split in ("train", "test"):
        folder = tmp_path / split
        folder.mkdir()
        for name in ("data-00000-of-00002.arrow", "data-00001-of-00002.arrow", "dataset_info.json", "state.json"):
            (folder / name).write_text("{}")
    with pytest.raises(DataError) as error:
        find_corpus([str(tmp_path)], [], "files", DataConfig())
    assert f"Give {tmp_path}/train --test {tmp_path}/test" in str(error.value)
    [corpus] = find_corpus([str(tmp_path / "train")], [], "files", DataConfig())
    assert [shard.name for shard in corpus.shards] == ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]


def test_a_header_in_a_language_that_nmt_does_not_know_is_said(tmp_path: Path) -> None:
    pairs = "".join(f"Zwei Hunde {number}\tTwo dogs {number}\n" for number in range(20))
    path = tmp_path / "a.tsv"
    path.write_text(f"Deutsch\tEnglisch\n{pairs}")
    [fact] = facts_of([TextFile(path)], DataConfig())
    assert "Deutsch | Englisch" in fact and "data.header=true" in fact
    assert len(read(path)) == 21 and len(read(path, header=True)) == 20
    path.write_text(pairs)
    assert facts_of([TextFile(path)], DataConfig()) == []


@pytest.mark.parametrize(
    "value", [{"en": {"0": "go"}, "de": {"0": "geh"}}, {"columns": ["en", "de"], "data": [["go", "geh"]]}]
)
def test_a_table_in_one_json_object_is_refused_with_ways_to_write_it(tmp_path: Path, value: dict) -> None:
    path = tmp_path / "a.json"
    for indent in (None, 1):
        path.write_text(json.dumps(value, indent=indent))
        with pytest.raises(DataError, match="orient='records', lines=True"):
            read(path)
