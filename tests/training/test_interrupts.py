"""Interrupted runs: killed or asked to stop at any moment, they resume and end in the bits of an uninterrupted run.

Thirty kills instead of the suite's few: ``NMT_KILLS=30 pytest -m slow tests/training/test_interrupts.py -n 0 -s``
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import nmt, outcome, small_pairs, write_pickle

from nmt.errors import ConflictError
from nmt.runs.directory import Run
from nmt.storage.file_lock import holder, locked
from nmt.training.interrupts import GracefulShutdown, StopRequested

KILLS = int(os.environ.get("NMT_KILLS", "2"))
MODELS = {
    "small.yaml": "{encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}",
    "recurrent.yaml": "{architecture: recurrent, cell: gru, width: 32, bidirectional: true, first_state: backward, "
    "attention: additive, step: bahdanau}",
}
TRAINING = """
training:
  {epochs: 3, batch_size: 4, micro_batches: 2, warmup_steps: 30, log_every: 7, validate_every: 25, save_every: 9,
   decode_validation: 8, samples: 2, max_to_keep: 2, ema_decay: 0.99, average_last: 2}
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    write_pickle(folder / "pairs.pkl", small_pairs())
    for name, model in MODELS.items():
        (folder / name).write_text(f"model: {model}\n{TRAINING}")
    nmt("prepare", "pairs.pkl", cwd=folder)
    return folder


def start(folder: Path, *arguments: str, config: str = "small.yaml") -> subprocess.Popen[str]:
    """Start training as a user does, in a process of its own."""
    command = [sys.executable, "-m", "nmt", "train", "--config", config, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def steps_of(run: Run) -> int:
    return max(run.state_steps, default=0)


# Each model and each precision once: all four pairs would take a minute longer.
@pytest.mark.slow
@pytest.mark.parametrize(("config", "precision"), [("small.yaml", "float32"), ("recurrent.yaml", "bfloat16")])
def test_a_run_that_is_killed_again_and_again_ends_bit_identical(prepared: Path, config: str, precision: str) -> None:
    name, settings = f"whole-{Path(config).stem}-{precision}", ["--set", f"training.precision={precision}"]
    started = time.monotonic()
    whole = start(prepared, "--run", name, *settings, config=config)
    _, said = whole.communicate(timeout=250)
    assert whole.returncode == 0, said
    seconds = time.monotonic() - started
    expected = outcome(Run(prepared / "checkpoints" / name))
    assert len(expected["metrics"]) > 20  # type: ignore[arg-type]

    moments = random.Random(name)
    run = Run(prepared / "checkpoints" / name.replace("whole", "killed"))
    kills, ends = 0, 0
    while kills < KILLS or not ends:
        process = start(prepared, "--run", run.name, *settings, config=config)
        try:
            # Anywhere in a whole run's time; every other one early, where there is most to lose.
            _, said = process.communicate(timeout=moments.uniform(0.5, seconds if kills < KILLS else 250))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, said
        ends += 1
        assert outcome(run) == expected
        if kills < KILLS:
            shutil.rmtree(run.folder)
    print(f"{config}, {precision}: {kills} kills, {ends} ends, all as of the run that was never killed")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_on_request_training_saves_stops_and_names_the_command_that_resumes(
    prepared: Path, number: signal.Signals, code: int
) -> None:
    run = Run(prepared / "checkpoints" / f"left-{code}")
    process = start(prepared, "--run", run.name, "--set", "training.epochs=500")
    while steps_of(run) < 9:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    refused = start(prepared, "--run", run.name, "--set", "training.epochs=500")  # a second one at the same time
    _, said = refused.communicate(timeout=100)
    assert refused.returncode == 2
    assert f"Run '{run.name}' is in use by process {process.pid} on " in said
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in said
    assert "Stopping after this step; the state is saved." in said
    step = steps_of(run)
    assert f"Saved at step {step:,}. Go on with: nmt train --run {run.name}" in said
    on = nmt("train", "--run", run.name, "--dry-run", cwd=prepared)
    assert f"Going on with run {run.name} after step {step:,}, in epoch " in on.stdout


def test_requests_are_recorded_and_raised_by_check() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with GracefulShutdown("Leaving.") as shutdown:
        shutdown.check()
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # a second request ends the process at once
        with pytest.raises(StopRequested):
            shutdown.check()
        assert shutdown.requested == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_lock_names_its_holder_and_is_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        locked(path, "The run"),
        pytest.raises(ConflictError, match=rf"The run is .* process {os.getpid()} on .*, since \d{{4}}-"),
        locked(path, "The run"),
    ):
        pass
    with locked(path, "The run"):
        assert holder(path) == (tmp_path / "lock.holder").read_text().strip()
    assert holder(path) is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["lock"]
