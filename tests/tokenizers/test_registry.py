"""Tokenizers turn text into ids and back, no text becomes a special id, and a loaded tokenizer equals the saved one."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.errors import DataError, NmtError
from nmt.tokenizers.base import BOS, EOS, PAD, UNK, tag_id
from nmt.tokenizers.registry import load_tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = pytest.mark.parametrize("kind", ["none", "nfc", "nfkc", "ascii-words"])
MARKUP = ["<pad>", "<bos>", "<eos>", "<unk>", "<s>", "</s>", "[start]", "[end]", "[UNK]", "start", "end", "", "0", "1"]
TEXTS = st.text() | st.lists(st.sampled_from([*MARKUP, "go", "Äh", "5", "\u2028"])).map(" ".join)


def fit(*texts: str, kind: str = "none", min_count: int = 1) -> WordTokenizer:
    """Return a tokenizer fitted on the texts."""
    return WordTokenizer.fit(texts, DataConfig(normalization=kind, min_count=min_count))  # type: ignore[arg-type]


# --- fitting


def test_frequent_words_come_first_and_equally_frequent_words_in_alphabetical_order() -> None:
    tokenizer = fit("b c a", "c d", "c b")
    assert tokenizer.words == ["c", "b", "a", "d"]
    assert tokenizer.size == 8
    assert tokenizer.encode("a b c d") == [6, 5, 4, 7]


@pytest.mark.parametrize(("min_count", "words"), [(1, ["c", "b", "a"]), (2, ["c", "b"]), (3, ["c"]), (4, [])])
def test_rare_words_get_no_id(min_count: int, words: list[str]) -> None:
    tokenizer = fit("a b c", "b c", "c", min_count=min_count)
    assert tokenizer.words == words
    assert tokenizer.unknown("a b c") == [word for word in ("a", "b", "c") if word not in words]


# --- encoding and decoding


@pytest.mark.parametrize("kind", [WordTokenizer, CharacterTokenizer, SubwordTokenizer])
@QUICK
@given(texts=st.lists(TEXTS | st.just("<bt> <bt>")), text=TEXTS | st.text("<bt>\u2581 "))
@example(texts=["<bt> <bt> a"] * 9, text="<bt> \u2581<bt>")
def test_no_text_is_a_tag_which_stands_behind_the_vocabulary_and_decodes_to_nothing(
    tmp_path: Path, kind: type[WordTokenizer], texts: list[str], text: str
) -> None:
    config = DataConfig(normalization="none", vocabulary_size=600)
    plain = kind.fit([*texts, "a <bt> b"], config)
    plain.save(tmp_path / "plain.json")
    tagged = load_tokenizer(tmp_path / "plain.json")
    tagged.tags = ["bt", "web"]
    tagged.save(tmp_path / "tagged.json")
    loaded, ids = load_tokenizer(tmp_path / "tagged.json"), plain.encode(text)
    assert [tag_id(loaded, name) for name in ("bt", "web")] == [plain.size, plain.size + 1]
    assert loaded.size == plain.size + 2 and loaded.pieces([plain.size, plain.size + 1]) == ["<bt>", "<web>"]
    assert loaded.encode(text) == ids and not {plain.size, plain.size + 1} & set(ids)
    assert loaded.sample([text], 3) == plain.sample([text], 3)
    assert loaded.decode([plain.size, *ids, plain.size + 1]) == plain.decode(ids)
    assert loaded.byte_of(plain.size) is None
    with pytest.raises(NmtError, match=r"There is no tag 'wed' .*'web'"):
        tag_id(loaded, "wed")


@KINDS
@QUICK
@given(trained_on=TEXTS, text=TEXTS)
@example(trained_on="<pad> <bos> <eos> <unk> start", text="<pad> <bos> <eos> <unk> start")
@example(trained_on="", text="<unk>")
def test_words_are_unknown_if_and_only_if_training_lacked_them_and_none_is_special(
    kind: str, trained_on: str, text: str
) -> None:
    tokenizer = fit(trained_on, kind=kind)
    words, known = tokenizer.normalize(text).split(), set(tokenizer.normalize(trained_on).split())
    ids = tokenizer.encode(text)
    assert [id_ == UNK for id_ in ids] == [word not in known for word in words]
    assert tokenizer.unknown(text) == [word for word in words if word not in known]
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3) and not {PAD, BOS, EOS} & set(ids)


@KINDS
@QUICK
@given(text=TEXTS)
def test_known_text_is_decoded_to_its_normal_form(kind: str, text: str) -> None:
    tokenizer = fit("before", text, "after", kind=kind)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([4, 5], "a b"),
        ([BOS, 4, 5, EOS, PAD, PAD], "a b"),
        ([4, EOS, 5], "a"),
        ([EOS, 4, 5], ""),
        ([PAD, 4, PAD, 5], "a b"),
        ([4, UNK, 5], "a <unk> b"),
        ([], ""),
    ],
)
def test_decoding_stops_at_eos_and_leaves_out_what_is_no_word(ids: list[int], text: str) -> None:
    tokenizer = fit("a a b")
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(np.array(ids, np.int32)) == text
    assert tokenizer.decode(iter(ids)) == text


def test_pieces_are_the_words_of_ids_and_the_names_of_special_ids() -> None:
    tokenizer = fit("a a b", "</s>")
    ids = tokenizer.encode("b </s> x a")
    assert tokenizer.pieces([BOS, *ids, EOS, PAD]) == ["<s>", "b", "</s>", "<unk>", "a", "</s>", "<pad>"]
    assert tokenizer.pieces(np.array(ids, np.int32)) == ["b", "</s>", "<unk>", "a"]
    characters = CharacterTokenizer.fit(["a b"], DataConfig(normalization="none"))
    assert characters.pieces(characters.encode("b a")) == ["b", "\u2581", "a"]


# --- saving and loading


@KINDS
@QUICK
@given(texts=st.lists(TEXTS), text=TEXTS)
def test_a_loaded_tokenizer_is_the_saved_one(tmp_path: Path, kind: str, texts: list[str], text: str) -> None:
    tokenizer = fit(*texts, kind=kind)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.size == tokenizer.size
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(range(4, tokenizer.size)) == tokenizer.decode(range(4, tokenizer.size))
    assert loaded.normalize(text) == tokenizer.normalize(text)


GOOD = {"format": 2, "kind": "word", "normalization": "none", "words": ["a", "b"]}
FORMAT_1 = {"kind": "word", "normalisation": "none", "words": ["a", "b"]}


DAMAGED: list[tuple[object, str]] = [  # what is in the file, and the key phrase
    *(
        (values, "is damaged: ")
        for values in (
            {**GOOD, "normalization": "other"}, {**GOOD, "words": "ab"},
            {**GOOD, "words": ["a", 5]}, {**GOOD, "words": ["a", None]}, {**GOOD, "more": 1},
            {**GOOD, "normalisation": "none"}, {**FORMAT_1, "format": 2},
            {**FORMAT_1, "words": None}, {"kind": "word", "normalization": "none"}, ["a", "b"], None,
        )
    ),
    *(({"format": n, "kind": "phrase"}, f"has format {n}. This version") for n in (1, 0, -1, 2**70, "2", None)),
    ({**GOOD, "kind": "other"}, "does not match any of the expected tags: 'word', 'char', 'subword'"),
    ({**GOOD, "words": ["a", ""]}, "its vocabulary of words holds ''"),
    ({**GOOD, "words": ["a", "a\u2028"]}, r"its vocabulary of words holds 'a\u2028'"),
    ({**GOOD, "kind": "char", "words": ["a", "ab"]}, "its vocabulary of characters holds 'ab'"),
    ({**GOOD, "kind": "char", "words": ["a", "\n"]}, r"its vocabulary of characters holds '\n'"),
    ({**GOOD, "kind": "char", "words": ["a", "\udfff"]}, r"its vocabulary of characters holds '\udfff'"),
]  # fmt: skip
NO_JSON = ["[" * 200_000, '{"kind":' * 100_000, "9" * 5000, "1e9999", '"\\ud800"', '{"kind": "word"', "\0", "NaN"]


@pytest.mark.parametrize(
    ("content", "message"),
    [*((json.dumps(values), said) for values, said in DAMAGED), *((text, "is damaged: ") for text in NO_JSON)],
    ids=range(len(DAMAGED) + len(NO_JSON)),
)
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        load_tokenizer(path)
    assert str(caught.value).startswith((f"Tokenizer {path} ", f"{path} is damaged: "))
    assert message in str(caught.value)


def test_a_file_of_format_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for values in (GOOD, FORMAT_1):
        path.write_text(json.dumps(values))
        tokenizer = load_tokenizer(path)
        assert (tokenizer.size, tokenizer.encode(" a  b"), tokenizer.normalize(" a  b")) == (6, [4, 5], "a b")
