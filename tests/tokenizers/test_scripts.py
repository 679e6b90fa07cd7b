"""Words of texts in any script."""

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from nmt.tokenizers.scripts import join_words, sentence_space, space_between, split_words

SPACED = {
    "de": "Größe „Straße“ z. B. 3,5 (ein) Hund’s", "ar": "هل ينام الكلب؟ نَعَم، «لا».", "hi": "वह हिन्दी पढ़ता है। क्या?",

    "tr": "İstanbul'da ırmak, şehir",
    "ru": "Ёлка — это «да».", "ko": "한국어는 띄어쓰기를 합니다.", "am": "እሱ ይተኛል። እሷ፣",
}  # fmt: skip
SPACELESS = {
    "zh": "我们去公园，好吗？（完）", "ja": "私は犬が「好き」です。ば", "th": "ผมไปที่ตลาดเพื่อซื้อน้ำ", "km": "ខ្ញុំទៅផ្សារ។",
    "my": "ကျွန်တော်သွားမယ်။", "lo": "ຂ້ອຍໄປຕະຫຼາດ",
}  # fmt: skip
ALL = "".join([*SPACED.values(), *SPACELESS.values()]) + " \t\n\u3000\xa0データ😀iPhone15.,\u0301\u200d"


@given(st.text(st.sampled_from("".join(SPACED.values()) + " \t\n\xa0")))
def test_words_of_scripts_with_spaces_lie_between_white_space(text: str) -> None:
    assert [word.text for word in split_words(text)] == text.split()
    assert join_words(split_words(text)) == " ".join(text.split())


@given(st.one_of(st.text(st.sampled_from(ALL)), st.text(st.characters(exclude_categories=["Cs"]))))
def test_joined_words_are_the_text_with_its_white_space_collapsed(text: str) -> None:
    words = split_words(text)
    assert join_words(words) == " ".join(text.split())
    assert all(word.text and word.text.split() == [word.text] for word in words)
    assert split_words(join_words(words)) == words


@given(st.sampled_from(list(SPACELESS.values())), st.integers(0, 30), st.integers(0, 30))
def test_a_word_of_a_script_without_spaces_is_a_character_with_its_marks(text: str, start: int, size: int) -> None:
    clusters = regex.findall(r"\X", text)
    part = "".join(clusters[start : start + size])
    words = split_words(part)
    assert all(word.space == "" for word in words)
    for word in words:
        letters = [cluster for cluster in regex.findall(r"\X", word.text) if unicodedata.category(cluster[0])[0] == "L"]
        # Thai and Lao vowels before and behind a consonant belong to it, but are clusters of their own.
        assert len(letters) <= 1 or regex.search(r"\p{Thai}|\p{Lao}", word.text)
    # No word begins within a character.
    ends = {sum(map(len, clusters[start : start + count])) for count in range(len(clusters) + 1)}
    places = [sum(len(word.text) for word in words[:count]) for count in range(len(words) + 1)]
    assert ends.issuperset(places)


def test_runs_of_katakana_and_of_other_scripts_are_words() -> None:
    assert [word.text for word in split_words("データを iPhone 15に「送る」。")] == [
        "データ", "を", "iPhone", "15", "に", "「送", "る」。"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "space"),
    [
        ("ein", "Hund", " "), ("我", "们", ""), ("我", "iPhone", ""), ("iPhone", "我", ""), ("。", "{x}", ""),
        ("नहीं", "है", " "), ("لا", "نعم", " "), ("น้ำ", "ไป", ""), ("한국", "어", " "), ("", "a", " "),
    ],
)  # fmt: skip
def test_words_come_together_as_their_script_has_it(before: str, after: str, space: str) -> None:
    assert space_between(before, after) == space


@pytest.mark.parametrize(
    ("before", "language", "space"),
    [("我。", "zh-Hans", ""), ("はい。", "ja", ""), ("ไป", "th", " "), ("Ja.", "de", " "), ("我。", "target", ""),
     ("Ja.", "target", " "), ("है।", "target", " "), ("OK", "zh", "")],
)  # fmt: skip
def test_the_space_between_sentences_follows_the_language(before: str, language: str, space: str) -> None:
    assert sentence_space(before, language) == space
