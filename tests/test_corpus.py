"""Corpora are read as they stand or refused with the place, and a split deals out every pair once."""

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nmt.config import DataConfig
from nmt.corpus import SPLITS, Pair, clean_pairs, read_pairs, split_pairs
from nmt.errors import DataError
from nmt.normalisation import NORMALISERS

QUICK = settings(deadline=None)
ASCII_WORDS, COLLAPSE = NORMALISERS["ascii-words"], NORMALISERS["none"]


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Write a corpus and return its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


Writer = Callable[[str, bytes | str], Path]


# --- reading


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        ("go\tgeh\nstop\thalt\n", [("go", "geh"), ("stop", "halt")]),
        ("go\tgeh", [("go", "geh")]),
        ("go\tgeh\tCC-BY 2.0\tattribution\n", [("go", "geh")]),
        ("go\tgeh\r\nstop\thalt\r\n", [("go", "geh"), ("stop", "halt")]),
        ("\ufeffgo\tgeh\n", [("go", "geh")]),
        ("go\tgeh\n\ufeffstop\thalt\n", [("go", "geh"), ("\ufeffstop", "halt")]),
        ("a\u2028b\tc\x85d\n", [("a\u2028b", "c\x85d")]),
        ("a\rb\tc\x0cd\n", [("a\rb", "c\x0cd")]),
        (" go \t geh \n", [(" go ", " geh ")]),
        ("\t\n", [("", "")]),
        ("", []),
    ],
)
def test_two_columns_are_read_as_they_stand(corpus: Writer, content: str, pairs: list[tuple[str, str]]) -> None:
    assert [pair for _, pair in read_pairs(corpus("a.tsv", content))] == pairs


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a"])
def test_places_are_lines(corpus: Writer, name: str) -> None:
    assert list(read_pairs(corpus(name, "a\tb\nc\td\n"))) == [("line 1", Pair("a", "b")), ("line 2", Pair("c", "d"))]


def test_a_line_without_tab_is_named(corpus: Writer) -> None:
    path = corpus("a.tsv", "go\tgeh\nstop\nrun\tlauf\n")
    with pytest.raises(DataError) as caught:
        list(read_pairs(path))
    assert str(caught.value) == (
        f"Each line of a TSV corpus is a source sentence, a tab and its translation; {path}, line 2 has no tab: "
        "'stop'. Mend or remove the line."
    )


def test_a_line_that_is_not_utf_8_is_named(corpus: Writer) -> None:
    path = corpus("a.tsv", b"go\tgeh\nbig\tgro\xdf\n")
    with pytest.raises(DataError) as caught:
        list(read_pairs(path))
    assert str(caught.value) == (
        f"A TSV corpus is UTF-8 text; {path}, line 2 holds the byte 0xdf. "
        "Convert it, for example with: iconv -f latin1 -t utf-8"
    )


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.PKL"])
def test_a_pickled_array_of_pairs_is_read_as_it_stands(corpus: Writer, name: str) -> None:
    array = np.array([["go", "geh"], ["a\tb\n", "größer \u2028"]])
    assert list(read_pairs(corpus(name, pickle.dumps(array)))) == [
        ("row 1", Pair("go", "geh")),
        ("row 2", Pair("a\tb\n", "größer \u2028")),
    ]


def test_pickled_pairs_are_plain_strings(corpus: Writer) -> None:
    (_, pair), *_ = read_pairs(corpus("a.pkl", pickle.dumps(np.array([["go", "geh"]]))))
    assert (type(pair.source), type(pair.target)) == (str, str)


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (np.array(["go", "geh"]), "(2,)"),
        (np.array([["go", "geh", "x"]]), "(1, 3)"),
        (np.array([[["go", "geh"]]]), "(1, 1, 2)"),
        (np.array("go"), "()"),
    ],
)
def test_a_pickled_array_of_another_shape_is_refused(corpus: Writer, array: np.ndarray, shape: str) -> None:
    path = corpus("a.pkl", pickle.dumps(array))
    with pytest.raises(DataError) as caught:
        list(read_pairs(path))
    assert str(caught.value) == (
        f"A pickled corpus is an array of shape (N, 2), a pair a row; {path} holds one of shape {shape}. "
        "Keep the two columns with the sentences."
    )


# --- cleaning


def numbered(count: int) -> str:
    """Return a TSV corpus of so many different pairs of words."""
    return "".join(f"{'a' * n}\t{'b' * n}\n" for n in range(1, count + 1))


def test_the_first_pairs_are_taken_in_order(corpus: Writer) -> None:
    path = corpus("a.tsv", numbered(9))
    taken = clean_pairs(path, DataConfig(n_sentences=4), ASCII_WORDS)
    assert taken.pairs == [("a", "b"), ("aa", "bb"), ("aaa", "bbb"), ("aaaa", "bbbb")]
    assert taken.dropped == {}
    assert len(clean_pairs(path, DataConfig(), ASCII_WORDS).pairs) == 9
    assert len(clean_pairs(path, DataConfig(n_sentences=99), ASCII_WORDS).pairs) == 9


def test_lines_after_the_first_so_many_are_not_looked_at(corpus: Writer) -> None:
    path = corpus("a.tsv", numbered(4) + "no tab\n")
    assert len(clean_pairs(path, DataConfig(n_sentences=4), ASCII_WORDS).pairs) == 4


def test_pairs_are_kept_as_they_stand_in_the_file(corpus: Writer) -> None:
    path = corpus("a.tsv", "I'm Big!\tBin  Groß!\n" * 3)
    assert clean_pairs(path, DataConfig(), ASCII_WORDS).pairs == [("I'm Big!", "Bin  Groß!")] * 3


@pytest.mark.parametrize(("line", "side", "text"), [("42!\tgeh", "source", "42!"), ("go\t你好", "target", "你好")])
def test_an_empty_side_is_refused_with_its_line(corpus: Writer, line: str, side: str, text: str) -> None:
    path = corpus("a.tsv", f"{numbered(3)}{line}\n")
    with pytest.raises(DataError) as caught:
        clean_pairs(path, DataConfig(), ASCII_WORDS)
    assert str(caught.value) == (
        f"Both sides of a pair must hold words; {path}, line 4: the {side} is empty after 'ascii-words' normalisation: "
        f"{text!r}. Mend the pair, or leave such pairs out and count them with --set data.drop_empty=true"
    )
    assert len(clean_pairs(path, DataConfig(normalisation="nfkc"), NORMALISERS["nfkc"]).pairs) == 4


def test_an_empty_side_is_refused_with_its_row(corpus: Writer) -> None:
    path = corpus("a.pkl", pickle.dumps(np.array([["go", "geh"], ["go", " "]])))
    with pytest.raises(DataError, match=r"a\.pkl, row 2: the target is empty after"):
        clean_pairs(path, DataConfig(), ASCII_WORDS)


def test_pairs_with_an_empty_side_are_dropped_and_counted_when_asked(corpus: Writer) -> None:
    path = corpus("a.tsv", "a\tb\n1\tb\nc\t2\n \t\nd\te\nf\tg\nh\t3\n")
    taken = clean_pairs(path, DataConfig(drop_empty=True), ASCII_WORDS)
    assert taken.pairs == [("a", "b"), ("d", "e"), ("f", "g")]
    assert taken.dropped == {"empty side": 4}


def test_dropped_pairs_count_among_the_first_so_many(corpus: Writer) -> None:
    path = corpus("a.tsv", "1\tb\n" + numbered(9))
    taken = clean_pairs(path, DataConfig(drop_empty=True, n_sentences=5), ASCII_WORDS)
    assert (len(taken.pairs), taken.dropped) == (4, {"empty side": 1})


@pytest.mark.parametrize(("content", "count"), [("", 0), ("a\tb\nc\td\n", 2), ("a\tb\n1\td\ne\tf\n", 2)])
def test_too_few_pairs_are_refused(corpus: Writer, content: str, count: int) -> None:
    path = corpus("a.tsv", content)
    with pytest.raises(DataError) as caught:
        clean_pairs(path, DataConfig(drop_empty=True), ASCII_WORDS)
    assert str(caught.value) == (
        f"A corpus needs at least 3 pairs, one for each of train, validation, test; {path} holds {count}. "
        "Give a file with more."
    )


# --- splitting

SOURCES = st.sampled_from(["go", "Go!", "GO", "stop", "Stop.", "run", "é", "e", "E!", "we run", "We  run!"])
PAIRS = st.lists(
    st.builds(Pair, SOURCES | st.text(st.sampled_from("abc"), min_size=1), st.sampled_from("xyz")), min_size=3
)
CONFIGS = st.builds(
    DataConfig,
    split=st.sampled_from(["by_source", "random"]),
    seed=st.integers(0, 99),
    train_share=st.just(0.5),
    validation_share=st.just(0.25),
    test_share=st.just(0.25),
)


def different(count: int) -> list[Pair]:
    """Return pairs with sources all different."""
    return [Pair(f"s {number}", f"t {number}") for number in range(count)]


def split_or_discard(pairs: list[Pair], config: DataConfig) -> dict[str, list[Pair]]:
    """Split, and leave out examples with too few different sources for three splits."""
    try:
        return dict(split_pairs(pairs, config, ASCII_WORDS))
    except DataError:
        assume(False)
        raise


@QUICK
@given(PAIRS, CONFIGS)
def test_every_pair_is_in_one_split(pairs: list[Pair], config: DataConfig) -> None:
    splits = split_or_discard(pairs, config)
    assert tuple(splits) == SPLITS
    assert Counter(pair for split in splits.values() for pair in split) == Counter(pairs)
    assert all(splits.values())


@QUICK
@given(PAIRS, CONFIGS.map(lambda config: config.model_copy(update={"split": "by_source"})))
def test_by_source_no_normalised_source_is_in_two_splits(pairs: list[Pair], config: DataConfig) -> None:
    splits = split_or_discard(pairs, config)
    sources = {name: {ASCII_WORDS(pair.source) for pair in split} for name, split in splits.items()}
    assert not sources["train"] & sources["validation"]
    assert not sources["train"] & sources["test"]
    assert not sources["validation"] & sources["test"]


@QUICK
@given(PAIRS, CONFIGS)
def test_a_split_is_a_function_of_the_seed(pairs: list[Pair], config: DataConfig) -> None:
    before = list(pairs)
    assert split_or_discard(pairs, config) == split_or_discard(pairs, config)
    assert pairs == before


@pytest.mark.parametrize("split", ["by_source", "random"])
def test_another_seed_gives_another_split(split: str) -> None:
    tests = [
        tuple(split_pairs(different(100), DataConfig(split=split, seed=seed), COLLAPSE)["test"])  # type: ignore[arg-type]
        for seed in range(10)
    ]
    assert len(set(tests)) == 10


@pytest.mark.parametrize(
    ("count", "shares", "expected"),
    [
        (10_000, (0.9, 0.05, 0.05), (9000, 500, 500)),
        (100, (0.8, 0.1, 0.1), (80, 10, 10)),
        (101, (0.5, 0.3, 0.2), (51, 30, 20)),
        (3, (0.8, 0.1, 0.1), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("split", ["by_source", "random"])
def test_shares_of_different_sources_are_exact(
    split: str, count: int, shares: tuple[float, ...], expected: tuple[int, ...]
) -> None:
    train, validation, test = shares
    config = DataConfig(split=split, train_share=train, validation_share=validation, test_share=test)  # type: ignore[arg-type]
    splits = split_pairs(different(count), config, COLLAPSE)
    assert tuple(len(splits[name]) for name in SPLITS) == expected


@QUICK
@given(st.lists(st.integers(1, 5), min_size=50, max_size=100), st.integers(0, 99))
def test_by_source_shares_are_missed_by_less_than_the_largest_group(sizes: list[int], seed: int) -> None:
    pairs = [Pair(f"s {group}", f"t {n}") for group, size in enumerate(sizes) for n in range(size)]
    config = DataConfig(train_share=0.6, validation_share=0.2, test_share=0.2, seed=seed)
    splits = split_pairs(pairs, config, COLLAPSE)
    for name in ("validation", "test"):
        assert -1 < len(splits[name]) - 0.2 * len(pairs) < max(sizes)


def test_by_source_the_test_split_is_like_the_corpus() -> None:
    """Sources with many translations come up in the test split as often as in the corpus, where they are half."""
    single = [Pair(f"single {number}", "t") for number in range(1000)]
    repeated = [Pair(f"repeated {group}", f"t {n}") for group in range(100) for n in range(10)]
    shares = []
    for seed in range(20):
        test = split_pairs(single + repeated, DataConfig(seed=seed), COLLAPSE)["test"]
        shares.append(sum(pair.source.startswith("repeated") for pair in test) / len(test))
    assert 0.35 < sum(shares) / len(shares) < 0.65


def test_random_lets_a_source_stand_in_several_splits() -> None:
    pairs = [Pair("go", f"t {n}") for n in range(10)]
    splits = split_pairs(pairs, DataConfig(split="random"), COLLAPSE)
    assert all(splits[name][0].source == "go" for name in SPLITS)


def test_too_few_sources_for_three_splits_are_told_with_their_number() -> None:
    with pytest.raises(DataError) as caught:
        split_pairs([Pair("Go!", "geh"), Pair("go", "geh"), Pair("stop", "halt")], DataConfig(), ASCII_WORDS)
    assert str(caught.value) == (
        "Each of train, validation, test needs a pair of its own; with 2 different sources the train split stays "
        "empty. Give more pairs, or set data.split=random."
    )


def test_the_remedy_for_an_empty_split_is_not_the_setting_in_force() -> None:
    config = DataConfig(split="random", train_share=0.05, validation_share=0.05, test_share=0.9)
    with pytest.raises(DataError) as caught:
        split_pairs(different(3), config, COLLAPSE)
    assert "data.split=random" not in str(caught.value)
