"""Glossaries: their files, the terms of a sentence, and translations with terms in TensorFlow and CTranslate2."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import MakeRun, nmt, small_pairs

from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import BEST, SearchOptions
from nmt.errors import DataError
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.runs.directory import Run
from nmt.text.confidence import word_scores
from nmt.text.glossary import Glossary, Term, read_glossary
from nmt.text.translator import TextOptions, Translator

SENTENCES = [source for source, _ in small_pairs(300)[::12]] + ["", "IM THREE TWO ONE. im one", "one"]
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
        (b"one\t\t\n", 1, "no term with a translation"), (b"one\tzwei\n\nOne\tdrei\n", 3, "the term 'One' of line 1"),
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
    # A sentence alone in its batch: the last bits of a score depend on the batch, and terms leave other sentences to
    # be searched for again.
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
