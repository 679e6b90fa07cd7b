"""Weights to translate with: written whole, read while others get ready for them, averaged, chosen."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmt.errors import DataError, NotFoundError
from nmt.models.weights import set_weights
from nmt.runs.directory import Run
from nmt.runs.metrics import Epoch
from nmt.storage.arrays import Arrays, read_arrays, write_arrays
from nmt.storage.atomic import atomic_file
from nmt.storage.names import did_you_mean

if TYPE_CHECKING:
    import keras

FLOAT32 = 4  # bytes
TOO_LARGE = 10  # times as large as the file; of less, what differs is named


@dataclass(frozen=True)
class Saved:
    """A file with weights."""

    path: Path
    checksum: str


def save_weights(run: Run, weights: Arrays, epoch: Epoch) -> Saved:
    """Write weights to translate with."""
    path = run.weights_path(epoch)
    with atomic_file(path) as aside:
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
        f"{did_you_mean(str(wanted), ['best', 'last', 'average'])}. Kept: {known}."
    )
