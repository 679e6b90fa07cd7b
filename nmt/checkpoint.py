"""What is saved of a run: weights to translate with, and states to go on from, each whole and with checksums.

The order of writing matters: weights, metrics, and only then the state that refers to them.
"""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from pydantic import Field, ValidationError

from nmt.config import Section
from nmt.errors import DataError, NotFoundError
from nmt.files import nearest, sha256, whole_file, whole_folder, write_json
from nmt.metrics import Epoch
from nmt.run import Run
from nmt.tensor_file import Arrays, read_arrays, value_of, write_arrays

if TYPE_CHECKING:
    import keras

FLOAT32 = 4  # bytes
TOO_LARGE = 10  # times as large as the file; of less, what differs is named
STATES_KEPT = 2  # the newest, and the one before in case the newest is damaged
WEIGHTS, LEARNER, METRICS, STANDING = "weights.safetensors", "learner.safetensors", "metrics.jsonl", "state.json"


class Stateful(Protocol):
    """What learns besides the weights: the optimizer, or all that a step of training keeps."""

    def state(self) -> Arrays:
        """Return arrays by name, the count of steps as "steps" among them."""

    def restore(self, arrays: Arrays) -> None:
        """Take them back; KeyError or ValueError if they are those of something else."""


class Standing(Section):
    """How far a run has come, between two steps: ``state.json`` without its checksums."""

    epoch: int = Field(ge=0, le=2**53)
    """Epochs ended: trained, validated and noted in the metrics."""
    step: int = Field(ge=0, le=2**53)
    """Optimizer steps taken since the run began."""
    steps_in_epoch: int = Field(ge=0, le=2**53)
    """Those of the epoch after; all of its steps if only its validation is missing."""
    seconds: float
    """That the epoch after has been trained so far."""
    totals: tuple[float, float, float]
    """Summed loss, right tokens and tokens of the epoch after, so far."""
    logged: tuple[float, float, float]
    """The same when a line about steps was last written."""
    made_with: dict[str, str]
    """Versions and processor, on which the last bits of a result depend."""


class State(Section):
    """``state.json``: a damaged one gives itself away, and so does a file beside it that is not its own."""

    standing: Standing
    files: dict[str, str]
    """Checksums of the files beside it, by name."""
    sha256: str
    """Of all of the above."""

    @classmethod
    def of(cls, standing: Standing, files: dict[str, str]) -> "State":
        """Return the state with its checksum."""
        return cls(standing=standing, files=files, sha256=_digest(standing, files))

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it was changed."""
        return self.sha256 == _digest(self.standing, self.files)


def _digest(standing: Standing, files: dict[str, str]) -> str:
    content = json.dumps([standing.model_dump(mode="json"), files], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


class Content(NamedTuple):
    """What a state holds."""

    standing: Standing
    metrics: bytes
    """The metrics file, as it is to be gone on with."""
    weights: Arrays
    """The model's, those that the next step changes."""
    learner: Arrays
    """What else the next step changes."""


@dataclass(frozen=True)
class Restored:
    """Where a resumed run stands, and what had to be passed over to get there."""

    standing: Standing
    metrics: bytes
    """The metrics file as it was then."""
    damaged: list[str]
    """In words: states that could not be used."""


# --- weights


def weight_name(variable: "keras.Variable") -> str:
    """Return the place of a variable in its model, such as "encoder_1/attention/query/kernel"."""
    return str(variable.path).partition("/")[2]


def weights_of(model: "keras.Model") -> Arrays:
    """Return the weights of a model by their place in it."""
    return {weight_name(weight): value_of(weight.value) for weight in model.weights}


def set_weights(model: "keras.Model", arrays: Arrays) -> None:
    """Put arrays into a model, in whatever precision it keeps them.

    Raises:
        ValueError: naming the first difference, if they are those of another model; it is unchanged then.
    """
    variables = {weight_name(weight): weight for weight in model.weights}
    for name in sorted(variables.keys() | arrays.keys()):
        if name not in arrays:
            raise ValueError(f"{name} of the model is not there")
        if name not in variables:
            raise ValueError(f"it has {name}, which the model has not")
        if arrays[name].shape != variables[name].shape:
            there, here = list(arrays[name].shape), list(variables[name].shape)
            raise ValueError(f"{name} is {there} there and {here} in the model")
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} is of type {arrays[name].dtype}, weights are saved in float32")
    for name, array in arrays.items():
        variables[name].assign(array)


@dataclass(frozen=True)
class Saved:
    """A file with weights."""

    path: Path
    checksum: str


def save_weights(run: Run, weights: Arrays, epoch: Epoch) -> Saved:
    """Write weights to translate with."""
    path = run.weights_path(epoch)
    with whole_file(path) as aside:
        return Saved(path, write_arrays(aside, weights))


class WeightsFile:
    """Weights that are read while others get ready for them: TensorFlow starts, the model is built."""

    def __init__(self, run: Run, epoch: Epoch) -> None:
        """Begin to read the weights of an epoch, or their average."""
        self.epoch, self.path = epoch, run.weights_path(epoch)
        reader = ThreadPoolExecutor(1)
        self._arrays = reader.submit(read_arrays, self.path)
        reader.shutdown(wait=False)

    def check_size(self, fewest_weights: int) -> None:
        """Refuse a model that is far too large for these to be its weights before somebody builds it.

        Raises:
            DataError: if it is, or if the file is damaged.
            NotFoundError: if it is not there.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        if FLOAT32 * fewest_weights > TOO_LARGE * size:
            there = sum(array.size for array in self._arrays.result().values())
            raise self._others(f"it has {there:,}, the model at least {fewest_weights:,}")

    def _others(self, difference: str) -> DataError:
        return DataError(
            f"{self.path} does not hold the weights of this model: {difference}. Use the configuration it was trained "
            "with."
        )

    def load(self, model: "keras.Model") -> None:
        """Put the weights into a model.

        Raises:
            NotFoundError: if they are not there.
            DataError: if the file is damaged or does not fit the model.
        """
        try:
            set_weights(model, self._arrays.result())
        except ValueError as error:
            raise self._others(str(error)) from None


def average_weights(run: Run, epochs: list[int]) -> Arrays:
    """Return the mean of the weights of several epochs (Vaswani et al. 2017, section 6.1), summed up in float64.

    Raises:
        NotFoundError, DataError: if one of the files is missing, damaged or of another model.
    """
    sums: dict[str, np.ndarray] = {}
    for epoch in epochs:
        arrays = read_arrays(run.weights_path(epoch))
        if not sums:
            sums = {name: np.zeros(array.shape, np.float64) for name, array in arrays.items()}
        if {name: one.shape for name, one in arrays.items()} != {name: one.shape for name, one in sums.items()}:
            raise DataError(
                f"Weights that are averaged are of one model; {run.weights_path(epoch)} holds those of another "
                f"than epoch {epochs[0]}. Restore a copy of it."
            )
        for name, array in arrays.items():
            sums[name] += array
    return {name: (total / len(epochs)).astype(np.float32) for name, total in sums.items()}


def superfluous_weights(run: Run, last: int, max_to_keep: int | None, best: Epoch | None) -> list[Path]:
    """Return weights that can go once those of epoch ``last`` are there.

    Those of the ``max_to_keep`` epochs up to it stay, and the best; of those amid epochs, the best alone.
    """
    epochs = sorted({*run.weights_epochs, last})
    kept: list[Epoch | None] = [best, *(epochs if max_to_keep is None else epochs[-max_to_keep:])]
    there: list[Epoch] = [*epochs, *run.weights_amid_epochs]
    return [run.weights_path(epoch) for epoch in there if epoch not in kept]


# --- states


def save_state(run: Run, content: Content, saved: Saved | None = None) -> None:
    """Write what training needs to go on from here, and drop older states and such as lie ahead of it.

    Args:
        run: the run.
        content: where it stands, and all that the next step changes.
        saved: a file with the same weights, to share their place on the disk.
    """
    standing = content.standing
    with whole_folder(run.state_path(standing.step), replace=True) as aside:
        (aside / METRICS).write_bytes(content.metrics)
        files = {
            METRICS: sha256(aside / METRICS),
            WEIGHTS: _share(saved, aside / WEIGHTS) if saved else write_arrays(aside / WEIGHTS, content.weights),
            LEARNER: write_arrays(aside / LEARNER, content.learner),
        }
        write_json(aside / STANDING, State.of(standing, files).model_dump(mode="json"))
    older = [step for step in run.state_steps if step < standing.step]
    ahead = [step for step in run.state_steps if step > standing.step]  # damaged, so their steps are taken again
    for step in [*older[: 1 - STATES_KEPT], *ahead]:
        shutil.rmtree(run.state_path(step))


def _share(saved: Saved, path: Path) -> str:
    try:
        path.hardlink_to(saved.path)
    except OSError:  # a file system without links
        shutil.copyfile(saved.path, path)
    return saved.checksum


def restore(run: Run, model: "keras.Model", learner: Stateful) -> Restored | None:
    """Load the newest undamaged state into model and learner; None if the run has none.

    Raises:
        DataError: if there are states and none of them can be used, or weights whose states are gone.
    """
    damaged: list[str] = []
    for step in reversed(run.state_steps):
        folder = run.state_path(step)
        try:
            content = read_state(folder, step)
            set_weights(model, content.weights)
            learner.restore(content.learner)
        except (DataError, NotFoundError) as error:
            damaged.append(str(error))
        except (KeyError, ValueError) as error:
            damaged.append(f"{folder} is the state of another model: {error}.")
        else:
            return Restored(content.standing, content.metrics, damaged)
    if damaged:
        raise DataError(
            f"A run goes on from a whole state; none of run {run.name!r} is: {' '.join(damaged)} Its weights, where "
            "they are whole, still translate; to train, start another run with --run NAME."
        )
    if max(run.weights_epochs, default=0) > 1:  # those of epoch 1 may have come just before its state could
        states = run.state_path(0).parent
        raise DataError(
            f"A run goes on from a state; run {run.name!r} has weights, but {states} holds none. Restore a copy of it, "
            f"or begin another run with these weights: --run NAME --from {run.name}."
        )
    return None


def read_state(folder: Path, step: int) -> Content:
    """Return what the state after a step holds, all of it checked.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if one is damaged, or is not of this state.
    """
    place = folder / STANDING
    try:
        state = State.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f"{place} is missing.") from None
    except (OSError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error).splitlines()[0]
        raise DataError(f"{place} is damaged: {said}.") from None
    if not state.is_whole or state.standing.step != step or state.files.keys() != {WEIGHTS, LEARNER, METRICS}:
        raise DataError(f"{place} is damaged: it is not as it was saved.")
    try:
        metrics = (folder / METRICS).read_bytes()
    except OSError as error:
        raise NotFoundError(f"{folder / METRICS} cannot be read: {error.strerror}.") from None
    if hashlib.sha256(metrics).hexdigest() != state.files[METRICS]:
        raise DataError(f"{folder / METRICS} is damaged: its SHA-256 is not the one noted when it was saved.")
    weights = read_arrays(folder / WEIGHTS, state.files[WEIGHTS])
    learner = read_arrays(folder / LEARNER, state.files[LEARNER])
    return Content(state.standing, metrics, weights, learner)


def sweep(run: Run) -> None:
    """Remove what a process that was killed while it wrote has left in the run's folder."""
    for left in run.folder.rglob(".writing-*"):
        shutil.rmtree(left, ignore_errors=True)


def choose_epoch(run: Run, wanted: str | None) -> Epoch:
    """Return the weights to translate with: of an epoch by number, "last" or "best", or the "average".

    By default the average if the run has one, else the best.

    Raises:
        NotFoundError: if its weights are not there.
    """
    kept = run.weights_epochs
    best, average = run.best(), run.average()
    found: Epoch | None = None
    if wanted is None:
        found = "average" if average else best if best in (*kept, *run.weights_amid_epochs) else max(kept, default=None)
    elif wanted == "average" and average:
        found = "average"
    elif wanted == "best":
        wanted, found = str(best), best if best in (*kept, *run.weights_amid_epochs) else None
    elif wanted == "last":
        found = max(kept, default=None)
    elif wanted.isdecimal() and int(wanted) in kept:
        found = int(wanted)
    elif wanted in run.weights_amid_epochs:
        found = wanted
    if found is not None:
        return found
    if not kept:
        raise NotFoundError(f"Run {run.name!r} has not finished an epoch yet. Go on with: nmt train --run {run.name}")
    known = ", ".join(map(str, [*kept, *run.weights_amid_epochs]))
    if wanted == "average":
        raise NotFoundError(
            f"A run ends with an average if training.average_last asks for one and it has four epochs for each of them "
            f"or more; run {run.name!r} has none. Make one with nmt average, leave --epoch out, or give one of {known}."
        )
    raise NotFoundError(
        f"An epoch is a number, best, last or average; run {run.name!r} has no weights of epoch {wanted!r}"
        f"{nearest(str(wanted), ['best', 'last', 'average'])}. Kept: {known}."
    )
