"""``nmt average``: its weights and scores are the same as in training, and ``nmt translate`` uses them afterwards."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import nmt
from tiny_runs import prepare_pairs, tiny, train, trainer_of

from nmt import load
from nmt.data.dataset import Dataset, open_dataset
from nmt.errors import ConflictError
from nmt.evaluation.validation_decoder import ValidationDecoder
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import average_weights, choose_epoch, save_weights
from nmt.storage.arrays import read_arrays
from nmt.storage.disk import DiskError
from nmt.storage.file_lock import locked
from nmt.training import stopping
from nmt.training.plan import decided
from nmt.training.stopping import average, average_runs

SETTINGS = {
    "epochs": 8, "average_last": 2, "precision": "bfloat16", "batch_type": "tokens", "batch_size": 400,
    "decode_validation": 4, "samples": 0,
}  # fmt: skip
CONFIG = tiny(**SETTINGS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset and a run that ended with the average of its last two epochs."""
    folder = tmp_path_factory.mktemp("averaged")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        dataset = prepare_pairs()
        train("run", CONFIG, dataset, decode=ValidationDecoder(decided(CONFIG, dataset), dataset))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of that folder as the working directory, and its run."""
    monkeypatch.chdir(shutil.copytree(trained, tmp_path / "copy"))
    return Run(Path("checkpoints/run"))


@pytest.fixture
def dataset(run: Run) -> Dataset:
    return open_dataset("pairs")


def test_the_average_equals_the_average_of_training(run: Run, dataset: Dataset) -> None:
    by_training, content = run.average(), run.weights_path("average").read_bytes()
    assert by_training is not None
    assert by_training.validation_bleu is not None
    average(run, [1, 4, 8], None, ValidationDecoder)
    assert run.weights_path("average").read_bytes() != content
    assert average(run, [7, 8], dataset, ValidationDecoder) == by_training
    assert run.weights_path("average").read_bytes() == content


@pytest.mark.slow
def test_an_average_asked_for_stands_until_training_goes_on(run: Run, dataset: Dataset) -> None:
    asked_for = average(run, [1, 4, 8], dataset, ValidationDecoder)
    assert run.average() == asked_for
    assert trainer_of(run.name, CONFIG, dataset).is_finished()
    longer = tiny(**{**SETTINGS, "epochs": 9})
    again = train("run", longer, dataset, decode=ValidationDecoder(decided(longer, dataset), dataset)).run.average()
    assert again is not None
    assert again.epochs == [8, 9]


def test_without_its_dataset_a_run_is_averaged_without_scores(run: Run) -> None:
    metrics = average(run, [1, 2], None, ValidationDecoder)
    assert json.loads(run.metrics_path.read_text().splitlines()[-1]) == {
        "kind": "average", "epochs": [1, 2], "step": metrics.step,
    }  # fmt: skip
    assert choose_epoch(run, None) == "average"
    written, expected = read_arrays(run.weights_path("average")), average_weights(run, [1, 2])
    assert all((written[name] == array).all() for name, array in expected.items())


def test_the_average_is_recorded_after_a_truncated_line(run: Run) -> None:
    before = run.metrics()
    with run.metrics_path.open("ab") as file:
        file.write(b'{"kind":"average","epochs":[1')
    metrics = average(run, [1, 2], None, ValidationDecoder)
    assert run.metrics() == [*before, metrics]


def test_the_average_of_runs_is_a_run_that_translates(run: Run, dataset: Dataset) -> None:
    weights = read_arrays(run.weights_path(8))
    copied = Run(shutil.copytree(run.folder, run.folder.with_name("other")))
    save_weights(copied, {name: array + 1e-3 for name, array in weights.items()}, 8)
    copied.write_config(tiny({"dropout": 0.3}, **SETTINGS))
    metrics = average_runs("both", [(run, 8), (copied, 8)], dataset, ValidationDecoder)
    both = Run(Path("checkpoints/both"))
    assert (both.config(), both.average(), choose_epoch(both, None)) == (run.config(), metrics, "average")
    assert (metrics.runs, metrics.epochs) == (["run:8", "other:8"], [8, 8])
    assert metrics.validation_bleu is not None
    made = read_arrays(both.weights_path("average"))
    assert all(made[name] == pytest.approx(array + 5e-4, abs=1e-6) for name, array in weights.items())
    assert len(load("both").translate(["im thirsty"])) == 1


@pytest.mark.parametrize("refused", ["save_weights", "append_metrics"])
def test_the_average_of_runs_appears_whole_or_not_at_all(
    run: Run, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(Path("checkpoints").rglob("*"))
    with monkeypatch.context() as patch, pytest.raises(DiskError, match="checkpoints/both cannot be written: No space"):
        patch.setattr(stopping if refused == "save_weights" else Run, refused, refuse)
        average_runs("both", [(run, 7), (run, 8)], None, ValidationDecoder)
    assert sorted(Path("checkpoints").rglob("*")) == before
    average_runs("both", [(run, 7), (run, 8)], None, ValidationDecoder)
    assert choose_epoch(find_run("both"), None) == "average"


def test_runs_of_other_vocabularies_have_no_average(run: Run) -> None:
    copied = Run(shutil.copytree(run.folder, run.folder.with_name("other")))
    copied.tokenizer_files[0].write_text("{}")
    with pytest.raises(ConflictError, match="'run' and 'other' differ in tokenizers"):
        average_runs("both", [(run, 8), (copied, 8)], None, ValidationDecoder)
    assert not Path("checkpoints/both").exists()


# --- as a user types it


@pytest.mark.slow
def test_averaged_weights_are_validated_named_and_translated_with(project: Path) -> None:
    (project / "checkpoints/base/metrics.jsonl").unlink()  # it translates without, and so is averaged without
    asked = nmt("average", "--run", "base", "--last", "2", cwd=project)
    assert "checkpoints/base/weights/average.safetensors" in asked.stdout
    last = json.loads((project / "checkpoints/base/metrics.jsonl").read_text().splitlines()[-1])
    assert last["epochs"] == [1, 2]
    assert f"validation loss {last['validation_loss']:.3f}" in asked.stderr
    shutil.rmtree(project / "data")
    gone = nmt("average", "--epochs", "1,2", cwd=project)
    assert gone.stderr.startswith("Not validated: Dataset 'english-german-both'")
    assert "not validated; nmt translate uses it" in nmt("info", cwd=project).stdout


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
