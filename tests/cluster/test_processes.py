"""Hosts as processes: the result does not depend on their number or on how they end.

Twenty kills instead of the suite's few: ``NMT_KILLS=20 pytest -m slow tests/cluster/test_processes.py -k killed -n 0``
"""

import contextlib
import functools
import json
import os
import random
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

from nmt.cluster import group
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
from nmt.training.optimization.shared_update import SharedUpdate
SharedUpdate.take = lambda *_: time.sleep(1000)
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
    """Return the environment that tells a host its rank by TF_CONFIG. The first host is the chief."""
    task = {"type": "worker" if rank else "chief", "index": max(0, rank - 1)}
    return {"TF_CONFIG": json.dumps({"cluster": {"chief": addresses[:1], "worker": addresses[1:]}, "task": task})}


def start_hosts(folder: Path, count: int, *arguments: str) -> list[subprocess.Popen[str]]:
    addresses = free_addresses(count)
    return [start(folder, *arguments, **told(addresses, rank)) for rank in range(count)]


def finished(folder: Path, run: str, processes: list[subprocess.Popen[str]]) -> dict[str, object]:
    """Wait until all processes have ended without an error, and return the outcome of the run."""
    outputs = [process.communicate(timeout=280) for process in processes]
    assert {process.returncode for process in processes} == {0}, outputs
    assert all(output == "" for output, _ in outputs[1:])  # the chief speaks for all
    return outcome(Run(folder / "checkpoints" / run))


@pytest.fixture(scope="module")
def alone(prepared: Path) -> Alone:
    """Return a function from settings to the outcome of a run of a single process."""

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


def wait_for_watchdog(process: subprocess.Popen[str]) -> None:
    """Wait until a host has started its watchdog, which it does just before TensorFlow joins the hosts.

    Libraries start programs of their own while they are imported, so any child process would not do.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    while True:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # the child has ended
                if group.WATCHDOG.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                    return
        time.sleep(0.1)


def annoy(addresses: list[str], processes: list[subprocess.Popen[str]]) -> None:
    """Send bytes that TensorFlow does not expect to all ports as long as the processes run."""
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
    """The run has averages, clipping, accumulation, validations within epochs and a short last step.

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
    """If any host is asked to stop, all hosts stop after the same step."""
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
    """A killed or stalled host ends the other with a message within a minute; the same command resumes."""
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
@pytest.mark.parametrize(
    ("more", "has_dataset", "message"),
    [
        (["--set", "training.label_smoothing=0.2"], True, "training.label_smoothing 0.2 against nothing"),
        ([], False, " missing or damaged against "),
    ],
)
def test_hosts_that_differ_are_refused_before_anything_is_written(
    prepared: Path, tmp_path: Path, more: list[str], has_dataset: bool, message: str
) -> None:
    addresses, settings = free_addresses(2), ["--run", "refused", *SHORT_RUN]
    folder = prepared if has_dataset else tmp_path
    processes = [
        start(prepared, *settings, **told(addresses, 0)), start(folder, *settings, *more, **told(addresses, 1))
    ]  # fmt: skip
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 2
        assert "nmt: Host 1 (" in errors
        assert message in errors
    assert not (prepared / "checkpoints" / "refused").exists()


@pytest.mark.slow
def test_hosts_besides_the_chief_need_the_dataset_alone(prepared: Path, alone: Alone, tmp_path: Path) -> None:
    """Other hosts train without the configuration file, resume without the run, and raise the chief's errors."""
    (tmp_path / "data").symlink_to(prepared / "data")

    def start_both(*arguments: str) -> list[subprocess.Popen[str]]:
        addresses, settings = free_addresses(2), ["--run", "chief", *arguments]
        return [start(folder, *settings, **told(addresses, rank)) for rank, folder in enumerate((prepared, tmp_path))]

    assert finished(prepared, "chief", start_both(*SHORT_RUN)) == alone(*SHORT_RUN)
    resumed = start_both()
    outputs = [process.communicate(timeout=100)[0] for process in resumed]
    assert "Run chief is finished: 1 epoch," in outputs[0] and outputs[1] == ""
    for process in start_both("--set", "training.label_smoothing=0.2"):
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 2
        assert "nmt: Run 'chief' was started with other settings or data: training.label_smoothing" in errors
    assert {path.name for path in tmp_path.iterdir()} == {"data"}


@pytest.mark.slow
def test_a_host_that_hangs_is_noticed(prepared: Path) -> None:
    """A stalled host answers TensorFlow's heartbeats. Only the waiting time of the other hosts reveals it."""
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
def test_the_wait_for_a_host_that_never_joins_ends(prepared: Path, number: int) -> None:
    """A program that is no host listens at the port of a host. Ctrl-C ends the wait before its limit."""
    addresses = free_addresses(2)
    seconds = 3 if number == signal.SIGKILL else 1000
    code = f"import nmt.cluster.group as group; group.JOIN_SECONDS = {seconds}; {MAIN}"
    with socket.create_server(("127.0.0.1", int(addresses[1][10:]))):
        process = start(prepared, "--run", "never", *SHORT_RUN, code=code, **told(addresses, 0))
        if number == signal.SIGINT:
            wait_for_watchdog(process)
            time.sleep(1)
            process.send_signal(number)
        _, errors = process.communicate(timeout=LEAVE_SECONDS)
    assert process.returncode == -number, errors
    words = "nmt: Host 0 has reached all other hosts, but TensorFlow has not joined them within 3 s."
    assert (words in errors) == (number == signal.SIGKILL)
    assert "Traceback" not in errors
