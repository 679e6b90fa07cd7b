"""The cleaning rules: which pairs are refused, dropped or kept, and that they are counted with their places."""

import contextlib
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.cli.commands.demo import CORPUS
from nmt.config.data import DataConfig
from nmt.data import cleaning as corpus_module
from nmt.data.cleaning import (
    Corpus,
    Sources,
    count_translations,
    find_foreign_sides,
    read_corpus,
    resolve_auto,
    text_hash,
)
from nmt.data.pair_store import PairStore, PairStoreWriter
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile
from nmt.data.splitting import duplicates
from nmt.errors import DataError, NmtError

QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
Clean = Callable[..., tuple[list[Pair], Corpus]]


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    """Read a TSV corpus with this content and return the kept pairs and the corpus."""

    def run(content: str | bytes, **config: object) -> tuple[list[Pair], Corpus]:
        path, folder = tmp_path / "a.tsv", tmp_path / "store"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        folder.mkdir(exist_ok=True)
        settings = DataConfig.model_validate({"normalization": "ascii-words", **config})
        corpus = read_corpus(Sources.of(path), settings, folder, lambda *_: None)
        with PairStore(folder) as store:
            return store.read(range(len(corpus.sources))), corpus

    return run


def numbered(count: int) -> str:
    """Return a TSV corpus of ``count`` distinct pairs of words."""
    return "".join(f"{'a' * n}\t{'b' * n}\n" for n in range(1, count + 1))


def test_what_normalization_changes_is_counted_with_an_example(clean: Clean) -> None:
    lines = "Her un\u00adcle\tIhr Onkel\nscho\u0308n\tnice\na\tb \u200b\nsame  line\tgleich\u00a0so\n"
    _, corpus = clean(lines, normalization="nfc")
    assert corpus.normalized.counts == {"invisible characters removed": 2, "characters replaced": 1}
    assert corpus.normalized.places == {
        "invisible characters removed": [
            r"a.tsv, line 1: 'un\xadcle' becomes 'uncle'", r"a.tsv, line 3: '\u200b' becomes ''"
        ],
        "characters replaced": ["a.tsv, line 2: 'scho\u0308n' becomes 'schön'"],
    }  # fmt: skip
    assert clean(lines, normalization="none")[1].normalized.counts == {}


def test_the_first_pairs_are_taken_as_they_stand_and_no_line_after_them_is_read(clean: Clean) -> None:
    odd = [("I'm Big!", "Bin  Groß!")] * 2
    pairs, corpus = clean("I'm Big!\tBin  Groß!\n" * 2 + numbered(2) + "no tab\n", n_sentences=4)
    assert pairs == [*odd, ("a", "b"), ("aa", "bb")]
    assert (corpus.read, dict(corpus.dropped.counts)) == (4, {})
    assert len(clean(numbered(9))[0]) == len(clean(numbered(9), n_sentences=99)[0]) == 9


def test_pairs_with_an_empty_side_are_dropped_and_counted(clean: Clean) -> None:
    content = "a\tb\n1\tb\nc\t2\n \t\nd\te\nf\tg\nh\t3\ni\tj\n"
    pairs, corpus = clean(content, n_sentences=7)
    assert pairs == [("a", "b"), ("d", "e"), ("f", "g")]
    assert (corpus.read, corpus.dropped.counts) == (7, {"empty side": 4})
    assert corpus.dropped.places == {
        "empty side": [f"a.tsv, line {line}" for line in ("2: '1' | 'b'", "3: 'c' | '2'", "4: ' ' | ''")]
    }
    assert len(clean(content, normalization="nfkc", drop_empty=True)[0]) == 7


@pytest.mark.parametrize("drops", [False, True])
def test_an_empty_side_is_dropped_from_validation_and_kept_in_the_test(tmp_path: Path, drops: bool) -> None:
    for name in ("train", "validation", "test"):
        (tmp_path / name).write_text(f"go {name}\tgeh\nSí\t\n\tja\n")
    files = {name: [TextFile(tmp_path / name)] for name in ("validation", "test")}
    sources = Sources([TextFile(tmp_path / "train")], **files)
    corpus = read_corpus(sources, DataConfig(normalization="nfc", drop_empty=drops), tmp_path, lambda *_: None)
    assert [len(indices) for indices in corpus.roles.values()] == [1, 1, 1 if drops else 3]
    assert corpus.dropped.counts == {"empty side": 6 if drops else 4}
    assert corpus.noticed.counts == ({} if drops else {"empty side in the test set": 2})
    with PairStore(tmp_path) as store:
        kept = store.read(corpus.roles["test"])
    assert kept == [("go test", "geh"), *([] if drops else [("Sí", ""), ("", "ja")])]


@pytest.mark.parametrize(("line", "reason"), [(b"no tab", "too few columns"), (b"go\tgro\xdf", "not UTF-8")])
def test_unreadable_lines_are_refused_or_dropped(clean: Clean, line: bytes, reason: str) -> None:
    content = b"a\tb\n" + line + b"\nc\td\n"
    with pytest.raises(DataError, match=r'line 2 .*set={"data\.drop_unreadable": True}$'):
        clean(content)
    pairs, corpus = clean(content, drop_unreadable=True)
    assert pairs == [("a", "b"), ("c", "d")]
    shown = "" if reason == "not UTF-8" else ": 'no tab'"
    assert (corpus.dropped.counts, corpus.dropped.places) == ({reason: 1}, {reason: [f"a.tsv, line 2{shown}"]})


RULES = [
    ("drop_control", "control characters", "go\tge\0h"),
    ("drop_control", "control characters", "go\x93\tgeh"),
    ("drop_identical", "identical sides", "Boston!\tboston"),
]


@pytest.mark.parametrize(("rule", "reason", "line"), RULES)
def test_each_rule_can_be_switched_on_and_off(clean: Clean, rule: str, reason: str, line: str) -> None:
    content = f"a\tb\n{line}\nc\td\n"
    pairs, corpus = clean(content, **{rule: True})
    assert (len(pairs), corpus.dropped.counts, corpus.noticed.counts) == (2, {reason: 1}, {})
    pairs, corpus = clean(content, **{rule: False})
    assert (len(pairs), corpus.dropped.counts, corpus.noticed.counts) == (3, {}, {reason: 1})
    source, target = line.split("\t")
    assert corpus.noticed.places[reason] == [f"a.tsv, line 2: {source!r} | {target!r}"]


def test_white_space_of_any_kind_is_no_control_character(clean: Clean) -> None:
    assert clean("a\x0bb\x0cc\x1cd\tb\n")[1].noticed.counts == {}


@pytest.mark.parametrize("mark", ["\r", "\x85", "\u2028", "\u2029"])
def test_a_line_break_within_a_line_is_a_space_and_counted(clean: Clean, mark: str) -> None:
    pairs, corpus = clean(f"one{mark}two\tb\nc\td\n", normalization="nfc")
    assert pairs[0] == (f"one{mark}two", "b")
    assert corpus.noticed.counts == {"line break within a text, read as a space": 1}


def test_joined_files_leave_no_byte_order_mark_in_a_sentence(clean: Clean) -> None:
    pairs, corpus = clean("\ufeffa\tb\n" * 2, normalization="none")
    assert pairs == [("a", "b")] * 2
    assert corpus.noticed.counts == {"byte-order mark within the file, removed": 1}


def test_files_given_apart_are_kept_whole(tmp_path: Path) -> None:
    for name, line in [("train", "Boston\tBoston"), ("validation", "Boston\tBoston"), ("test", "a\0b\tb")]:
        (tmp_path / name).write_text(f"{line}\na {name}\tb\n")
    files = {name: [TextFile(tmp_path / name)] for name in ("validation", "test")}
    sources = Sources([TextFile(tmp_path / "train")], **files)
    config = DataConfig(normalization="nfkc", drop_identical=True, n_sentences=3)
    corpus = read_corpus(sources, config, tmp_path, lambda *_: None)
    assert corpus.roles == {"train": range(0, 1), "validation": range(1, 3), "test": range(3, 5)}
    assert corpus.dropped.counts == {"identical sides": 1}
    assert corpus.noticed.counts == {"identical sides": 1, "control characters": 1}


# --- hashes and duplicates

TEXTS = st.sampled_from(["a", "b", "c"])


@QUICK
@given(st.lists(st.tuples(TEXTS, TEXTS)))
def test_duplicates_are_the_pairs_that_stood_before(pairs: list[tuple[str, str]]) -> None:
    sides = [np.frombuffer(b"".join(text_hash(pair[side]) for pair in pairs), np.uint64) for side in (0, 1)]
    expected = [index for index, pair in enumerate(pairs) if pair in pairs[:index]]
    assert duplicates(*sides).tolist() == expected


ANY = st.text(st.characters(exclude_categories=["Cs"]))


@QUICK
@given(st.lists(st.tuples(ANY, ANY).map(lambda pair: Pair(*pair)), max_size=30))
def test_a_pair_store_gives_back_what_was_put_in(tmp_path: Path, pairs: list[Pair]) -> None:
    with PairStoreWriter(tmp_path) as writer:
        for number, pair in enumerate(pairs):
            writer.append(10 * number, pair)
    with PairStore(tmp_path) as store:
        order = list(reversed(range(len(pairs))))
        assert store.read(order) == pairs[::-1]
        assert [store.number(index) for index in range(len(pairs))] == [10 * index for index in range(len(pairs))]


# --- what "auto" is


@pytest.mark.parametrize(
    ("row", "resolved"),
    [
        ("im thirsty\tich bin durstig", ("word", "ascii-words", False)),
        ("I'm thirsty.\tIch bin durstig.", ("subword", "nfc", True)),
        ("im thirsty\tich bin größer", ("subword", "nfc", True)),
    ],
)
def test_auto_is_words_for_cleaned_text_and_subwords_for_any_other(
    tmp_path: Path, row: str, resolved: tuple[str, str, bool]
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{row}\n" * 200)
    config = resolve_auto(Sources.of(path), DataConfig())
    explicit = DataConfig(tokenizer="char", normalization="none", joint_vocabulary=True)
    assert resolve_auto(Sources.of(path), explicit) == explicit
    assert resolve_auto(Sources.of(path), DataConfig(tokenizer="subword")).joint_vocabulary is True
    assert (config.tokenizer, config.normalization, config.joint_vocabulary) == resolved
    path.write_text(f"{row}\n" * 200 + "One odd line!\tnoch eine\n")
    assert resolve_auto(Sources.of(path), DataConfig()) == config


def test_a_pair_store_is_written_before_long_texts_fill_the_memory(tmp_path: Path) -> None:
    pair = Pair("x" * 2**20, "y" * 2**20)
    with PairStoreWriter(tmp_path) as store:
        for number in range(30):
            store.append(number, pair)
        assert (tmp_path / "text").stat().st_size >= 40 * 2**20
    with PairStore(tmp_path) as read:
        assert read[29] == pair
        chunks = list(read.chunks(np.arange(30)[::-1], 8 * 2**20))
    assert [len(chunk) for chunk in chunks] == [4] * 7 + [2]
    np.testing.assert_array_equal(np.concatenate(chunks), np.arange(30)[::-1])


@pytest.mark.parametrize("fits", [True, False])
def test_a_pair_store_leaves_room_for_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10_000))
    refused = contextlib.nullcontext() if fits else pytest.raises(NmtError)
    with refused, PairStoreWriter(tmp_path) as store:
        store.append(1, Pair("x" * 5_000, "y" * (5_000 if fits else 5_001)))


def test_a_full_disk_is_told_in_words(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, before[1]))
    try:
        with pytest.raises(NmtError, match="File too large"), PairStoreWriter(tmp_path) as store:
            for number in range(10**6):
                store.append(number, Pair("x" * 10**4, "y"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_few_long_lines_decide_what_auto_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand lines of a megabyte would fill the memory."""
    monkeypatch.setattr(corpus_module, "AUTO_SAMPLE_CHARACTERS", 100)
    path = tmp_path / "a.tsv"
    path.write_text("go on\tgeh\n" * 13 + "Größer!\tBigger!\n" * 100)
    assert resolve_auto(Sources.of(path), DataConfig()).tokenizer == "word"
    monkeypatch.setattr(corpus_module, "AUTO_SAMPLE_CHARACTERS", 1000)
    assert resolve_auto(Sources.of(path), DataConfig()).tokenizer == "subword"


# --- warnings: swapped and foreign columns are found, and a clean corpus is not suspected

CLEAN = [Pair(*line.split("\t")) for line in CORPUS.read_text().splitlines()[:2000]]


@QUICK
@given(st.lists(st.tuples(TEXTS, TEXTS)))
def test_translations_are_counted_as_with_a_dictionary(pairs: list[tuple[str, str]]) -> None:
    translations = {source: {target for candidate, target in pairs if candidate == source} for source, _ in pairs}
    sides = [np.frombuffer(b"".join(text_hash(pair[side]) for pair in pairs), np.uint64) for side in (0, 1)]
    several = sum(len(targets) > 1 for targets in translations.values())
    assert count_translations(*sides) == (several, max(map(len, translations.values()), default=0))


def test_a_clean_corpus_is_not_suspected() -> None:
    assert find_foreign_sides(CLEAN) == {}


FAULTS = [
    ("sides look swapped", lambda pair: Pair(pair.target, pair.source)),
    ("source looks like the target language", lambda pair: Pair(pair.target, pair.target)),
    ("target looks like the source language", lambda pair: Pair(pair.source, pair.source)),
]


@pytest.mark.parametrize(("reason", "spoil"), FAULTS)
def test_spoiled_pairs_are_found_and_no_other(reason: str, spoil) -> None:
    pairs = list(CLEAN)
    spoiled = random.Random(1).sample([n for n, pair in enumerate(pairs) if len(min(pair, key=len)) > 15], 40)
    for index in spoiled:
        pairs[index] = spoil(pairs[index])
    foreign = find_foreign_sides(pairs)
    assert foreign.keys() == {reason}
    assert set(foreign[reason]) <= set(spoiled)
    assert len(foreign[reason]) >= 30


@pytest.mark.parametrize("pairs", [[], [Pair("", "")], [Pair("a", "a")] * 5, [Pair("你", "好")]])
def test_too_little_text_gives_no_hint(pairs: list[Pair]) -> None:
    assert find_foreign_sides(pairs) == {}


@pytest.mark.parametrize("text", ["lÃ¤chelt", "weiÃŸ", "itâ€™s", "ÐŸÑ€Ð¸Ð²ÐµÑ‚", "ä½\xa0å¥½"[:1] + "½¡"])
def test_mojibake_is_noticed(clean: Clean, text: str) -> None:
    noticed = clean(f"go\t{text}\na\tb\n", normalization="nfc", drop_control=False)[1].noticed.counts
    assert noticed["mojibake (UTF-8 read as another encoding)"] == 1


@pytest.mark.parametrize(
    "text", ["lächelt", "São Tomé", "« déjà\xa0» là\xa0!", "AKYTÂ’AI", "Åland", "नमस्ते", "ÖÇĞÜ", "你好"]
)
def test_ordinary_text_is_no_mojibake(clean: Clean, text: str) -> None:
    assert clean(f"go\t{text}\na\tb\n", normalization="nfc")[1].noticed.counts == {}


@pytest.mark.parametrize(
    ("text", "kind", "repair", "repaired"),
    [
        ('"He said ""hi"""', "quotes of a table", "quotes", 'He said "hi"'),
        ("Tom &amp; Mary", "HTML entities", "entities", "Tom & Mary"),
    ],
)
def test_damage_of_other_programs_is_noticed_and_repaired_on_demand(
    clean: Clean, text: str, kind: str, repair: str, repaired: str
) -> None:
    lines = f'{text}\tgut\n"a" or "b"\tR&D\n"c"\td\n'
    pairs, corpus = clean(lines, normalization="nfc")
    assert corpus.noticed.counts == {kind: 1}
    pairs, corpus = clean(lines, normalization="nfc", repair=[repair])
    assert (pairs[0].source, corpus.noticed.counts) == (repaired, {"repaired": 1})
    assert pairs[1:] == [('"a" or "b"', "R&D"), ('"c"', "d")]


def test_mojibake_is_repaired_on_demand(clean: Clean) -> None:
    pytest.importorskip("ftfy")
    pairs, corpus = clean("go\tlÃ¤chelt\na\tb\n", normalization="nfc", repair=["mojibake"])
    assert pairs[0] == ("go", "lächelt") and corpus.noticed.counts == {"repaired": 1}
