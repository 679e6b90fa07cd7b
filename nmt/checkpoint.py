"""What is saved of a run after an epoch: weights, optimizer and progress, each whole, with checksums, oldest rotated.

The order of writing matters: weights, optimizer, metrics, and only then the state that refers to them.
"""

import zipfile
from dataclasses import dataclass
from typing import Protocol

import keras
import numpy as np

from nmt.config import Section
from nmt.errors import DataError, NotFoundError
from nmt.files import nearest, read_json, sha256, whole_file, whole_folder, write_json
from nmt.run import Epoch, Run

STATES_KEPT = 2  # the newest, and the one before in case the newest is damaged


class Stateful(Protocol):
    """What learns besides the weights: the optimizer, or all that a step of training keeps."""

    def state(self) -> dict[str, np.ndarray]:
        """Return arrays by name, the count of steps as "steps" among them."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take them back; KeyError or ValueError if they are those of something else."""


class Progress(Section):
    """How far a run has come: ``state.json``."""

    epoch: int
    """Epochs completed."""
    step: int
    """Optimizer steps taken."""
    weights_sha256: str
    optimizer_sha256: str


@dataclass(frozen=True)
class Restored:
    """Where a resumed run stands, and what had to be passed over to get there."""

    progress: Progress
    damaged: list[str]
    """In words: states that could not be used."""


def save_weights(run: Run, model: keras.Model, epoch: int) -> None:
    """Write the weights after an epoch."""
    with whole_file(run.weights_path(epoch)) as aside:
        model.save_weights(aside)


def save_state(run: Run, learner: Stateful, epoch: int, step: int) -> None:
    """Write what training needs to go on after an epoch whose weights are saved, and drop older states.

    That is Adam's moments and the scale of float16's loss; dropout's random numbers depend on the step alone.
    """
    with whole_folder(run.state_path(epoch), replace=True) as aside:
        np.savez(aside / "optimizer.npz", allow_pickle=False, at_step=step, **learner.state())
        progress = Progress(
            epoch=epoch,
            step=step,
            weights_sha256=sha256(run.weights_path(epoch)),
            optimizer_sha256=sha256(aside / "optimizer.npz"),
        )
        write_json(aside / "state.json", progress.model_dump())
    for old in run.state_epochs[:-STATES_KEPT]:
        for file in run.state_path(old).iterdir():
            file.unlink()
        run.state_path(old).rmdir()


def average_weights(run: Run, model: keras.Model, epochs: list[int]) -> None:
    """Write the mean of the weights of several epochs, and load it into the model (Vaswani et al. 2017, section 6.1).

    Raises:
        DataError: if one of the files does not fit the model.
    """
    sums: list[np.ndarray] = []
    for epoch in epochs:
        load_weights(run, model, epoch)
        weights = [weight.numpy().astype(np.float64) for weight in model.weights]
        sums = [total + weight for total, weight in zip(sums, weights, strict=True)] if sums else weights
    model.set_weights([total / len(epochs) for total in sums])
    with whole_file(run.weights_path("average")) as aside:
        model.save_weights(aside)


def rotate_weights(run: Run, max_to_keep: int | None) -> None:
    """Delete weights but those of the last ``max_to_keep`` epochs, of the best, and of those with a state."""
    if max_to_keep is None:
        return
    kept = {*run.weights_epochs[-max_to_keep:], run.best_epoch(), *run.state_epochs}
    for epoch in run.weights_epochs:
        if epoch not in kept:
            run.weights_path(epoch).unlink()


def restore(run: Run, model: keras.Model, learner: Stateful) -> Restored | None:
    """Load the newest undamaged state into model and learner; None if the run has none.

    Raises:
        DataError: if there are states and none of them is whole.
    """
    damaged: list[str] = []
    for epoch in reversed(run.state_epochs):
        try:
            return Restored(_load_state(run, epoch, model, learner), damaged)
        except (DataError, NotFoundError) as error:
            damaged.append(str(error))
    if damaged:
        raise DataError(f"Run {run.name!r} cannot go on: {' '.join(damaged)} Start another with --run NAME.")
    return None


def _load_state(run: Run, epoch: int, model: keras.Model, learner: Stateful) -> Progress:
    folder = run.state_path(epoch)
    try:
        progress = Progress.model_validate(read_json(folder / "state.json", "A training state"))
    except ValueError as error:
        raise DataError(f"{folder / 'state.json'} is damaged: {error}.") from None
    files = {run.weights_path(epoch): progress.weights_sha256, folder / "optimizer.npz": progress.optimizer_sha256}
    for file, expected in files.items():
        if not file.is_file():
            raise NotFoundError(f"{file} is missing.")
        if sha256(file) != expected:
            raise DataError(f"{file} is damaged: its SHA-256 is not the one noted when it was saved.")
    load_weights(run, model, epoch)
    try:
        with np.load(folder / "optimizer.npz", allow_pickle=False) as arrays:
            if int(arrays["at_step"]) != progress.step or progress.epoch != epoch:
                raise DataError(f"{folder / 'state.json'} is damaged: it does not belong to the files beside it.")
            learner.restore(dict(arrays))
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{folder / 'optimizer.npz'} does not fit the model: {error}.") from error
    return progress


def load_weights(run: Run, model: keras.Model, epoch: Epoch) -> None:
    """Load the weights of an epoch, or their average.

    Raises:
        DataError: if the file does not fit the model.
    """
    try:
        model.load_weights(run.weights_path(epoch))
    except (ValueError, KeyError, OSError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise DataError(f"{run.weights_path(epoch)} does not hold the weights of this model: {reason}.") from error


def choose_epoch(run: Run, wanted: str | None) -> Epoch:
    """Return the weights to translate with: of an epoch by number, "last" or "best", or the "average".

    By default the average if the run ended with one, else those of the best epoch.

    Raises:
        NotFoundError: if its weights are not there.
    """
    kept = run.weights_epochs
    if not kept:
        raise NotFoundError(f"Run {run.name!r} has not finished an epoch yet. Go on with: nmt train --run {run.name}")
    best, average = run.best_epoch(), run.average()
    if average and wanted in {None, "average"}:
        return "average"
    if wanted == "average":
        raise NotFoundError(
            f"A run ends with an average if training.average_last asks for one and it has four epochs for each of them "
            f"or more; run {run.name!r} has none. Leave --epoch out, or give one of {', '.join(map(str, kept))}."
        )
    if wanted is None:
        return best if best in kept else kept[-1]
    if wanted == "best":
        wanted = str(best)
    if wanted == "last":
        return kept[-1]
    if str(wanted).isdecimal() and int(str(wanted)) in kept:
        return int(str(wanted))
    known = ", ".join(map(str, kept))
    raise NotFoundError(
        f"An epoch is a number, best, last or average; run {run.name!r} has no weights of epoch {wanted!r}"
        f"{nearest(str(wanted), ['best', 'last', 'average'])}. Kept: {known}."
    )
