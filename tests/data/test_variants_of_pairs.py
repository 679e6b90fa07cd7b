"""Variants of sentence pairs in many languages: letter case, spaces, stops, quotes, typing errors."""

import unicodedata
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.config.training import VARIANT_NAMES
from nmt.data.sources.formats import Pair
from nmt.data.token_arrays import Sequences, Split
from nmt.data.variants import UNKNOWN, VARIANTS, Languages, is_cased
from nmt.tokenizers.registry import fit_tokenizer
from nmt.training.augmentation import augment_split

SENTENCES = {
    "de": "Die Straße ist groß.", "en": "The street is big.", "tr": "Bir köpek istiyor.", "el": "Πού είναι ο σκύλος;",
    "zh": "我有一部 iPhone。", "ja": "犬が走っています。", "th": "หมากำลังวิ่งอยู่", "ar": "الكلب يركض في الحديقة.",
    "hi": "कुत्ता बगीचे में दौड़ रहा है।", "ko": "개가 공원에서 뛰고 있다.", "ka": "ძაღლი გარბის.", "am": "ውሻው ይሮጣል፡፡",
}  # fmt: skip
CASELESS = ["zh", "ja", "th", "ar", "hi", "ko", "ka", "am"]


def variant(name: str, source: str, target: str, languages: Languages, seed: int = 0) -> Pair:
    pair = Pair(source, target)
    return VARIANTS[name](pair, pair, Random(seed), languages)


@pytest.mark.parametrize(
    ("source", "target", "languages", "capitals"),
    [
        ("Die Straße", "izmir ılık", ("de", "tr"), ("DIE STRASSE", "İZMİR ILIK")),
        ("izmir ılık", "Αθήνα", ("tr", "el"), ("İZMİR ILIK", "ΑΘΗΝΑ")),
        ("I like it", "我喜欢 iPhone", ("en", "zh"), ("I LIKE IT", "我喜欢 iPhone")),  # the target has no capitals
        ("I like it", "mir gefällt es", UNKNOWN, ("I LIKE IT", "MIR GEFÄLLT ES")),
    ],
)
def test_capitals_follow_the_languages(
    source: str, target: str, languages: Languages, capitals: tuple[str, str]
) -> None:
    assert variant("upper", source, target, languages) == capitals


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("known", [True, False])
def test_a_source_without_case_has_no_capitals_and_nor_does_its_translation(language: str, *, known: bool) -> None:
    text = SENTENCES[language]
    languages = (language, "en") if known else UNKNOWN
    assert is_cased(text) == (language not in CASELESS)
    for name in ("upper", "title"):
        pair = variant(name, text, "The dog runs.", languages)
        assert (pair == (text, "The dog runs.")) == (language in CASELESS)


def test_titles_follow_the_language_of_the_source() -> None:
    assert variant("title", "istanbul ilk", "a", ("tr", "en")).source == "İstanbul İlk"
    assert variant("title", "ijs is koud", "a", ("nl", "en")).source == "IJs Is Koud"
    decomposed = unicodedata.normalize("NFD", "été glacé")
    assert variant("title", decomposed, "a", ("fr", "en")).source == unicodedata.normalize("NFD", "Été Glacé")


@pytest.mark.parametrize(
    ("language", "space"),
    [("de", " "), ("zh", ""), ("ja", ""), ("th", " "), ("ar", " "), ("hi", " "), ("tr", " "), ("ko", " ")],
)
def test_joined_sentences_have_the_space_of_their_language(language: str, space: str) -> None:
    text = SENTENCES[language]
    assert variant("join", text, "One.", (language, "en")) == (f"{text}{space}{text}", "One. One.")
    assert variant("join", "One.", text, ("en", language)) == ("One. One.", f"{text}{space}{text}")
    assert variant("join", text, text, UNKNOWN) == (f"{text}{space}{text}",) * 2


@pytest.mark.parametrize(
    "stop", [".", "!", "?", "…", "。", "！", "？", "।", "॥", "؟", "۔", "።", "፡፡", "፧", "။", "។", "։"]
)
def test_the_stop_of_every_script_is_removed_from_the_source_alone(stop: str) -> None:
    assert variant("no_stop", f"ab{stop}", f"ab{stop}", UNKNOWN) == ("ab", f"ab{stop}")


@pytest.mark.parametrize(
    ("language", "quoted"),
    [("en", '"a"'), ("de", '"a"'), ("ar", '"a"'), ("hi", '"a"'), ("tr", '"a"'), ("target", '"a"'), ("ja", "「a」"),
     ("zh", "“a”"), ("zh-CN", "“a”"), ("zh-TW", "「a」")],
)  # fmt: skip
def test_quotes_are_those_that_people_type(language: str, quoted: str) -> None:
    assert variant("quotes", "a", "a", (language, "en")) == (quoted, '"a"')
    assert variant("quotes", "a", "a", ("en", language)) == ('"a"', quoted)


UNTYPED = "".join(SENTENCES[language] for language in ("ja", "th", "hi", "ko", "am", "ka"))


@given(st.text([*UNTYPED, "한", "국", "क", "ि", "\u0301"], max_size=60), st.integers(0, 99))
def test_scripts_without_a_known_keyboard_have_no_typing_errors(text: str, seed: int) -> None:
    assert variant("typos", text, "a", UNKNOWN, seed) == (text, "a")


@given(st.text(["é", "e", "x", "a", "n", "\u0301", "\u0323", "ộ"], min_size=4), st.integers(0, 99))
def test_typing_errors_tear_no_mark_from_its_letter(word: str, seed: int) -> None:
    word = f"x{word}"
    mistyped = variant("typos", f"{word} {word}", "a", ("vi", "en"), seed).source
    if any(map(unicodedata.combining, word)):
        assert mistyped == f"{word} {word}"


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("große Straßen überall heute", "abcdefghijklmnopqrstuvwxyzßäöü"),
        ("большая улица сегодня везде", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
        ("μεγάλος δρόμος σήμερα παντού", "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ"),
        ("הרחובות הגדולים היום בעיר", "אבגדהוזחטיכךלמםנןסעפףצץקרשת"),
        ("الشوارع الكبيرة اليوم والحديقة", "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئةى"),
    ],
)
def test_words_of_an_alphabet_have_typing_errors_of_its_letters(text: str, letters: str) -> None:
    mistyped = [variant("typos", text, "a", UNKNOWN, seed).source for seed in range(300)]
    assert 50 < sum(changed != text for changed in mistyped) < 200
    assert set("".join(mistyped).lower()) <= {*letters, " "}
    assert all(changed[0] == text[0] and len(changed.split()) == len(text.split()) for changed in mistyped)


def test_an_epoch_in_turkish_has_turkish_capitals() -> None:
    pairs = [("istiyor musun", "i like it")] * 40
    characters = fit_tokenizer(
        ["iıİI ŞşĞğ abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ"],
        DataConfig(tokenizer="char", normalization="none"),
    )
    rows = [[characters.encode(text) for text in side] for side in zip(*pairs, strict=True)]
    split = Split(*(Sequences.from_rows(side, characters.size) for side in rows))
    changed = augment_split(split, (characters, characters), {"upper": 1.0}, 1, 1, [(range(len(split)), ("tr", "en"))])
    assert {characters.decode(row) for row in map(changed.source.__getitem__, range(40))} == {"İSTİYOR MUSUN"}
    assert {characters.decode(row) for row in map(changed.target.__getitem__, range(40))} == {"I LIKE IT"}


@pytest.mark.parametrize("language", ["zh", "th", "hi"])
def test_a_pair_that_cannot_change_keeps_its_ids(language: str) -> None:
    text = SENTENCES[language]
    tokenizer = fit_tokenizer([text + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"], DataConfig(tokenizer="char", normalization="none"))
    row = tokenizer.encode(text)
    split = Split(*(Sequences.from_rows([row] * 50, tokenizer.size) for _ in range(2)))
    shares = {name: 1 / 3 for name in VARIANT_NAMES if name in {"upper", "title", "typos"}}
    changed = augment_split(split, (tokenizer, tokenizer), shares, 1, 1, [(range(len(split)), (language, language))])
    assert np.array_equal(split.source.tokens, changed.source.tokens)
    assert np.array_equal(split.target.tokens, changed.target.tokens)
