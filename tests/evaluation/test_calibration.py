"""Confidence: fit, measurement, and the file in runs, exports, service answers and reports."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import nmt

import nmt as package
from nmt.decoding.translation import Translation
from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.evaluation.calibration import _fit, _reliability, _right_words
from nmt.reporting.facts import RunFacts
from nmt.runs.calibration import CHECK_BELOW, probability, read_calibration
from nmt.runs.directory import Run
from nmt.runs.weights import choose_epoch, save_weights
from nmt.storage.arrays import read_arrays, read_checksum
from nmt.text.confidence import add_confidence
from nmt.text.glossary import read_glossary
from nmt.text.translator import TextOptions


def test_the_fit_finds_the_probabilities_of_what_it_is_fitted_to() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=[20_000, 3]) * [1.0, 0.2, 3.0]
    wanted = np.array([0.5, 1.0, -2.0, 0.3])
    true = random.random(len(features)) < probability(wanted, features)
    weights = _fit(features, true)
    np.testing.assert_allclose(weights, wanted, atol=0.3)
    measured = _reliability(probability(weights, features), true)
    assert measured.error < 0.015 and measured.predicted == sorted(measured.predicted)
    wrong = _reliability(probability(3 * weights, features), true)
    assert wrong.error > 3 * measured.error


def test_a_fit_to_one_outcome_and_a_few_sentences_is_finite() -> None:
    features = np.array([[-0.1, -0.2, 1.0], [-0.5, -1.0, 2.0]])
    for true in ([True, True], [False, False], [True, False]):
        assert np.isfinite(probability(_fit(features, np.array(true)), features)).all()


def test_a_word_is_right_as_often_as_the_reference_has_it() -> None:
    assert _right_words("ein Hund und ein Hund", "ein Hund und eine Katze") == [True, True, True, False, False]
    assert _right_words("", "ein") == []
    assert _right_words("犬が猫を見た。", "猫が犬を見る。") == [True, True, True, True, True, False]


@pytest.mark.slow
def test_a_run_is_calibrated_and_tells_confidence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [plain] = json.loads(nmt("translate", "--json", "im one", cwd=project).stdout)["translations"]
    assert "confidence" not in plain
    report = nmt("evaluate", "--calibrate", "--json", "--resamples", "0", cwd=project).stdout
    stored = json.loads((project / "checkpoints" / "base" / "confidence.json").read_text())
    assert json.loads(report)["confidence"] == stored and stored["format"] == 2
    lines = nmt("translate", "--json", "im one two", "", cwd=project).stdout.splitlines()
    [translation], [empty] = (json.loads(line)["translations"] for line in lines)
    assert 0 < translation["confidence"] < 1
    assert translation["check"] == (translation["confidence"] < CHECK_BELOW)
    assert [word for word, _ in translation["words"]] == translation["text"].split()
    assert "confidence" not in empty
    nmt("report", "--no-scores", "--no-attention", cwd=project)
    assert "Confidence of words of base" in (project / "checkpoints" / "base" / "report.html").read_text()

    monkeypatch.chdir(project)
    translator = package.load("base")
    [[best]], [[plain]] = (
        translator.find(["im one two"], TextOptions(confident=True)),
        translator.find(["im one two"]),
    )
    assert best.confidence == pytest.approx(translation["confidence"], abs=1e-4) and plain == best._replace(
        confidence=None, words=()
    )
    (project / "terms.tsv").write_text("one\tzwei\n")
    glossary = read_glossary("terms.tsv", translator.target)
    [[own]] = translator.find(["im one two"], TextOptions(confident=True, glossary=glossary))
    assert dict(own.words)["zwei"] == max(chance for _, chance in own.words)  # a term is no doubt of the model
    [[both]] = translator.find(["im one two. im six"], TextOptions(confident=True))
    assert len(both.words) == len(both.text.split()) and both.confidence is not None
    skipped = Translation("", [], False, [])  # of a line that is longer than the model reads
    assert add_confidence(translator, translator.calibration, None, ["im one " * 99], [[skipped]]) == [[skipped]]


def test_a_calibration_of_other_weights_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    run, measured = Run(tmp_path), {"predicted": [0.5], "observed": [0.5], "error": 0.0}
    weights = {"sentence": [0.0] * 4, "word": [0.0] * 4, "sentences": measured, "words": measured, "found": 0.1}
    values = {"format": 1, "epoch": 3, "good": 47, **weights}
    with pytest.raises(NotFoundError, match="--calibrate"):
        read_calibration(run, 3)
    run.confidence_path.write_text(json.dumps(values))
    assert read_calibration(run, 3) == read_calibration(run)
    with pytest.raises(ConflictError, match="was fitted to epoch 3; received epoch average"):
        read_calibration(run, "average")
    assert read_calibration(run, 3, "a1") == read_calibration(run)  # format 1 does not say its weights
    run.confidence_path.write_text(json.dumps(values | {"format": 2, "weights": "a1"}))
    assert read_calibration(run, 3, "a1").weights == "a1"
    with pytest.raises(ConflictError, match="fitted to other weights: the SHA-256 of epoch 3"):
        read_calibration(run, 3, "b2")
    for changed in ({"format": 3}, {"word": "x"}, {"more": 1}):
        run.confidence_path.write_text(json.dumps(values | changed))
        with pytest.raises(DataError):
            read_calibration(run, 3)


def test_weights_of_the_same_name_do_not_inherit_the_confidence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    run, measured = Run(Path("checkpoints/base")), {"predicted": [0.5], "observed": [0.5], "error": 0.0}
    epoch = choose_epoch(run, None)
    values = {"epoch": epoch, "good": 47, "sentence": [0.0] * 4, "word": [0.0] * 4, "sentences": measured,
              "words": measured, "found": 0.1}  # fmt: skip
    newer = {"format": 2, "weights": read_checksum(run.weights_path(epoch)), **values}
    run.confidence_path.write_text(json.dumps(newer))
    assert "Note: the confidence" not in nmt("translate", "--json", "im one", cwd=project).stderr
    nmt("export", "--to", "ctranslate2", cwd=project)
    assert RunFacts(run).calibration is not None
    weights = read_arrays(run.weights_path(epoch))
    save_weights(run, {name: -array for name, array in weights.items()}, epoch)
    assert "confidence" not in json.loads(nmt("translate", "--json", "im one", cwd=project).stdout)["translations"][0]
    with pytest.raises(ConflictError, match=r"fitted to other weights.*calibrate"):
        read_calibration(run, epoch, read_checksum(run.weights_path(epoch)))
    assert RunFacts(run).calibration is None
    # The export has the weights that the confidence was fitted to, and says whose they are.
    exported = ["translate", "--export", "ctranslate2-float32", "im one"]
    [translation] = json.loads(nmt(*exported, "--json", cwd=project).stdout)["translations"]
    assert "confidence" in translation
    refused = nmt(*exported, "--epoch", str(epoch), cwd=project, code=2).stderr
    assert "was made from weights that differ" in refused
    folder = "./checkpoints/base/exports/ctranslate2-float32"
    refused = nmt("translate", "--export", folder, "--epoch", "99", "im one", cwd=project, code=2).stderr
    assert "received --epoch 99" in refused
    run.confidence_path.write_text(json.dumps({"format": 1, **values}))
    assert "Note: the confidence" in nmt("translate", "--json", "im one", cwd=project).stderr
