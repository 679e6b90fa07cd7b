"""Translations of ordinary text as they are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.inline import Cut
from nmt.text.reading import Reading, Text
from nmt.text.rewriting import Alignment, babbles, keeps, needs_alignment, rewritten
from nmt.tokenizers.base import EOS

WORDS = st.lists(st.text("abc", min_size=1), min_size=1, max_size=6)


def aligned(*sources: int, words: int) -> Alignment:
    """Each word of a translation attends to one source word."""
    return Alignment(np.eye(words)[list(sources)])


def test_case_is_given_back() -> None:
    assert rewritten(Reading(Text("")), Text("A dog", is_upper=True), "Ein großer Hund", None) == "EIN GROSSER HUND"
    read = Text("A big dog sleeps.", capitals=(1,))
    crossed = aligned(0, 2, 1, 3, words=4)
    assert needs_alignment(read, "Un chien grand dort.")
    assert rewritten(Reading(read), read, "Un chien grand dort.", crossed) == "Un chien GRAND dort."
    assert rewritten(Reading(read), read, "Un chien grand dort.", None) == "Un chien grand dort."


def test_quotes_are_given_back() -> None:
    reading = Reading(Text("A dog."), before="„", after="“")
    assert rewritten(reading, reading.text, "Ein  Hund.", None) == "„Ein  Hund.“"


@pytest.mark.parametrize(
    ("cut", "written"),
    [
        (Cut(" 😀", 4, False), "Ein Hund rennt schnell. 😀"),
        (Cut(" 😀", 4, True), "Ein Hund rennt schnell 😀."),
        (Cut("😀", 4, False), "Ein Hund rennt schnell.😀"),
        (Cut("😀", 0, False), "😀 Ein Hund rennt schnell."),
        (Cut(" 😀", 2, False), "Ein Hund 😀 rennt schnell."),
        (Cut(" 😀", 3, False), "Ein Hund rennt schnell 😀."),
    ],
)
def test_what_was_cut_out_stands_where_it_stood(cut: Cut, written: str) -> None:
    read = Text("A dog quickly runs.", cuts=(cut,))
    assert rewritten(Reading(read), read, "Ein Hund rennt schnell.", aligned(0, 1, 3, 2, words=4)) == written


def test_pieces_at_one_place_keep_their_order_and_a_text_of_pieces_alone_is_itself() -> None:
    read = Text("A dog", cuts=(Cut(" 1", 1, False), Cut(" 2", 1, False), Cut(" 3", 2, False), Cut(" 4", 2, False)))
    assert rewritten(Reading(read), read, "Ein Hund", aligned(0, 1, words=2)) == "Ein 1 2 Hund 3 4"
    wordless = Text("", cuts=(Cut("— 😀!", 0, False),))
    assert rewritten(Reading(wordless), wordless, "", None) == "— 😀!"


@given(WORDS, WORDS, st.data())
def test_each_piece_arrives_once_with_and_without_alignment(
    source: list[str], target: list[str], data: st.DataObject
) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=4)))
    read = Text(
        " ".join(source), cuts=tuple(Cut(f" <{n}>", place, data.draw(st.booleans())) for n, place in enumerate(places))
    )
    weights = Alignment(np.random.default_rng(0).random([len(target), len(source)]))
    for alignment in (None, weights):
        text = rewritten(Reading(read), read, " ".join(target), alignment)
        assert [word for word in text.split() if not word.startswith("<")] == target
        assert sorted(word for word in text.split() if word.startswith("<")) == [f"<{n}>" for n in range(len(places))]


def test_an_unknown_word_is_the_source_word_that_it_attends_to() -> None:
    read = Text("ask Smith, now")
    assert needs_alignment(read, "frag <unk> jetzt")
    assert rewritten(Reading(read), read, "frag <unk> jetzt", aligned(0, 1, 2, words=3)) == "frag Smith jetzt"
    assert rewritten(Reading(read), read, "frag <unk> jetzt", None) == "frag <unk> jetzt"


def test_a_translation_keeps_pieces_whole_and_numbers_with_other_separators() -> None:
    assert keeps("Nimm www.a.de!", ["www.a.de"])
    assert not keeps("Nimm www.a.", ["www.a.de"])
    assert keeps("Es sind 1.234.567,5 Euro", ["1,234,567.5"])
    assert not keeps("Es sind 1.234.567 Euro", ["1,234,568"])
    assert keeps("anything", [])


def test_a_translation_babbles_if_it_does_not_end_or_repeats_what_its_source_does_not() -> None:
    assert babbles([5, 6], "a b") and not babbles([5, 6, EOS], "a b") and not babbles([], "")
    assert babbles([5, 5, 5, EOS], "a b c") and not babbles([5, 5, 5, EOS], "no no no")
    for source in ("It is very, very, very cold.", "He has 10,000 cats.", "10000", "Whaaat"):
        assert not babbles([5, 6, 6, 6, EOS], source)
    for source in ("Mississippi banana", "22 men, 2 dogs"):
        assert babbles([5, 6, 6, 6, EOS], source)


def test_a_translation_may_repeat_what_is_ordinary_but_must_end() -> None:
    assert not babbles([5, 5, 5, EOS], "a b c", may_repeat=True)
    assert babbles([5, 5, 5], "a b c", may_repeat=True)


@pytest.mark.parametrize(
    "source",
    [
        "No way, no way, no way!", "1 2 1 2 1 2", "Nein danke, nein danke, nein danke.", "लाल फूल, लाल फूल, लाल फूल।",
        "لا يمكن، لا يمكن، لا يمكن!", "Evet efendim, evet efendim, evet efendim.", "不是、不是、不是", "不是不是不是",
    ],
)  # fmt: skip
def test_a_source_may_repeat_phrases_of_several_words(source: str) -> None:
    assert not babbles([5, 6, 5, 6, 5, 6, EOS], source.casefold())
