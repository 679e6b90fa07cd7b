"""Stress test: variants are as described and reproducible; copied, cut-off and repeating translations are counted."""

import re
from collections.abc import Callable

import pytest

from nmt.data.variants import VARIANTS
from nmt.decoding.translation import Translation
from nmt.evaluation.result import StressRow
from nmt.evaluation.stress import MOST_SENTENCES, PIECES, make_variants, score_variants

SOURCES = [f"Line {number} has a dog, and the dog runs to house {number}." for number in range(9)]
REFERENCES = [[f"Satz {number} hat einen Hund, er läuft." for number in range(9)], [f"Hund {n}." for n in range(9)]]
PLACED = {
    "emoji": r".*\. \W", "url": r"\w.* https://\S+ .*\.", "email": r"\w.* \S+@\S+ .*\.", "number": r"\w.* \d{5,9} .*\."
}  # fmt: skip


def rows_of(
    translate: Callable[[str], str], sources: list[str] = SOURCES, *, finished: bool = True
) -> dict[str, StressRow]:
    """Return the row of each variant for sources that are their own references."""
    variants = make_variants(sources, [sources])
    texts = [case.source for cases in variants.values() for case in cases]
    translated = {text: Translation(translate(text), [], finished, []) for text in texts}
    return {row.variant: row for row in score_variants(variants, translated, "13a", lowercase=False)}


def test_variants_are_always_the_same_whatever_comes_before_them() -> None:
    variants = make_variants(SOURCES, REFERENCES)
    assert variants == make_variants(SOURCES, REFERENCES)
    beginning = make_variants(SOURCES[:4], [lines[:4] for lines in REFERENCES])
    assert all(variants[name][: len(cases)] == cases for name, cases in beginning.items() if name != "single_words")
    assert VARIANTS.keys() | PIECES.keys() < variants.keys()
    assert [case.source for case in variants["typos"]] != SOURCES


def test_what_changes_in_the_source_changes_in_all_references_where_a_translation_would() -> None:
    variants, lines = make_variants(SOURCES, REFERENCES), list(zip(*REFERENCES, strict=True))
    both: dict[str, Callable[[str], str]] = {
        "upper": str.upper, "quotes": lambda text: f'"{text}"', "no_stop": lambda text: text.rstrip("."),
    }  # fmt: skip
    for name, change in both.items():
        assert [case.source for case in variants[name]] == [*map(change, SOURCES)]
        assert [case.references for case in variants[name]] == [[*map(change, row)] for row in lines]
    of_source: dict[str, Callable[[str], str]] = {
        "lower": str.lower,
        "double_spaces": lambda text: "  ".join(text.split()),
    }
    for name in ("plain", "title", "lower", "capital_word", "typos", "double_spaces", *PIECES):
        changed = [case.source for case in variants[name]]
        assert (
            changed == [*map(of_source[name], SOURCES)]
            if name in of_source
            else (changed == SOURCES) == (name == "plain")
        )
        assert [case.references for case in variants[name]] == [[*row] for row in lines]
    for changed, source in zip((case.source for case in variants["capital_word"]), SOURCES, strict=True):
        [(new, old)] = [(new, old) for new, old in zip(changed.split(), source.split(), strict=True) if new != old]
        assert new == old.upper() and len(old) >= 3
    for name, count in (("join", 2), ("join_three", 3)):
        assert len(variants[name]) == 9 // count
        for place, case in enumerate(variants[name]):
            joined = slice(place * count, (place + 1) * count)
            assert (case.number, case.source) == (1 + place * count, " ".join(SOURCES[joined]))
            assert case.references == [" ".join(texts[joined]) for texts in REFERENCES]


def test_a_piece_is_put_after_a_word_and_can_be_taken_out() -> None:
    for name, pattern in PLACED.items():
        for case, source in zip(make_variants(SOURCES, REFERENCES)[name], SOURCES, strict=True):
            assert re.fullmatch(pattern, case.source)
            assert " ".join(case.source.replace(case.piece, "").split()) == source


def test_single_words_are_distinct_and_long_test_sets_are_cut() -> None:
    variants = make_variants(["the dog isn't the dog, 7", "", "a dog"], [["x", "y", "z"]])
    assert [case.source for case in variants["single_words"]] == ["the", "dog", "isn't", "a"]
    assert [case.number for case in variants["plain"]] == [1, 3]
    assert "join_three" not in variants  # there are not as many sentences
    assert len(make_variants(["a"] * 1200, [["b"] * 1200])["plain"]) == MOST_SENTENCES
    assert make_variants([""], [[""]]) == {}


def test_a_translator_that_copies_keeps_all_but_what_it_should_translate() -> None:
    rows = rows_of(lambda text: text)
    assert {name: row.copied for name, row in rows.items() if row.copied is not None} == dict.fromkeys(PIECES, 100)
    for name in ("plain", "capital_word", "upper", "join", "join_three", "quotes", "no_stop", "double_spaces", *PIECES):
        assert rows[name].share == pytest.approx(100)
    for name in ("lower", "title", "typos"):
        assert 0 < float(rows[name].share or 0) < 100
    words = rows["single_words"]
    assert (words.bleu, words.share, words.worst) == (None, None, None)
    assert not any(row.cut_off or row.repeating for row in rows.values())


@pytest.mark.parametrize(
    ("change", "copied"),
    [
        (lambda text: f"{text} {text}", 0),
        (lambda text: re.sub(r"\d{5,9}", "", text), 0),
        (lambda text: re.sub(r"(\d{5,9})", r"\g<1>0", text), 0),  # another number
        (lambda text: re.sub(r" (\d{5,9}) ", r"\1", text), 100),
    ],
)
def test_a_piece_is_copied_if_it_is_there_exactly_once(change: Callable[[str], str], copied: float) -> None:
    assert rows_of(change)["number"].copied == copied


def test_references_without_case_stay_without_it() -> None:
    [case] = make_variants(["i am here"], [["ich bin da"], ["hier bin ich"]])["upper"]
    assert (case.source, case.references) == ("I AM HERE", ["ich bin da", "hier bin ich"])


def test_always_the_same_translation_keeps_little_and_limits_are_counted() -> None:
    known = {source: source for source in SOURCES}
    rows = rows_of(lambda text: known.get(text, "nothing at all"), finished=False)
    changed = [row for name, row in rows.items() if name not in ("plain", "typos")]  # a line may have no typing error
    assert rows["plain"].share == pytest.approx(100)
    assert all(row.share < 5 for row in changed if row.share is not None)
    assert {row.copied for row in changed} == {None, 0}
    assert all(row.cut_off == row.sentences for row in rows.values())
    worst = rows["upper"].worst
    assert worst is not None and worst.translation == "nothing at all"
    assert worst.source == SOURCES[worst.number - 1].upper()


@pytest.mark.parametrize(
    ("translation", "repeats"),
    [
        ("a b a b a b", True), ("der der der", True), ("a b c d a b c d a b c d e", True), ("哈哈哈", True),
        ("a b a b", False), ("der der", False), ("1 2 3 4 5 1 2 3 4 5 1 2 3 4 5", False), ("你好", False), ("", False),
    ],
)  # fmt: skip
def test_repeated_words_are_counted_unless_the_source_repeats_too(translation: str, *, repeats: bool) -> None:
    assert rows_of(lambda _: translation, ["a dog runs"])["plain"].repeating == repeats
    assert rows_of(lambda _: translation, ["very very very good"])["plain"].repeating == 0
