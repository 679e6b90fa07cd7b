"""Runs and Marian models as teachers: scores, candidates and problems."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import SHORT_SEARCH, MakeRun
from marian_models import npz_folder, safetensors_folder

from nmt.config.schema import DecodingConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import Translation
from nmt.errors import NmtError, NotFoundError
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.importing.importing import import_model
from nmt.storage.text import as_cell
from nmt.teachers.model_teachers import TranslatorTeacher, open_marian
from nmt.teachers.teacher import CUT_OFF, EMPTY, TOO_LONG, Candidate
from nmt.text.translator import Translator

JOURNAL = Path("unused")
LINES = ["im one two three!", "", "im seven!", " ".join(["seven"] * 40), "two im!", "im thirsty!"]


def teacher_of(translator: Translator, *, sampled: bool = False, candidates: int = 1) -> TranslatorTeacher:
    return TranslatorTeacher("run", translator, {}, sampled=sampled, candidates=candidates)


@pytest.fixture(params=["export", pytest.param("run", marks=pytest.mark.slow)])
def translator(request: pytest.FixtureRequest, make_run: MakeRun, tmp_path: Path) -> Translator:
    """A translator that reads at most 24 tokens, and puts a tag before them."""
    run = make_run(
        "tagged",
        {**SHORT_SEARCH, "ordinary_text": "none", "tag": "bt", "batch_size": 1},
        positions="learned",
        max_positions=24,
    )
    if request.param == "run":
        return Translator.open(run)
    model, exporter = TrainedModel.of(run, None), CTranslate2Exporter()
    exporter.write(model, tmp_path)
    engine = CTranslate2Engine(tmp_path, model.config, exporter.positions(model))
    return Translator(engine, model.source, model.target, model.config, model.epoch)


def test_scores_are_mean_log_probabilities_and_samples_come_again(translator: Translator) -> None:
    for beam, candidates in ((1, 1), (3, 1), (3, 3)):
        searching = translator.reconfigured(translator.config.decoding.model_copy(update={"beam_size": beam}))
        found = teacher_of(searching, candidates=candidates).translate(LINES, 0, JOURNAL)
        assert found[1] == [Candidate("", 0.0, EMPTY)] and found[3] == [Candidate("", 0.0, TOO_LONG)]
        assert any(len(lines) == candidates for lines in found)
        n_best = searching.translate_n_best(LINES, candidates, skip_too_long=True)
        for index in (0, 2, 4, 5):
            assert [candidate.text for candidate in found[index]] == [as_cell(best.text) for best in n_best[index]]
            for candidate, best in zip(found[index], n_best[index], strict=True):
                [scores] = searching.token_scores([LINES[index]], [best.ids])
                assert candidate.score == pytest.approx(scores.mean(), abs=1e-3)
                assert candidate.problem == ("" if best.finished else CUT_OFF)

    # The number of a line selects its samples.
    teacher = teacher_of(translator, sampled=True, candidates=3)
    found = teacher.translate(LINES, 4, JOURNAL)
    assert [len(candidates) for candidates in found] == [3] * len(LINES)
    assert len({candidate.text for candidate in found[0]}) > 1
    assert found == teacher.translate(LINES, 4, JOURNAL) != teacher.translate(LINES, 5, JOURNAL)
    assert teacher.summary() == "" and not teacher.close()


def test_an_engine_without_scores_gives_none_and_confidence_takes_the_place_of_scores() -> None:
    translation = Translation("ein\ttext", [], True, [7, 1], -1.0, confidence=0.75)
    translator: Any = SimpleNamespace(find=lambda texts, options, **_: [[translation] for _ in texts])
    translator.engine, translator.languages = SimpleNamespace(only_greedy=True), ("en", "de")
    assert teacher_of(translator).translate(["a"], 0, JOURNAL) == [[Candidate("ein text")]]
    confident = TranslatorTeacher("run", translator, {}, sampled=False, candidates=1, confident=True)
    assert confident.translate(["a"], 0, JOURNAL) == [[Candidate("ein text", 0.75)]]


@pytest.mark.slow
@pytest.mark.parametrize("make", [npz_folder, safetensors_folder])
def test_a_marian_model_translates_like_its_import(make: Any, folder: Path) -> None:
    make(folder / "model")
    decoding = DecodingConfig(beam_size=2, max_length_extra=4)
    lines = ["im one two", "im seven", ""]
    for code in ("de", "fr"):
        teacher = open_marian(folder / "model", decoding, ("en", code), sampled=False, candidates=2)
        assert not Path("checkpoints").exists() and teacher.identity["languages"] == ["en", code]
        found = teacher.translate(lines, 0, JOURNAL)
        teacher.close()
        run, _ = import_model(folder / "model", f"opus-{code}", languages=("en", code))
        settings = {"beam_size": 2, "max_length_extra": 4, "length_penalty": decoding.length_penalty}
        with Translator.open(run, decoding=settings) as translator:
            assert found == teacher_of(translator, candidates=2).translate(lines, 0, JOURNAL)
        (folder / "checkpoints").rename(folder / f"imported-{code}")


def test_a_marian_model_needs_a_language_that_it_knows(folder: Path) -> None:
    npz_folder(folder / "model")
    for languages, problem in (((None, None), "several languages: fr, de"), (("en", "it"), "does not know this lang")):
        with pytest.raises(NmtError, match=problem):
            open_marian(folder / "model", DecodingConfig(), languages, sampled=False, candidates=1)
    (folder / "empty").mkdir()
    with pytest.raises(NotFoundError, match=r"has neither config\.json"):
        open_marian(folder / "empty", DecodingConfig(), ("en", "de"), sampled=False, candidates=1)
