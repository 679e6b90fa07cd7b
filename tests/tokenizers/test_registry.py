"""A tokenizer turns text into ids and back, special ids come from no text, and what is saved is what was fitted."""

import json
import random
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.errors import DataError, NotFoundError
from nmt.storage import json_file as files
from nmt.tokenizers.base import BOS, EOS, PAD, UNK
from nmt.tokenizers.normalization import NORMALIZERS
from nmt.tokenizers.registry import fit_tokenizer, load_tokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = pytest.mark.parametrize("kind", ["none", "nfkc", "ascii-words"])
MARKUP = ["<pad>", "<bos>", "<eos>", "<unk>", "<s>", "</s>", "[start]", "[end]", "[UNK]", "start", "end", "", "0", "1"]
TEXTS = st.text() | st.lists(st.sampled_from([*MARKUP, "go", "Äh", "5", "\u2028"])).map(" ".join)


def fit(*texts: str, kind: str = "none", min_count: int = 1) -> WordTokenizer:
    """Return a tokenizer fitted on the texts."""
    return WordTokenizer.fit(texts, DataConfig(normalization=kind, min_count=min_count))  # type: ignore[arg-type]


def test_the_special_ids_are_the_first_four() -> None:
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)


# --- fitting


def test_frequent_words_come_first_and_equals_in_alphabetical_order() -> None:
    tokenizer = fit("b c a", "c d", "c b")
    assert tokenizer.words == ["c", "b", "a", "d"]
    assert tokenizer.size == 8
    assert tokenizer.encode("a b c d") == [6, 5, 4, 7]


@QUICK
@given(st.lists(TEXTS), st.randoms(use_true_random=False))
def test_the_order_of_texts_does_not_matter(texts: list[str], order: random.Random) -> None:
    shuffled = order.sample(texts, len(texts))
    assert fit(*texts).words == fit(*shuffled).words


@pytest.mark.parametrize(("min_count", "words"), [(1, ["c", "b", "a"]), (2, ["c", "b"]), (3, ["c"]), (4, [])])
def test_rare_words_get_no_id(min_count: int, words: list[str]) -> None:
    tokenizer = fit("a b c", "b c", "c", min_count=min_count)
    assert tokenizer.words == words
    assert tokenizer.unknown("a b c") == [word for word in ("a", "b", "c") if word not in words]


def test_texts_are_normalized_before_words_are_counted() -> None:
    assert fit("Go, GO!", "go 5 \ufb01", kind="ascii-words").words == ["go"]
    assert fit("Go, GO!", "go 5 \ufb01", kind="nfkc").words == ["5", "GO!", "Go,", "fi", "go"]


def test_no_words_give_a_vocabulary_of_special_ids() -> None:
    tokenizer = fit("", "  ")
    assert (tokenizer.words, tokenizer.size, tokenizer.encode("go")) == ([], 4, [UNK])


def test_a_tokenizer_of_the_configured_kind_is_fitted() -> None:
    tokenizer = fit_tokenizer(["b a", "b"], DataConfig(tokenizer="word", normalization="none"))
    assert tokenizer.encode("a b") == [5, 4]


# --- encoding and decoding


@KINDS
@QUICK
@given(trained_on=TEXTS, text=TEXTS)
@example(trained_on="<pad> <bos> <eos> <unk> start", text="<pad> <bos> <eos> <unk> start")
def test_no_text_encodes_to_pad_bos_or_eos(kind: str, trained_on: str, text: str) -> None:
    ids = fit(trained_on, kind=kind).encode(text)
    assert not {PAD, BOS, EOS} & set(ids)


@KINDS
@QUICK
@given(trained_on=TEXTS, text=TEXTS)
@example(trained_on="<unk>", text="<unk>")
def test_words_are_unknown_if_and_only_if_training_lacked_them(kind: str, trained_on: str, text: str) -> None:
    tokenizer = fit(trained_on, kind=kind)
    words, known = tokenizer.normalize(text).split(), set(tokenizer.normalize(trained_on).split())
    assert [id_ == UNK for id_ in tokenizer.encode(text)] == [word not in known for word in words]
    assert tokenizer.unknown(text) == [word for word in words if word not in known]


@QUICK
@given(trained_on=TEXTS, text=TEXTS)
def test_no_word_vanishes(trained_on: str, text: str) -> None:
    assert len(fit(trained_on).encode(text)) == len(text.split())
    assert len(fit(trained_on, kind="nfkc").encode(text)) == len(unicodedata.normalize("NFKC", text).split())
    words = NORMALIZERS["ascii-words"](text).split()
    assert len(fit(trained_on, kind="ascii-words").encode(text)) == len(words)


@KINDS
@QUICK
@given(text=TEXTS)
def test_known_text_is_decoded_to_its_normal_form(kind: str, text: str) -> None:
    tokenizer = fit("before", text, "after", kind=kind)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)


def test_markup_in_a_text_is_a_word_like_any_other() -> None:
    tokenizer = fit("<pad> <bos> <eos> <unk>")
    assert tokenizer.encode("<pad> <bos> <eos> <unk>") == [6, 4, 5, 7]
    assert tokenizer.decode(tokenizer.encode("<eos> <pad> <unk> <bos>")) == "<eos> <pad> <unk> <bos>"


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


def test_the_file_is_json_with_the_words_in_order(tmp_path: Path) -> None:
    fit("größer b b", kind="nfkc").save(tmp_path / "tokenizer.json")
    written = json.loads((tmp_path / "tokenizer.json").read_bytes())
    assert written == {"format": 2, "kind": "word", "normalization": "nfkc", "words": ["b", "größer"]}


GOOD = {"format": 2, "kind": "word", "normalization": "none", "words": ["a", "b"]}
FORMAT_1 = {"kind": "word", "normalisation": "none", "words": ["a", "b"]}


@pytest.mark.parametrize(
    "damaged",
    [
        {**GOOD, "kind": "other"},
        {**GOOD, "normalization": "other"},
        {**GOOD, "words": "ab"},
        {**GOOD, "words": ["a", 5]},
        {**GOOD, "words": ["a", None]},
        {**GOOD, "more": 1},
        {**GOOD, "format": "2"},
        {**GOOD, "format": None},
        {**GOOD, "normalisation": "none"},
        {**FORMAT_1, "format": 2},
        {**FORMAT_1, "words": None},
        {"kind": "word", "normalization": "none"},
        ["a", "b"],
        None,
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damaged: object) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(damaged))
    with pytest.raises(DataError) as caught:
        load_tokenizer(path)
    assert str(caught.value).startswith(f"Tokenizer {path} is damaged: ")


def test_a_file_of_format_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for values in (GOOD, FORMAT_1):
        path.write_text(json.dumps(values))
        tokenizer = load_tokenizer(path)
        assert (tokenizer.size, tokenizer.encode(" a  b"), tokenizer.normalize(" a  b")) == (6, [4, 5], "a b")


@pytest.mark.parametrize("number", [3, 1, 0, -1, 2**70])
def test_a_file_of_another_format_is_refused_in_words(tmp_path: Path, number: int) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"format": number, "kind": "phrase"}))
    with pytest.raises(DataError) as caught:
        load_tokenizer(path)
    assert str(caught.value) == (
        f"Tokenizer {path} has format {number}. This version of nmt reads tokenizers of formats 1 and 2. Use the "
        "version of nmt that wrote it, or prepare the corpus again with --overwrite."
    )


def test_a_file_that_repeats_a_word_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**GOOD, "words": ["a", "b", "a"]}))
    with pytest.raises(DataError) as caught:
        load_tokenizer(path)
    assert str(caught.value) == f"Tokenizer {path} is damaged: its vocabulary holds a word twice. Restore a copy."


@pytest.mark.parametrize(
    ("kind", "word", "reason"),
    [
        ("word", "", r"its vocabulary of words holds ''"),
        ("word", "a b", "its vocabulary of words holds 'a b'"),
        ("word", "a\u2028", r"its vocabulary of words holds 'a\\u2028'"),
        ("char", "ab", "its vocabulary of characters holds 'ab'"),
        ("char", "\n", r"its vocabulary of characters holds '\\n'"),
        ("word", "\ud800", "holds half of a surrogate pair"),
        ("char", "\udfff", "holds half of a surrogate pair"),
    ],
)
def test_a_file_with_what_no_text_is_cut_into_is_refused(tmp_path: Path, kind: str, word: str, reason: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**GOOD, "kind": kind, "words": ["a", word]}))
    with pytest.raises(DataError, match=reason):
        load_tokenizer(path)


@pytest.mark.parametrize(
    "content", ["[" * 200_000, '{"kind":' * 100_000, "9" * 5000, "1e9999", '"\\ud800"', '{"kind": "word"', "\0", "NaN"]
)
def test_json_that_is_no_tokenizer_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match=r"^(Tokenizer .*tokenizer|.*tokenizer)\.json is damaged: "):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_json_too_long_to_be_ours_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(GOOD))
    monkeypatch.setattr(files, "MAX_JSON", path.stat().st_size)
    assert load_tokenizer(path).size == 6
    monkeypatch.setattr(files, "MAX_JSON", path.stat().st_size - 1)
    with pytest.raises(DataError, match=r"tokenizer\.json is too long\. A tokenizer has at most \d+ bytes\."):
        load_tokenizer(path)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    fit("a b c").save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"tokenizer\.json is damaged: .* A tokenizer is JSON\."):
        load_tokenizer(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"^A tokenizer is missing: .*tokenizer\.json does not exist"):
        load_tokenizer(tmp_path / "tokenizer.json")
