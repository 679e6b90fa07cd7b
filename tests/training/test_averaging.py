"""The average that is asked for: that of training, validated as training does, and what translates from then on."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import nmt, small_pairs, write_pickle

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.prepare import prepare
from nmt.evaluation.validation_decoder import ValidationDecoder
from nmt.runs.directory import Run
from nmt.runs.weights import average_weights, choose_epoch
from nmt.storage.arrays import read_arrays
from nmt.storage.file_lock import locked
from nmt.training.averaging import average
from nmt.training.console import Console
from nmt.training.resume import apply_changes, check_changes, start_run
from nmt.training.trainer import Trainer

MODEL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}


def settings(**changes: object) -> Config:
    training = {"epochs": 8, "batch_size": 64, "warmup_steps": 20, "average_last": 2, "samples": 0, **changes}
    return Config.model_validate({"model": MODEL, "training": training})


def train(config: Config, dataset: Dataset) -> Run:
    run = Run(Path("checkpoints/run"))
    if run.config_path.exists():
        check_changes(run, config, dataset)
        apply_changes(run, config, dataset)
    else:
        start_run("run", config, dataset)
    Trainer(run, config, dataset, ValidationDecoder(config, dataset)).train([Console(8, 1000)])
    return run


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return prepare(write_pickle(tmp_path / "pairs.pkl", small_pairs(150)), Config().data, "pairs")


def test_it_is_the_average_that_training_ends_with(dataset: Dataset) -> None:
    config = settings(precision="bfloat16", batch_type="tokens", batch_size=400, decode_validation=4)
    run = train(config, dataset)
    by_training, content = run.average(), run.weights_path("average").read_bytes()
    assert by_training is not None
    assert by_training.validation_bleu is not None
    average(run, [1, 4, 8], None, ValidationDecoder)
    assert run.weights_path("average").read_bytes() != content
    assert average(run, [7, 8], dataset, ValidationDecoder) == by_training
    assert run.weights_path("average").read_bytes() == content


@pytest.mark.slow
def test_an_average_asked_for_stands_until_training_goes_on(dataset: Dataset) -> None:
    run = train(settings(), dataset)
    asked_for = average(run, [1, 4, 8], dataset, ValidationDecoder)
    assert run.average() == asked_for
    assert Trainer(run, settings(), dataset).is_finished
    again = train(settings(epochs=9), dataset).average()
    assert again is not None
    assert again.epochs == [8, 9]


def test_without_its_dataset_a_run_is_averaged_and_has_no_figures(dataset: Dataset) -> None:
    run = train(settings(epochs=2), dataset)
    assert choose_epoch(run, None) == run.best()
    metrics = average(run, [1, 2], None, ValidationDecoder)
    assert json.loads(run.metrics_path.read_text().splitlines()[-1]) == {
        "kind": "average", "epochs": [1, 2], "step": metrics.step,
    }  # fmt: skip
    assert choose_epoch(run, None) == "average"
    found, expected = read_arrays(run.weights_path("average")), average_weights(run, [1, 2])
    assert all((found[name] == array).all() for name, array in expected.items())


def test_after_a_line_that_was_cut_the_average_is_known(dataset: Dataset) -> None:
    run = train(settings(epochs=2), dataset)
    before = run.metrics()
    with run.metrics_path.open("ab") as file:
        file.write(b'{"kind":"average","epochs":[1')
    metrics = average(run, [1, 2], None, ValidationDecoder)
    assert run.metrics() == [*before, metrics]


# --- as a user types it


@pytest.mark.slow
def test_averaged_weights_are_validated_named_and_translated_with(project: Path) -> None:
    (project / "checkpoints/base/metrics.jsonl").unlink()  # it translates without, and so is averaged without
    asked = nmt("average", "--run", "base", "--last", "2", cwd=project)
    assert asked.stdout == (
        "Written to checkpoints/base/weights/average.safetensors; nmt translate --run base uses it now.\n"
    )
    last = json.loads((project / "checkpoints/base/metrics.jsonl").read_text().splitlines()[-1])
    assert asked.stderr == (
        f"average of epochs 1-2: validation loss {last['validation_loss']:.3f}, accuracy "
        f"{last['validation_accuracy']:.3f}\n"
    )
    assert last["epochs"] == [1, 2]
    shutil.rmtree(project / "data")
    gone = nmt("average", "--epochs", "1,2", cwd=project)
    assert gone.stderr.startswith(
        "Not validated: Dataset 'english-german-both', which run 'base' was trained on, is not in data/. "
    )
    assert gone.stderr.endswith("average of epochs 1-2: not validated\n")
    assert "not validated; nmt translate uses it" in nmt("info", cwd=project).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "Epochs come from --last N or --epochs 12-16,20; received neither. Give one of them.",
        ),
        (
            ["--last", "2", "--epochs", "1-2"],
            "Epochs come from --last N or --epochs 12-16,20; received both. Give one of them.",
        ),
        (["--last", "1"], "An average needs at least 2 epochs; received --last 1. Give more epochs."),
        (["--last", "-1"], "An average needs at least 2 epochs; received --last -1. Give more epochs."),
        (["--epochs", "2,2"], "An average needs at least 2 epochs; received --epochs 2,2. Give more epochs."),
        (["--last", "3"], "Run 'base' does not have the weights of the last 3 epochs. "),
        (["--epochs", "1-x"], "'1-x' names no epochs of run 'base'"),
        (["--run", "bse", "--last", "2"], "There is no run 'bse' in checkpoints/ (did you mean 'base'?)"),
    ],
)
def test_what_cannot_be_averaged_is_refused_in_words(trained_project: Path, arguments: list[str], message: str) -> None:
    before = (trained_project / "checkpoints/base/metrics.jsonl").read_bytes()
    assert message in nmt("average", *arguments, cwd=trained_project, code=2).stderr
    assert (trained_project / "checkpoints/base/metrics.jsonl").read_bytes() == before
    assert not (trained_project / "checkpoints/base/weights/average.safetensors").exists()


def test_a_run_in_training_is_not_averaged(project: Path) -> None:
    with locked(project / "checkpoints/base/lock", "Run 'base'"):
        refused = nmt("average", "--last", "2", cwd=project, code=2)
    assert "Run 'base' is in use by process " in refused.stderr


def test_damaged_weights_are_named_and_nothing_is_written(project: Path) -> None:
    weights = project / "checkpoints/base/weights"
    content = (weights / "epoch-0002.safetensors").read_bytes()
    (weights / "epoch-0002.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused = nmt("average", "--last", "2", cwd=project, code=2)
    assert "checkpoints/base/weights/epoch-0002.safetensors is damaged" in refused.stderr
    assert not (weights / "average.safetensors").exists()
