"""Tags and placeholders are cut out of a sentence and woven into its translation."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.text.inline import find_markup
from nmt.text.reading import Reader
from nmt.text.rewriting import Alignment, needs_alignment, postprocess
from nmt.tokenizers.marks import CLOSE, OPEN, PIECE
from nmt.tokenizers.registry import fit_tokenizer
from nmt.tokenizers.scripts import split_words

TRAINED = ["The dog sleeps, and a red man runs.", "A man (Bob) sees the dog of a man!"] * 4
READER = Reader(
    fit_tokenizer(TRAINED, DataConfig(tokenizer="subword", normalization="nfkc", vocabulary_size=300)), "en"
)


def woven(sentence: str, *words: tuple[str, int]) -> str:
    """Return a translation from its words, with the index of the source word that a word attends to."""
    (reading,) = READER.read(sentence)
    weights = np.eye(len(reading.text.text.split()))[[source for _, source in words]]
    return postprocess(reading, reading.text, " ".join(word for word, _ in words), Alignment(weights))


DOG = (("Der", 0), ("rote", 2), ("Hund", 1), ("schläft.", 3))


@pytest.mark.parametrize(
    ("sentence", "translation"),
    [
        ("The <b>dog</b> red sleeps.", "Der rote <b>Hund</b> schläft."),
        ("<b>The dog</b> red sleeps.", "<b>Der</b> rote Hund schläft."),  # the tag's other word is not adjacent
        ("<i>The <b>dog red</b></i> sleeps.", "<i>Der <b>rote Hund</b></i> schläft."),
        ("The dog red <b>sleeps</b>.", "Der rote Hund <b>schläft</b>."),
        ("The dog red <b>sleeps.</b>", "Der rote Hund <b>schläft.</b>"),
        ("<b>The dog red sleeps.</b>", "<b>Der rote Hund schläft.</b>"),
        ("The d<b>o</b>g red sleeps.", "Der rote <b>Hund</b> schläft."),
        ("The <b>dog</b> <i>red</i> sleeps.", "Der <i>rote</i> <b>Hund</b> schläft."),
        ("The<b> dog </b>red sleeps.", "Der rote <b>Hund</b> schläft."),
        ("The dog<b></b> red sleeps.", "Der rote Hund<b></b> schläft."),
        ("The dog <b>{name}</b> red sleeps.", "Der rote Hund <b>{name}</b> schläft."),
        ("The <b>dog {name}</b> red sleeps.", "Der rote <b>Hund {name}</b> schläft."),
        ("The <b>{name} dog</b> red sleeps.", "Der rote <b>{name} Hund</b> schläft."),
        ("The dog red sleeps %s.", "Der rote Hund schläft %s."),
        ("The dog red sleeps, {name}!", "Der rote Hund schläft, {name}."),
        ('The "{name}" dog red sleeps.', 'Der "{name}" rote Hund schläft.'),
        ("The dog<sup>1</sup> red sleeps.", "Der rote Hund<sup>1</sup> schläft."),
        ("{count}: the dog red sleeps.", "{count}: Der rote Hund schläft."),
        ("The dog red sleeps</b>.", "Der rote Hund schläft</b>."),
    ],
)
def test_tags_enclose_the_words_that_attend_to_their_source_words(sentence: str, translation: str) -> None:
    assert woven(sentence, *DOG) == translation


@pytest.mark.parametrize(
    "piece",
    ["{name}", "{0}", "{}", "{x:.2f}", "{{ user.name }}", "${home}", "%s", "%d", "%1$s", "%(name)s", "%.2f", "%%",
     '<x id="1"/>', "<br>", "</g>", r"{\an8}", chr(PIECE)],
)  # fmt: skip
def test_placeholders_are_found(piece: str) -> None:
    assert find_markup(f"a {piece} b") == ([], [(2, 2 + len(piece))])


@pytest.mark.parametrize("text", ["100% sure", "a < b > c", "a {b c} d", "5 %", "{ }", "a<3", "f(x) - y"])
def test_other_text_has_no_placeholders(text: str) -> None:
    assert find_markup(text) == ([], [])


def test_marks_without_a_partner_belong_to_a_tag_of_several_sentences() -> None:
    start, end = chr(OPEN + 1), chr(CLOSE + 1)
    assert woven(f"The {start}dog red sleeps.", *DOG) == f"Der {start}rote Hund schläft."
    assert woven(f"The dog red{end} sleeps.", *DOG) == f"Der rote Hund{end} schläft."
    crossed = f"The {start}dog {chr(OPEN + 2)}red{end} sleeps{chr(CLOSE + 2)}."
    assert find_markup(crossed)[0] == []


PARTS = ["the", "dog", "red.", "(a", "man),", "-", "😀", "привет", "www.a.de/b", "{name}", "%s", "<x/>", "<br>", "</i>"]
INNER = st.recursive(
    st.sampled_from(PARTS),
    lambda inner: st.tuples(st.sampled_from("bi"), st.lists(inner, max_size=3), st.sampled_from(["", " "])).map(
        lambda tag: f"<{tag[0]}>{tag[2].join(tag[1])}</{tag[0]}>"
    ),
    max_leaves=6,
)
WORDS = ["Ein", "Hund.", "(!)", "«", "-"]
PIECE_OF = re.compile(r"</?\w+/?>|\{name\}|%s")


@settings(max_examples=300)
@given(st.lists(INNER, max_size=6), st.sampled_from([" ", ""]), st.lists(st.sampled_from(WORDS)), st.integers(0, 9))
def test_every_piece_is_kept_once_and_tags_stay_nested(parts: list[str], gap: str, words: list[str], seed: int) -> None:
    for reading in READER.read(gap.join(parts), split=False):
        for text in (reading.text, reading.bare) if reading.kept else (reading.text,):
            source = len(split_words(text.text))
            weights = np.random.default_rng(seed).random([len(words), source]) ** 4
            needs_alignment(text, " ".join(words))
            for alignment in (Alignment(weights), None):
                result = postprocess(reading, text, " ".join(words) if source else "", alignment)
                assert Counter(PIECE_OF.findall(result)) == Counter(PIECE_OF.findall(gap.join(parts)))
                tags, _ = find_markup(result)
                assert len(tags) >= len(find_markup(gap.join(parts))[0])
                if source:
                    assert re.findall("Ein|Hund", result) == re.findall("Ein|Hund", " ".join(words))


@pytest.mark.parametrize(
    "tag", ['<a title="x > y">', "<a title='<b>' href=x>", '<img alt="a > b" />', "<b it's>", '<a title="x>']
)
def test_a_tag_ends_behind_its_quoted_attributes(tag: str) -> None:
    sentence = f"The {tag} dog"
    tags, places = find_markup(sentence)
    assert (tags, places) == ([], [(4, 4 + len(tag))])


LANGUAGES = {
    "de": "Der Hund schläft , ein Mann läuft .", "zh": "狗 在 睡觉 , 一个 人 在 跑 。", "ar": "الكلب ينام , رجل يركض .",
    "hi": "कुत्ता सोता है , आदमी दौड़ता है ।", "tr": "Köpek uyuyor , İri bir adam ırmağa koşuyor .",
}  # fmt: skip
READERS = {
    language: Reader(
        fit_tokenizer([text] * 8, DataConfig(tokenizer="subword", normalization="nfkc", vocabulary_size=350)), language
    )
    for language, text in LANGUAGES.items()
}
CUTS = ["{name}", "%s", "<x/>", "<b>", "</b>", "😀"]
LONE = [",", ".", "!", "(", ")", "-", "。", "،", "।", ", ,", '"', "„", ":"]


@settings(max_examples=300)
@given(st.data(), st.sampled_from(list(LANGUAGES)), st.sampled_from([" ", ""]), st.integers(0, 9))
def test_cuts_behind_lone_punctuation_are_kept_once(data: st.DataObject, language: str, gap: str, seed: int) -> None:
    words = LANGUAGES[language].split()
    parts = data.draw(st.lists(st.sampled_from([*CUTS, *LONE, *words]), max_size=9))
    line = gap.join(parts)
    for reading in READERS[language].read(line, split=False):
        for text in (reading.text, reading.bare) if reading.kept else (reading.text,):
            source = len(split_words(text.text))
            assert all(cut.words <= source for cut in text.cuts)
            translation = " ".join(data.draw(st.lists(st.sampled_from(words), max_size=5))) if source else ""
            weights = np.random.default_rng(seed).random([len(split_words(translation)), source])
            for alignment in (Alignment(weights), None):
                result = postprocess(reading, text, translation, alignment)
                for cut in CUTS:
                    assert result.count(cut) == line.count(cut)
