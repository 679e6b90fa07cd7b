"""Translation shared among processes: the output of one, in order; whole or absent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SMALLEST, nmt, nmt_process, small_pairs, write_pickle

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    write_pickle(folder / "pairs.pkl", small_pairs())
    (folder / "small.yaml").write_text(SMALLEST)
    nmt("prepare", "pairs.pkl", cwd=folder)
    nmt("train", "--config", "small.yaml", cwd=folder)
    lines = [source for source, _ in small_pairs(343)] + ["", "xylophone im one", "im " + "two " * 40]
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--beam", "3", "--n-best", "2"],
        ["--alignment", "--batch-size", "7"],
        ["--sample", "--seed", "5", "--batch-size", "16"],
        ["--prefix", "ich"],
    ],
    ids=str,
)
def test_translations_are_those_of_one_process(project: Path, options: list[str]) -> None:
    command = ["translate", "--input", "in.txt", *options]
    alone = nmt(*command, cwd=project)
    shared = nmt_process(*command, "--workers", "2" if options else "3", cwd=project)
    assert shared.stdout == alone.stdout
    assert shared.stderr == alone.stderr


def test_scores_are_those_of_one_process(project: Path) -> None:
    command = ["evaluate", "--batch-size", "5", "--output"]
    for run, name, more in ((nmt, "alone.txt", []), (nmt_process, "shared.txt", ["--workers", "2"])):
        run(*command, name, *more, cwd=project)
    assert (project / "alone.txt").read_text() == (project / "shared.txt").read_text()


def test_a_process_that_is_killed_is_named_and_nothing_is_written(project: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from nmt.cli.app import main; main()", "translate", "--input", "in.txt", "--workers",
         "2"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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


@pytest.mark.parametrize(("arguments", "word"), [(["im one"], "without --input"), (["--score"], "with --score")])
def test_what_cannot_be_shared_is_refused(project: Path, arguments: list[str], word: str) -> None:
    done = nmt("translate", *arguments, "--workers", "2", cwd=project, code=2)
    assert done.stderr.startswith(f"nmt: --workers 2 shares the lines of a file to translate; received it {word}.")
