"""Minimum Bayes risk decoding: chrF as in sacrebleu, the choice among candidates, and both engines."""

import itertools
import shutil
from pathlib import Path

import pytest
from conftest import nmt as run_command
from conftest import small_pairs
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

import nmt
from nmt.config.schema import DecodingConfig
from nmt.decoding.minimum_risk import by_expected_chrf, chrf_matrix
from nmt.errors import ConfigError, NmtError

WORDS = ["der", "Hund", "läuft", "在公园里", "跑步。", "قطة", "سوداء", "कुत्ता", "दौड़ता", "güzel", "İki", "ığ", "👍🏽"]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=20)


ENGINES = pytest.mark.parametrize(
    "engine", [pytest.param(None, marks=pytest.mark.slow), "ctranslate2-float32"], ids=["run", "export"]
)


@pytest.fixture(scope="module")
def exported_runs(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the trained project with an export to CTranslate2."""
    folder = Path(shutil.copytree(trained_project, tmp_path_factory.mktemp("risk") / "project"))
    run_command("export", "--to", "ctranslate2", cwd=folder)
    return folder


@given(st.lists(SENTENCES, min_size=1, max_size=5))
def test_chrf_between_candidates_is_that_of_sacrebleu(texts: list[str]) -> None:
    scores, metric = chrf_matrix(texts), CHRF()
    for (row, text), (column, reference) in itertools.product(enumerate(texts), repeat=2):
        expected = metric.sentence_score(text, [reference]).score / 100
        assert scores[row, column] == pytest.approx(expected, abs=1e-9)


@given(st.lists(SENTENCES, min_size=1, max_size=6))
def test_the_order_is_by_mean_chrf_and_repeats_count(texts: list[str]) -> None:
    metric = CHRF()
    expected = [sum(metric.sentence_score(text, [other]).score for other in texts) for text in texts]
    order = by_expected_chrf(texts)
    assert sorted(order) == [*range(len(texts))]
    assert all(expected[first] >= expected[second] - 1e-6 for first, second in itertools.pairwise(order))
    assert by_expected_chrf([*texts, *["zzzz"] * 50])[0] >= len(texts)


@ENGINES
def test_the_best_of_a_beam_is_the_one_most_like_the_others(
    exported_runs: Path, monkeypatch: pytest.MonkeyPatch, engine: str | None
) -> None:
    monkeypatch.chdir(exported_runs)
    texts = [source for source, _ in small_pairs(30)]
    with nmt.load("base", export=engine, decoding={"beam_size": 6}) as translator:
        beams = translator.translate_n_best(texts, 6)
    with nmt.load("base", export=engine, decoding={"mbr_candidates": 6}) as translator:
        chosen = translator.translate(texts)
        assert translator.translate_n_best(texts[:1], 2)[0][0].text == chosen[0]
    assert chosen != [best.text for best, *_ in beams], "the test needs a sentence for which they differ"
    for beam, text in zip(beams, chosen, strict=True):
        finished = [translation.text for translation in beam if translation.finished]
        assert text in {finished[index] for index in by_expected_chrf(finished)[:2]}


@ENGINES
def test_samples_are_drawn_once_for_each_candidate(
    exported_runs: Path, monkeypatch: pytest.MonkeyPatch, engine: str | None
) -> None:
    monkeypatch.chdir(exported_runs)
    settings = {"mbr_candidates": 8, "mbr_sampled": True, "ordinary_text": "none"}
    texts = [source for source, _ in small_pairs(12)]
    with nmt.load("base", export=engine, decoding=settings) as translator:
        chosen = translator.translate(texts)
        assert translator.translate(texts) == chosen
        assert translator.translate(["", *texts])[0] == ""
        assert len(translator.search(texts[:1])[0]) == 1
    with nmt.load("base", export=engine, decoding={"ordinary_text": "none"}) as translator:
        assert chosen != translator.translate(texts, sample=True)


def test_contradicting_settings_are_refused_in_words(exported_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Give mbr_candidates"):
        DecodingConfig(mbr_sampled=True)
    monkeypatch.chdir(exported_runs)
    with pytest.raises(ConfigError, match="less than or equal to 100"):
        nmt.load("base", decoding={"mbr_candidates": 101})
    with nmt.load("base", decoding={"mbr_candidates": 4}) as translator, pytest.raises(NmtError, match="beam"):
        translator.translate_n_best(["im one"], 5)
