"""Before the long wait: whether memory and disk suffice for a run, and how long it will take."""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt import runtime
from nmt.data.batch_plan import padded_sizes
from nmt.data.token_arrays import Split
from nmt.errors import NmtError
from nmt.models.weights import weights_of
from nmt.training.checkpoints import STATES_KEPT
from nmt.training.trainer import Trainer

TIMED_STEPS = 5


class Forecast(NamedTuple):
    """What a run will take."""

    parameters: int
    epochs: int
    """Left to train, the one that was broken off among them."""
    steps: int
    """Of an epoch."""
    epoch_seconds: float
    """Of training and validation; translating and saving left out."""
    seconds: float
    """Of all epochs left."""
    memory: int | None
    """Most bytes held while the longest batches were trained and validated on; None where the system does not say."""
    disk: int
    """Bytes that the run may still add to the disk."""
    free: int
    """Bytes of room there."""

    @property
    def text(self) -> str:
        """In words, on a line."""
        memory = size(self.memory) if self.memory is not None else "unknown"
        return (
            f"Ahead: {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'} of {self.steps:,} steps, about "
            f"{duration(self.epoch_seconds)} each, "
            f"{duration(self.seconds)} in all; memory {memory}; on disk at most {size(self.disk)}, of "
            f"{size(self.free)} free"
        )


def duration(seconds: float) -> str:
    """Return a time in the units a person would use."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def size(count: int) -> str:
    """Return a number of bytes in the units a person would use."""
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def forecast(trainer: Trainer) -> Forecast:
    """Take a few steps, which are forgotten, on the longest batches of the coming epoch and on ordinary ones.

    Raises:
        NmtError: if the disk has not the room that the run needs.
    """
    settings = trainer.config.training
    needed, free = bytes_to_write(trainer), free_bytes(trainer.run.folder)
    if needed > free:
        weights = sum(array.nbytes for array in weights_of(trainer.learner.model).values())
        raise NmtError(
            f"A run is not begun that the disk cannot hold; {trainer.run.folder} needs {size(needed)} more, "
            f"{size(free)} are free. Free some, or keep fewer of its weights, {size(weights)} each: "
            f"--set training.max_to_keep=2 --set training.average_last=1"
        )
    learner = trainer.learner
    plan, validation = learner.plan(trainer.epoch + 1), learner.validation.plan
    ordinary = [plan[number] for number in np.linspace(0, len(plan) - 1, TIMED_STEPS).astype(int)]
    longest = _longest(learner.split(trainer.epoch + 1), plan)
    # The first steps of a process also trace, and make room; only the last count.
    validated = [*_longest(learner.validation_split, validation), validation[0]]
    seconds = learner.rehearse([*longest, *ordinary], validated, trainer.check)
    step = float(np.median(seconds[len(longest) : len(longest) + TIMED_STEPS]))
    steps = -(-len(plan) // settings.accumulation_steps)
    epoch_seconds = step * len(plan) + seconds[-1] * len(validation)
    epochs = settings.epochs - trainer.epoch
    done = trainer.steps_in_epoch / steps
    return Forecast(
        parameters=learner.model.count_params(), epochs=epochs, steps=steps, epoch_seconds=epoch_seconds,
        seconds=epoch_seconds * (epochs - done), memory=runtime.peak_memory(), disk=needed, free=free,
    )  # fmt: skip


def _longest(split: Split, plan: list[np.ndarray]) -> list[np.ndarray]:
    """Return the batches with the most tokens, and the most pairs of tokens to attend with, padding counted."""
    sizes = [padded_sizes(split, batch) for batch in plan]
    most_tokens = max(range(len(plan)), key=lambda number: sizes[number].tokens)
    most_pairs = max(range(len(plan)), key=lambda number: sizes[number].pairs)
    return [plan[number] for number in dict.fromkeys((most_tokens, most_pairs))]


def bytes_to_write(trainer: Trainer) -> int:
    """Return the most bytes that a run's folder will grow by until its end."""
    settings = trainer.config.training
    weights = sum(array.nbytes for array in weights_of(trainer.learner.model).values())
    state = weights + sum(array.nbytes for array in trainer.learner.train_step.state().values())
    kept = (
        settings.epochs if trainer.weights_to_keep is None else trainer.weights_to_keep + 2
    )  # the best, and a new one
    files = min(settings.epochs, kept) + bool(trainer.epochs_to_average) + 2 * bool(settings.validate_every)
    whole = files * weights + (STATES_KEPT + 1) * state
    there = sum(
        file.stat().st_size
        for part in ("weights", "state")
        for file in (trainer.run.folder / part).rglob("*.safetensors")
    )
    return max(whole - there, state)


def free_bytes(folder: Path) -> int:
    """Return the bytes of room on the disk that holds a folder, or will."""
    while not folder.exists():
        folder = folder.absolute().parent
    return shutil.disk_usage(folder).free
