"""The disk is full at each call that writes, in turn: the run stays as it was, and one message names the file."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError

from nmt.config.schema import Config
from nmt.errors import NmtError
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import StepMetrics
from nmt.runs.weights import save_weights
from nmt.storage import arrays
from nmt.storage.disk import DiskError, disk_errors_in_words
from nmt.training.checkpoints import Checkpoint, TrainingProgress, TrainingState, restore_newest, save_checkpoint

ERRORS = [errno.ENOSPC, errno.EROFS, errno.EDQUOT]
CALLS = [
    (Path, "mkdir"), (Path, "write_bytes"), (Path, "replace"), (Path, "rename"), (Path, "touch"),
    (Path, "hardlink_to"), (os, "fsync"), (shutil, "copyfile"), (arrays, "save_file"),
    (tempfile, "mkdtemp"),
]  # fmt: skip


class Disk:
    """Disk that is full from call n on. It counts the calls that write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refuse(10**9)
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self._guarded(getattr(owner, name)))

    def refuse(self, first: int, error: int = errno.ENOSPC) -> None:
        """Start counting again, and refuse from this call on."""
        self.calls, self.refuse_from, self.error = 0, first, error

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls >= self.refuse_from:
                if call.__name__ == "write_bytes":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])  # what still found room
                reason = os.strerror(self.error)
                if call.__name__ == "save_file":  # its library is in Rust, and has an error of its own
                    raise SafetensorError(f"Error while serializing: I/O error: {reason} (os error {self.error})")
                raise OSError(self.error, reason, "some file")
            return call(*arguments, **options)

        return guarded


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def save(run: Run, step: int) -> None:
    """Save weights, metrics and checkpoint as the trainer does at the end of an epoch. ``step`` fills all arrays."""
    weights, moments = {"a": np.full((3, 2), step, np.float32)}, {"m": np.full((3, 2), -step, np.float32)}
    saved = save_weights(run, weights, step)
    run.append_metrics(StepMetrics(epoch=step, step=step, loss=3.0, accuracy=0.1, learning_rate=1e-4))
    progress, state = TrainingProgress(epoch=step, step=step), TrainingState(weights, moments, (0, 0, 0))
    content = Checkpoint(progress, run.metrics_path.read_bytes(), state)
    save_checkpoint(run, content, saved)


def test_a_full_disk_leaves_the_states_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = create_run("first", Config(), [])
    save(run, 1)
    save(run, 2)
    disk = Disk(monkeypatch)
    save(run, 2)  # again, to see how many calls it takes
    before, calls = everything_in(run.folder), disk.calls
    assert calls > 15
    for refused in range(1, calls + 1):
        error = ERRORS[refused % len(ERRORS)]
        disk.refuse(refused, error)
        try:
            save(run, 3)
        except NmtError as refusal:
            assert "cannot be written" in str(refusal)
            assert os.strerror(error) in str(refusal)
        disk.refuse(10**9)
        found: list[Checkpoint] = []
        restored, damaged = restore_newest(run, found.append)
        assert restored is not None
        assert damaged == []
        run.restore_metrics(restored.metrics)
        now, step = everything_in(run.folder), restored.progress.step
        assert not [name for name in now if ".writing-" in name]
        assert (found[0].weights["a"] == step).all() and (found[0].optimizer["m"] == -step).all()
        assert step == 3 or {name: now[name] for name in before} == before
        shutil.rmtree(run.folder)
        for name, old in before.items():
            (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (run.folder / name).write_bytes(old)


@pytest.mark.parametrize("error", ERRORS)
def test_the_errors_of_the_library_for_arrays_are_told_apart(error: int, tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=os.strerror(error)), disk_errors_in_words(tmp_path / "a"):
        raise SafetensorError(f"Error while serializing: I/O error: {os.strerror(error)} (os error {error})")
    with pytest.raises(SafetensorError), disk_errors_in_words(tmp_path / "a"):
        raise SafetensorError("Error while deserializing header: invalid header length")
