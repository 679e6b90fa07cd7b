"""Filters of training pairs: pairs that are dropped and kept, and the share of injected errors that are found."""

import gzip
import html
import itertools
import json
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, write_tsv
from hypothesis import given
from hypothesis import strategies as st

from nmt.cli.commands.demo import CORPUS
from nmt.config.data import FILTERS, DataConfig, with_filters
from nmt.data.alignment import _likeliest_states, find_shifted
from nmt.data.cleaning import PairLocator, Sources, read_corpus
from nmt.data.filters import PAIR_FILTERS, copies, letters_of, reason_finder, repair_pair
from nmt.data.pair_store import PairStore
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile
from nmt.data.splitting import assign_splits
from nmt.errors import ConfigError, DataError, NotFoundError

Read = Callable[..., dict[int, Pair]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Clean and split pairs, and return the kept pairs by index."""

    def run(pairs: list[Pair], **settings: object) -> dict[int, Pair]:
        languages = {"source_language": "en", "target_language": "de", "normalization": "nfkc"}
        config = DataConfig.model_validate({**languages, **settings})
        sources = Sources.of(write_tsv(tmp_path / "a.tsv", pairs))
        corpus = read_corpus(sources, config, tmp_path, lambda *_: None)
        with PairStore(tmp_path) as store:
            splits = assign_splits(corpus, sources, config, PairLocator(sources, corpus.roles, store))
            return {store.number(index) - 1: store[index] for split in splits.values() for index in split.tolist()}

    return run


# --- real corpora with faults

SYMBOLS = "".join(map(chr, [*range(33, 38), *range(39, 65), *range(91, 97), *range(123, 127), *range(0xA1, 0xAA)]))


def tokenize(text: str) -> str:
    """Return a text as the tokenizer of Moses writes it, without escapes."""
    text = re.sub(r"([.?!,;:)\"“»]+)(?=\s|$)", r" \1", text)
    text = re.sub(r"(^|\s)([\"„«(])(?=\w)", r"\1\2 ", text)
    return re.sub(r"(\w)('(?:s|re|ve|ll|m|d))\b", r"\1 \2", re.sub(r"(?<=\w)n't\b", " n't", text))


def with_number(text: str, number: str) -> str:
    return f"{text[:-1]} {number}{text[-1:]}"


def other_language(pair: Pair, second: Pair, dice: random.Random) -> Pair | None:
    if min(map(len, second)) < 20:
        return None
    return Pair(pair.source, second.source) if dice.random() < 0.5 else Pair(second.target, pair.target)


def garbage(pair: Pair, _second: Pair, dice: random.Random) -> Pair:
    return pair._replace(target="".join(dice.choices(f"{SYMBOLS}   ab", k=len(pair.target))))


def other_number(pair: Pair, _second: Pair, dice: random.Random) -> Pair:
    first, second = dice.sample([n for n in range(13, 10_000) if n % 10], 2)
    return Pair(with_number(pair.source, f"{first:,}"), with_number(pair.target, str(second)))


def other_marks(pair: Pair, _second: Pair, dice: random.Random) -> Pair:
    if dice.random() < 0.5:
        return pair._replace(target=pair.target + dice.choice(["!!!", " ...", " :-))", " ***", "?!?!", " [...]"]))
    return pair._replace(target=pair.target.rstrip(".!?") + ("." if pair.source.endswith("?") else "?"))


def repeat(pair: Pair, _second: Pair, dice: random.Random) -> Pair:
    words = pair.target.split()
    start = dice.randrange(len(words))
    end = min(len(words), start + dice.randint(1, 5))
    return pair._replace(target=" ".join(words[:end] + words[start:end] * dice.randint(2, 5) + words[end:]))


def near_duplicate(_pair: Pair, second: Pair, dice: random.Random) -> Pair:
    return Pair(
        dice.choice([second.source.upper(), second.source.rstrip("."), f"{second.source}!", f"{second.source} 7"]),
        dice.choice([second.target.lower(), f"„{second.target}“", f"{second.target} (3)"]),
    )


def copy(pair: Pair, _second: Pair, dice: random.Random) -> Pair:
    words = pair.source.split()
    if len(words) > 6:
        words[dice.randrange(len(words))] = "xyz"
    return pair._replace(target=dice.choice([" ".join(words), pair.source.lower(), pair.source]))


def split_into_tokens(pair: Pair, _second: Pair, _dice: random.Random) -> Pair | None:
    return Pair(*map(tokenize, pair)) if any(tokenize(side) != side for side in pair) else None


def escape(pair: Pair, _second: Pair, dice: random.Random) -> Pair | None:
    escaped = Pair(*(html.escape(side).replace("ä", "&auml;").replace("&#x27;", "& apos ;") for side in pair))
    return escaped if escaped != pair else None


Fault = Callable[[Pair, Pair, random.Random], Pair | None]
"""Function of a pair, a second pair of the corpus and a random generator; None if the pair cannot be spoilt."""
FAULTS: dict[str, Fault] = {
    "letters": garbage, "numbers": other_number, "punctuation": other_marks, "repetition": repeat, "copies": copy,
    "entities": escape, "tokenized": split_into_tokens, "language": other_language, "near_duplicates": near_duplicate,
}  # fmt: skip


def spoiled(pairs: list[Pair], dice: random.Random, share: float = 0.05) -> tuple[list[Pair], dict[str, set[int]]]:
    """Return the pairs with injected errors, and the indices of the wrong ones by the filter that must find them.

    A fiftieth of the others gets an equal number on both sides, written in two ways.
    """
    pairs = list(pairs)
    shifted: set[int] = set()
    while len(shifted) < share * len(pairs):
        start, length = dice.randrange(len(pairs) - 60), dice.randint(20, 50)
        block = range(start, start + length)
        if not shifted & set(range(start - 2, start + length + 3)):
            targets = [pairs[index].target for index in block]
            turned = [*targets[1:], targets[0]] if dice.random() < 0.5 else [targets[-1], *targets[:-1]]
            for index, target in zip(block, turned, strict=True):
                pairs[index] = pairs[index]._replace(target=target)
            shifted |= set(block)
    faulty = {"shifted": shifted}
    free = [index for index in range(len(pairs)) if index not in shifted]
    first, free = free[: len(free) // 20], free[len(free) // 20 :]  # the first stay as they are
    dice.shuffle(free)
    for name, fault in FAULTS.items():
        faulty[name] = set()
        while len(faulty[name]) < share * len(pairs):
            index = free.pop()
            if spoilt := fault(pairs[index], pairs[dice.choice(first)], dice):
                pairs[index] = spoilt
                faulty[name].add(index)
    for index in free[::50]:
        number = f"{dice.randrange(1_000, 10_000_000):,}"
        source, target = pairs[index]
        pairs[index] = Pair(with_number(source, number), with_number(target, number.replace(",", ".")))
    return pairs, faulty


def good_pairs(corpora: Path, name: str) -> list[Pair]:
    """Return pairs of a real corpus in an arbitrary order, without near duplicates."""
    if name == "Tatoeba":
        lines = zipfile.ZipFile(corpora / "deu-eng.zip").read("deu.txt").decode().splitlines()
        pairs = [Pair(*line.split("\t")[:2]) for line in lines]
        random.Random(3).shuffle(pairs)
    else:
        files = [(corpora / "multi30k" / f"train.{side}.gz").read_bytes() for side in ("en", "de")]
        texts = [gzip.decompress(file).decode().splitlines() for file in files]
        pairs = [Pair(*(side.strip().replace("\t", " ") for side in sides)) for sides in zip(*texts, strict=True)]
    return list({letters_of(pair): pair for pair in pairs if all(pair)}.values())[:50_000]


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize(("corpus", "most_lost"), [("Tatoeba", 0.01), ("Multi30k", 0.005)])
def test_faults_of_each_kind_are_found_in_real_text(
    corpus: str, most_lost: float, corpora: Path, read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, faulty = spoiled(good_pairs(corpora, corpus), random.Random(1))
    kept = read(pairs, filters={name: None for name in FILTERS if name != "score"})  # which asks a run
    good = set(range(len(pairs))).difference(*faulty.values())
    shares = {name: 1 - len(indices & kept.keys()) / len(indices) for name, indices in faulty.items()}
    lost = 1 - len(good & kept.keys()) / len(good)
    with capsys.disabled():
        print(f"\n{corpus}: {len(pairs):,} pairs, {len(good):,} good ones, of which {lost:.2%} dropped; faults found:")
        print("".join(f"  {name:<16}{len(faulty[name]):>6,}{share:>9.2%}\n" for name, share in shares.items()))
    assert min(shares.values()) > 0.95, shares
    assert lost < most_lost


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize("corpus", ["Tatoeba", "Multi30k"])
def test_faults_of_real_text_are_undone(corpus: str, corpora: Path) -> None:
    pairs = good_pairs(corpora, corpus)[:20_000]
    config = DataConfig(repair=["entities", "tokenized"])
    good = [pair for pair in pairs if repair_pair(pair, config) is pair]
    assert len(good) > 0.99 * len(pairs)
    for fault in (split_into_tokens, escape):
        spoilt = {pair: fault(pair, pair, random.Random(1)) for pair in good}
        undone = [repair_pair(spoilt_pair, config) == pair for pair, spoilt_pair in spoilt.items() if spoilt_pair]
        assert sum(undone) > 0.98 * len(undone) > 5_000


# --- what each filter drops and keeps

DROPPED = {
    "letters": [("Good morning.", "~~ -- 00 ** #"), ("42", "42")],
    "numbers": [("It took 1,995 years.", "Es dauerte 1996 Jahre."), ("In 1995!", "Damals!"), ("٢٥ يوما", "24 days")],
    "punctuation": [("Are you here?", "Du bist hier."), ("Come in.", "Komm herein!!!!"), ("你好吗？", "You are well.")],
    "repetition": [("Good.", "Es ist gut ist gut ist gut."), ("我很好。", "我很好很好很好。"), ("no no no", "nein")],
    "copies": [("We will meet at home.", "we will meet at home!"), ("今天我去学校。", "今天我去学校")],
    "entities": [("salt &amp; pepper", "Salz und Pfeffer"), ("It's me.", "Ich bin&#39;s"), ("& apos ;", "a")],
    "tokenized": [("I do n't know , Tom .", "Ich weiß es."), ("Why ?", "Warum ?"), ("a well @-@ known bus", "Bus")],
    "chatter": [
        ("A dog runs.", "Hier ist die Übersetzung: Ein Hund läuft."), ("A dog.", "Ein Hund. (Note: informal)"),
        ("A dog.", "I'm sorry, but I can't help with that."), ("一只狗。", "**A dog.**"), ("A dog.", "翻译：一只狗。"),
        ("A dog.", "Übersetze den folgenden Text: Ein Hund."), ("A dog.", "कुत्ते का अनुवाद: कुत्ता"),
        ("A dog.", "Çeviri: Bir köpek."), ("A dog.", "الترجمة: كلب"), ("A dog.", "Sure! Here it is: Ein Hund."),
    ],
    "placeholders": [("Hello {name}!", "Hallo!"), ("%d dogs", "كلاب"), ("No.", "Nein {0}."), ("{a} {b}", "{a} {a}")],
    "untranslated": [("Rex runs in the park.", "Rex 在 park 里跑。"), ("Он ест борщ.", "He eats борщ.")],
    "language": [("I like the house.", "This is the house of my uncle."), ("Ein Haus steht am Meer.", "Ein Haus.")],
}  # fmt: skip
KEPT = [
    ("Hello!", "Hallo!"), ("Yes.", "Ja."), ("Tom is in Boston.", "Tom ist in Boston."),
    ("AT&T paid $1,200.50 in 2019; why?", "AT&T zahlte 2019 1.200,50 $; warum?"),
    ("Three men, 5 million people.", "3 Männer, 5.000.000 Menschen."), ("It's 1 000 000 km.", "Es sind 1,000,000 km."),
    ("“No, no!” he said…", "»Nein, nein!«, sagte er ..."), ("He said so (twice).", "Er sagte es – zweimal."),
    ("R&D; Q&A, rock 'n' roll.", "F&E; Fragen, Rock 'n' Roll."), ("Why? Why not?", "Pourquoi ? Pourquoi pas ?"),
    ("I live in Tokyo, and you?", "我住在东京，你呢？"), ("He bought 3 books in 2020.", "他2020年买了三本书。"),
    ("How are you?", "お元気ですか。"), ("Is this a pen?", "これはペンですか？"), ("What is your name?", "คุณชื่ออะไร"),
    ("Where is the book?", "أين الكتاب؟"), ("In 2023, we won.", "في عام ٢٠٢٣، فزنا."), ("Who are you?", "Ποιος είσαι;"),
    ("Die Übersetzung ist gut.", "The translation is good."), ("Press {key} at 100%.", "Drücken Sie {key} bei 100 %."),
    ("Anna lives in Berlin with four old cats.", "安娜和四只老猫住在 Berlin。"), ("学校に行きます。", "我去学校。"),
    ("Note: the shop is closed.", "Hinweis: Der Laden ist geschlossen."), ("I cannot help you.", "لا أستطيع مساعدتك."),
    ("He is a good man.", "वह एक अच्छा आदमी है।"), ("Where are you?", "¿Dónde estás?"), ("Hello, world.", "שלום, עולם."),
]  # fmt: skip


@pytest.mark.parametrize("name", DROPPED)
def test_each_filter_drops_its_examples(name: str) -> None:
    config = DataConfig(filters={name: None}, source_language="en", target_language="de")
    find = reason_finder(config, [])
    assert {find(0, Pair(*pair)) for pair in DROPPED[name]} == {name}


@pytest.mark.parametrize("code", ["shp", "xx"])
def test_the_filter_of_languages_refuses_what_the_detector_does_not_know(code: str) -> None:
    config = DataConfig(filters={"language": 0.1}, source_language=code, target_language="es-419")
    with pytest.raises(ConfigError, match=rf"detector does not know the source language, .*\({code}\)"):
        reason_finder(config, [])


def test_the_filter_of_languages_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotFoundError, match=r"nmt\[serve\]"):
        reason_finder(DataConfig(filters={"language": 0.1}, source_language="en", target_language="de"), [])


def test_ordinary_pairs_of_any_script_are_kept_either_way_around() -> None:
    find = reason_finder(DataConfig(filters=dict.fromkeys(PAIR_FILTERS)), [])
    assert {pair: find(0, Pair(*pair)) for pair in KEPT if find(0, Pair(*pair))} == {}
    assert {pair: find(0, Pair(*pair[::-1])) for pair in KEPT if find(0, Pair(*pair[::-1]))} == {}


def test_every_filter_has_examples_and_a_line_of_the_readme() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (-?[\d.]+) \|", (ROOT / "data" / "README.md").read_text(), re.M)
    assert {name: float(threshold) for name, threshold in rows} == FILTERS
    assert DROPPED.keys() | {"shifted", "score", "near_duplicates"} == FILTERS.keys()


ANY = st.text(st.characters(exclude_categories=["Cs"])) | st.text("a .,?'\"&;0一か", max_size=40)


@given(ANY, ANY)
def test_measures_are_finite_and_the_same_the_other_way_around(source: str, target: str) -> None:
    for name, measure in PAIR_FILTERS.items():
        value = measure(source, target)
        assert 0 <= value < 1 + len(source) + len(target) + 3, name
        assert value == pytest.approx(measure(target, source)), name
        assert value <= 1 or FILTERS[name] >= 1, name


@given(ANY)
def test_a_text_is_a_copy_and_a_near_duplicate_of_itself_in_capitals(text: str) -> None:
    if any(character.isalnum() for character in text) and text.upper().lower() == text.lower():
        assert copies(text, text.upper()) == 1
        assert letters_of(Pair(text, "a")) == letters_of(Pair(text.upper() + " 7!", "A"))


# --- in the preparation of a corpus

LINES = [Pair(*line.split("\t")) for line in CORPUS.read_text().splitlines()[:1_000]]


@pytest.mark.parametrize("step", [1, -1])
def test_a_block_of_shifted_lines_is_found_and_no_other(step: int) -> None:
    assert not any(find_shifted(LINES, FILTERS["shifted"]))
    for start in (0, 300, len(LINES) - 40):
        lines = list(LINES)
        for place in range(40):
            target = LINES[start + (place + step) % 40].target
            lines[start + place] = lines[start + place]._replace(target=target)
        shifted = set(np.flatnonzero(find_shifted([*lines, None], FILTERS["shifted"])))
        assert len(shifted ^ set(range(start, start + 40))) <= 6


@pytest.mark.parametrize("pairs", [[], [None], [Pair("a", "b")], [Pair("a", "b")] * 50])
def test_a_few_or_equal_lines_are_not_shifted(pairs: list[Pair | None]) -> None:
    assert find_shifted(pairs, 1) == bytearray(len(pairs))


@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=6), st.floats(0, 5))
def test_the_likeliest_states_are_those_of_an_exhaustive_search(rows: list[list[float]], change: float) -> None:
    def score(states: tuple[int, ...]) -> float:
        changes = sum(before != after for before, after in itertools.pairwise((0, *states)))
        return sum(row[state] for row, state in zip(rows, states, strict=True)) - change * changes

    best = max(map(score, itertools.product(range(3), repeat=len(rows))))
    assert score(tuple(_likeliest_states(iter(rows), change).tolist())) == pytest.approx(best)


@pytest.mark.parametrize(("kept", "expected"), [(1, {0, 1, 4}), (2, {0, 1, 2, 4})])
def test_near_duplicates_are_dropped_from_the_second_or_a_later_one_on(
    read: Read, kept: int, expected: set[int]
) -> None:
    pairs = [Pair(*pair) for pair in (("Go on", "Los"), ("1", "1"), ("go on!", "los 3"), ("GOON", "los"), ("2", "2"))]
    assert read(pairs, filters={"near_duplicates": kept}).keys() == expected


def test_dropped_pairs_are_counted_and_files_given_apart_are_kept_whole(tmp_path: Path) -> None:
    rows = [("Salt &amp; pepper", "Salz"), ("It took 20 days", "Es dauerte 21 Tage"), ("I see 7", "Ich sehe")]
    files = {name: [TextFile(write_tsv(tmp_path / name, rows))] for name in ("corpus", "validation", "test")}
    config = DataConfig(normalization="nfkc", filters={"numbers": None, "shifted": None}, repair=["entities"])
    corpus = read_corpus(Sources(**files), config, tmp_path, lambda *_: None)
    assert corpus.dropped.counts == {"filter numbers": 1}
    assert corpus.dropped.places["filter numbers"][0].startswith("corpus, line 2")
    assert corpus.noticed.counts == {"repaired": 1}
    with PairStore(tmp_path) as store:
        assert store.read(corpus.roles["train"]) == [("Salt & pepper", "Salz"), rows[2]]
        assert store.read(corpus.roles["test"]) == rows
    assert corpus.sources[0] == corpus.sources[2]  # that a source is in the test is seen nevertheless


def test_scores_of_a_function_are_of_repaired_pairs_the_right_way_around(tmp_path: Path) -> None:
    rows = [("a &amp; b", "c"), ("d", "e"), ("f", "g")]
    files = {name: [TextFile(write_tsv(tmp_path / name, rows))] for name in ("corpus", "test")}
    files["further"] = {"web": files["corpus"], "raw": files["corpus"]}
    settings = {"filters": {"score": -2}, "repair": ["entities"], "normalization": "nfkc", "corpora": {
        "web": {"reverse": True, "filters": {"score": -1}}, "raw": {"filters": {}},
    }}  # fmt: skip
    scored = []

    def score(pairs: Iterable[Pair | None]) -> Iterator[float]:
        scored.append(list(pairs))
        return iter([0, -1.5, -2.5])

    corpus = read_corpus(Sources(**files), DataConfig.model_validate(settings), tmp_path, lambda *_: None, score)
    repaired_rows = [("a & b", "c"), *rows[1:]]
    assert scored == [repaired_rows, [(target, source) for source, target in repaired_rows]]
    assert {role: len(indices) for role, indices in corpus.roles.items()} == {"train": 2, "test": 3, "web": 1, "raw": 3}
    assert corpus.dropped.counts == {"filter score": 3}


def test_scores_stand_in_json_lines_or_are_missed(tmp_path: Path) -> None:
    lines = [{"source": text, "target": text, "score": score} for text, score in (("a", -1), ("b", -3.5), ("c", -4.5))]
    path, config = tmp_path / "bt.jsonl", DataConfig(filters={"score": -3.5}, normalization="nfkc")

    def kept(*lines: object) -> int:
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return len(read_corpus(Sources.of(path), config, tmp_path, lambda *_: None).sources)

    assert kept(*lines) == 2
    with pytest.raises(DataError, match="line 2 has no number in the field score"):
        kept(lines[0], {"source": "a", "target": "b"})
    with pytest.raises(DataError, match="line 1 is not JSON"):
        path.write_text("{")
        read_corpus(Sources.of(path), config, tmp_path, lambda *_: None)
    with pytest.raises(DataError, match=r"a\.tsv has no scores"):
        read_corpus(Sources.of(write_tsv(tmp_path / "a.tsv", [("a", "b")])), config, tmp_path, lambda *_: None)


def test_a_corpus_has_its_own_filters_but_for_near_duplicates() -> None:
    config = DataConfig.model_validate(
        {"filters": {"copies": None}, "corpora": {"a": {"filters": {"numbers": None}}, "b": {}}}
    )
    assert [[*config.filters_of(name)] for name in ("original", "a", "b")] == [["copies"], ["numbers"], ["copies"]]
    with pytest.raises(ValueError, match="near_duplicates compares the pairs of all corpora"):
        DataConfig.model_validate({"corpora": {"a": {"filters": {"near_duplicates": 2}}}})


def test_filters_of_the_configuration_keep_their_thresholds_beside_those_of_the_option() -> None:
    config = DataConfig.model_validate({"filters": {"copies": 0.6, "entities": True, "repetition": 4}})
    assert config.filters == {"copies": 0.6, "entities": 1, "repetition": 4}
    more = with_filters(config, ["copies", "numbers"]).filters
    assert more == {**config.filters, "numbers": FILTERS["numbers"]}
    everything = {**FILTERS, **config.filters}
    asks = config.model_copy(update={"score_runs": ["base"]})
    assert with_filters(asks, ["all"]).filters == everything
    assert with_filters(config, ["all"]).filters == {name: everything[name] for name in everything if name != "score"}


@pytest.mark.parametrize("text", ["salt &amp;amp; pepper", "salt & amp ; pepper", "salt &#38; pepper", "salt & pepper"])
def test_entities_are_undone_and_other_ampersands_stay(text: str) -> None:
    assert repair_pair(Pair(text, "a &b; &notit; &copy"), DataConfig(repair=["entities"])) == (
        "salt & pepper",
        "a &b; &notit; &copy",
    )


def test_spaces_of_a_tokenizer_are_undone() -> None:
    tokens = Pair("It is n't a well @-@ known \" day \" , he 's ( 5 ) here .", "« Qu' est @-@ ce que l' été ? »")
    repaired = repair_pair(tokens, DataConfig(repair=["tokenized"]))
    assert repaired.source == "It isn't a well-known \"day\", he's (5) here."
