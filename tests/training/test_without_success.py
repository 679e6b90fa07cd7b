"""Training that has finished and taught nothing."""

import math
from pathlib import Path

import numpy as np
import pytest
from conftest import an_epoch, nmt, small_pairs, write_tsv

from nmt.config.training import TrainingConfig
from nmt.data.token_arrays import Sequences
from nmt.training.divergence import loss_of_guessing, without_success

CONFIG = TrainingConfig()
GUESSING = 6.5


def losses(*validation_losses: float) -> str | None:
    """Judge epochs with these validation losses."""
    epochs = [an_epoch(number, validation_loss=loss) for number, loss in enumerate(validation_losses, start=1)]
    return without_success(epochs, GUESSING, CONFIG)


def test_guesses_know_how_often_training_has_each_id() -> None:
    train, validation = Sequences.from_rows([[4, 4], [4, 5]], 7), Sequences.from_rows([[4], [6, 5]], 7)
    shares = {"eos": 3 / 13, 4: 4 / 13, 5: 2 / 13, 6: 1 / 13}  # counts of 6 tokens, and one more of each of 7 ids
    expected = -np.mean([math.log(shares[id_]) for id_ in (4, "eos", 6, 5, "eos")])
    assert loss_of_guessing(train, validation, 7) == pytest.approx(expected)


def test_a_run_whose_every_loss_is_that_of_guesses_or_more_has_failed() -> None:
    assert "lowest validation loss is 7.000; guesses by how often each token occurs have 6.500" in str(losses(8, 7, 9))
    assert losses(6.5) is not None


def test_other_runs_are_no_failures() -> None:
    assert losses() is None, "nothing was validated"
    assert losses(6.4) is None, "a short run"
    assert losses(4.0, 7.5, 9.5) is None, "overfitted, or diverged after a useful start, whose best epoch is kept"


@pytest.mark.slow
@pytest.mark.parametrize("rate", [20, 1e-9], ids=["diverges", "stays"])
@pytest.mark.parametrize("architecture", ["transformer", "recurrent"])
def test_nmt_train_says_so_and_what_to_do(
    architecture: str, rate: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("small.tsv", small_pairs(100))
    nmt("prepare", "small.tsv", cwd=tmp_path)
    model = {
        "transformer": "model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}",
        "recurrent": "model: {architecture: recurrent, layers: 1, width: 32}",
    }[architecture]
    training = f"{{schedule: linear, peak_learning_rate: {rate}, warmup_steps: 1, epochs: 2, batch_size: 16}}"
    Path("rate.yaml").write_text(f"{model}\ntraining: {training}\n")
    command = ["train", "--config", "rate.yaml"]
    done = nmt(*command, cwd=tmp_path)
    ending = done.stdout.splitlines()[-1]
    assert ending.startswith("Training failed: ") and "Finished" not in ending
    assert (
        f"Start another run with a lower rate, such as --set training.peak_learning_rate={min(rate / 2, 5e-4):g}"
        in ending
    )
    assert "If the loss hardly changed, the run needs more epochs or a higher rate" in ending
    assert "epoch 2/2" in done.stderr and "best so far" not in done.stderr
    assert nmt(*command, cwd=tmp_path).stdout.splitlines()[-1].startswith("Training failed: ")
