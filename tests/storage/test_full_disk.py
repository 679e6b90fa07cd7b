"""The disk refuses, at every call that writes in turn: the run is as good as before, and one message says so."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt import runtime
from nmt.config.model import TransformerConfig
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import NmtError
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weights_of
from nmt.runs.directory import create_run
from nmt.runs.metrics import StepMetrics
from nmt.runs.weights import save_weights
from nmt.storage.arrays import Arrays, checksum
from nmt.storage.atomic import write_text
from nmt.training.checkpoints import Checkpoint, LoopState, restore_newest, save_checkpoint
from nmt.training.optimization.optimizer import Adam

TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, heads=2)
CALLS = [
    (Path, "mkdir"), (Path, "write_bytes"), (Path, "replace"), (Path, "rename"), (Path, "touch"),
    (Path, "hardlink_to"), (os, "fsync"), (shutil, "copyfile"), ("nmt.storage.arrays", "save_file"),
    ("tempfile", "mkdtemp"),
]  # fmt: skip


class Disk:
    """Refuses from the n-th call that writes on, and counts the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
        self.calls, self.refuse_from, self.error = 0, 10**9, error
        for owner, name in CALLS:
            target = f"{owner}.{name}" if isinstance(owner, str) else name
            if isinstance(owner, str):
                module = __import__(owner, fromlist=[name])
                monkeypatch.setattr(target, self._guarded(getattr(module, name)))
            else:
                monkeypatch.setattr(owner, name, self._guarded(getattr(owner, name)))

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls >= self.refuse_from:
                if call.__name__ == "write_bytes":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])  # what still found room
                raise OSError(self.error, os.strerror(self.error), "some file")
            return call(*arguments, **options)

        return guarded


def loop_state(step: int) -> LoopState:
    return LoopState(
        epoch=step, step=step, steps_in_epoch=0, seconds=1.0, totals=(0, 0, 0), logged=(0, 0, 0), environment={}
    )


def a_step(step: int) -> StepMetrics:
    return StepMetrics(epoch=step, step=step, loss=3.0, accuracy=0.1, learning_rate=1e-4)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def whole_content(optimizer: Adam, weights: Arrays) -> str:
    return checksum({**optimizer.state(), **weights})


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_full_disk_leaves_the_states_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    monkeypatch.chdir(tmp_path)
    runtime.start(1)
    model = build_model(TINY, 10, 11)
    optimizer = Adam([variable.value for variable in model.trainable_variables], TrainingConfig())
    run = create_run("first", Config(model=TINY), [])

    def save(step: int) -> None:
        saved = save_weights(run, weights_of(model), step)
        run.append_metrics(a_step(step))
        content = Checkpoint(loop_state(step), run.metrics_path.read_bytes(), weights_of(model), optimizer.state())
        save_checkpoint(run, content, saved)

    for step in (1, 2):
        for weight in model.weights:
            weight.assign(np.full(weight.shape, step, np.float32))
        save(step)
    disk = Disk(monkeypatch, error)
    save(2)  # again, to see how many calls it takes
    before, content = everything_in(run.folder), whole_content(optimizer, weights_of(model))
    calls = disk.calls
    assert calls > 15
    for refused in range(1, calls + 1):
        disk.calls, disk.refuse_from = 0, refused
        for weight in model.weights:
            weight.assign(np.full(weight.shape, 3, np.float32))
        try:
            save(3)
        except NmtError as refusal:
            assert "cannot be written" in str(refusal)
            assert os.strerror(error) in str(refusal)
        disk.refuse_from = 10**9
        restored = restore_newest(
            run, lambda checkpoint: (set_weights(model, checkpoint.weights), optimizer.restore(checkpoint.optimizer))
        )
        assert restored is not None
        assert restored.damaged == []
        run.restore_metrics(restored.metrics)
        now = everything_in(run.folder)
        assert not [name for name in now if ".writing-" in name]
        if restored.loop.step == 2:
            assert whole_content(optimizer, weights_of(model)) == content
            assert {name: now[name] for name in before} == before
        shutil.rmtree(run.folder)
        for name, old in before.items():
            (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (run.folder / name).write_bytes(old)


def test_a_text_that_finds_no_room_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    write_text(path, "before")
    disk = Disk(monkeypatch, errno.ENOSPC)
    write_text(path, "again")
    calls = disk.calls
    for refused in range(1, calls):  # the last call makes the new name durable, when the file is already whole
        disk.calls, disk.refuse_from = 0, refused
        with pytest.raises(NmtError, match=f"{path.name} cannot be written: No space left on device"):
            write_text(path, "after")
        assert path.read_text() == "again" or refused >= calls - 1
        assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]
