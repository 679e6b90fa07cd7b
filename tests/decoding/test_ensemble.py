"""Ensembles: the mean of the probabilities of several models, in every search and in scores."""

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
    """Two runs of different sizes and other weights."""
    first, second = make_run("subword"), make_run("subword", d_model=48)
    arrays = read_arrays(second.weights_path(1))
    save_weights(second, {name: 1.5 * array for name, array in arrays.items()}, 1)
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "beams"),
    [(SearchOptions(scored=True), 1), (SearchOptions(n_best=3, scored=True), 3), (SearchOptions(True, scored=True), 1)],
    ids=["greedy", "beam", "sampled"],
)
def test_an_ensemble_of_a_run_with_itself_translates_as_the_run(
    runs: tuple[Run, Run], how: SearchOptions, beams: int
) -> None:
    settings: dict[str, Any] = {"beam_size": beams, "coverage_penalty": 0.2}
    alone = package.load(runs[0], decoding=settings)
    ensemble = package.load([runs[0].name, f"{runs[0].name}:1"], decoding=settings)
    assert ensemble.epoch == "1+1"
    for one, other in zip(alone.search(TEXTS, how), ensemble.search(TEXTS, how), strict=True):
        assert [each.text for each in one] == [each.text for each in other]
        np.testing.assert_allclose([each.score for each in one], [each.score for each in other], rtol=1e-4)
    pairs = TEXTS, ["ich bin eins schön", "ich", "durstig"]
    np.testing.assert_allclose(alone.score(*pairs), ensemble.score(*pairs), rtol=1e-4)


def mean_of_probabilities(translators: list[Translator], source: list[int], target: list[int]) -> np.ndarray:
    """Return the probabilities of the token after each prefix of a target, of whole passes without a cache: [T, V]."""
    read = tf.constant([[BOS, *source, EOS]], tf.int32)
    models: list[Seq2SeqModel] = [translator.engine.model for translator in translators]  # type: ignore[attr-defined]
    return np.mean([tf.nn.softmax(model(read, tf.constant([target], tf.int32)))[0] for model in models], axis=0)


@pytest.mark.slow
def test_an_ensemble_takes_the_mean_of_the_probabilities(runs: tuple[Run, Run]) -> None:
    alone, ensemble = [package.load(run) for run in runs], package.load([run.name for run in runs])
    assert isinstance(ensemble.engine.model, Ensemble)  # type: ignore[attr-defined]
    for text, found in zip(TEXTS, ensemble.translate_details(TEXTS), strict=True):
        source, target, total = ensemble.source.encode(text), [BOS], 0.0
        for _ in found.ids:
            probabilities = mean_of_probabilities(alone, source, target)[-1]
            target.append(int(np.where(np.isin(np.arange(len(probabilities)), [PAD, BOS]), 0, probabilities).argmax()))
            total += float(np.log(probabilities[target[-1]]))
        assert found.ids == target[1:]
        assert found.score == pytest.approx(total, rel=1e-4)
        given = [*ensemble.target.encode("ich bin eins"), EOS]
        probabilities = mean_of_probabilities(alone, source, [BOS, *given[:-1]])
        expected = np.log(probabilities[np.arange(len(given)), given]).sum()
        assert ensemble.score([text], ["ich bin eins"]) == [pytest.approx(float(expected), rel=1e-4)]


@pytest.mark.slow
def test_an_ensemble_is_scored_beside_its_runs(runs: tuple[Run, Run]) -> None:
    names = [run.name for run in runs]
    systems = evaluate([*names, f"{names[0]}:1+{names[1]}"], resamples=0).record.systems
    assert [(system.name, system.epoch) for system in systems][2] == (f"{names[0]}:1+{names[1]}", "1+1")


def test_runs_of_other_tokens_are_refused(make_run: MakeRun) -> None:
    first, *others = make_run("subword"), make_run("bpe"), make_run("subword", source_bos=False)
    for other, difference in zip(others, ["different tokenizers", "source_bos"], strict=True):
        with pytest.raises(package.ConflictError, match=difference):
            package.load([first.name, other.name])
    with pytest.raises(package.NmtError, match="translates alone"):
        package.load([first.name, first.name], export="ctranslate2-int8")
