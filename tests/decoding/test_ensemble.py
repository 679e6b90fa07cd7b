"""Ensembles: every search and all scores use the mean of several models' probabilities."""

from typing import Any

import numpy as np
import pytest
from conftest import MakeRun

import nmt as package
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.translation import SearchOptions
from nmt.evaluation.evaluate import evaluate
from nmt.models.base import Seq2SeqModel
from nmt.runs.directory import Run
from nmt.runs.weights import save_weights
from nmt.runtime import tf
from nmt.storage.arrays import read_arrays
from nmt.text.translator import Translator
from nmt.tokenizers.base import BOS, EOS, PAD

TEXTS = ["im one two three!", "im seven!", "im thirsty!"]


@pytest.fixture
def runs(make_run: MakeRun) -> tuple[Run, Run]:
    """Two runs with different sizes and weights."""
    first, second = make_run("subword"), make_run("subword", d_model=48)
    arrays = read_arrays(second.weights_path(1))
    save_weights(second, {name: 1.5 * array for name, array in arrays.items()}, 1)
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "beams"),
    [(SearchOptions(scored=True), 1), (SearchOptions(n_best=3, scored=True), 3), (SearchOptions(True, scored=True), 1)],
    ids=["greedy", "beam", "sampled"],
)
def test_an_ensemble_of_a_run_with_itself_translates_as_the_run(
    runs: tuple[Run, Run], options: SearchOptions, beams: int
) -> None:
    settings: dict[str, Any] = {"beam_size": beams, "coverage_penalty": 0.2}
    single = package.load(runs[0], decoding=settings)
    ensemble = package.load([runs[0].name, f"{runs[0].name}:1"], decoding=settings)
    assert ensemble.epoch == "1+1"
    for expected, n_best in zip(single.search(TEXTS, options), ensemble.search(TEXTS, options), strict=True):
        assert [translation.text for translation in n_best] == [translation.text for translation in expected]
        scores = [[translation.score for translation in translations] for translations in (n_best, expected)]
        np.testing.assert_allclose(*scores, rtol=1e-4)
    pairs = TEXTS, ["ich bin eins schön", "ich", "durstig"]
    np.testing.assert_allclose(single.score(*pairs), ensemble.score(*pairs), rtol=1e-4)


def mean_of_probabilities(translators: list[Translator], source: list[int], target: list[int]) -> np.ndarray:
    """Return the next-token probabilities after each prefix of a target, computed without a cache: [T, V]."""
    source_ids = tf.constant([[BOS, *source, EOS]], tf.int32)
    models: list[Seq2SeqModel] = [translator.engine.model for translator in translators]  # type: ignore[attr-defined]
    return np.mean([tf.nn.softmax(model(source_ids, tf.constant([target], tf.int32)))[0] for model in models], axis=0)


@pytest.mark.slow
def test_an_ensemble_takes_the_mean_of_the_probabilities(runs: tuple[Run, Run]) -> None:
    members, ensemble = [package.load(run) for run in runs], package.load([run.name for run in runs])
    assert isinstance(ensemble.engine.model, Ensemble)  # type: ignore[attr-defined]
    for text, translation in zip(TEXTS, ensemble.translate_details(TEXTS), strict=True):
        source, target, total = ensemble.source.encode(text), [BOS], 0.0
        for _ in translation.ids:
            probabilities = mean_of_probabilities(members, source, target)[-1]
            target.append(int(np.where(np.isin(np.arange(len(probabilities)), [PAD, BOS]), 0, probabilities).argmax()))
            total += float(np.log(probabilities[target[-1]]))
        assert translation.ids == target[1:]
        assert translation.score == pytest.approx(total, rel=1e-4)
        reference = [*ensemble.target.encode("ich bin eins"), EOS]
        probabilities = mean_of_probabilities(members, source, [BOS, *reference[:-1]])
        expected = np.log(probabilities[np.arange(len(reference)), reference]).sum()
        assert ensemble.score([text], ["ich bin eins"]) == [pytest.approx(float(expected), rel=1e-4)]


@pytest.mark.slow
def test_an_ensemble_is_scored_beside_its_runs(runs: tuple[Run, Run]) -> None:
    names = [run.name for run in runs]
    systems = evaluate([*names, f"{names[0]}:1+{names[1]}"], resamples=0).record.systems
    assert [(system.name, system.epoch) for system in systems][2] == (f"{names[0]}:1+{names[1]}", "1+1")


def test_runs_with_different_tokens_are_refused(make_run: MakeRun) -> None:
    first, *unlike = make_run("subword"), make_run("bpe"), make_run("subword", source_bos=False)
    for run, difference in zip(unlike, ["different tokenizers", "source_bos"], strict=True):
        with pytest.raises(package.ConflictError, match=difference):
            package.load([first.name, run.name])
    with pytest.raises(package.NmtError, match="translates alone"):
        package.load([first.name, first.name], export="ctranslate2-int8")
