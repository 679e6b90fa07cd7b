"""Postprocessing of translations of ordinary text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.inline import Cut
from nmt.text.reading import Reading, Text
from nmt.text.rewriting import Alignment, babbles, keeps_pieces, needs_alignment, postprocess, writes_as_words
from nmt.text.stand_ins import keeps_stand_ins
from nmt.tokenizers.base import EOS

WORDS = st.lists(st.text("abc", min_size=1), min_size=1, max_size=6)


def aligned(*sources: int, words: int) -> Alignment:
    """Return an alignment where every word of a translation attends to a single source word."""
    return Alignment(np.eye(words)[list(sources)])


def test_case_is_restored() -> None:
    assert postprocess(Reading(Text("")), Text("A dog", is_upper=True), "Ein großer Hund", None) == "EIN GROSSER HUND"
    text = Text("A big dog sleeps.", capitals=(1,))
    crossed = aligned(0, 2, 1, 3, words=4)
    assert needs_alignment(text, "Un chien grand dort.")
    assert postprocess(Reading(text), text, "Un chien grand dort.", crossed) == "Un chien GRAND dort."
    assert postprocess(Reading(text), text, "Un chien grand dort.", None) == "Un chien grand dort."


def test_quotes_are_restored() -> None:
    reading = Reading(Text("A dog."), before="„", after="“")
    assert postprocess(reading, reading.text, "Ein  Hund.", None) == "„Ein  Hund.“"


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (Cut(" 😀", 4, False), "Ein Hund rennt schnell. 😀"),
        (Cut(" 😀", 4, True), "Ein Hund rennt schnell 😀."),
        (Cut("😀", 4, False), "Ein Hund rennt schnell.😀"),
        (Cut("😀", 0, False), "😀 Ein Hund rennt schnell."),
        (Cut(" 😀", 2, False), "Ein Hund 😀 rennt schnell."),
        (Cut(" 😀", 3, False), "Ein Hund rennt schnell 😀."),
    ],
)
def test_a_piece_returns_to_its_place(cut: Cut, expected: str) -> None:
    text = Text("A dog quickly runs.", cuts=(cut,))
    assert postprocess(Reading(text), text, "Ein Hund rennt schnell.", aligned(0, 1, 3, 2, words=4)) == expected


def test_pieces_keep_their_order_and_a_text_without_words_is_copied() -> None:
    text = Text("A dog", cuts=(Cut(" 1", 1, False), Cut(" 2", 1, False), Cut(" 3", 2, False), Cut(" 4", 2, False)))
    assert postprocess(Reading(text), text, "Ein Hund", aligned(0, 1, words=2)) == "Ein 1 2 Hund 3 4"
    wordless = Text("", cuts=(Cut("— 😀!", 0, False),))
    assert postprocess(Reading(wordless), wordless, "", None) == "— 😀!"


@given(WORDS, WORDS, st.data())
def test_every_piece_is_kept_once_with_and_without_alignment(
    source: list[str], target: list[str], data: st.DataObject
) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=4)))
    text = Text(
        " ".join(source), cuts=tuple(Cut(f" <{n}>", place, data.draw(st.booleans())) for n, place in enumerate(places))
    )
    weights = Alignment(np.random.default_rng(0).random([len(target), len(source)]))
    for alignment in (None, weights):
        translation = postprocess(Reading(text), text, " ".join(target), alignment)
        words = translation.split()
        assert [word for word in words if not word.startswith("<")] == target
        assert sorted(word for word in words if word.startswith("<")) == [f"<{n}>" for n in range(len(places))]


def test_an_unknown_word_becomes_the_source_word_that_it_attends_to() -> None:
    text = Text("ask Smith, now")
    assert needs_alignment(text, "frag <unk> jetzt")
    assert postprocess(Reading(text), text, "frag <unk> jetzt", aligned(0, 1, 2, words=3)) == "frag Smith jetzt"
    assert postprocess(Reading(text), text, "frag <unk> jetzt", None) == "frag <unk> jetzt"


def test_a_translation_keeps_pieces_whole_and_numbers_with_other_separators() -> None:
    assert keeps_pieces("Nimm www.a.de!", ["www.a.de"])
    assert not keeps_pieces("Nimm www.a.", ["www.a.de"])
    assert keeps_pieces("Es sind 1.234.567,5 Euro", ["1,234,567.5"])
    assert not keeps_pieces("Es sind 1.234.567 Euro", ["1,234,568"])
    assert keeps_pieces("anything", [])


def test_numbers_must_come_as_often_as_in_the_source_and_whole() -> None:
    assert keeps_pieces("Es ist 10.30 Uhr, 7,5 Meilen, 10 000 Hunde", ["10:30", "7.5", "10,000"])
    assert (
        keeps_pieces("१९८७ में", ["1987"])
        and keeps_pieces("في ١٩٨٧", ["1987"])
        and keeps_pieces("2.200.112", ["2,200,112"])
    )
    for wrong in ("935-8 Männer", "935.8", "19358", "9358 und 9358", "keine"):
        assert not keeps_pieces(wrong, ["9358"])
    assert not keeps_pieces("5, um ihre 5", ["5"])


def test_digits_may_be_written_as_words() -> None:
    assert writes_as_words("Drei Hunde rennen.", "Vier Hunde rennen.", ["3"])
    assert writes_as_words("三只狗", "四只狗", ["3"])
    assert not writes_as_words("Hunde rennen.", "Hunde rennen.", ["3"])
    assert not writes_as_words("Ein Hund rennt.", "Vier Hunde rennen.", ["3"])
    assert not writes_as_words("3 3 Hunde.", "4 3 Hunde.", ["3"])


@pytest.mark.parametrize(
    ("translation", "is_kept"),
    [
        ("Michael rennt.", True), ("Michaels Hund", False), ("Hund von Michael und Michael", False),
        ("kein Name", False),
        ("我是Michael。", True), ("(Michael)", True), ("El-Michael", True),
    ],
)  # fmt: skip
def test_a_stand_in_comes_once_as_a_word(translation: str, is_kept: bool) -> None:
    assert keeps_stand_ins(translation, Text("Michael runs", stand_ins=(("Michael", "{0}"),))) == is_kept


def test_numbers_as_stand_ins_are_no_parts_of_others() -> None:
    text = Text("6 dogs", stand_ins=(("6", "%d"),))
    for translation, is_kept in {
        "6 Hunde": True,
        "16 Hunde": False,
        "6. Hund": False,
        "6只狗": True,
        "Es sind 6.": True,
    }.items():
        assert keeps_stand_ins(translation, text) == is_kept
    assert postprocess(Reading(text), text, "6 Hunde", None) == "%d Hunde"


def test_a_translation_babbles_without_an_end_or_with_repeats_that_its_source_lacks() -> None:
    assert babbles([5, 6], "a b") and not babbles([5, 6, EOS], "a b") and not babbles([], "")
    assert babbles([5, 5, 5, EOS], "a b c") and not babbles([5, 5, 5, EOS], "no no no")
    for source in ("It is very, very, very cold.", "He has 10,000 cats.", "10000", "Whaaat"):
        assert not babbles([5, 6, 6, 6, EOS], source)
    for source in ("Mississippi banana", "22 men, 2 dogs"):
        assert babbles([5, 6, 6, 6, EOS], source)


def test_a_translation_may_have_usual_repeats_but_must_end() -> None:
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
