"""Lines of ordinary text as a model reads them."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.text.reading import Reader, Reading, Text
from nmt.tokenizers.registry import fit_tokenizer

SUBJECTS = ["A man", "Two women", "The dog", "Four girls", "A boy on a bike", "Bob and Alice", "A clerk, who is old,"]
ACTIONS = [
    "sleeps on a couch",
    "run through the woods",
    "is sitting in a green room",
    "watch TV",
    "plays with #5 and 12",
]
SENTENCES = [f"{subject} {action}." for subject, action in itertools.product(SUBJECTS, ACTIONS)] * 3
SUBWORDS = fit_tokenizer(SENTENCES, DataConfig(tokenizer="subword", normalization="nfkc", vocabulary_size=340))
CHARACTERS = fit_tokenizer(SENTENCES, DataConfig(tokenizer="char", normalization="nfkc"))
READER = Reader(SUBWORDS, "en")


def read(line: str, reader: Reader = READER) -> Reading:
    (reading,) = reader.read(line)
    return reading


@pytest.mark.parametrize("sentence", dict.fromkeys(SENTENCES))
def test_a_sentence_like_those_of_training_is_read_as_it_stands(sentence: str) -> None:
    for reader in (READER, Reader(CHARACTERS, "en")):
        assert read(sentence, reader)._replace(kept=(), bare=Text("")) == Reading(Text(sentence))
        assert read(sentence.rstrip("."), reader).text == Text(sentence.rstrip("."))
        assert read(sentence.lower(), reader).text == Text(sentence.lower())


@pytest.mark.parametrize("sentence", ["A man sleeps on a couch.", "Two women run through the woods."])
def test_capitals_and_headings_are_read_in_the_case_of_training(sentence: str) -> None:
    for reader in (READER, Reader(CHARACTERS, "en")):
        assert read(sentence.upper(), reader).text == Text(sentence, is_upper=True)
        assert read(sentence.title(), reader).text == Text(sentence)


def test_names_and_short_forms_keep_their_capitals() -> None:
    assert read("TWO WOMEN WATCH TV.").text == Text("Two women watch TV.", is_upper=True)
    assert read("Two Women Watch TV.").text == Text("Two women watch TV.")
    assert read("A man SLEEPS on a couch, TV on.").text == Text("A man sleeps on a couch, TV on.", capitals=(2,))
    assert read("TV").text == Text("TV")
    assert read("Bob Alice").text == Text("Bob Alice")


def test_a_model_without_case_reads_everything_as_it_stands() -> None:
    words = fit_tokenizer(["a man sleeps"], DataConfig(tokenizer="word", normalization="ascii-words"))
    for line in ("A MAN SLEEPS", "A Man Sleeps", "a man SLEEPS"):
        assert read(line, Reader(words, "en")).text == Text(line)


def test_a_line_of_several_sentences_is_split_and_loses_nothing() -> None:
    line = "A man sleeps on a couch.  The dog runs! Bob is at www.example.com today."
    readings = READER.read(line)
    assert [each.text.text for each in readings] == [
        "A man sleeps on a couch.", "The dog runs!", "Bob is at www.example.com today."
    ]  # fmt: skip
    assert "".join(each.text.text + each.separator for each in readings) == line
    assert len(READER.read(line, split=False)) == len(Reader(SUBWORDS, "en", split=False).read(line)) == 1


@pytest.mark.parametrize("quotes", ['""', "“”", "„“", "«»"])
def test_quotes_around_a_line_are_kept_for_the_translation(quotes: str) -> None:
    before, after = quotes
    one = read(f"{before}The dog sleeps.{after}")
    assert (one.before, one.text, one.after) == (before, Text("The dog sleeps."), after)
    first, last = READER.read(f"{before}The dog sleeps. Bob runs.{after}")
    assert (first.before, first.after, last.before, last.after) == (before, "", "", after)
    assert read(f"{before}A{after} and {before}B{after}").before == ""


def test_typographic_signs_that_the_model_does_not_know_become_plain_ones() -> None:
    reader = Reader(fit_tokenizer([*SENTENCES, "it's a man-made 'room'."] * 2, DataConfig(
        tokenizer="subword", normalization="nfkc", vocabulary_size=340)), "en")  # fmt: skip
    assert read("It’s a man–made room.", reader).text.text == "It's a man-made room."  # noqa: RUF001


def test_what_no_word_of_the_model_expresses_is_taken_out() -> None:
    reading = read("A man 😀👍🏽 sleeps, Михаил Иванов runs 🎉.").text
    assert reading.text == "A man sleeps, runs."
    assert [cut.piece for cut in reading.cuts] == [" 😀👍🏽", " Михаил Иванов", " 🎉"]
    assert [cut.words for cut in reading.cuts] == [2, 3, 4]
    assert [cut.is_closed for cut in reading.cuts] == [False, False, True]
    for wordless in ("😀", "...", "— ?!", "Привет, мир!"):
        assert read(wordless).text.text == ""
        assert "".join(cut.piece for cut in read(wordless).text.cuts) == wordless


@pytest.mark.parametrize(
    "piece", ["https://example.com/a?b=c&d", "www.example.com", "a.b-c@mail.example.org", "@nmt", "#words", "1234567",
              "1,234,567.89", "2026-11-24"],
)  # fmt: skip
def test_addresses_and_long_numbers_are_to_be_kept(piece: str) -> None:
    for line in (
        f"A man sleeps {piece} on a couch.",
        f"A man sleeps on a couch {piece}.",
        f"{piece} sleeps on a couch.",
    ):
        reading = read(line)
        assert piece in reading.text.text, "the model is asked first"
        assert reading.kept == (piece,)
        assert piece not in reading.bare.text
        assert [cut.piece.strip() for cut in reading.bare.cuts] == [piece]
        assert " ".join(reading.bare.text.split()) == reading.bare.text
        assert not reading.bare.text.endswith(" .")


TEXTS = st.text(st.one_of(
    st.sampled_from(" \t\xa0.!?,;:()\"'“”«»A1é日😀\u200d\ufe0f\u0301\x00@#/-ßЖ"),
    st.characters(exclude_categories=["Cs"]),
))  # fmt: skip


@given(TEXTS)
@example("0¢!\U00100000")
@example("a😀.<b>c</b>")
def test_any_text_is_read_and_nothing_but_white_space_signs_and_case_is_lost(line: str) -> None:
    parts = READER.read(line)
    assert parts
    for reading in parts:
        for text in (reading.text, reading.bare):
            assert all(0 <= cut.words <= len(text.text.split()) for cut in text.cuts)
            assert [cut.words for cut in text.cuts] == sorted(cut.words for cut in text.cuts)
    if line.isascii() and not any(reading.kept for reading in parts):
        letters = "".join(
            each.before + each.text.text + "".join(cut.piece for cut in each.text.cuts) + each.after for each in parts
        )
        assert sorted("".join(letters.split()).lower()) == sorted("".join(line.split()).lower())
