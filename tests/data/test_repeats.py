"""Repeated phrases in sentences, and datasets in whose targets they are ordinary."""

from pathlib import Path

import numpy as np
import pytest
from conftest import write_tsv
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.data.manifest import Manifest
from nmt.data.prepare import prepare
from nmt.data.repeats import SAMPLE_TARGETS, empty_ids, repeats, share_of_repeats
from nmt.data.token_arrays import Sequences
from nmt.tokenizers.base import FIRST_WORD, UNK
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer


@given(st.lists(st.integers(0, 2), max_size=12))
def test_repeats_finds_three_equal_phrases_in_a_row(tokens: list[int]) -> None:
    expected = any(
        tokens[start : start + size]
        == tokens[start + size : start + 2 * size]
        == tokens[start + 2 * size : start + 3 * size]
        for size in range(1, 5)
        for start in range(len(tokens) - 3 * size + 1)
    )
    assert repeats(tokens) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Er lief und lief", "Nach und nach wurde es hell", "Yavaş yavaş yürüdü", "Koşa koşa eve geldi",
        "वह धीरे धीरे चला", "घर घर में दीप जले", "جاءوا واحدا واحدا", "شيئا فشيئا", "慢 慢 地 走", "看 看 高 高 兴 兴 的 人",
    ],
)  # fmt: skip
def test_a_word_that_grammar_doubles_is_no_repeat(sentence: str) -> None:
    assert not repeats(sentence.split())
    assert not repeats([*sentence.replace(" ", "")])


WORDS = WordTokenizer(["a", "b", "c"], "none")


@given(st.lists(st.lists(st.integers(4, 6), max_size=9), min_size=1, max_size=30))
def test_the_share_is_that_of_all_targets_where_they_are_few(rows: list[list[int]]) -> None:
    assert share_of_repeats(Sequences.from_rows(rows, 7), WORDS) == np.mean([repeats(row) for row in rows])


@pytest.mark.parametrize(
    "text",
    ["Es kostet 1.000.000 Euro ...", "hier --- dort", "花了1000000元……。。。", "كلف ١٠٠٠ دينار...",
     "१००० रुपये ।।।", "1000 lira!!!", "=====", "- - - -"],
)  # fmt: skip
def test_rows_of_dots_lines_spaces_and_zeros_are_no_phrases(text: str) -> None:
    characters, words = CharacterTokenizer(sorted(set(text)), "none"), WordTokenizer(sorted(set(text.split())), "none")
    for tokenizer in (characters, words):
        assert not repeats(tokenizer.encode(text), empty_ids(tokenizer)), tokenizer.unit
    assert repeats(characters.encode(text))


@pytest.mark.parametrize(
    "text",
    [
        "1 3 3 3 4",
        "1333",
        "0 1 0 1 0 1 2",
        "hahaha",
        "哈哈哈",
        "لالالا",
        "हर हर हर दिन",
        "çok çok çok iyi",
        "ja, ja, ja, nein",
    ],
)
def test_rows_of_other_digits_letters_and_words_are_phrases(text: str) -> None:
    tokenizer = CharacterTokenizer(sorted(set(text)), "none")
    assert repeats(tokenizer.encode(text), empty_ids(tokenizer))


def test_unknown_words_are_no_phrase() -> None:
    rows = [[UNK] * 5, [FIRST_WORD, UNK, UNK, UNK]]
    assert share_of_repeats(Sequences.from_rows(rows, 7), WORDS) == 0
    assert share_of_repeats(Sequences.from_rows([[UNK, FIRST_WORD] * 3], 7), WORDS) == 1


def test_of_many_targets_a_sample_from_all_of_them_counts() -> None:
    rows = [[4, 5]] * (2 * SAMPLE_TARGETS) + [[4, 4, 4]] * (2 * SAMPLE_TARGETS)
    assert share_of_repeats(Sequences.from_rows(rows, 7), WORDS) == pytest.approx(0.5, abs=0.001)


PHRASES = {
    "de": ["der Hund schläft", "eins eins eins zwei", "der Mann sieht den Hund"],
    "zh": ["狗 在 睡觉", "一 一 一 二", "男人 看见 狗"],
    "ar": ["الكلب ينام", "واحد واحد واحد اثنان", "الرجل يرى الكلب"],
    "hi": ["कुत्ता सोता है", "एक एक एक दो", "आदमी कुत्ते को देखता है"],
    "tr": ["köpek uyuyor", "bir bir bir iki", "adam köpeği görüyor"],
}


def prepared(targets: list[str]) -> Manifest:
    pairs = [(f"source {number}", f"{target} {number}") for number, target in enumerate(targets)]
    config = DataConfig(tokenizer="word", normalization="nfkc", train_share=0.9, validation_share=0.05, test_share=0.05)
    return prepare(write_tsv("corpus.tsv", pairs), config, "corpus").manifest


@pytest.mark.parametrize("language", PHRASES)
def test_prepare_measures_how_often_training_targets_repeat(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain, repeated, ordinary = PHRASES[language]
    manifest = prepared([plain, repeated, ordinary, plain] * 50)
    assert manifest.repeating_targets == pytest.approx(0.25, abs=0.05)
    assert manifest.has_ordinary_repeats


def test_rare_repeats_are_not_ordinary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = prepared(["the dog sleeps", "a man sees it"] * 149 + ["no no no", "he sleeps"])
    assert manifest.repeating_targets is not None and manifest.repeating_targets < 0.01
    assert not manifest.has_ordinary_repeats


def test_a_manifest_that_does_not_say_has_no_ordinary_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = prepared(["one one one"] * 40).to_json()
    del values["repeating_targets"]
    older = Manifest.model_validate(values | {"format": 5})
    assert older.repeating_targets is None and not older.has_ordinary_repeats
