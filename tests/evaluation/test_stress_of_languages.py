"""Stress test in languages without case or without spaces between words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.translation import Translation
from nmt.evaluation.result import StressRow
from nmt.evaluation.stress import (
    CAPITAL_WORD,
    CHANGES,
    PIECES,
    WORDS,
    _remove_piece,
    make_variants,
    score_variants,
    unchanging_variants,
)

SOURCES = {
    "de": [f"Der Hund {name} läuft im Park." for name in ("Ali", "Rex", "Bello", "Waldi")],
    "tr": [f"Köpek {name} istasyonda koşuyor." for name in ("ilk", "Ali", "iki", "Rex")],
    "zh": ["一只狗在公园里跑步。", "我有一部 iPhone。", "三个女孩（都很小）在湖边。", "他住在北京。"],
    "ja": ["犬が公園で走っています。", "バスで学校に行きました。", "「はい」と言った。", "東京は大きい。"],
    "th": ["ผู้ชายคนหนึ่งกำลังเล่นกับสุนัข", "เด็กผู้หญิงสามคนวิ่งอยู่", "เขาอยู่ที่กรุงเทพ", "ฉันมีหนังสือ"],
    "ar": ["الكلب يركض في الحديقة.", "ثلاث فتيات هناك.", "أين الكتاب؟", "هو في القاهرة."],
    "hi": ["कुत्ता बगीचे में दौड़ता है।", "तीन लड़कियाँ हैं।", "वह दिल्ली में है।", "किताब कहाँ है?"],
}
CASES = {"lower", CAPITAL_WORD, "upper", "title"}
LEFT_OUT = {
    "de": set(), "tr": set(), "zh": {*CASES, "typos", "double_spaces"}, "ja": {*CASES, "typos", "double_spaces"},
    "th": {*CASES, "typos", "double_spaces", "no_stop"}, "ar": CASES, "hi": {*CASES, "typos"},
}  # fmt: skip


def variants_of(language: str, copies: int = 8) -> dict[str, list]:
    sources = SOURCES[language] * copies
    return make_variants(sources, [sources], (language, language))


def rows_of(language: str) -> dict[str, StressRow]:
    """Return the rows for a translator that copies its source."""
    variants = variants_of(language)
    texts = {case.source for cases in variants.values() for case in cases}
    translated = {text: Translation(text, [], True, []) for text in texts}
    tokenization = {"zh": "zh", "ja": "char", "th": "char"}.get(language, "13a")
    return {row.variant: row for row in score_variants(variants, translated, tokenization, lowercase=False)}


@pytest.mark.parametrize("language", SOURCES)
def test_variants_that_change_nothing_in_a_language_are_left_out(language: str) -> None:
    sources = [text.replace(" iPhone", "手机") for text in SOURCES[language]] * 8
    variants = make_variants(sources, [sources], (language, "en"))
    assert set(unchanging_variants(variants)) == LEFT_OUT[language]
    assert variants.keys() == {*CHANGES, *PIECES, WORDS} - LEFT_OUT[language]
    assert next(iter(variants)) == "plain"


def test_case_follows_the_language() -> None:
    turkish = variants_of("tr", 1)
    assert turkish["upper"][0].source == "KÖPEK İLK İSTASYONDA KOŞUYOR."
    assert turkish["upper"][0].references == ["KÖPEK İLK İSTASYONDA KOŞUYOR."]
    assert {word for case in turkish[CAPITAL_WORD] for word in case.source.split() if word.isupper()} <= {
        "KÖPEK", "İLK", "ALİ", "İKİ", "REX", "İSTASYONDA", "KOŞUYOR."
    }  # fmt: skip
    [case] = make_variants(["I run"], [["我跑步"]], ("en", "zh"))["upper"]
    assert (case.source, case.references) == ("I RUN", ["我跑步"])


@pytest.mark.parametrize("language", SOURCES)
def test_a_translator_that_copies_keeps_pieces_and_scores(language: str) -> None:
    rows = rows_of(language)
    assert {rows[name].copied for name in PIECES} == {100}
    for name in ("plain", "join", "join_three", "quotes", *PIECES):
        assert rows[name].share == pytest.approx(100), name
    assert not any(row.repeating for row in rows.values())


@pytest.mark.parametrize(
    ("source", "language", "number", "url"),
    [
        ("他住在北京。", "zh", r"他住(\d+)在北京。", r"他住 (\S+) 在北京。"),
        ("「はい」と言った。", "ja", r"「はい」と(\d+)言った。", r"「はい」と (\S+) 言った。"),
        ("ฉันมีหนังสือ", "th", r"ฉันมีห(\d+)นังสือ", r"ฉันมีห (\S+) นังสือ"),
        ("我有 iPhone 手机。", "zh", r"我有 (\d+) iPhone 手机。", r"我有 (\S+) iPhone 手机。"),
        ("他2020年来。", "zh", r"他2020 (\d+)年来。", r"他2020 (\S+) 年来。"),
        ("He is here.", "en", r"He (\d+) is here\.", r"He (\S+) is here\."),
    ],
)  # fmt: skip
def test_a_piece_stands_between_words_of_any_script(source: str, language: str, number: str, url: str) -> None:
    variants = make_variants([source], [["a"]], (language, "en"))
    assert re.fullmatch(number, variants["number"][0].source)
    assert re.fullmatch(url, variants["url"][0].source)
    assert variants["emoji"][0].source == source + (" " if language == "en" else "") + variants["emoji"][0].piece


LETTERS = {
    "zh": "一只狗在公园里跑步。，（）", "ja": "犬がコーヒー走って、。「」", "th": "ผู้ชายคนหนึ่งกำลัง",
    "hi": "कुत्ता बगीचे। ", "ar": "الكلب في ؟. ", "de": "Größe. a-b, ", "tr": "ıİ çok. ",
}  # fmt: skip


@given(st.sampled_from([*LETTERS]).flatmap(lambda language: st.tuples(
    st.just(language), st.text(LETTERS[language], min_size=1, max_size=30))))  # fmt: skip
def test_a_translation_without_its_piece_is_the_reference(example: tuple[str, str]) -> None:
    language, text = example
    text = " ".join(text.split())
    if not text:
        return
    variants = make_variants([text], [[text]], (language, language))
    for name in PIECES:
        [case] = variants[name]
        assert _remove_piece(case.piece, case.source) == (1, text)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("zh", ["一", "只", "狗", "在", "公", "园", "里", "跑", "步"]), ("ja", ["犬", "が", "公", "園", "で"]),
        ("th", ["ผู้", "ชา", "ย", "ค"]), ("ar", ["الكلب", "يركض", "في", "الحديقة"]),
        ("hi", ["कुत्ता", "बगीचे", "में", "दौड़ता", "है"]), ("tr", ["Köpek", "ilk", "istasyonda", "koşuyor"]),
    ],
)  # fmt: skip
def test_single_words_are_words_of_the_script(language: str, words: list[str]) -> None:
    assert [case.source for case in variants_of(language, 1)[WORDS]][: len(words)] == words


@pytest.mark.parametrize(
    ("translation", "repeats"),
    [
        ("他很好很好很好。", True), ("我有 iPhone 很好很好很好。", True), ("哈哈哈。", True), ("สวัสดีสวัสดีสวัสดี", True),
        ("ดีดีดี", True), ("请看 https://www.example.org/1。", False), ("很好很好。", False), ("अच्छा अच्छा अच्छा है।", True),
        ("جدا جدا جدا", True),
    ],
)  # fmt: skip
def test_repeated_words_are_counted_in_any_script(translation: str, *, repeats: bool) -> None:
    variants = {"plain": make_variants(["a dog"], [["a"]])["plain"]}
    [row] = score_variants(variants, {"a dog": Translation(translation, [], True, [])}, "13a", lowercase=False)
    assert row.repeating == repeats
