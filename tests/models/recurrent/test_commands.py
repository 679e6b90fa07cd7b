"""Recurrent models behind the commands: trained, searched, scored, evaluated, measured, shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nmt as command
from conftest import small_pairs, write_pickle

import nmt
from nmt.runs.directory import find_run

pytestmark = pytest.mark.slow

CONFIGS = {
    "bahdanau": "cell: gru, bidirectional: true, first_state: backward, attention: additive, step: bahdanau",
    "luong": "cell: lstm, attention: general, input_feeding: true, window: local-p, window_half_width: 3",
    "lstm": "attention: none, reverse_source: true",
}
TRAINING = """
training: {epochs: 12, batch_size: 16, schedule: linear, peak_learning_rate: 0.005, warmup_steps: 20, samples: 1,
  decode_validation: 5, average_last: 2}
"""
SENTENCE = "im one two three"


@pytest.fixture(scope="module", params=CONFIGS)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A project folder with run "whole" of an architecture."""
    folder = tmp_path_factory.mktemp(request.param)
    write_pickle(folder / "pairs.pkl", small_pairs())
    (folder / "recurrent.yaml").write_text(
        f"model: {{architecture: recurrent, width: 48, dropout: 0.1, {CONFIGS[request.param]}}}\n{TRAINING}"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        nmt.prepare("pairs.pkl", config="recurrent.yaml")
        nmt.train("recurrent.yaml", run="whole")
        yield request.param


def test_it_learns_to_translate(project: str) -> None:
    run = find_run("whole")
    losses = [epoch.validation_loss for epoch in run.epochs()]
    assert losses[-1] < losses[0] / 2
    found, empty = nmt.load("whole").translate([SENTENCE, ""])
    assert found.startswith("ich bin ") and not empty
    assert nmt.evaluate(["whole"]).record.scores.systems["whole"]


def test_every_search_and_its_scores(project: str) -> None:
    translator = nmt.load("whole")
    beam = nmt.load("whole", decoding={"beam_size": 4}).translate_n_best([SENTENCE], 3)[0]
    scores = [found.score for found in beam]
    assert len(beam) == 3 and scores == sorted(scores, reverse=True)
    details = translator.translate_details([SENTENCE])[0]
    np.testing.assert_allclose(translator.score([SENTENCE], [details.text]), [details.score], rtol=1e-4, atol=1e-4)
    assert translator.translate([SENTENCE], sample=True)
    if project != "lstm":
        assert nmt.load("whole", decoding={"beam_size": 4, "coverage_penalty": 0.2}).translate([SENTENCE])


def test_the_commands(project: str) -> None:
    folder = Path.cwd()
    prefixed = command("translate", "--prefix", "ich bin", "--beam", "3", "--n-best", "2", SENTENCE, cwd=folder).stdout
    assert all("ich bin" in line for line in prefixed.splitlines())
    aligned = command("translate", "--alignment", SENTENCE, cwd=folder, code=2 if project == "lstm" else 0)
    assert ("has no attention" in aligned.stderr) == (project == "lstm")
    info = command("info", "--run", "whole", cwd=folder).stdout
    assert "cell_1" in info and "architecture: recurrent" in info and ("attention  " in info) == (project != "lstm")
    bench = ["bench", "--config", "recurrent.yaml", "--generated", "--vocabulary", "50", "--seconds", "0", "--json"]
    assert json.loads(command(*bench, cwd=folder).stdout)["training"]["flops_per_second"] > 0
