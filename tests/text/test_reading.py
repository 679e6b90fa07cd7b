"""Preprocessing of lines of ordinary text."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.text.reading import Reader, Reading, Text
from nmt.tokenizers.registry import fit_tokenizer
from nmt.tokenizers.scripts import split_words
from nmt.tokenizers.sentences import segment

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


def read_one(line: str, reader: Reader = READER) -> Reading:
    (reading,) = reader.read(line)
    return reading


@pytest.mark.parametrize("sentence", dict.fromkeys(SENTENCES))
def test_a_sentence_like_the_training_data_is_not_changed(sentence: str) -> None:
    for reader in (READER, Reader(CHARACTERS, "en")):
        assert read_one(sentence, reader)._replace(kept=(), bare=Text(""), parts=None) == Reading(Text(sentence))
        assert read_one(sentence.rstrip("."), reader).text == Text(sentence.rstrip("."))
        assert read_one(sentence.lower(), reader).text == Text(sentence.lower())


@pytest.mark.parametrize("sentence", ["A man sleeps on a couch.", "Two women run through the woods."])
def test_capitals_and_headings_are_read_in_the_case_of_training(sentence: str) -> None:
    for reader in (READER, Reader(CHARACTERS, "en")):
        assert read_one(sentence.upper(), reader).text == Text(sentence, is_upper=True)
        assert read_one(sentence.title(), reader).text == Text(sentence)


def test_names_and_short_forms_keep_their_capitals() -> None:
    assert read_one("TWO WOMEN WATCH TV.").text == Text("Two women watch TV.", is_upper=True)
    assert read_one("Two Women Watch TV.").text == Text("Two women watch TV.")
    assert read_one("A man SLEEPS on a couch, TV on.").text == Text("A man sleeps on a couch, TV on.", capitals=(2,))
    assert read_one("TV").text == Text("TV")
    assert read_one("Bob Alice").text == Text("Bob Alice")


def test_a_name_that_the_training_text_lacks_is_kept_and_may_be_left_out() -> None:
    reader = Reader(SUBWORDS, "en", known_words={"bob", "alice"})
    reading = read_one("Two women watch Zorbla and Bob, 12 Kelvin", reader)
    assert (reading.text.text, reading.kept) == (
        "Two women watch Zorbla and Bob, 12 Kelvin",
        ("Zorbla", "12", "Kelvin"),
    )
    assert reading.bare.text == "Two women watch and Bob"
    assert read_one("The dog plays with Alice", reader) == read_one("The dog plays with Alice")
    assert read_one("The dog plays with Zorbla").kept == ()


def test_no_case_is_changed_for_a_model_without_case() -> None:
    words = fit_tokenizer(["a man sleeps"], DataConfig(tokenizer="word", normalization="ascii-words"))
    for line in ("A MAN SLEEPS", "A Man Sleeps", "a man SLEEPS"):
        assert read_one(line, Reader(words, "en")).text == Text(line)


def test_a_line_of_several_sentences_is_split_and_loses_nothing() -> None:
    line = "A man sleeps on a couch.  The dog runs! Bob is at www.example.com today."
    readings = READER.read(line)
    assert [reading.text.text for reading in readings] == [
        "A man sleeps on a couch.", "The dog runs!", "Bob is at www.example.com today."
    ]  # fmt: skip
    assert "".join(reading.text.text + reading.separator for reading in readings) == line
    assert len(READER.read(line, split=False)) == len(Reader(SUBWORDS, "en", split=False).read(line)) == 1


@pytest.mark.parametrize("quotes", ['""', "“”", "„“", "«»"])
def test_quotes_around_a_line_are_kept_for_the_translation(quotes: str) -> None:
    before, after = quotes[0], quotes[1]
    reading = read_one(f"{before}The dog sleeps.{after}")
    assert (reading.before, reading.text, reading.after) == (before, Text("The dog sleeps."), after)
    first, last = READER.read(f"{before}The dog sleeps. Bob runs.{after}")
    assert (first.before, first.after, last.before, last.after) == (before, "", "", after)
    assert read_one(f"{before}A{after} and {before}B{after}").before == ""


def test_typographic_signs_that_the_model_does_not_know_become_plain_ones() -> None:
    reader = Reader(fit_tokenizer([*SENTENCES, "it's a man-made 'room'."] * 2, DataConfig(
        tokenizer="subword", normalization="nfkc", vocabulary_size=340)), "en")  # fmt: skip
    assert read_one("It’s a man–made room.", reader).text.text == "It's a man-made room."


def test_text_that_the_model_cannot_express_is_cut_out() -> None:
    reading = read_one("A man 😀👍🏽 sleeps, Михаил Иванов runs 🎉.").text
    assert reading.text == "A man sleeps, runs."
    assert [cut.piece for cut in reading.cuts] == [" 😀👍🏽", " Михаил Иванов", " 🎉"]
    assert [cut.words for cut in reading.cuts] == [2, 3, 4]
    assert [cut.is_closed for cut in reading.cuts] == [False, False, True]
    for wordless in ("😀", "...", "— ?!", "Привет, мир!"):
        assert read_one(wordless).text.text == ""
        reading = read_one(wordless)
        assert reading.before + "".join(cut.piece for cut in reading.text.cuts) == wordless


@pytest.mark.parametrize(
    "piece", ["https://example.com/a?b=c&d", "www.example.com", "a.b-c@mail.example.org", "@nmt", "#words", "1234567",
              "1,234,567.89", "2026-11-24"],
)  # fmt: skip
def test_addresses_and_long_numbers_must_be_kept(piece: str) -> None:
    for line in (
        f"A man sleeps {piece} on a couch.",
        f"A man sleeps on a couch {piece}.",
        f"{piece} sleeps on a couch.",
    ):
        reading = read_one(line)
        assert piece in reading.text.text, "the model tries to translate it first"
        assert reading.kept == (piece,)
        assert piece not in reading.bare.text
        assert [cut.piece.strip() for cut in reading.bare.cuts] == [piece]
        assert " ".join(reading.bare.text.split()) == reading.bare.text
        assert not reading.bare.text.endswith(" .")


@pytest.mark.parametrize(
    "piece",
    ["/usr/lib/a.so", r"C:\\Users\\x", "a/b/c.txt", "config.yaml", "snake_case", "*snake_case*", "getName()",
     "camelCase",
     "--option=5", ".button", "7f3a9c1e", "0.85.x", "v1.2.3", "42", "10:30", "3/4", "`dog food`", "``a `dog` b``",
     ":func:`open`", ":py:class:`~a.Dog`", "`a dog`_", "https://example.com/a_(b)", "AB-123", "HTTP/1.1", "A4"],
)  # fmt: skip
def test_paths_identifiers_and_numbers_must_be_kept(piece: str) -> None:
    assert read_one(f"A man sleeps {piece} on a couch.").kept == (piece,)
    assert read_one(f"A man sleeps {piece}.").kept == (piece,)


def test_words_numbers_in_words_and_abbreviations_need_not() -> None:
    for line in ("The 20th man and/or he/she, e.g. a 20-year-old.", "StudentInnen in the U.S.A. -- a well--known TV."):
        assert read_one(line).kept == ()


@pytest.mark.parametrize("line", ["1", "12:45", "+49 30 1234567", "3/4", "v 1.2"[2:], "{0}: 5", "١٢:٤٥", "१२", "１２"])
def test_a_line_without_letters_is_copied(line: str) -> None:
    reading = read_one(line)
    assert reading.text.text == "" and reading.before + "".join(cut.piece for cut in reading.text.cuts) == line


def test_a_model_of_digits_reads_digits() -> None:
    digits = Reader(fit_tokenizer(["1 2 3", "4 5 6 7"] * 9, DataConfig(tokenizer="word", normalization="none")), "en")
    assert read_one("3 1 2", digits).text.text == "3 1 2"


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("- X", "- ", ""), ("-- X", "-- ", ""), ("* X", "* ", ""), ("• X", "• ", ""), ("# X", "# ", ""),
        ("### X", "### ", ""),
        ("> > X", "> > ", ""),
        ("→ X", "→ ", ""), ("1. X", "1. ", ""), ("12) X", "12) ", ""), ("a) X", "a) ", ""), ("(b) X", "(b) ", ""),
        ("-X", "-", ""), ("– X", "– ", ""), ("- [ ] X", "- [ ] ", ""), ("(X)", "(", ")"), ("[X]", "[", "]"),
        ("1、X", "1、", ""),
        ('- "X"', '- "', '"'), ("（X）", "（", "）"), ("「X」", "「", "」"), ("« X »", "« ", " »"), ("--X", "", ""),
        ("-5 X", "", ""),
    ],
)  # fmt: skip
def test_marks_and_brackets_around_a_sentence_are_kept(line: str, before: str, after: str) -> None:
    reading = read_one(line.replace("X", "A man sleeps on a couch."))
    assert (reading.before, reading.after) == (before, after)
    assert reading.text.text == ("A man sleeps on a couch." if before else line.replace("X", reading.text.text[-24:]))


def test_words_of_hundreds_of_letters_are_cut_out() -> None:
    for word in ("x" * 3_000, "ж" * 200, "." * 500, "كلب" * 100, "क" * 200):
        assert read_one(word).text.text == ""
        assert read_one(f"A man {word} sleeps on a couch.").text.text == "A man sleeps on a couch."
    assert read_one("我" * 200, Reader(SUBWORDS, "zh")).text.cuts != ()


def test_long_lines_are_cut_as_texts_of_the_service() -> None:
    line = "A man sleeps on a couch, and " * 30 + "the dog runs."
    reader = Reader(SUBWORDS, "en", most_tokens=60)
    readings = reader.read(line)
    texts = [reading.text.text for reading in readings]
    assert len(texts) > 2 and max(len(SUBWORDS.encode(text)) for text in texts) <= 60
    parts = segment(line, "en", lambda text: len(SUBWORDS.encode(text)), 60)
    assert texts == [part.text for part in parts]
    assert len(Reader(SUBWORDS, "en", split=False, most_tokens=60).read(line)) == len(texts)
    assert len(reader.read(line, cut=False)) == len(reader.read(line, split=False)) == 1


def test_stand_ins_take_the_places_of_words() -> None:
    for line, expected in {
        "{0} sleeps on {1}.": "Michael sleeps on Boston.", "Michael sees {0}.": "Michael sees Boston.",
        "A man sleeps 😀.": None, "A <%= b %> sleeps": "A Michael sleeps", "{% if a %}A man sleeps.": None,
        "{0}th man": None,
    }.items():  # fmt: skip
        parts = read_one(line).parts
        assert parts is not None
        text = READER.with_stand_ins(parts, ["Michael", "Boston"], has_lost=True)
        assert (text and text.text) == expected


TEXTS = st.text(st.one_of(
    st.sampled_from(" \t\xa0.!?,;:()\"'“”«»A1é日😀\u200d\ufe0f\u0301\x00@#/-ßЖ"),
    st.characters(exclude_categories=["Cs"]),
))  # fmt: skip


@given(TEXTS)
@example("0¢!\U00100000")
@example("a😀.<b>c</b>")
def test_reading_loses_only_white_space_signs_and_case(line: str) -> None:
    parts = READER.read(line)
    assert parts
    for reading in parts:
        for text in (reading.text, reading.bare):
            assert all(0 <= cut.words <= len(split_words(text.text)) for cut in text.cuts)
            assert [cut.words for cut in text.cuts] == sorted(cut.words for cut in text.cuts)
    if line.isascii() and not any(reading.kept for reading in parts):
        letters = "".join(
            part.before + part.text.text + "".join(cut.piece for cut in part.text.cuts) + part.after for part in parts
        )
        assert sorted("".join(letters.split()).lower()) == sorted("".join(line.split()).lower())
