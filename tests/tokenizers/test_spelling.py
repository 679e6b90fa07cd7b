"""Letters that tell that training and validation are in different spellings."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import nmt, write_tsv
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.dataset import open_dataset
from nmt.tokenizers.spelling import LEAST_LETTERS, differing_letters

SENTENCES = {
    "de": "Die süßen Äpfel und grünen Gärten im Frühjahr sind schön",
    "zh": "我们说这个东西是从他们那里来的",
    "ar": "يكتب المعلم على كل كتاب كلمة كبيرة في المكتبة",
    "hi": "वह बड़ी सड़क पर लड़के को पढ़ा रहा है",
    "tr": "Irmağın kıyısında ılık bir İstanbul akşamı yaşıyoruz",
    "gn": "Mokõi mitã oho ha'e ndive koʼẽ mboyve",
}
COPIES = 1000


@pytest.mark.parametrize(
    ("language", "spelling"),
    [
        ("de", {"ü": "ue", "ö": "oe", "ä": "ae", "ß": "ss"}),
        ("zh", {"们": "們", "说": "說", "这": "這", "个": "個", "东": "東", "从": "從", "来": "來"}),
        ("ar", {"ك": "ک", "ي": "ی"}),
        ("hi", {"\u093c": ""}),
        ("tr", {"ı": "i", "ş": "s"}),
        ("gn", {"õ": "ô", "ã": "â", "'": "\u2019"}),
    ],
)
def test_letters_of_one_spelling_differ(language: str, spelling: Mapping[str, str]) -> None:
    written = SENTENCES[language].lower()
    other = written
    for letter, instead in spelling.items():
        assert letter in written
        other = other.replace(letter, instead)
    validation = other.upper() if language in ("de", "gn") else other
    differing = differing_letters([written] * COPIES, [validation] * COPIES)
    assert {letter for letter, _, _ in differing} == set(written) ^ set(other)
    assert all((training > 0) == (letter in written) for letter, training, _ in differing)
    assert all((validation > 0) == (letter in other) for letter, _, validation in differing)


@pytest.mark.parametrize("language", SENTENCES)
def test_texts_of_the_same_spelling_do_not_differ(language: str) -> None:
    sentence = SENTENCES[language]
    assert not differing_letters([sentence] * COPIES, [f"{sentence}! 2026"] * COPIES * 2)


def test_a_short_text_tells_nothing() -> None:
    enough = ["a"] * LEAST_LETTERS
    assert [shares.letter for shares in differing_letters(enough, ["b"] * LEAST_LETTERS)] == ["a", "b"]
    assert not differing_letters(enough, ["b"] * (LEAST_LETTERS - 1) + ["1", " ", "."])


@given(st.text("abcáß'ı我 1.", max_size=20), st.text("abcáß'ı我 1.", max_size=20))
def test_exchanged_texts_exchange_the_shares(first: str, second: str) -> None:
    texts = [first * LEAST_LETTERS], [second * LEAST_LETTERS]
    forward = {(letter, training, validation) for letter, training, validation in differing_letters(*texts)}
    backward = {(letter, training, validation) for letter, validation, training in differing_letters(*texts[::-1])}
    assert forward == backward


def test_prepare_names_the_letters_unless_a_tag_tells_spellings_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("old.tsv", [(f"el niño camina por la calle {i}", f"mitã oguata ko'ẽ {i}") for i in range(900)])
    new = [(f"por la calle camina el niño {i}", f"mitâ oguata ko'ê {i}") for i in range(900)]
    write_tsv("dev.tsv", new[50:])
    write_tsv("new.tsv", new[:50])
    dev = ["--validation", "dev.tsv", "--languages", "es-gn"]
    output = nmt("prepare", "old.tsv", *dev, cwd=tmp_path).stdout
    letters = open_dataset("old").manifest.report.letters
    assert {(letter.language, letter.letter) for letter in letters} == {("gn", letter) for letter in "ãâẽê"}
    assert "Letters (gn)" in output and "ã 71.4 and 0.0" in output and "Letters (es)" not in output
    tagged = ["--corpus", "old=old.tsv", "--tag", "old", "--name", "tagged"]
    output = nmt("prepare", "new.tsv", *dev, *tagged, cwd=tmp_path).stdout
    assert not open_dataset("tagged").manifest.report.letters and "Letters (" not in output
