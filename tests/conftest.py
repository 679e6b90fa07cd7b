"""Fixtures that many tests share: a small corpus, a run on it, the real corpora."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.runs.directory import Run
from nmt.storage.arrays import checksum, read_arrays

ROOT = Path(__file__).resolve().parent.parent
CORPORA = os.environ.get("NMT_CORPORA")

SMALLEST = """
model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}
training: {epochs: 2, batch_size: 32, warmup_steps: 30, log_every: 5}
"""


def small_pairs(count: int = 300) -> list[tuple[str, str]]:
    """Return different pairs in which word i of the source is word i of the target: a model learns them in seconds."""
    numbers = ["one", "two", "three", "four", "five", "six", "seven"]
    german = ["eins", "zwei", "drei", "vier", "funf", "sechs", "sieben"]
    rows = [(f"im {numbers[a]} {numbers[b]} {numbers[c]}", f"ich bin {german[a]} {german[b]} {german[c]}")
            for a in range(7) for b in range(7) for c in range(7)]  # fmt: skip
    return [("im thirsty", "ich bin durstig"), *rows][:count]


def write_pickle(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """Write a corpus as the lesson has it, a pickled NumPy array of str, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(np.array(pairs), protocol=3))
    return path


def nmt(*arguments: str, cwd: Path, stdin: str | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, as a user does, and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", "from nmt.cli.app import main; main()", *arguments],
        cwd=cwd, input=stdin, capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def outcome(run: Run) -> dict[str, object]:
    """Return all that a run has come to, but the time it took."""
    arrays = {
        str(path.relative_to(run.folder)): checksum(read_arrays(path)) for path in run.folder.rglob("*.safetensors")
    }
    lines = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    metrics = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    return {**arrays, "metrics": metrics}


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of the real corpora."""
    if not CORPORA:
        pytest.skip("needs the real corpora; set NMT_CORPORA to their folder")
    folder = Path(CORPORA).expanduser()
    if not folder.is_dir():
        pytest.fail(f"NMT_CORPORA must name the folder of the real corpora; there is no folder {folder}")
    return folder


@pytest.fixture(scope="session")
def trained_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a prepared corpus and the trained run "base", by the commands of the README."""
    folder = tmp_path_factory.mktemp("project")
    write_pickle(folder / "data" / "english-german-both.pkl", small_pairs())
    (folder / "configs").mkdir()
    (folder / "configs" / "base.yaml").write_text(SMALLEST)
    nmt("prepare", "english-german-both.pkl", cwd=folder)
    nmt("train", "--config", "base.yaml", cwd=folder)
    return folder


@pytest.fixture
def project(trained_project: Path, tmp_path: Path) -> Path:
    """A copy of the trained project, for tests that change it."""
    return Path(shutil.copytree(trained_project, tmp_path / "project"))
