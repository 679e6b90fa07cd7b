"""Ordinary text in languages without spaces or without case, and case by the rules of a language."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MakeRun
from hypothesis import given
from hypothesis import strategies as st

import nmt as package
from nmt.config.data import DataConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import Translation, join_translations
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.runs.calibration import Calibration
from nmt.text.confidence import add_confidence, word_scores
from nmt.text.glossary import Glossary, read_glossary
from nmt.text.reading import Reader, Text
from nmt.text.rewriting import Alignment, postprocess, source_words, target_words
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.base import EOS, Tokenizer, tokens_of
from nmt.tokenizers.registry import fit_tokenizer
from nmt.tokenizers.scripts import split_words

JAPANESE = [
    "私は犬が好きです。",
    "彼は猫を見た。",
    "犬と猫がデータを見た。",
    "彼女は「行こう」と言った。",
    "これは iPhone です。",
]
CORPORA = {
    "ja": JAPANESE, "zh": ["我们去公园，好吗？", "他喜欢机器学习。", "我有一个 iPhone。"],
    "th": ["ผมชอบสุนัข", "น้ำอยู่ในตลาด"],
    "de": ["Der Hund schläft auf der Straße.", "Ein Mann läuft, und sie singt."],
    "hi": ["वह हिन्दी पढ़ता है।", "वह सोता है।"],
    "ar": ["الكلب ينام.", "هل ينام الرجل؟"], "tr": ["Köpek ırmakta uyuyor.", "İyi bir adam koşuyor."],
}  # fmt: skip
KINDS = {
    "unigram": {"tokenizer": "subword", "vocabulary_size": 400}, "word": {"tokenizer": "word"},
    "bpe": {"tokenizer": "subword", "vocabulary_size": 400, "subword_model": "bpe"}, "char": {"tokenizer": "char"},
}  # fmt: skip
TOKENIZERS = {
    (language, kind): fit_tokenizer(lines * 4, DataConfig.model_validate({"normalization": "none", **settings}))
    for (language, lines), (kind, settings) in itertools.product(CORPORA.items(), KINDS.items())
}


def reader(language: str, *texts: str) -> Reader:
    """Return a reader for a model that was trained on texts."""
    config = DataConfig(tokenizer="subword", normalization="none", vocabulary_size=400)
    return Reader(fit_tokenizer([*(texts or CORPORA[language])] * 4, config), language)


def read(line: str, language: str, *texts: str) -> Text:
    return reader(language, *texts).read(line, split=False)[0].text


# --- words of tokens


@given(st.sampled_from(list(TOKENIZERS)), st.data())
def test_tokens_belong_to_the_words_that_have_their_characters(key: tuple[str, str], data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[key]
    alphabet = "".join(CORPORA[key[0]]) + " 鰻é"
    text = tokenizer.normalize(data.draw(st.text(st.sampled_from(alphabet), max_size=12)))
    words = [word.text for word in split_words(text)]
    owner = [index for index, word in enumerate(words) for _ in word]  # the word of each character that is no space
    ranges, place = source_words(tokenizer, text), 0
    tokens = tokens_of(tokenizer, text)
    assert len(ranges) == len(tokens) == len(tokenizer.encode(text))
    for token, word_range in zip(tokens, ranges, strict=True):
        if token.place is not None:
            assert [*word_range] == [owner[place]], "a byte of a character"
            place += token.place[0] == token.place[1]
            continue
        size = len("".join(token.piece.replace("\u2581", " ").split()))
        if size:
            assert [*word_range] == sorted(set(owner[place : place + size]))
        place += size
    assert place == len(owner)


@given(st.sampled_from(list(TOKENIZERS)), st.data())
def test_every_word_of_a_translation_has_tokens(key: tuple[str, str], data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[key]
    ids = data.draw(st.lists(st.integers(1, tokenizer.size - 1).filter(lambda id_: id_ not in (2, EOS)), max_size=12))
    count = len(split_words(tokenizer.decode(ids)))
    ranges = target_words(tokenizer, [*ids, EOS])
    assert len(ranges) == len(ids)
    assert [word for words in ranges for word in words] == sorted(word for words in ranges for word in words)
    assert len(word_scores(tokenizer, ids, np.ones(len(ids)))) == count
    ids = tokenizer.encode("".join(filter(str.isalnum, tokenizer.decode(ids))))
    words = [word for words in target_words(tokenizer, ids) for word in words]
    assert {*words} == {*range(len(split_words(tokenizer.decode(ids))))}


def test_the_words_of_bytes_are_those_of_their_characters() -> None:
    tokenizer = TOKENIZERS["ja", "unigram"]
    ids = tokenizer.encode("犬鰻と")
    assert [*map(tokenizer.byte_of, ids)].count(None) < len(ids)
    owners = [word for words in target_words(tokenizer, ids) for word in words]
    assert sorted(set(owners)) == [0, 1, 2] and owners.count(1) == 3  # the eel has three bytes
    assert target_words(tokenizer, ids[:-2]) == source_words(tokenizer, "犬鰻と")[:-2]  # bytes without an end


# --- tags, pieces and capitals


def woven(line: str, language: str, translation: str, pairs: dict[int, int], target: str) -> str:
    """Return a translation, from the index of the source word that each of its words attends to."""
    [reading] = reader(language).read(line, split=False)
    weights = np.zeros([len(split_words(translation)), len(split_words(reading.text.text))])
    for word, source in pairs.items():
        weights[word, source] = 1
    return postprocess(reading, reading.text, translation, Alignment(weights), target)


@pytest.mark.parametrize(
    ("line", "translation", "pairs", "expected"),
    [
        ("私は<b>犬</b>が好きです。", "I like dogs.", {0: 0, 1: 4, 2: 2}, "I like <b>dogs</b>."),
        ("私は{x}犬が好きです。", "I like dogs.", {0: 0, 1: 4, 2: 2}, "I {x} like dogs."),
        ("彼は猫を見た{x}。", "He saw cats.", {0: 0, 1: 4, 2: 2}, "He saw cats {x}."),
        ("<i>彼は<b>猫</b></i>を見た。", "He saw cats.", {0: 0, 1: 1, 2: 2}, "<i>He saw <b>cats</b></i>."),
        ("私は「<b>犬</b>」が好きです。", "I like “dogs”.", {0: 0, 1: 4, 2: 2}, "I like “<b>dogs</b>”."),
    ],
)
def test_tags_of_japanese_return_to_the_words_of_english(
    line: str, translation: str, pairs: dict[int, int], expected: str
) -> None:
    assert woven(line, "ja", translation, pairs, "en") == expected
    assert read(line, "ja").text == line.replace("{x}", "").translate(str.maketrans("", "", "<>/bi")), (
        "no space is put in"
    )


@pytest.mark.parametrize(
    ("line", "translation", "pairs", "expected"),
    [
        ("Der <b>Hund</b> schläft.", "犬が寝る。", {0: 1, 1: 0, 2: 2, 3: 2}, "<b>犬</b>が寝る。"),
        ("Der {x} Hund schläft.", "犬が寝る。", {0: 1, 1: 0, 2: 2, 3: 2}, "犬が{x}寝る。"),
        ("Der Hund schläft {x}.", "犬が寝る。", {0: 1, 1: 0, 2: 2, 3: 2}, "犬が寝る{x}。"),
        ("{x} Der Hund schläft.", "犬が寝る。", {0: 1, 1: 0, 2: 2, 3: 2}, "{x}犬が寝る。"),
        ("Der Hund <b>schläft</b>.", "犬が「寝る」。", {0: 1, 1: 0, 2: 2, 3: 2}, "犬が「<b>寝る</b>」。"),
        ("Der <b>Hund</b> schläft.", "สุนัขนอน", {0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 2}, "<b>สุนัข</b>นอน"),
    ],
)
def test_tags_go_around_the_characters_of_a_translation_without_spaces(
    line: str, translation: str, pairs: dict[int, int], expected: str
) -> None:
    assert woven(line, "de", translation, pairs, "ja") == expected


TURKISH = ["Isparta ve İzmir büyük şehir.", "Bir adam Isparta şehrinde.", "izmir güzel, ısparta da."]


def test_case_follows_the_language_of_each_side() -> None:
    assert read("ISPARTA BÜYÜK ŞEHİR.", "tr", *TURKISH) == Text("Isparta büyük şehir.", is_upper=True)
    streets = ["Die Straße ist lang", "eine Masse Straßen"]
    words = fit_tokenizer(streets * 4, DataConfig(tokenizer="word", normalization="none"))
    for line, expected in {
        "DIE STRASSE IST LANG": "Die Straße ist lang", "EINE MASSE STRASSEN": "Eine Masse Straßen",
        "Eine Strasse Ist Lang": "Eine strasse ist lang",  # only capitals have no ß
    }.items():  # fmt: skip
        assert Reader(words, "de").read(line)[0].text.text == expected
        assert "ß" not in Reader(words, "nl").read(line)[0].text.text
    assert read("IJSBEREN SLAPEN.", "nl", "IJsberen slapen.", "De ijsberen slapen.").text == "IJsberen slapen."
    text = Text("Der Hund", is_upper=True)
    [reading] = reader("de").read("Der Hund")
    assert postprocess(reading, text, "iyi şehir", None, "tr") == "İYİ ŞEHİR"
    assert postprocess(reading, text, "ο άνθρωπος", None, "el") == "Ο ΑΝΘΡΩΠΟΣ"
    for caseless in ("我们去公园。", "वह सोता है।", "الكلب ينام.", "น้ำอยู่ในตลาด"):
        assert postprocess(reading, text, caseless, None, "zh") == caseless


@pytest.mark.parametrize("language", ["zh", "ja", "th", "hi", "ar"])
def test_text_without_case_has_no_case_logic(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "_familiar_case", never)
        patch.setattr(Reader, "_is_title", never)
        for line in CORPORA[language]:
            if line.isascii() or "iPhone" not in line:
                assert read(line, language) == Text(line)
    assert not read("我们去TV。", "zh").is_upper, "a Chinese sentence about a TV is no text in capitals"


# --- characters that the model does not know


@pytest.mark.parametrize(
    ("line", "language", "expected"),
    [
        ("Der Ｈｕｎｄ schläft.", "de", "Der Hund schläft."), ("Ein Mann läuﬀt", "de", "Ein Mann läufft"),
        ("犬とﾃﾞｰﾀを見た。", "ja", "犬とデータを見た。"), ("𝐇und", "de", "Hund"), ("ﺍﻟﻜﻠﺐ ﻳﻨﺎﻡ.", "ar", "الكلب ينام."),
        ("Der Hund², ½ ①", "de", None), ("Der Hund　schläft", "de", None), ("ein⒈", "de", None),
    ],
)  # fmt: skip
def test_other_forms_of_known_characters_are_read_as_these(line: str, language: str, expected: str | None) -> None:
    more = ["f 1 2 / 3"]
    assert reader(language, *CORPORA[language], *more)._with_known_characters(line) == (
        line if expected is None else expected
    )


def test_known_characters_stay() -> None:
    assert read("Ｈund", "de", "Ｈund", *CORPORA["de"]).text == "Ｈund"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("请看https://a.de/b。谢谢", ("https://a.de/b",)),
        ("邮箱是a.b@c.de吗？", ("a.b@c.de",)), ("请关注@nmt吧", ("@nmt",)),
        ("共１２３４５６人", ("１２３４５６",)),
    ],
)  # fmt: skip
def test_addresses_end_at_characters_without_spaces(line: str, kept: tuple[str, ...]) -> None:
    [reading] = reader("zh").read(line, split=False)
    assert reading.kept == kept


def test_foreign_words_are_cut_out_of_text_without_spaces_but_no_single_character() -> None:
    text = read("他喜欢Москва机器。", "zh")
    assert (text.text, [cut.piece for cut in text.cuts]) == ("他喜欢机器。", [" Москва"])
    assert read("他喜欢鰻机器。", "zh") == Text("他喜欢鰻机器。")


# --- glossary


def glossary_of(folder: Path, lines: str, tokenizer: Tokenizer, languages: tuple[str, str]) -> Glossary:
    (folder / "terms.tsv").write_text(lines, encoding="utf-8")
    return read_glossary(str(folder / "terms.tsv"), tokenizer, languages)


@pytest.mark.parametrize(
    ("languages", "term", "source", "form", "good", "bad"),
    [
        ("zh de", "机器学习", "他喜欢机器学习。", "Hund", "Der Hund.", "Der"),
        ("de zh", "Mann", "Ein Mann.", "机器", "他喜欢机器。", "他机"),
        ("ja de", "データ", "犬がデータを見た。", "Mann", "MANN", "Männer"),
        ("de ja", "HUND", "Hund", "犬と猫", "「犬と猫」。", "犬"),
        ("th de", "สุนัข", "ผมชอบสุนัข", "Hund", "hund", "Der"), ("de th", "Mann", "Mann", "น้ำ", "ผมชอบน้ำ", "น"),
        ("tr de", "ISPARTA", "Güzel ısparta.", "STRASSE", "Straße", "Strase"),
        ("de tr", "Straße", "STRASSE", "İyi", "İYİ", "IYI"),
        ("hi de", "हिन्दी", "वह हिन्दी पढ़ता है।", "singt", "singt", "sie"),
        ("ar de", "الكلب", "الكلب، ينام", "Hund", "Hund!", "H"),
    ],
)  # fmt: skip
def test_terms_are_found_in_every_script_and_case(
    tmp_path: Path, languages: str, term: str, source: str, form: str, good: str, bad: str
) -> None:
    first, second = languages.split()
    terms = glossary_of(tmp_path, f"{term}\t{form}\n", TOKENIZERS[second, "unigram"], (first, second))
    [match] = terms.terms_of(source)
    words = [word.text for word in split_words(source)]
    assert match.words.stop <= len(words)
    assert term.casefold()[-1] in "".join(words[match.words.start : match.words.stop]).casefold()
    assert terms.missing(source, good) == [] and terms.missing(source, bad) == [match]


def test_terms_are_no_parts_of_words_with_marks(tmp_path: Path) -> None:
    terms = glossary_of(tmp_path, "हिन\tHund\n", TOKENIZERS["de", "unigram"], ("hi", "de"))
    assert terms.terms_of("हिन्दी") == [] and len(terms.terms_of("हिन, हिन")) == 2
    assert glossary_of(tmp_path, "isparta\tHund\n", TOKENIZERS["de", "unigram"], ("tr", "de")).terms_of("ISPARTA") == []


# --- sentences of a line


@pytest.mark.parametrize(
    ("languages", "texts", "separators", "expected"),
    [
        ("en zh", ["我来。", "你去。"], [" ", ""], "我来。你去。"),
        ("ja en", ["I go.", "He runs."], ["", ""], "I go. He runs."),
        ("zh en", ["I go.", "He runs."], ["\u3000", ""], "I go. He runs."),
        ("en ja", ["行く。", "走る。"], ["\n\n", ""], "行く。\n\n走る。"),
        ("en th", ["ผมไป", "เขามา"], [" ", ""], "ผมไป เขามา"), ("en de", ["Ja.", "Nein."], ["  ", ""], "Ja.  Nein."),
        ("source target", ["我来。", "Ja."], [" ", ""], "我来。Ja."), ("en hi", ["वह।", "वह।"], ["\t", ""], "वह।\tवह।"),
    ],
)  # fmt: skip
def test_translations_are_joined_as_their_language_does(
    languages: str, texts: list[str], separators: list[str], expected: str
) -> None:
    source, target = languages.split()
    translations = [
        Translation(text, [], True, [5, EOS], read="是的。" if source in ("zh", "ja") else "Yes.") for text in texts
    ]
    joined = join_translations(translations, separators, (source, target))
    assert joined.text == expected
    assert joined.read == ("是的。是的。" if source in ("zh", "ja") else "Yes. Yes.")


# --- both engines

PAIRS = [
    (f"{person} {verb} {thing}.", f"{subject}は{object_}を{did}。")
    for person, subject in {"He": "彼", "She": "彼女", "A man": "男"}.items()
    for verb, did in {"saw": "見た", "likes": "好む", "sent": "送った"}.items()
    for thing, object_ in {"dogs": "犬", "cats": "猫", "data": "データ", "a city": "町"}.items()
]


@pytest.fixture
def engines(make_run: MakeRun, tmp_path: Path) -> Callable[[str], list[Translator]]:
    """Return a function of the kind of tokenizer: the translators of a run, English to Japanese, with both engines."""

    def make(kind: str) -> list[Translator]:
        lines = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
        (tmp_path / "pairs.tsv").write_text(lines, encoding="utf-8")
        keys = {f"data.{key}": value for key, value in KINDS[kind].items()} | {"data.normalization": "none"}
        package.prepare(str(tmp_path / "pairs.tsv"), name=f"enja-{kind}", languages="en-ja", set=keys)
        run = make_run(f"enja-{kind}")
        model, exporter = TrainedModel.of(run, None), CTranslate2Exporter()
        (tmp_path / "export").mkdir()
        exporter.write(model, tmp_path / "export")
        ours = Translator.open(run)
        engine = CTranslate2Engine(tmp_path / "export", ours.config)
        theirs = Translator(engine, ours.source, ours.target, ours.config, 1, ours._manifest)
        assert ours.languages == theirs.languages == ("en", "ja")
        return [ours, theirs]

    return make


LINES = ["He saw <b>dogs</b>.", "SHE LIKES CATS.", "A man {name} sent data. He saw cats.", "He likes 😀 a <i>city</i>."]
MEASURED = {"predicted": [0.5], "observed": [0.5], "error": 0.0}
CALIBRATION = Calibration.model_validate({
    "epoch": 1, "good": 47, "sentence": [0.0, 1.0, 0.0, 0.0], "word": [0.0, 1.0, 0.0, 0.0], "sentences": MEASURED,
    "words": MEASURED, "found": 0.1,
})  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unigram", "char"])
def test_japanese_has_tags_terms_and_confidence_with_both_engines(
    engines: Callable[[str], list[Translator]], kind: str, tmp_path: Path
) -> None:
    for translator in engines(kind):
        for line, translation in zip(LINES, translator.translate(LINES), strict=True):
            for piece in ("<b>", "</b>", "{name}", "😀", "<i>", "</i>"):
                assert translation.count(piece) == line.count(piece)
        lines = "dogs\t猫町\ncats\tデータ\ncity\t町\n"
        (tmp_path / "terms.tsv").write_text(lines, encoding="utf-8")
        terms = read_glossary(str(tmp_path / "terms.tsv"), translator.target, translator.languages)
        texts = [source for source, _ in PAIRS[::5]]
        results = translator.find(texts, TextOptions(glossary=terms))
        assert sum(len(terms.terms_of(text)) for text in texts) > 3
        for text, [best] in zip(texts, results, strict=True):
            assert not terms.missing(text, best.text)
            assert " " not in best.text.replace("<unk>", ""), "the glossary puts no space in"
        for [scored] in add_confidence(translator, CALIBRATION, terms, texts, results):
            assert [word for word, _ in scored.words] == [word.text for word in split_words(scored.text)]
            assert max(chance for _, chance in scored.words) == 0.5 or not terms.terms_of(scored.read or "")
