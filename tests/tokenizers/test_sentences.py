"""Splitting of text into sentences, which joined are the text again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.tokenizers.sentences import Segment, has_fewer_sentences, segment, sentences_of

LANGUAGES = ["en", "de", "ja", "ar", "source", "xx-yy", "", "zh-Hans", "th", "my", "km", "hi", "ur", "am"]
SPACES = " \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u2029\u3000"
TEXTS = st.text(
    st.one_of(
        st.sampled_from(SPACES + ".!?,;()\"'“”A1é日「」』。！？，．５।។။؟😀\u0301\x00"),
        st.characters(exclude_categories=["Cs"]),
    )
)


def words(text: str) -> int:
    return len(text.split())


def joined(segments: list[Segment]) -> str:
    return "".join(part.text + part.separator for part in segments)


@given(TEXTS, st.sampled_from(LANGUAGES), st.integers(1, 8))
def test_nothing_is_lost_and_no_sentence_is_too_long(text: str, language: str, most: int) -> None:
    segments = segment(text, language, len, most)
    assert joined(segments) == text
    for number, part in enumerate(segments):
        assert part.text == part.text.strip()
        assert part.text or (number == 0 and part.separator.isspace())
        assert part.tokens == len(part.text) <= most


@given(
    st.lists(st.sampled_from(["Hello there.", "Is it Mr. Smith?", "It costs 3.50 dollars!"])),
    st.sampled_from([" ", "\n", "\n\n"]),
)
def test_sentences_end_at_their_punctuation(sentences: list[str], separator: str) -> None:
    assert [part.text for part in segment(separator.join(sentences), "en", words, 100)] == sentences


def test_long_sentences_are_cut_at_punctuation_then_at_spaces() -> None:
    text = "one two three, four five six"
    assert [part.text for part in segment(text, "en", words, 4)] == ["one two three,", "four five six"]
    assert [part.text for part in segment(text.replace(",", ""), "en", words, 3)] == ["one two three", "four five six"]


@pytest.mark.parametrize("text", ["a " * 20_000, "." * 20_000, "a" * 20_000, "(A. " * 5_000, "\xa0" * 20_000])
def test_long_texts_are_cut(text: str) -> None:
    segments = segment(text, "en", len, 100)
    assert joined(segments) == text
    assert max((part.tokens for part in segments), default=0) <= 100


def test_text_on_which_the_library_panics_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(language: str, text: str) -> list[str]:
        raise PanicException

    monkeypatch.setattr("sentencex.segment", panic)
    assert [part.text for part in segment("One. Two.\nThree.", "en", words, 10)] == ["One. Two.", "Three."]


@pytest.mark.parametrize(
    ("source", "translation", "languages", "is_fewer"),
    [
        ("A man sleeps. A dog runs.", "Ein Mann schläft.", "en de", True),
        ("A man sleeps. A dog runs.", "Ein Mann schläft. Ein Hund rennt.", "en de", False),
        ("A man, e.g. Mr. Smith, sleeps.", "Ein Mann schläft.", "en de", False),
        ("Ein Mann, z. B. Herr Müller, schläft.", "A man sleeps.", "de en", False),
        ("Er schläft. Sie rennt!", "他在睡觉。", "de zh", True),
        ("Er schläft. Sie rennt!", "他在睡觉。她在跑。", "de zh", False),
        ("هل ينام؟ نعم.", "Schläft er?", "ar de", True),
        ("वह सोता है। वह दौड़ती है।", "Er schläft.", "hi de", True),
        ("O uyuyor. O koşuyor.", "He sleeps. She runs.", "tr en", False),
        ("im one. im two.", "ich bin eins ich bin zwei", "source target", False),
        ("Er schläft. Sie rennt!", "", "de en", False),
    ],
)  # fmt: skip
def test_lost_sentences_are_counted_in_their_languages(
    source: str, translation: str, languages: str, is_fewer: bool
) -> None:
    assert has_fewer_sentences(source, translation, *languages.split()) == is_fewer


SENTENCES = {
    "zh": ["我们去公园。", "你好！", "他说：「好。」", "真的？！"], "ja": ["行こう。", "『え？』", "本当！？"],
    "my": ["သူသွား။", "သူလာ။"], "km": ["ខ្ញុំទៅ។", "គាត់មក។"], "bo": ["བོད་ཡིན༎", "ང་ཡིན༎"], "hi": ["वह सोता है।", "वह दौड़ती है॥"],
    "ur": ["وہ سوتا ہے۔", "کیوں؟"], "ar": ["هل ينام؟", "لماذا؟"], "am": ["እሱ ይተኛል።", "እሷ ትሮጣለች።"],
}  # fmt: skip


@given(
    st.sampled_from([*SENTENCES, *LANGUAGES]),
    st.sampled_from(list(SENTENCES.values())).flatmap(lambda texts: st.lists(st.sampled_from(texts), max_size=9)),
    st.sampled_from(["", " ", "\u3000"]),
)
def test_sentences_of_every_script_are_found_with_every_language_code(
    language: str, sentences: list[str], gap: str
) -> None:
    line = gap.join(sentences)
    for found in (sentences_of(line, language), segment(line, language, len, 100)):
        assert [text for text, *_ in found if text] == sentences
        assert "".join(text + space for text, space, *_ in found) == line


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_sentences_and_separators_are_the_line(line: str, language: str) -> None:
    line = line.strip()
    assert "".join(text + space for text, space in sentences_of(line, language)) == line


@pytest.mark.parametrize("language", ["zh", "ja", "source", "xx"])
def test_a_long_text_without_spaces_is_split(language: str) -> None:
    sentence = "今天我们一起去公园散步，然后再回家做晚饭吃吧。"
    line = sentence * 4_000
    assert sentences_of(line, language) == [(sentence, "")] * 4_000


def test_stops_within_words_and_numbers_end_no_sentence() -> None:
    assert sentences_of("第３．５章。次", "ja") == [("第３．５章。", ""), ("次", "")]
    assert sentences_of("你好!我很好。", "zh") == [("你好!", ""), ("我很好。", "")]
    assert sentences_of("See www.example.com!now", "en") == [("See www.example.com!now", "")]


@pytest.mark.parametrize(
    ("sentences", "language"),
    [
        (["A man reads a book.", "A dog runs."], "en"), (["Er liest ein Buch.", "Ein Hund rennt!"], "de"),
        (["Kitap okuyor.", "Köpek koşuyor."], "tr"), (["قرأ الكتاب.", "نام الكلب."], "ar"),
        (["वह पढ़ता है!", "वह सोता है।"], "hi"), (["我来！", "你去。"], "zh"), (["It is v3.5.", "See example.com."], "en"),
    ],
)  # fmt: skip
def test_the_space_between_sentences_may_be_missing(sentences: list[str], language: str) -> None:
    line = "".join(sentences)
    is_split = "v3" not in line
    assert sentences_of(line, language) == [(sentence, "") for sentence in (sentences if is_split else [line])]


@pytest.mark.parametrize(
    "word", ["3.5", "example.com", "www.Example.com", "U.S.A", "e.g.This", "Node.Js", "a_b.Py", "Yahoo!Finance"]
)
def test_a_stop_within_a_word_ends_no_sentence(word: str) -> None:
    assert sentences_of(f"See {word} here", "en") == [(f"See {word} here", "")]


def test_a_message_is_a_single_sentence() -> None:
    line = "Hi. {n, plural, one {A dog. Runs.} other {Dogs. Run.}}"
    assert sentences_of(line, "en") == [(line, "")]
    assert [part.text for part in segment(f"Yes.\n{line}", "en", words, 3)] == ["Yes.", line]


@pytest.mark.parametrize("mark", "，、；：،؛၊፣」）")
def test_a_long_sentence_is_cut_behind_the_punctuation_of_its_script(mark: str) -> None:
    text = "字" * 6 + mark + "字" * 5
    assert [part.text for part in segment(text, "zh", len, 9)] == ["字" * 6 + mark, "字" * 5]
