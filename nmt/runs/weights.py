"""Weights of a run to translate with: saving, reading in the background, counting, averaging, choosing."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmt.errors import DataError, NotFoundError
from nmt.models.weights import current_name, set_weights
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.storage.arrays import Arrays, read_arrays, read_shapes, write_arrays
from nmt.storage.atomic import atomic_file
from nmt.storage.names import did_you_mean

if TYPE_CHECKING:
    import keras

BYTES_PER_WEIGHT = 4  # float32
MAX_SIZE_RATIO = 10  # model size / file size


@dataclass(frozen=True)
class SavedWeights:
    """File of weights that was just written."""

    path: Path
    checksum: str
    """SHA-256 of its arrays, in hexadecimal."""


def save_weights(run: Run, weights: Arrays, weights_id: WeightsId) -> SavedWeights:
    """Write weights to translate with."""
    path = run.weights_path(weights_id)
    with atomic_file(path) as temporary:
        return SavedWeights(path, write_arrays(temporary, weights))


class WeightsFile:
    """File of weights that a thread reads while TensorFlow starts and the model is built."""

    def __init__(self, run: Run, weights_id: WeightsId) -> None:
        """Start to read."""
        self.epoch, self.path = weights_id, run.weights_path(weights_id)
        reader = ThreadPoolExecutor(1)
        self._arrays = reader.submit(read_arrays, self.path)
        reader.shutdown(wait=False)

    @property
    def most_weights(self) -> int:
        """Number of weights that a model of this file has at most; that of a smaller one is compared by ``load``."""
        size = self.path.stat().st_size if self.path.exists() else 0
        return MAX_SIZE_RATIO * size // BYTES_PER_WEIGHT

    def too_large(self) -> DataError:
        """Return the error that a model has more than ``most_weights``.

        Raises:
            NotFoundError, DataError: if the file does not exist or is damaged, instead.
        """
        count = sum(array.size for array in self._arrays.result().values())
        return self._mismatch(f"the file has {count:,} weights, the model more than {self.most_weights:,}")

    def _mismatch(self, difference: str) -> DataError:
        return DataError(
            f"{self.path} does not hold the weights of this model: {difference}. Use the configuration that the "
            "weights were trained with."
        )

    def load(self, model: "keras.Model") -> None:
        """Put the weights into a model.

        Raises:
            NotFoundError: if the file does not exist.
            DataError: if the file is damaged or does not fit the model.
        """
        try:
            set_weights(model, self._arrays.result())
        except ValueError as error:
            raise self._mismatch(str(error)) from None


def count_weights(run: Run) -> int | None:
    """Return the number of weights of a run's model, by the header of a file; None before the first is saved.

    Raises:
        DataError: if the file is damaged.
    """
    saved: list[WeightsId] = [*run.weights_epochs, *run.step_weights]
    return sum(math.prod(shape) for shape in read_shapes(run.weights_path(saved[-1])).values()) if saved else None


def average_weights(run: Run, epochs: Sequence[WeightsId]) -> Arrays:
    """Return the mean of the weights of several epochs (Vaswani et al. 2017, section 6.1), summed in float64.

    Layers have the names of the last file: a run that an older version began has older names in its first files.

    Raises:
        NotFoundError, DataError: if a file is missing, damaged or of another model.
    """
    sums: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    for epoch in epochs:
        arrays = read_arrays(run.weights_path(epoch))
        names = {current_name(name): name for name in arrays}
        current = {current_name(name): array for name, array in arrays.items()}
        if not sums:
            sums = {name: np.zeros(array.shape, np.float64) for name, array in current.items()}
        if {name: array.shape for name, array in current.items()} != {
            name: total.shape for name, total in sums.items()
        }:
            raise DataError(
                f"{run.weights_path(epoch)} holds the weights of another model than epoch {epochs[0]}. Only weights of "
                "one model can be averaged. Restore a copy of it."
            )
        for name, array in current.items():
            sums[name] += array
    return {names[name]: (total / len(epochs)).astype(np.float32) for name, total in sums.items()}


def weights_to_delete(run: Run, last: int, max_to_keep: int | None, best: WeightsId | None) -> list[Path]:
    """Return the files of weights that can go as soon as those of epoch ``last`` are saved.

    The best weights stay, and those of the last ``max_to_keep`` epochs (None: of all). Of weights from within epochs
    only the best stay.
    """
    epochs = sorted({*run.weights_epochs, last})
    kept: list[WeightsId | None] = [best, *(epochs if max_to_keep is None else epochs[-max_to_keep:])]
    saved: list[WeightsId] = [*epochs, *run.step_weights]
    return [run.weights_path(weights_id) for weights_id in saved if weights_id not in kept]


def choose_epoch(run: Run, choice: str | None) -> WeightsId:
    """Return the weights to translate with.

    Args:
        run: Owner of the weights.
        choice: Number of an epoch, "last", "best", "average" or such as "step-1500"; None: the average if the run has
            one, else the best.

    Raises:
        NotFoundError: if the run does not have these weights.
    """
    epochs = run.weights_epochs
    kept: list[WeightsId] = [*epochs, *run.step_weights]
    best, average = run.best(), run.average()
    chosen: WeightsId | None = None
    if choice is None:
        chosen = "average" if average else best if best in kept else max(epochs, default=None)
    elif choice == "average" and average:
        chosen = "average"
    elif choice == "best":
        choice, chosen = str(best), best if best in kept else None
    elif choice == "last":
        chosen = max(epochs, default=None)
    elif choice.isdecimal() and int(choice) in epochs:
        chosen = int(choice)
    elif choice in run.step_weights:
        chosen = choice
    if chosen is not None:
        return chosen
    if not epochs:
        raise NotFoundError(
            f"Run {run.name!r} has not finished an epoch yet. Continue with: nmt train --run {run.name}"
        )
    known = ", ".join(map(str, kept))
    if choice == "average":
        raise NotFoundError(
            f"Run {run.name!r} has no averaged weights. Training ends with an average if training.average_last is 2 or "
            "more and the run has four epochs for each averaged epoch. Make one with nmt average, leave --epoch out, "
            f"or give one of {known}."
        )
    raise NotFoundError(
        f"Run {run.name!r} has no weights of epoch {choice!r}{did_you_mean(str(choice), ['best', 'last', 'average'])}. "
        f"An epoch is a number, best, last or average. Kept: {known}."
    )
