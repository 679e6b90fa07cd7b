"""Glossaries: their files, the terms of a sentence, and translations with terms in TensorFlow and CTranslate2."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import MakeRun, nmt, small_pairs

from nmt.config.data import DataConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import BEST, SearchOptions
from nmt.errors import DataError, NmtError, NotFoundError
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.runs.directory import Run
from nmt.text.confidence import word_scores
from nmt.text.glossary import Glossary, Term, read_glossary
from nmt.text.terms import with_terms
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.letter_case import capitalize, upper
from nmt.tokenizers.scripts import split_words
from nmt.tokenizers.word import WordTokenizer

SENTENCES = [source for source, _ in small_pairs(300)[::12]] + ["", "IM THREE TWO ONE. im one", "one"]
UNCHANGED = DataConfig(normalization="none")
TERMS = "one\tzwei\tdrei\nTwo Three\tsechs sieben\n\ntwo\tvier\n"


@pytest.fixture(scope="module")
def translator(trained_project: Path) -> Translator:
    return Translator.open(Run(trained_project / "checkpoints" / "base"))


@pytest.fixture
def glossary(translator: Translator, tmp_path: Path) -> Glossary:
    (tmp_path / "terms.tsv").write_text(TERMS)
    return read_glossary(str(tmp_path / "terms.tsv"), translator.target)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"one\tzwei\nthirsty\n", 2, "no term with a translation"), (b"one\tzwei\n\tzwei\n", 2, "no term"),
        (b"one\t\t\n", 1, "no term with a translation"), (b"one\tzwei\n\nOne\tdrei\n", 3, "the term 'One' of"),
        (b"one\txylophon\n", 1, "'xylophon', which the model never saw"), (b"one\tzwei\n\xff\tdrei\n", 2, "not UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_line(
    translator: Translator, tmp_path: Path, content: bytes, line: int, problem: str
) -> None:
    (tmp_path / "bad.tsv").write_bytes(content)
    with pytest.raises(DataError, match=rf"bad\.tsv, line {line} .*{re.escape(problem)}"):
        read_glossary(str(tmp_path / "bad.tsv"), translator.target)


def test_terms_are_whole_words_in_any_case_the_longest_first() -> None:
    sources = ["dog", "hot dog", "dog house", "c++", "naïve"]
    terms = Glossary([Term(tuple(re.findall(r"\w+|[^\w\s]", source)), {"x": " x "}) for source in sources])

    def matches(text: str) -> list[tuple[str, tuple[int, int]]]:
        return [
            (" ".join(match.term.source), (match.words.start, match.words.stop)) for match in terms.terms_of(text)
        ]  # fmt: skip

    assert matches("Dogs, a (DOG) and hotdog dog.") == [("dog", (2, 3)), ("dog", (5, 6))]
    assert matches("Hot  dog house, dog house") == [("hot dog", (0, 2)), ("dog house", (3, 5))]
    assert matches("naïve C++") == [("naïve", (0, 1)), ("c + +", (1, 2))]
    assert matches("") == []


@pytest.mark.parametrize("beam", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_translations_keep_terms_and_do_not_change_without_them(
    translator: Translator, glossary: Glossary, beam: int
) -> None:
    # A sentence alone in its batch: the last bits of a score depend on the batch.
    settings = {"beam_size": beam, "batch_size": 1}
    searching = translator.reconfigured(translator.config.decoding.model_copy(update=settings))
    options = TextOptions(SearchOptions(n_best=beam, scored=True))
    plain = searching.find(SENTENCES, options)
    kept = searching.find(SENTENCES, options._replace(glossary=glossary))
    lacking = 0
    for text, before, after in zip(SENTENCES, plain, kept, strict=True):
        assert all(not glossary.missing(text, translation.text) for translation in after if translation.text)
        assert len({translation.text for translation in after}) == len(after)
        if not glossary.missing(text, before[0].text) and beam == 1:
            assert before == after
        lacking += bool(glossary.missing(text, before[0].text))
    assert lacking > len(SENTENCES) / 2  # the model alone uses other words


def test_the_score_of_a_changed_translation_is_the_models(translator: Translator, glossary: Glossary) -> None:
    [[translation]] = translator.find(
        ["im one seven"], TextOptions(SearchOptions(scored=True), glossary, confident=False)
    )
    assert translation.ids == translator.given_translation(translation.text).ids
    assert translation.score == pytest.approx(translator.score(["im one seven"], [translation.text])[0], rel=1e-4)
    [attention] = translator.attention(["im one seven"], [translation])
    assert attention.target == translation.ids


def test_a_prefix_stays_before_terms(translator: Translator) -> None:
    glossary = translator.glossary({"im": "sieben", "one": "zwei"})
    for prefix in ("ich bin", "ich bin eins zwei drei eins"):
        [text] = translator.translate(["im one two three"], prefix=prefix, glossary=glossary)
        assert text.startswith(prefix) and "sieben" in text and "zwei" in text


def test_glossaries_in_python(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("one\tzwei\tdrei\n")
    by_file = translator.glossary(tmp_path / "terms.tsv")
    for glossary in (by_file, tmp_path / "terms.tsv", str(tmp_path / "terms.tsv"), {"one": ["zwei", "drei"]}):
        [text] = translator.translate(["im one seven"], glossary=glossary)
        assert "zwei" in text.split()
        [details] = translator.translate_details(["im one seven"], glossary=glossary)
        assert details.text == text and details.score is not None
    assert translator.glossary(by_file) is by_file
    for wrong in (7, ["one"], {"one": 7}):
        with pytest.raises(NmtError, match=r"glossary is .*, but must be"):
            translator.translate(["im one"], glossary=wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"glossary\['one'\] has the word 'xylophon', which the model never saw"):
        translator.translate(["im one"], glossary={"one": "xylophon"})
    with pytest.raises(NotFoundError, match="absent"):
        translator.translate(["im one"], glossary="absent.tsv")


# --- the place and the case of a term


def translated(
    folder: Path, languages: str, lines: str, source: str, translation: str, heard: list[list[int]]
) -> str:  # fmt: skip
    """Return a translation with terms; word j of it attends to the source words ``heard[j]``."""
    first, second = languages.split()
    (folder / "terms.tsv").write_text(lines.replace(" | ", "\t"), encoding="utf-8")
    words = lines.replace("|", " ").split()
    cased = [change(word, second) for word in words for change in (upper, capitalize)]
    target = WordTokenizer.fit([" ".join([*words, *cased])], UNCHANGED)
    glossary = read_glossary(str(folder / "terms.tsv"), target, (first, second))
    weights = np.zeros([len(split_words(translation)), len(split_words(source))])
    for row, columns in zip(weights, heard, strict=True):
        row[columns] = 1 / len(columns)
    return with_terms(glossary, target, source, translation, weights)


@pytest.mark.parametrize(
    ("languages", "lines", "source", "translation", "heard", "expected"),
    [
        # The article attends to its noun, too.
        ("en de", "dog | dog", "The dog runs.", "Der Hund rennt.", [[0, 1], [1], [2]], "Der dog rennt."),
        ("en de", "dog | dog", "Dog runs.", "Der Hund rennt.", [[0], [0], [1]], "Der dog rennt."),
        ("en de", "dog | Köter", "“The dog”, she said.", "„Der Hund“, sagte sie.", [[0], [1], [3], [2]],
         "„Der Köter“, sagte sie."),
        ("en de", "ice cream | Eis", "Ice cream, please.", "Eine Eiscreme, bitte.", [[0], [0, 1], [2]],
         "Eis, bitte."),
        ("de en", "Feuerwehrauto | fire engine", "Ein Feuerwehrauto.", "A fire truck.", [[0], [1], [1]],
         "A fire engine."),
        # Two terms of a compound replace it.
        ("en de", "field | Feld\nsoccer | Fußball", "soccer field", "Fußballplatz", [[0, 1]], "Fußball Feld"),
        # A term that stands twice, once in its form.
        ("en de", "dog | Köter", "A dog, a dog.", "Ein Köter, ein Hund.", [[0], [1, 3], [2], [1, 3]],
         "Ein Köter, ein Köter."),
        # The model left the term out.
        ("en de", "outside | draußen", "He runs outside.", "Er rennt.", [[0], [1]], "Er rennt draußen."),
        # Case: of the beginning, of the term in the sentence, and of a term that has capitals itself.
        ("en de", "dogs | köter", "Dogs run.", "Hunde rennen.", [[0], [1]], "Köter rennen."),
        ("en de", "dog | köter", "My Dog runs.", "Mein Hund rennt.", [[0], [1], [2]], "Mein Köter rennt."),
        ("en de", "dog | köter", "My DOG runs.", "Mein Hund rennt.", [[0], [1], [2]], "Mein KÖTER rennt."),
        ("en de", "iPhone | iPhone", "IPHONE users", "Handybenutzer hier", [[0], [1]], "iPhone hier"),
        ("en tr", "it | it", "The IT runs.", "Köpek koşuyor.", [[0, 1], [2]], "İT koşuyor."),
        ("en tr", "dog | it", "Dogs. dog", "Köpekler. köpek", [[0], [1]], "Köpekler. it"),
        ("en tr", "dog | it", "dog runs", "Köpek koşuyor", [[0], [1]], "İt koşuyor"),
        # Scripts without spaces: the words of a translation are characters.
        ("en zh", "dog | 狗", "The dog runs.", "小犬跑了。", [[0, 1], [1], [2], [2]], "小狗跑了。"),
        ("en zh", "dog | dog", "The dog runs.", "小犬跑了。", [[1], [1], [2], [2]], "dog跑了。"),
        ("zh en", "狗 | hound", "我有狗。", "I have a dog.", [[0], [1], [2], [2]], "I have a hound."),
        # Scripts without case, from right to left, and with combining marks.
        ("en ar", "dog | كلبة", "The dog runs.", "الكلب يجري.", [[0, 1], [2]], "كلبة يجري."),
        ("en hi", "DOG | कुत्ता", "A dog!", "एक श्वान!", [[0], [1]], "एक कुत्ता!"),
        ("hi en", "कुत्ता | hound", "कुत्ता दौड़ता है।", "The dog runs.", [[0], [0], [1]], "The hound runs."),
    ],
)  # fmt: skip
def test_a_term_replaces_the_words_that_attend_to_it(
    tmp_path: Path, languages: str, lines: str, source: str, translation: str, heard: list[list[int]], expected: str
) -> None:
    assert translated(tmp_path, languages, lines, source, translation, heard) == expected


def test_a_form_that_the_model_wrote_stays(tmp_path: Path) -> None:
    lines, source = "كلب | كلب | الكلب", "The كلب runs."
    assert translated(tmp_path, "fa ar", lines, source, "الكلب يجري.", [[0, 1], [2]]) == "الكلب يجري."


def test_a_prefix_belongs_to_its_sentence(translator: Translator) -> None:
    texts, prefixes = ["im one two three", "one", "im two"], [[4], [], [5, 6, 4]]
    rows = translator.encode(texts)
    results = translator.engine.search(rows, np.full(3, 9, np.int32), BEST, prefixes)
    for text, prefix, [hypothesis] in zip(texts, prefixes, results, strict=True):
        assert hypothesis.ids[: len(prefix)] == prefix
        rows = translator.encode([text])
        [[separate]] = translator.engine.search(rows, np.full(1, 9, np.int32), BEST, [prefix])
        assert separate.ids == hypothesis.ids


@pytest.mark.slow
def test_the_engines_keep_the_same_terms_and_score_tokens_alike(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("subword")
    model, exporter = TrainedModel.of(run, None), CTranslate2Exporter()
    (tmp_path / "export").mkdir()
    exporter.write(model, tmp_path / "export")
    ours = Translator.open(run)
    engine = CTranslate2Engine(tmp_path / "export", ours.config)
    theirs = Translator(engine, ours.source, ours.target, ours.config, 1)
    terms = tmp_path / "terms.tsv"
    terms.write_text("one\tdurstig\ntwo\tsieben\tschön\n")
    glossary = read_glossary(str(terms), ours.target)
    texts = [f"{source}!" for source, _ in small_pairs(6)]
    pairs = texts, [[*ours.target.encode(target)] for _, target in small_pairs(6)]  # prefixes, without eos
    for tensorflow, ctranslate2 in zip(ours.token_scores(*pairs), theirs.token_scores(*pairs), strict=True):
        np.testing.assert_allclose(tensorflow, ctranslate2, rtol=1e-3, atol=1e-3)
    for translator in (ours, theirs):
        results = translator.find(texts, TextOptions(glossary=glossary))
        assert all(not glossary.missing(text, best.text) for text, [best] in zip(texts, results, strict=True))


@pytest.mark.slow
def test_the_command_keeps_terms_and_evaluation_reports_their_share(project: Path) -> None:
    (project / "terms.tsv").write_text(TERMS)
    out = nmt("translate", "--glossary", "terms.tsv", "im one seven", cwd=project).stdout
    assert re.search(r"\b(zwei|drei)\b", out)
    report = nmt("evaluate", "--glossary", "terms.tsv", "--resamples", "0", cwd=project).stdout
    shares = dict(re.findall(r"Terms kept by (\S+): ([\d.]+)%", report))
    assert float(shares["base"]) < 50 and float(shares["base+terms"]) == 100


def test_the_score_of_a_word_is_the_sum_over_its_tokens(translator: Translator) -> None:
    [[translation]] = translator.find(["im one two three"])
    [scores] = translator.token_scores(["im one two three"], [translation.ids])
    words = word_scores(translator.target, translation.ids, scores)
    assert len(words) == len(translation.text.split())
    [total] = translator.score(["im one two three"], [translation.text])
    assert words.sum() + scores[-1] == pytest.approx(total, rel=1e-4)


def test_a_term_that_occurs_twice_needs_two_forms() -> None:
    dog, hot = Term(("dog",), {"Hund": " hund ", "Hunde": " hunde "}), Term(("hot", "dog"), {"x": " warmer hund "})
    terms = Glossary([dog, hot])
    assert [match.term for match in terms.missing("dog and dog", "Hund und Katze")] == [dog]
    assert terms.missing("dog and dog", "Hunde und Hund") == []
    assert [match.term for match in terms.missing("dog, hot dog", "ein warmer Hund")] == [dog]
    assert terms.share_kept(["dog and dog"], ["Hund"]) == 0.5


@pytest.mark.parametrize("line", ["one " * 60 + "\tzwei", "one\t" + "zwei " * 2_000])
def test_long_terms_and_forms_are_refused(translator: Translator, tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.tsv").write_text(f"two\tdrei\n{line}\n")
    with pytest.raises(DataError, match=r"bad\.tsv, line 2 has a term or a form of [\d,]+ characters: .*at most 200"):
        read_glossary(str(tmp_path / "bad.tsv"), translator.target)


def test_a_translation_of_marks_begins_with_its_prefix(translator: Translator) -> None:
    for text in ("im one", "im \U00100001one\U00105001", "im one \U0010a001", "im \U0010ffff {name} 😀"):
        assert translator.translate([text], prefix="ich bin")[0].startswith("ich bin")
