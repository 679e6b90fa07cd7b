"""Subtitles: sentences over several cues, balanced lines, roll-up captions."""

import re
from collections.abc import Callable

import pysubs2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.dividing import lines_of, width, words_of
from nmt.documents.formats import read_document, translate_texts
from nmt.tokenizers.marks import MARK


def cues_of(*texts: str, gap: float = 0.1) -> str:
    """Return texts as cues of SRT, each of 2 seconds."""
    cues = []
    for number, text in enumerate(texts):
        start = 10 + number * (2 + gap)
        cues.append(f"{number + 1}\n00:00:{start:06.3f} --> 00:00:{start + 2:06.3f}\n{text}\n".replace(".", ",", 2))
    return "\n".join(cues)


def translated(text: str, translate: Callable[[str], str], name: str = "a.srt", target: str = "de") -> list[str]:
    """Return the texts of the cues of translated subtitles."""
    document = read_document(name, text.encode())
    texts = translate_texts(document.texts, lambda lines: [*map(translate, lines)], lambda *_: None)
    new = document.render(texts, "en", target).decode()
    assert re.findall(".*-->.*", new) == re.findall(".*-->.*", text)
    return texts_of(new)


def texts_of(subtitles: str) -> list[str]:
    """Return the texts of the cues of subtitles."""
    blocks = subtitles.strip("\n").split("\n\n")
    return [block.partition("-->")[2].partition("\n")[2] for block in blocks if "-->" in block]


def shown(name: str, text: str) -> list[str]:
    return [MARK.sub("", line) for line in read_document(name, text.encode()).texts]


CUES = ("A young woman in a red", "shirt is looking at", "a very big pizza.", "A dog runs.")


@pytest.mark.parametrize(
    ("target", "translation", "expected"),
    [
        ("de", "Eine junge Frau in einem roten Hemd sieht eine sehr große Pizza an.",
         ["Eine junge Frau in einem", "roten Hemd sieht eine", "sehr große Pizza an."]),
        ("zh",
         "一位穿着红色衬衫的年轻女子正在看一个非常大的披萨。",
         ["一位穿着红色衬衫的", "年轻女子正在看一个", "非常大的披萨。"]),
        ("ar",
         "شابة ترتدي قميصا أحمر تنظر إلى بيتزا كبيرة جدا.",
         ["شابة ترتدي قميصا", "أحمر تنظر إلى", "بيتزا كبيرة جدا."]),
        ("hi", "लाल कमीज़ में एक युवा महिला एक बहुत बड़ा पिज़्ज़ा देख रही है।",
         ["लाल कमीज़ में एक युवा", "महिला एक बहुत बड़ा", "पिज़्ज़ा देख रही है।"]),
        ("tr", "Kırmızı gömlekli genç bir kadın çok büyük bir pizzaya bakıyor.",
         ["Kırmızı gömlekli genç", "bir kadın çok büyük", "bir pizzaya bakıyor."]),
    ],
)  # fmt: skip
def test_a_sentence_runs_over_cues(target: str, translation: str, expected: list[str]) -> None:
    text = cues_of(*CUES)
    assert shown("a.srt", text) == [" ".join(CUES[:3]), CUES[3]]
    document = read_document("a.srt", text.encode())
    new = document.render([translation, document.texts[1]], "en", target).decode()
    assert texts_of(new) == [*expected, CUES[3]]


@pytest.mark.parametrize(
    "cues",
    [
        ("A man is reading.", "a dog runs."),  # a stop
        ("A man is reading", "- A dog runs.", "Yes."),  # another speaker
        ("A man is reading", "-A dog runs.", "Yes."),
        ("A man is reading", ">> A dog runs.", "Yes."),
        ("♪ A man is reading ♪", "a dog runs.", "Yes."),
        ("A man is reading", "[music]", "A dog runs."),
        ("A man is –", "A dog runs."),
        ("I see a", "man with a", "hat and a", "dog and no", "stop"),  # no punctuation at all
        ("一个男人在看书。", "狗在跑。"),
        ("एक आदमी पढ़ रहा है।", "कुत्ता दौड़ता है।"),
        ("هل يقرأ الرجل؟", "الكلب يجري."),
    ],
)
def test_turns_that_end_are_sentences_of_their_own(cues: tuple[str, ...]) -> None:
    assert len(read_document("a.srt", cues_of(*cues).encode()).texts) == len(cues)


def test_a_sentence_ends_at_a_pause_and_with_its_voice() -> None:
    assert len(shown("a.srt", cues_of("A man is", "reading.", gap=3))) == 2
    voices = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v {}>A man is</v>\n\n00:02.000 --> 00:03.000\n<v Bob>reading.</v>\n"
    assert len(shown("a.vtt", voices.format("Bob"))) == 1
    assert len(shown("a.vtt", voices.format("Ann"))) == 2
    assert translated(voices.format("Bob"), str.upper, "a.vtt") == ["<v Bob>A MAN IS</v>", "<v Bob>READING.</v>"]


@pytest.mark.parametrize(
    ("cue", "expected"),
    [
        ("<i>- A man is reading.\n- A dog is running.</i>", "<i>- A MAN IS READING.\n- A DOG IS RUNNING.</i>"),
        ("{\\an8}<i>a big dog</i>", "{\\an8}<i>A BIG DOG</i>"),
        ("♪ oh la la\nla la la ♪", "♪ OH LA LA\nLA LA LA ♪"),
        ("♪ oh la la ♪\n♪ la la la ♪", "♪ OH LA LA ♪\n♪ LA LA LA ♪"),
        ("[door slams]\na dog", "[DOOR SLAMS]\nA DOG"),
        ("-5 degrees", "-5 DEGREES"),
        ("a <b>big\ndog</b> runs", "A <b>BIG\nDOG</b> RUNS"),
        ("a\nvery big brown dog", "A VERY BIG\nBROWN DOG"),
        ("10\u00a0% of it", "10\u00a0% OF IT"),
        ("12", "12"),
    ],
)
def test_signs_and_tags_stay(cue: str, expected: str) -> None:
    assert translated(cues_of(cue), str.upper) == [expected]


@pytest.mark.parametrize(
    ("translation", "lines"),
    [
        ("Kurz.", ["Kurz."]),
        ("Ein Mann schläft, und eine Frau liest.", ["Ein Mann schläft,", "und eine Frau liest."]),
        ("Ein Mann, der schon seit heute früh auf der Couch in seinem großen Wohnzimmer sitzt, liest ein Buch.",
         ["Ein Mann, der schon seit heute",
          "früh auf der Couch in seinem großen", "Wohnzimmer sitzt, liest ein Buch."]),
        ("一位老人从今天早上开始就坐在他家很大的客厅里的旧沙发上看一本书。",
         ["一位老人从今天早上开始就坐在他家", "很大的客厅里的旧沙发上看一本书。"]),
    ],
)  # fmt: skip
def test_lines_are_balanced(translation: str, lines: list[str]) -> None:
    [cue] = translated(cues_of("A man is sleeping\non a couch."), lambda _: translation)
    assert cue.split("\n") == lines


@given(st.lists(st.sampled_from(["a", "Haus,", "公园", "हिन्दी", "كتاب", "x" * 30, "x" * 50]), min_size=1, max_size=60))
def test_no_line_is_longer_than_its_limit_unless_a_word_is(parts: list[str]) -> None:
    words = words_of(" ".join(parts))
    lines = lines_of(words, 2, 42)
    assert [word for line in lines for word in line] == words
    for line in lines:
        text = "".join(word.text + word.space for word in line).rstrip()
        assert width(text) <= max(42, *(word.width for word in line))


ROLLING = f"""WEBVTT
Kind: captions

00:00:00.160 --> 00:00:03.429 align:start position:0%
{" "}
Does<00:00:00.960><c> your</c><00:00:01.520><c> dog</c><00:00:02.159><c> think</c><00:00:02.560><c> that</c>

00:00:03.429 --> 00:00:03.439 align:start position:0%
Does your dog think that
{" "}

00:00:03.439 --> 00:00:05.749 align:start position:0%
Does your dog think that
cats<00:00:03.760><c> are</c><00:00:04.000><c> bad?</c>

00:00:05.749 --> 00:00:05.759 align:start position:0%
cats are bad?
{" "}

00:00:05.759 --> 00:00:08.000 align:start position:0%
cats are bad?
&gt;&gt; Yes.
"""


def test_lines_that_roll_up_repeat_their_translation() -> None:
    assert shown("a.vtt", ROLLING) == ["Does your dog think that cats are bad?", "Yes."]
    document = read_document("a.vtt", ROLLING.encode())
    new = document.render(["Denkt dein Hund, dass Katzen böse sind?", "Ja."], "en", "de").decode()
    expected = ROLLING
    for old, replacement in (
        ("Does your dog think that", "Denkt dein Hund,"),
        ("cats are bad?", "dass Katzen böse sind?"),
        ("Does<00:00:00.960><c> your</c><00:00:01.520><c> dog</c><00:00:02.159><c> think</c><00:00:02.560><c> that</c>",
         "Denkt <00:00:01.520><c>dein </c><00:00:02.560><c>Hund,</c>"),
        ("cats<00:00:03.760><c> are</c><00:00:04.000><c> bad?</c>",
         "dass <00:00:03.760><c>Katzen </c><00:00:04.000><c>böse sind?</c>"),
        ("Yes.", "Ja."),
    ):  # fmt: skip
        assert old in expected
        expected = expected.replace(old, replacement)
    assert new == expected
    document = read_document("a.vtt", ROLLING.encode())
    chinese = document.render(["你的狗觉得猫很坏吗？", "是。"], "en", "zh").decode()
    assert chinese.count("你的狗觉得猫") == 2 and chinese.count("很坏吗？") == 2


def test_a_cue_without_words_of_its_own_repeats_the_words_before() -> None:
    assert translated(cues_of("A very", "big", "dog."), lambda _: "Dogge!") == ["Dogge!", "Dogge!", "Dogge!"]


def test_no_sentence_runs_across_a_dash_without_words() -> None:
    content = cues_of("a dog\n- ", "and a cat")
    document = read_document("a.srt", content.encode())
    assert document.texts == ["a dog", "and a cat"]
    assert translated(content, str.upper) == ["A DOG\n- ", "AND A CAT"]


def test_blocks_and_settings_of_webvtt_stay() -> None:
    text = "WEBVTT\n\nNOTE a dog\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:a\n\n"
    text += "one\n00:01.000 --> 00:02.000 line:0\na & b\n"
    document = read_document("a.vtt", text.encode())
    assert document.render(["x < y"]).decode() == text.replace("a & b", "x &lt; y")


PARTS = [
    "a dog",
    "Haus,",
    "公园。",
    "पार्क।",
    "كتاب؟",
    "bahçe.",
    "- ",
    "♪",
    "<i>",
    "</i>",
    "{\\an8}",
    "\n",
    " \n",
    "[x]",
    "12 x",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join), min_size=1, max_size=8))
def test_other_programs_read_the_words_and_times_of_generated_cues(texts: list[str]) -> None:
    content = cues_of(*(f"{n}x" + re.sub(r"\n+", "\n", text).strip("\n") for n, text in enumerate(texts)))
    document = read_document("a.srt", content.encode())
    assert document.render(document.texts).decode() == content
    texts = translate_texts(document.texts, lambda lines: [line + "\u200a" for line in lines], lambda *_: None)
    new = document.render(texts).decode()
    before, after = (pysubs2.SSAFile.from_string(text, format_="srt") for text in (content, new))
    assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
    assert "".join("".join(cue.plaintext.split()) for cue in after) == "".join(
        "".join(cue.plaintext.split()) for cue in before
    )
