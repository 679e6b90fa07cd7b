"""Translation shared among processes: the output of one, in order; whole or absent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import nmt, nmt_process, small_pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a text."""
    lines = [source for source, _ in small_pairs(343)] + ["", "xylophone im one", "im " + "two " * 40]
    path = tmp_path_factory.mktemp("shared") / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        ([], "3"),
        (["--beam", "3", "--n-best", "2", "--alignment", "--batch-size", "7"], "2"),
        (["--sample", "--seed", "5", "--batch-size", "16", "--prefix", "ich"], "2"),
    ],
    ids=str,
)
def test_translations_are_those_of_one_process(
    trained_project: Path, text: str, options: list[str], workers: str
) -> None:
    command = ["translate", "--input", text, *options]
    alone = nmt(*command, cwd=trained_project)
    shared = nmt_process(*command, "--workers", workers, cwd=trained_project)
    assert (shared.stdout, shared.stderr) == (alone.stdout, alone.stderr)


def test_scores_are_those_of_one_process(trained_project: Path, tmp_path: Path) -> None:
    command = ["evaluate", "--batch-size", "5", "--output"]
    nmt(*command, str(tmp_path / "alone.txt"), cwd=trained_project)
    nmt_process(*command, str(tmp_path / "shared.txt"), "--workers", "2", cwd=trained_project)
    assert (tmp_path / "alone.txt").read_text() == (tmp_path / "shared.txt").read_text()


def test_a_process_that_is_killed_is_named_and_nothing_is_written(trained_project: Path, text: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", "translate", "--input", text, "--workers", "2"], cwd=trained_project,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    others: list[str] = []
    while not others:
        assert process.poll() is None
        others = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        time.sleep(0.05)
    os.kill(int(others[0]), signal.SIGKILL)
    output, errors = process.communicate(timeout=100)
    assert (process.returncode, output) == (2, "")
    assert errors.startswith("nmt: Worker 1 ended with exit code -9: it said nothing. Nothing was written.")


def test_scoring_of_pairs_is_not_shared(trained_project: Path) -> None:
    done = nmt("translate", "--score", "--workers", "2", cwd=trained_project, code=2)
    assert "--workers 2 shares the lines of a file" in done.stderr
