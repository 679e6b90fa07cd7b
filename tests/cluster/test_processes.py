"""Workers as processes: the result of one, however many there are, and however they end.

Twenty kills instead of the suite's few: ``NMT_KILLS=20 pytest -m slow tests/cluster/test_processes.py -k killed -n 0``
"""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conftest import nmt, outcome, small_pairs, write_pickle

from nmt.cluster.layout import local_layouts
from nmt.runs.directory import Run

KILLS = int(os.environ.get("NMT_KILLS", "4"))
MODELS = {
    "transformer": "{encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}",
    "recurrent": "{architecture: recurrent, cell: lstm, layers: 2, width: 32, attention: general, step: luong}",
}
TRAINING = """
training:
  {epochs: 10, batch_size: 5, micro_batches: 4, warmup_steps: 30, log_every: 7, validate_every: 25, save_every: 9,
   decode_validation: 8, samples: 2, ema_decay: 0.99, clip_norm: 1.0, average_last: 2}
decoding: {batch_size: 3}
"""
LEAVE_SECONDS = 30
FLOAT32 = ["--config", "transformer.yaml", "--set", "training.precision=float32"]
SHORT_RUN = [*FLOAT32, "--set", "training.epochs=1"]
COMMAND = [sys.executable, "-c", "from nmt.cli.app import main; main()", "train"]
STUCK = """
import time
from nmt.cli.app import main
from nmt.training.optimization.step import TrainStep
TrainStep.add = lambda *_: time.sleep(1000)
main()
"""
CLUSTER_VARIABLES = ("TF_CONFIG", "SLURM_STEP_NUM_TASKS")


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


def start(folder: Path, *arguments: str, command: Sequence[str] = COMMAND, **environ: str) -> subprocess.Popen[str]:
    """Start training as a user does."""
    inherited = {name: value for name, value in os.environ.items() if name not in CLUSTER_VARIABLES}
    return subprocess.Popen(
        [*command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**inherited, **environ},
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(prepared: Path) -> Callable[..., dict[str, object]]:
    """Return a function of settings that returns the outcome of a run of one process with one thread."""

    @functools.cache
    def train_alone(*settings: str) -> dict[str, object]:
        return train(prepared, f"alone-{len(list(prepared.glob('checkpoints/alone-*')))}", *settings, "--threads", "1")

    return train_alone


def train(folder: Path, run: str, *arguments: str) -> dict[str, object]:
    """Train a run to its end and return its outcome."""
    process = start(folder, "--run", run, *arguments)
    output, errors = process.communicate(timeout=280)
    assert process.returncode == 0, f"{output}\n{errors}"
    return outcome(Run(folder / "checkpoints" / run))


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that a process has started."""
    try:
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(number) for number in text.split()]


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_step(run: Run, step: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while max(run.state_steps, default=0) < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


Alone = Callable[..., dict[str, object]]


def test_two_workers_end_with_the_bits_of_one(prepared: Path, alone: Alone) -> None:
    assert train(prepared, "both", *SHORT_RUN, "--workers", "2") == alone(*SHORT_RUN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "precision", "dataset", "counts"),
    [("transformer", "bfloat16", "sampled", ["2", "4"]), ("recurrent", "float32", "pairs", ["4"])],
)
def test_the_bits_do_not_depend_on_the_number_of_workers(
    prepared: Path, alone: Alone, model: str, precision: str, dataset: str, counts: list[str]
) -> None:
    """Averages, clipping, accumulation, validation amid epochs, and a short last step."""
    settings = [
        "--config", f"{model}.yaml", "--dataset", dataset, "--set", f"training.precision={precision}",
        "--set", "training.epochs=5",
    ]  # fmt: skip
    for workers in counts:
        assert train(prepared, f"{model}-{workers}", *settings, "--workers", workers) == alone(*settings)


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_workers(prepared: Path, alone: Alone) -> None:
    run = Run(prepared / "checkpoints" / "stopped")
    for workers, step, number in (("4", 20, signal.SIGTERM), ("2", 60, signal.SIGINT)):
        process = start(prepared, "--run", "stopped", *FLOAT32, "--workers", workers)
        wait_for_step(run, step, process)
        others = children(process)
        # Told to leave, any worker makes all leave after the same step.
        os.kill(process.pid if workers == "4" else others[0], number)
        _, errors = process.communicate(timeout=LEAVE_SECONDS)
        assert process.returncode == 128 + number if workers == "4" else process.returncode != 0
        assert "Go on with: nmt train --run stopped" in errors
        assert not any(is_running(other) for other in others)
    assert train(prepared, "stopped", *FLOAT32, "--threads", "1") == alone(*FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_whose_workers_are_killed_ends_bit_identical(prepared: Path, alone: Alone, number: int) -> None:
    """A worker that is killed or stands still stops all within seconds, in words; the same command goes on."""
    dice = random.Random(5)
    name = f"killed-{number}"
    run = Run(prepared / "checkpoints" / name)
    kills = KILLS if number == signal.SIGKILL else 1
    for kill in range(kills):
        process = start(prepared, "--run", name, *FLOAT32, "--workers", "2")
        while not children(process):
            time.sleep(0.05)
        # The moments are spread over the run, some before its first step.
        if kill:
            wait_for_step(run, 9 * (kill * 12 // kills), process)
        time.sleep(dice.uniform(0, 2) if kill else dice.uniform(5, 12))
        (other,) = children(process) or [None]
        if process.poll() is not None or other is None:
            break
        victim = dice.choice([process.pid, other]) if number == signal.SIGKILL else other
        os.kill(victim, number)
        struck = time.monotonic()
        _, errors = process.communicate(timeout=LEAVE_SECONDS)
        while is_running(other):
            assert time.monotonic() - struck < LEAVE_SECONDS
            time.sleep(0.1)
        if victim != process.pid:
            assert process.returncode == 2
            assert "Worker 1" in errors, errors
            assert "Traceback" not in errors
    assert train(prepared, name, *FLOAT32, "--workers", "2") == alone(*FLOAT32)


def cluster(kind: str, workers: int) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield what each worker of a cluster on this machine is told: arguments and variables."""
    addresses = [layout.address for layout in local_layouts(workers)]
    job = random.randrange(10_000)
    for rank in range(workers):
        if kind == "hosts":
            yield ["--hosts", ",".join(addresses), "--index", str(rank)], {}
        elif kind == "tf_config":
            told = {"cluster": {"chief": addresses[:1], "worker": addresses[1:]},
                    "task": {"type": "worker" if rank else "chief", "index": max(0, rank - 1)}}  # fmt: skip
            yield [], {"TF_CONFIG": json.dumps(told)}
        else:
            yield [], {
                "SLURM_STEP_NUM_TASKS": str(workers), "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank),
                "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "localhost",
                "SLURMD_NODENAME": "localhost",
            }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hosts", "tf_config", "slurm"])
def test_a_cluster_ends_with_the_bits_of_one(prepared: Path, alone: Alone, kind: str) -> None:
    processes = [
        start(prepared, "--run", kind, *SHORT_RUN, "--threads", "1", *told, **variables)
        for told, variables in cluster(kind, 2)
    ]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[1][0] == ""  # the chief speaks for all
    assert outcome(Run(prepared / "checkpoints" / kind)) == alone(*SHORT_RUN)


@pytest.mark.slow
def test_workers_that_differ_are_refused_before_anything_is_written(prepared: Path) -> None:
    settings, different = ["--run", "refused", *SHORT_RUN], ["--set", "training.label_smoothing=0.2"]
    processes = [
        start(prepared, *settings, *more, *arguments)
        for more, (arguments, _) in zip(([], different), cluster("hosts", 2), strict=True)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 2
        assert "nmt: Worker 1 (" in errors
        assert "training.label_smoothing 0.2 against 0.1" in errors
    assert not (prepared / "checkpoints" / "refused").exists()


@pytest.mark.slow
def test_a_worker_that_hangs_is_noticed(prepared: Path) -> None:
    """It answers TensorFlow's heartbeats, so that only the time it keeps the others waiting gives it away."""
    settings = ["--run", "hanging", "--config", "transformer.yaml", "--stall", "10"]
    told = [arguments for arguments, _ in cluster("hosts", 2)]
    stuck = start(prepared, *settings, *told[1], command=[sys.executable, "-c", STUCK, "train"])
    try:
        process = start(prepared, *settings, *told[0])
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 2
        assert "A worker has kept worker 0 (" in errors
        assert "waiting for 10 s" in errors
        assert not (prepared / "checkpoints" / "hanging").exists()
    finally:
        stuck.kill()
        stuck.communicate()
