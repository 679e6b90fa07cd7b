"""Training that has finished and taught nothing."""

from pathlib import Path

import pytest
from conftest import an_epoch, nmt, small_pairs, write_tsv

from nmt.config.training import TrainingConfig
from nmt.training.divergence import without_success

CONFIG = TrainingConfig()
IDS = 1000  # whose logarithm is 6.908


def losses(*pairs: tuple[float, float], bleu: float | None = 0.0) -> str | None:
    """Judge epochs with these losses of training and validation."""
    epochs = [
        an_epoch(number, train_loss=train, validation_loss=validation, validation_bleu=bleu)
        for number, (train, validation) in enumerate(pairs, start=1)
    ]
    return without_success(epochs, IDS, CONFIG)


def test_a_loss_above_that_of_guessing_is_a_failure() -> None:
    assert "no validation loss is below 6.908, that of guessing among 1,000 ids" in str(losses((9.0, 8.0), (8.5, 7.0)))


def test_a_loss_that_stays_where_it_began_is_a_failure_without_translations() -> None:
    stays = (5.0, 5.1), (4.9, 5.0), (5.2, 5.3)
    assert "was 5.000 in the first epoch and is 5.200 in the last" in str(losses(*stays))
    assert losses(*stays, bleu=None) is not None
    assert losses(*stays, bleu=12.0) is None


def test_other_runs_are_no_failures() -> None:
    assert losses() is None, "nothing was validated"
    assert losses((6.5, 6.0)) is None, "a single epoch"
    assert losses((6.5, 6.0), (6.0, 5.5)) is None, "a short run"
    assert losses((5.0, 4.0), (1.0, 7.5), (0.1, 9.5)) is None, "overfitted"
    assert losses((1.2, 1.3), (1.3, 1.3)) is None, "fine-tuned, near its best"


@pytest.mark.parametrize("architecture", ["transformer", "recurrent"])
def test_nmt_train_says_so_and_what_to_do(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("small.tsv", small_pairs(100))
    nmt("prepare", "small.tsv", cwd=tmp_path)
    model = {
        "transformer": "model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}",
        "recurrent": "model: {architecture: recurrent, layers: 1, width: 32}",
    }[architecture]
    training = "{schedule: linear, peak_learning_rate: 20, warmup_steps: 1, epochs: 2, batch_size: 16}"
    Path("fast.yaml").write_text(f"{model}\ntraining: {training}\n")
    command = ["train", "--config", "fast.yaml"]
    ending = nmt(*command, cwd=tmp_path).stdout.splitlines()[-1]
    assert ending.startswith("Training failed: ") and "Finished" not in ending
    assert "Start another run with a lower rate, such as --set training.peak_learning_rate=10" in ending
    assert nmt(*command, cwd=tmp_path).stdout.splitlines()[-1].startswith("Training failed: ")
