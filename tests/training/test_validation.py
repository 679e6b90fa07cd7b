"""A validation loss that is not finite: a message, and files as they were before."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import run_nmt

from nmt.runs.directory import Run
from nmt.runs.weights import save_weights
from nmt.storage.arrays import read_arrays

TOO_FAST = ("--set", "training.learning_rate_scale=1e30")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_last_good_weights_stay_and_training_goes_on_from_them(project: Path) -> None:
    run = Run(project / "checkpoints" / "base")
    step, best = run.state_steps[-1], run.best()
    before = {**files(run.folder / "weights"), **files(run.folder / "state")}
    longer = ("train", "--run", "base", "--set", "training.epochs=3", "--allow-changes")
    done = run_nmt(*longer, "--set", "training.validate_every=1", *TOO_FAST, cwd=project)
    assert done.code == 2
    assert f"validation loss after step {step + 1}; step {step} is the last one saved." in done.err
    assert run_nmt("train", "--run", "base", cwd=project).err.splitlines()[-1] == done.err.splitlines()[-1]
    assert {**files(run.folder / "weights"), **files(run.folder / "state")} == before
    assert run.best() == best
    for line in run.metrics_path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # NaN, Infinity
    assert len(run.validations()) == 2

    slower = ("--set", "training.validate_every=null", "--set", "training.learning_rate_scale=1")
    assert run_nmt(*longer, *slower, cwd=project).code == 0
    assert run.weights_epochs == [1, 2, 3]


def test_an_average_whose_loss_is_not_finite_is_not_written(project: Path) -> None:
    run = Run(project / "checkpoints" / "base")
    for epoch in (1, 2):
        arrays = read_arrays(run.weights_path(epoch))
        save_weights(run, {name: np.full_like(array, 1e38) for name, array in arrays.items()}, epoch)
    before = files(run.folder)
    done = run_nmt("average", "--last", "2", cwd=project)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("nmt: The validation loss of these weights is ")
    assert files(run.folder) == {**before, str(run.lock_path): b""}
