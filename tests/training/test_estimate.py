"""Batches that do not fit into memory: a note before the first step, and a message when memory runs out."""

import re
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import prepare_pairs, tiny, trainer_of

from nmt import runtime
from nmt.config.schema import Config
from nmt.errors import NmtError, OutOfMemoryError
from nmt.runtime import tf
from nmt.training import estimate
from nmt.training.estimate import foreseen_shortage


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        {},
        {"architecture": "recurrent", "width": 16},
        {"architecture": "recurrent", "width": 16, "step": "bahdanau", "attention": "additive"},
    ],
)
def test_a_batch_that_memory_may_not_hold_is_announced_with_sizes_that_fit(
    model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset, config = prepare_pairs(count=400), tiny(model, batch_size=256)
    free: int | None = None
    monkeypatch.setattr(runtime, "free_memory", lambda: free)

    def announced(config: Config) -> str | None:
        shortage = foreseen_shortage(trainer_of("run", config, dataset))
        return None if shortage is None else shortage.on_command_line()

    assert announced(config) is None
    free = 10**9
    assert announced(config) is None
    free = 10_000
    assert "make the model smaller" in str(announced(config))
    free = 10**6
    words = announced(config)
    assert words is not None and "and 1 MB are free" in words
    remedy = re.search(r"--set training.batch_size=(\d+) --set training.micro_batches=(\d+)", words)
    assert remedy is not None
    batch_size, micro_batches = map(int, remedy.groups())
    assert batch_size * micro_batches == 256
    assert announced(tiny(model, batch_size=batch_size, micro_batches=micro_batches)) is None


@pytest.mark.parametrize(
    ("part", "step", "where"), [("update", "take", "in step 1"), ("validator", "step", "in validation")]
)
def test_memory_that_runs_out_ends_training_with_sizes_to_try(
    part: str, step: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_out(*_: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")

    monkeypatch.chdir(tmp_path)
    dataset, config = prepare_pairs(), tiny(micro_batches=2)
    trainer = trainer_of("run", config, dataset)
    monkeypatch.setattr(getattr(trainer, part), step, run_out)
    with pytest.raises(
        OutOfMemoryError, match=f'ran out {where}.*training.batch_size": 16, "training.micro_batches": 4'
    ):
        trainer.train()


@pytest.mark.parametrize("is_chief", [True, False])
def test_a_full_disk_stops_the_host_that_writes_alone(
    is_chief: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = trainer_of("run", tiny(), prepare_pairs())
    monkeypatch.setattr(trainer.group, "is_chief", is_chief)
    monkeypatch.setattr(estimate, "free_bytes", lambda folder: 0)
    if is_chief:
        with pytest.raises(NmtError, match="Not enough disk space"):
            estimate.estimate(trainer)
    else:
        assert estimate.estimate(trainer).disk == 0
