"""``nmt demo --lesson``: corpus, dataset, run, curves and the two sentences by epoch, in one command."""

import re
from pathlib import Path

import pytest
from conftest import small_pairs, write_pickle

from nmt.cli.commands.demo import demo

SMALL = """
data: {dataset: english-german-curves}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, d_ff: 32, heads: 2}
training: {epochs: 5, average_last: 1}
"""


@pytest.mark.slow
def test_the_lesson_in_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "book-curves.yaml").write_text(SMALL)
    corpus = write_pickle(tmp_path / "english-german-both.pkl", small_pairs(150))

    def fetched(name: str) -> None:
        (tmp_path / "data").mkdir()
        corpus.with_suffix(".moved").rename(tmp_path / "data" / f"{name}.pkl")

    corpus.rename(corpus.with_suffix(".moved"))
    monkeypatch.setattr("nmt.cli.commands.fetch.fetch", fetched)
    demo(lesson=True)
    printed = capsys.readouterr().out
    assert (tmp_path / "checkpoints" / "book-curves" / "plots" / "losses.png").is_file()
    scores = re.search(r"^Epoch 4: training loss [\d.]+, validation loss [\d.]+\n((?:  .*\n){2})", printed, re.M)
    rows = scores[1].splitlines()
    assert [row.split("  ->  ")[0].strip() for row in rows] == ["im thirsty", "are we done"]
    assert rows[1].endswith("(reference: sind wir dann durch)")
    assert "Epoch 16" not in printed
    monkeypatch.setattr("nmt.cli.commands.fetch.fetch", None)
    demo(lesson=True)  # all of it is there
    again = capsys.readouterr().out
    assert "Already prepared" in again
    assert scores[0] in again
