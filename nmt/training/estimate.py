"""Estimate before training: time, memory and disk that a run will take."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt import runtime
from nmt.data.token_arrays import Split
from nmt.errors import NmtError
from nmt.models.weights import weights_of
from nmt.training.checkpoints import CHECKPOINTS_KEPT
from nmt.training.divergence import shortage_in_words
from nmt.training.interrupts import never_stop
from nmt.training.stopping import weights_to_keep
from nmt.training.trainer import Trainer

TIMED_STEPS = 5


class Estimate(NamedTuple):
    """What a run will take."""

    epochs: int
    """Number of epochs left to train, the interrupted one included."""
    steps: int
    """Number of optimizer steps of an epoch."""
    epoch_seconds: float
    """Time of an epoch with its validation, without translating and saving."""
    seconds: float
    """Time of all epochs left."""
    memory: int | None
    """Peak memory of a process in bytes while the longest batches were profiled; None where the system does not say."""
    disk: int
    """Bytes that the run's folder will grow by at most."""
    free: int
    """Free bytes on that disk."""

    @property
    def text(self) -> str:
        """The estimate on a line."""
        memory = size(self.memory) if self.memory is not None else "unknown"
        return (
            f"Ahead: {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'} of {self.steps:,} steps, "
            f"{duration(self.epoch_seconds)} each, {duration(self.seconds)} in all; memory {memory}; on disk at most "
            f"{size(self.disk)}, of {size(self.free)} free"
        )


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it, as "about 26 s"."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"about {seconds:.0f} s"
    if seconds < 100 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


def size(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    if count < 1e6:
        return f"{max(1, round(count / 1e3))} KB"
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def estimate(trainer: Trainer, stop: Callable[[], None] = never_stop) -> Estimate:
    """Profile a few steps on the longest and on ordinary batches of the coming epoch; the state stays unchanged.

    Args:
        trainer: a run that is to be trained.
        stop: is called after each batch, and may raise to break off.

    Raises:
        NmtError: if the disk has less room than the run needs, or memory does not hold the longest batches.
    """
    settings, model = trainer.config.training, trainer.model
    needed, free = bytes_to_write(trainer), free_bytes(trainer.run.folder)
    if needed > free:
        weights = sum(array.nbytes for array in weights_of(model).values())
        raise NmtError(
            f"Not enough disk space: {trainer.run.folder} needs {size(needed)} more, {size(free)} are free. Free some, "
            f"or keep the weights of fewer epochs, {size(weights)} each: --set training.max_to_keep=2 --set "
            "training.average_last=1"
        )
    epoch = trainer.progress.epoch + 1
    plan, validation = trainer.pipeline.plan(epoch), trainer.validator.plan
    ordinary = [plan[number] for number in np.linspace(0, len(plan) - 1, TIMED_STEPS).astype(int)]
    longest = longest_batch(trainer.pipeline.split(epoch), plan)
    longest_validated = longest_batch(trainer.validator.split, validation)
    # The first steps of a process also trace, and allocate; the last ones count.
    with shortage_in_words("before training, on its longest batches", trainer.config):
        seconds = trainer.profile([longest, *ordinary], [longest_validated, validation[0]], stop)
    batch = float(np.median(seconds[1 : 1 + TIMED_STEPS]))
    steps = trainer.pipeline.steps(epoch)
    epoch_seconds = batch * len(plan) / trainer.group.count + seconds[-1] * len(validation)
    epochs = settings.epochs - trainer.progress.epoch
    done = trainer.progress.steps_in_epoch / steps
    return Estimate(
        epochs=epochs, steps=steps, epoch_seconds=epoch_seconds,
        seconds=epoch_seconds * (epochs - done), memory=runtime.peak_memory(), disk=needed, free=free,
    )  # fmt: skip


def longest_batch(split: Split, plan: list[np.ndarray]) -> np.ndarray:
    """Return the batch of a plan with the most positions, padding included, as indices of pairs."""

    def positions(indices: np.ndarray) -> int:
        lengths = (side.offsets[indices + 1] - side.offsets[indices] for side in (split.source, split.target))
        return len(indices) * sum(int(side.max()) + 1 for side in lengths)  # each with its eos

    return max(plan, key=positions)


def bytes_to_write(trainer: Trainer) -> int:
    """Return the most bytes that a run's folder will grow by until its end."""
    settings = trainer.config.training
    state = trainer.update.state()
    weights = sum(array.nbytes for array in state.weights.values())
    checkpoint = weights + sum(array.nbytes for array in state.optimizer.values())
    # Besides the kept ones, the best weights, and the newest before the oldest is deleted.
    most_kept = weights_to_keep(settings)
    kept = settings.epochs if most_kept is None else most_kept + 2
    files = min(settings.epochs, kept) + bool(trainer.epochs_to_average) + 2 * bool(settings.validate_every)
    most = files * weights + (CHECKPOINTS_KEPT + 1) * checkpoint
    present = sum(
        file.stat().st_size
        for part in ("weights", "state")
        for file in (trainer.run.folder / part).rglob("*.safetensors")
    )
    return max(most - present, checkpoint)


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist yet."""
    return shutil.disk_usage(next(path for path in (folder, *folder.absolute().parents) if path.exists())).free
