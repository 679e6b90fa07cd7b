"""``nmt demo --lesson`` makes corpus, dataset, run, translations of two sentences by epoch, and curves."""

from pathlib import Path

import pytest
from conftest import run_nmt, small_pairs, write_pickle

from nmt.data.sources import public

SMALL = """
data: {dataset: english-german-curves}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, d_ff: 32, heads: 2}
training: {epochs: 16, average_last: 1, max_to_keep: null}
"""


@pytest.mark.slow
def test_the_lesson_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "book-curves.yaml").write_text(SMALL)

    def fetched(file: public.PublicFile, folder: Path) -> Path:
        return write_pickle(folder / file.name, small_pairs(150))

    (tmp_path / "data").mkdir()
    monkeypatch.setattr(public, "fetch", fetched)
    printed = run_nmt("demo", "--lesson").out
    assert (tmp_path / "checkpoints" / "book-curves" / "plots" / "losses.png").is_file()
    typed = [line.split()[2] for line in printed.splitlines() if line.startswith("$ nmt ")]
    assert typed == ["fetch", "prepare", "train", "translate", "translate", "plot"]
    translations = printed.split('--epoch 4 "im thirsty" "are we done"\n')[1].split("\n\n")[0]
    assert len(translations.splitlines()) == 2
    again = run_nmt("demo", "--lesson").out  # all of it is there
    assert "$ nmt fetch" not in again and "Already prepared" in again and "is finished" in again
    assert translations in again
