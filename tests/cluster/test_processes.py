"""Hosts as processes: the result of one, however many there are, and however they end.

Twenty kills instead of the suite's few: ``NMT_KILLS=20 pytest -m slow tests/cluster/test_processes.py -k killed -n 0``
"""

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_ports import free_addresses
from conftest import nmt, outcome, small_pairs, write_pickle

from nmt.runs.directory import Run

KILLS = int(os.environ.get("NMT_KILLS", "2"))
MODELS = {
    "transformer": "{encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}",
    "recurrent": "{architecture: recurrent, cell: lstm, layers: 2, width: 32, attention: general, step: luong}",
}
TRAINING = """
training:
  {epochs: 8, batch_size: 5, micro_batches: 4, warmup_steps: 30, log_every: 7, validate_every: 15, save_every: 9,
   decode_validation: 8, samples: 2, ema_decay: 0.99, clip_norm: 1.0, average_last: 2}
decoding: {batch_size: 3}
"""
LEAVE_SECONDS = 60
FLOAT32 = ["--config", "transformer.yaml", "--set", "training.precision=float32"]
SHORT_RUN = [*FLOAT32, "--set", "training.epochs=1"]
MAIN = "from nmt.cli.app import main; main()"
# A host that others wait for, though it answers TensorFlow's heartbeats.
IMPATIENT = "import nmt.cluster.group as group; group.STALL_SECONDS = 10.0; "
STUCK = f"""
import time
from nmt.training.optimization.update import Update
Update.take = lambda *_: time.sleep(1000)
{MAIN}
"""
Alone = Callable[..., dict[str, object]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    write_pickle(folder / "pairs.pkl", small_pairs())
    for name, model in MODELS.items():
        (folder / f"{name}.yaml").write_text(f"model: {model}\n{TRAINING}")
    nmt("prepare", "pairs.pkl", cwd=folder)
    sampled = ["tokenizer=subword", "vocabulary_size=60", "byte_fallback=false", "subword_sampling=true"]
    overrides = [word for key in sampled for word in ("--set", f"data.{key}")]
    nmt("prepare", "pairs.pkl", "--name", "sampled", *overrides, cwd=folder)
    return folder


def start(folder: Path, *arguments: str, code: str = MAIN, **environ: str) -> subprocess.Popen[str]:
    """Start training as a user does."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TF_CONFIG", "SLURM"))}
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**inherited, **environ},
    )  # fmt: skip


def told(addresses: list[str], rank: int) -> dict[str, str]:
    """Return what a host is told by TF_CONFIG: the first is the chief."""
    task = {"type": "worker" if rank else "chief", "index": max(0, rank - 1)}
    return {"TF_CONFIG": json.dumps({"cluster": {"chief": addresses[:1], "worker": addresses[1:]}, "task": task})}


def start_hosts(folder: Path, count: int, *arguments: str) -> list[subprocess.Popen[str]]:
    addresses = free_addresses(count)
    return [start(folder, *arguments, **told(addresses, rank)) for rank in range(count)]


def finished(folder: Path, run: str, processes: list[subprocess.Popen[str]]) -> dict[str, object]:
    """Wait until all have ended well, and return the outcome of the run."""
    outputs = [process.communicate(timeout=280) for process in processes]
    assert {process.returncode for process in processes} == {0}, outputs
    assert all(output == "" for output, _ in outputs[1:])  # the chief speaks for all
    return outcome(Run(folder / "checkpoints" / run))


@pytest.fixture(scope="module")
def alone(prepared: Path) -> Alone:
    """Return a function of settings that returns the outcome of a run of one process."""

    @functools.cache
    def train_alone(*settings: str) -> dict[str, object]:
        run = f"alone-{len(list(prepared.glob('checkpoints/alone-*')))}"
        return finished(prepared, run, [start(prepared, "--run", run, *settings)])

    return train_alone


def wait_for_step(run: Run, step: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while max(run.state_steps, default=0) < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def annoy(addresses: list[str], processes: list[subprocess.Popen[str]]) -> None:
    """Send bytes that are none of TensorFlow's to all ports, as long as the processes run."""
    while any(process.poll() is None for process in processes):
        for address in addresses:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(address[10:]))) as stranger:
                stranger.sendall(random.choice([b"GET / HTTP/1.1\r\n\r\n", random.randbytes(3000), b"\0" * 70_000]))
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "precision", "dataset", "count"),
    [("transformer", "bfloat16", "sampled", 2), ("recurrent", "float32", "pairs", 4)],
)  # fmt: skip
def test_the_bits_do_not_depend_on_the_number_of_hosts(
    prepared: Path, alone: Alone, model: str, precision: str, dataset: str, count: int
) -> None:
    """Averages, clipping, accumulation, validation amid epochs, a short last step.

    Two hosts are tasks of SLURM, whose variables name them; four are told by TF_CONFIG, and strangers send bytes.
    """
    settings = [
        "--config", f"{model}.yaml", "--dataset", dataset, "--set", f"training.precision={precision}",
        "--set", "training.epochs=3",
    ]  # fmt: skip
    step = {
        "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": str(random.randrange(10_000)), "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURMD_NODENAME": "localhost",
    }  # fmt: skip
    addresses, run = free_addresses(count), f"{model}-{count}"
    tasks = [{**step, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)} for rank in range(2)]
    environs = tasks if count == 2 else [told(addresses, rank) for rank in range(count)]
    processes = [start(prepared, "--run", run, *settings, **environ) for environ in environs]
    stranger = threading.Thread(target=annoy, args=(addresses, processes))
    stranger.start()
    assert finished(prepared, run, processes) == alone(*settings)
    stranger.join()


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_hosts(prepared: Path, alone: Alone) -> None:
    """Told to leave, any host makes all leave after the same step."""
    run = Run(prepared / "checkpoints" / "stopped")
    for count, step, number in ((4, 15, signal.SIGTERM), (2, 45, signal.SIGINT)):
        processes = start_hosts(prepared, count, "--run", "stopped", *FLOAT32)
        wait_for_step(run, step, processes[0])
        victim = processes[0 if count == 4 else 1]
        victim.send_signal(number)
        errors = [process.communicate(timeout=LEAVE_SECONDS)[1] for process in processes]
        assert victim.returncode == 128 + number
        assert all(process.returncode for process in processes)
        assert "Go on with: nmt train --run stopped" in errors[0]
    assert finished(prepared, "stopped", [start(prepared, "--run", "stopped", *FLOAT32)]) == alone(*FLOAT32)


@pytest.mark.slow
def test_a_run_whose_hosts_are_killed_ends_bit_identical(prepared: Path, alone: Alone) -> None:
    """A host that is killed or stands still stops the other within a minute, in words; the same command goes on."""
    dice = random.Random(5)
    name = "killed"
    run = Run(prepared / "checkpoints" / name)
    for kill in range(KILLS):
        processes = start_hosts(prepared, 2, "--run", name, *FLOAT32)
        victim = kill % 2
        # The moments are spread over the run.
        wait_for_step(run, 9 * (1 + kill * 11 // KILLS), processes[0])
        time.sleep(dice.uniform(0, 2))
        if any(process.poll() is not None for process in processes):
            break
        processes[victim].send_signal(signal.SIGSTOP if kill % 2 else signal.SIGKILL)
        _, errors = processes[1 - victim].communicate(timeout=LEAVE_SECONDS)
        assert processes[1 - victim].returncode == 2
        assert f"Host {victim} (127.0.0.1:" in errors and ") is gone" in errors
        assert "Traceback" not in errors
        processes[victim].kill()
        processes[victim].communicate()
    assert finished(prepared, name, start_hosts(prepared, 2, "--run", name, *FLOAT32)) == alone(*FLOAT32)


@pytest.mark.slow
def test_the_other_host_needs_the_files_that_the_readme_names_and_writes_none(prepared: Path, tmp_path: Path) -> None:
    """A new run, one that goes on without ``--config``, and one from the weights of a run; no disk is shared."""
    chief, other = (tmp_path / name for name in ("chief", "other"))
    for folder in (chief, other):
        shutil.copytree(prepared / "data" / "pairs", folder / "data" / "pairs")
        shutil.copyfile(prepared / "transformer.yaml", folder / "transformer.yaml")
        (folder / "tune.yaml").write_text(f"model: {{}}\n{TRAINING}")
    copied = {"first": [], "second": ["config.yaml", "dataset.json"], "third": ["config.yaml"]}
    commands = {
        "first": ["--run", "split", *SHORT_RUN],
        "second": ["--run", "split", "--set", "training.epochs=2"],
        "third": ["--config", "tune.yaml", "--from", "split", "--set", "training.epochs=1"],
    }
    for turn, command in commands.items():
        shutil.rmtree(other / "checkpoints", ignore_errors=True)
        for name in copied[turn]:
            (other / "checkpoints" / "split").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(chief / "checkpoints" / "split" / name, other / "checkpoints" / "split" / name)
        before = {path: path.stat().st_mtime_ns for path in other.rglob("*")}
        addresses = free_addresses(2)
        processes = [start(folder, *command, **told(addresses, rank)) for rank, folder in enumerate((chief, other))]
        made = Run(chief / "checkpoints" / ("tune" if turn == "third" else "split"))
        assert finished(chief, made.name, processes)
        assert len(made.epochs()) == (2 if turn == "second" else 1)
        assert {path: path.stat().st_mtime_ns for path in other.rglob("*")} == before


@pytest.mark.slow
def test_hosts_that_differ_are_refused_before_anything_is_written(prepared: Path) -> None:
    addresses = free_addresses(2)
    processes = [
        start(prepared, "--run", "refused", *SHORT_RUN, *more, **told(addresses, rank))
        for rank, more in enumerate(([], ["--set", "training.label_smoothing=0.2"]))
    ]
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 2
        assert "nmt: Host 1 (" in errors
        assert "training.label_smoothing 0.2 against 0.1" in errors
    assert not (prepared / "checkpoints" / "refused").exists()


@pytest.mark.slow
def test_a_host_that_hangs_is_noticed(prepared: Path) -> None:
    """It answers TensorFlow's heartbeats, so that only the time it keeps the others waiting gives it away."""
    addresses, settings = free_addresses(2), ["--run", "hanging", "--config", "transformer.yaml"]
    stuck = start(prepared, *settings, code=IMPATIENT + STUCK, **told(addresses, 1))
    try:
        process = start(prepared, *settings, code=IMPATIENT + MAIN, **told(addresses, 0))
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 2
        assert "A host has kept host 0 (" in errors
        assert "waiting for 10 s" in errors
        assert not (prepared / "checkpoints" / "hanging").exists()
    finally:
        stuck.kill()
        stuck.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_host_that_never_joins_is_not_waited_for_for_ever(prepared: Path, number: int) -> None:
    """At its port something listens that is not TensorFlow; Ctrl-C ends the wait before its limit does."""
    addresses = free_addresses(2)
    seconds = 3 if number == signal.SIGKILL else 1000
    code = f"import nmt.cluster.group as group; group.JOIN_SECONDS = {seconds}; {MAIN}"
    with socket.create_server(("127.0.0.1", int(addresses[1][10:]))):
        process = start(prepared, "--run", "never", *SHORT_RUN, code=code, **told(addresses, 0))
        if number == signal.SIGINT:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            while not children.read_text():  # the watchdog, which starts with TensorFlow's wait
                time.sleep(0.1)
            time.sleep(1)
            process.send_signal(number)
        _, errors = process.communicate(timeout=LEAVE_SECONDS)
    assert process.returncode == -number, errors
    words = "nmt: Host 0 has reached all others, and TensorFlow has not joined them within 3 s."
    assert (words in errors) == (number == signal.SIGKILL)
    assert "Traceback" not in errors
