"""Commands on a disk that is really full, a file system of a few hundred KB in memory: one message, nothing lost."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import run_nmt

import nmt
from nmt.errors import NmtError
from nmt.runs.directory import Run
from nmt.storage.arrays import read_arrays, write_arrays
from nmt.storage.atomic import atomic_file
from nmt.storage.file_lock import locked

SIZE = 2 * 2**20


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Mount a small disk as the working directory of the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    monkeypatch.chdir(folder)
    yield folder
    monkeypatch.chdir(tmp_path)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(left: int) -> Path:
    """Fill the disk except for a number of bytes."""
    path = Path("filler")
    path.write_bytes(bytes(max(0, shutil.disk_usage(".").free - left)))
    return path


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def test_arrays_that_do_not_fit_are_refused_in_words(disk: Path) -> None:
    write_arrays(Path("a.safetensors"), {"a": np.ones(1000, np.float32)})
    fill(50_000)
    before = files()
    with (
        pytest.raises(NmtError, match=r"a\.safetensors cannot be written: No space left on device \([\d,]+ bytes are"),
        atomic_file(Path("a.safetensors")) as temporary,
    ):
        write_arrays(temporary, {"a": np.ones(100_000, np.float32)})
    assert files() == before
    assert len(read_arrays(Path("a.safetensors"))["a"]) == 1000


def test_a_lock_on_a_full_disk_is_refused_in_words(disk: Path) -> None:
    fill(0)
    with pytest.raises(NmtError, match="lock cannot be written: No space left on device"), locked(Path("lock"), "It"):
        pytest.fail("the block must not be entered")


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 60_000])
def test_commands_on_a_full_disk_say_so_and_keep_what_was_there(left: int, disk: Path, trained_project: Path) -> None:
    for part in ("checkpoints", "data", "configs"):
        shutil.copytree(trained_project / part, part)
    filler = fill(left)
    before = files()
    for command in (
        "average --last 2", "train --run base --set training.epochs=4", "plot losses",
        "report --no-scores --no-attention",
        "prepare english-german-both.pkl --name other", "evaluate --run base --output out.de",
    ):  # fmt: skip
        ended = run_nmt(*command.split())
        if ended.code:
            assert ended.code == 2, ended.err
            assert "space" in ended.err and "Traceback" not in ended.err
    assert not list(Path().rglob(".writing-*"))
    assert left or {name: content for name, content in files().items() if name in before} == before
    filler.unlink()
    run = Run(Path("checkpoints/base"))
    assert nmt.load("base").translate(["im one two three"])
    assert run_nmt("train", "--run", "base", "--set", "training.epochs=4").code == 0
    assert len(run.epochs()) == 4


@pytest.mark.slow
def test_training_that_fills_the_disk_names_the_state_that_it_goes_on_from(
    disk: Path, trained_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("checkpoints", "data", "configs"):
        shutil.copytree(trained_project / part, part)
    run, longer = Run(Path("checkpoints/base")), ["train", "--run", "base", "--set", "training.epochs=4"]
    filler = fill(60_000)
    with monkeypatch.context() as patch:
        patch.setattr("nmt.training.estimate.free_bytes", lambda folder: 10**9)  # others fill it later
        ended = run_nmt(*longer)
    assert ended.code == 2, ended.err
    assert "cannot be written: No space left on device" in ended.err
    assert f"The state after step {run.state_steps[-1]} is complete, and training goes on from there." in ended.err
    filler.unlink()
    assert run_nmt(*longer).code == 0
    assert len(run.epochs()) == 4
