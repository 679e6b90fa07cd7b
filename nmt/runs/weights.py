"""Weights of a run for translation: save, read in the background, count, average and choose them."""

import math
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmt.config.schema import Config
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError, counted
from nmt.message import Argument, Command
from nmt.models.weights import Shapes, current_name, set_weights, shape_difference
from nmt.runs.directory import Run, find_run
from nmt.runs.metrics import WeightsId, in_ranges
from nmt.storage.arrays import Arrays, read_arrays, read_shapes, write_arrays
from nmt.storage.atomic import atomic_file, sha256
from nmt.storage.names import did_you_mean

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class SavedWeights:
    """Weights file that has just been written."""

    path: Path
    checksum: str
    """SHA-256 of the arrays of the file, in hexadecimal."""


def save_weights(run: Run, weights: Arrays, weights_id: WeightsId) -> SavedWeights:
    """Write weights for translation to the run."""
    path = run.weights_path(weights_id)
    with atomic_file(path) as temporary:
        return SavedWeights(path, write_arrays(temporary, weights))


class WeightsFile:
    """Weights file that a thread reads while TensorFlow starts and the model is built."""

    def __init__(self, run: Run, weights_id: WeightsId) -> None:
        """Start reading the file."""
        self.epoch, self.path = weights_id, run.weights_path(weights_id)
        reader = ThreadPoolExecutor(1)
        self._arrays = reader.submit(read_arrays, self.path)
        reader.shutdown(wait=False)

    def check_shapes(self, in_model: Shapes) -> None:
        """Compare the shapes of a model's weights with the header of the file.

        Raises:
            NotFoundError: if the file does not exist.
            DataError: if the file is damaged or does not fit the model.
        """
        difference = shape_difference(read_shapes(self.path), in_model)
        if difference:
            raise self._mismatch(difference)

    def _mismatch(self, difference: str) -> DataError:
        return DataError(
            f"{self.path} does not hold the weights of this model: {difference}. Use the configuration with which the "
            "weights were trained."
        )

    def load(self, model: "keras.Model") -> None:
        """Set the weights of a model.

        Raises:
            NotFoundError: if the file does not exist.
            DataError: if the file is damaged or does not fit the model.
        """
        try:
            set_weights(model, self._arrays.result())
        except ValueError as error:
            raise self._mismatch(str(error)) from None


def count_weights(run: Run) -> int | None:
    """Return the number of weights of a run's model, from the header of a weights file; None if the run has no file.

    Raises:
        DataError: if the file is damaged.
    """
    saved = run.saved_weights
    if not saved:
        return None
    shapes = read_shapes(run.weights_path(saved[-1]))
    return sum(math.prod(shape) for shape in shapes.values())


def average_weights(run: Run, epochs: Sequence[WeightsId]) -> Arrays:
    """Return the mean of the weights of several epochs (Vaswani et al. 2017, section 6.1). See ``average_files``."""
    return average_files([run.weights_path(epoch) for epoch in epochs])


def average_files(files: Sequence[Path]) -> Arrays:
    """Return the mean of the weights in several files, summed in float64.

    The result has the layer names of the last file, since the first files of a run may have names of an older version.

    Raises:
        NotFoundError, DataError: if a file is missing or damaged, or belongs to another model.
    """
    sums: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    for file in files:
        arrays = read_arrays(file)
        names = {current_name(name): name for name in arrays}
        current = {current_name(name): array for name, array in arrays.items()}
        if not sums:
            sums = {name: np.zeros(array.shape, np.float64) for name, array in current.items()}
        if {name: array.shape for name, array in current.items()} != {name: sums[name].shape for name in sums}:
            raise DataError(
                f"{file} holds the weights of another model than {files[0]}. Only weights of one model can be "
                "averaged. Restore a copy of it."
            )
        for name, array in current.items():
            sums[name] += array
    return {names[name]: (total / len(files)).astype(np.float32) for name, total in sums.items()}


def parse_epochs(text: str, available: list[int], owner: str) -> list[int]:
    """Return the epochs in a text of numbers and ranges, in order and without repetition.

    Args:
        text: numbers and ranges, such as "12-16,20".
        available: epochs with weights.
        owner: owner of the epochs in messages, such as "run 'base'".

    Raises:
        NmtError: if the text is not such a list, or names an epoch without weights.
    """
    epochs: set[int] = set()
    for part in text.split(","):
        bounds = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        first = int(bounds[1]) if bounds else 0
        last = int(bounds[2] or bounds[1]) if bounds else 0
        if not 0 < first <= last:
            raise NmtError(f"{text!r} names no epochs of {owner}. Give numbers and ranges, such as 12-16,20.")
        epochs |= _epochs_between(first, last, f"epoch{'' if first == last else 's'} {part.strip()}", available, owner)
    return sorted(epochs)


def last_epochs(count: int, available: list[int], owner: str) -> list[int]:
    """Return the last ``count`` epochs.

    Raises:
        NmtError: if the weights of one of these epochs are missing.
    """
    end = max(available, default=0)
    return sorted(_epochs_between(end - count + 1, end, f"the last {counted(count, 'epoch')}", available, owner))


def _epochs_between(first: int, last: int, named: str, available: list[int], owner: str) -> set[int]:
    """Return the epochs from ``first`` to ``last``.

    Raises:
        NmtError: if the weights of one of these epochs are missing. The message calls the epochs ``named``.
    """
    epochs = {epoch for epoch in available if first <= epoch <= last}
    if len(epochs) == last - first + 1:
        return epochs
    start = owner[:1].upper() + owner[1:]
    if not available:
        raise NmtError(
            f"{start} has no weights yet. The weights of an epoch are saved at its end. First continue with nmt train."
        )
    raise NmtError(
        f"{start} does not have the weights of {named}. An average needs the weights of all its epochs. Choose from "
        f"{in_ranges(available)} with ",
        Argument("epochs"),
        ".",
    )


def weights_to_delete(run: Run, last: int, max_to_keep: int | None, best: WeightsId | None) -> list[Path]:
    """Return the weights files that can be deleted once the weights of epoch ``last`` are saved.

    The best weights are kept, and the weights of the last ``max_to_keep`` epochs; None keeps all epochs. Weights from
    within an epoch are kept only if they are the best.
    """
    epochs = sorted({*run.weights_epochs, last})
    kept_ids = [best, *(epochs if max_to_keep is None else epochs[-max_to_keep:])]
    return [run.weights_path(weights_id) for weights_id in run.saved_weights if weights_id not in kept_ids]


def find_members(name: str, epoch: str | None) -> list[tuple[Run, str | None]]:
    """Return the runs of an ensemble with their weights.

    Args:
        name: runs as RUN or RUN:EPOCH, joined by "+".
        epoch: weights of the runs without EPOCH.

    Raises:
        NotFoundError: if there is no such run.
    """
    parts = [part.partition(":") for part in name.split("+")]
    return [(find_run(run), own or epoch) for run, _, own in parts]


def check_same_model(first: Run, second: Run) -> None:
    """Raise ConflictError if two runs differ in the model (except for dropout) or in the tokenizers.

    The weights of such runs cannot be averaged.
    """
    first_model, second_model = first.config().model.model_dump(), second.config().model.model_dump()
    different = [
        f"model.{key}" for key in first_model if "dropout" not in key and first_model[key] != second_model.get(key)
    ]
    if _tokenizer_checksums(first) != _tokenizer_checksums(second):
        different.append("tokenizers")
    if different:
        raise ConflictError(
            f"Runs {first.name!r} and {second.name!r} differ in {', '.join(different)}. Weights can be averaged if "
            "they belong to the same model and vocabulary, and started from the same weights. Leave one out."
        )


def check_alike(first: Run, second: Run) -> None:
    """Raise ConflictError if two runs cannot form an ensemble, because they read or write different tokens."""
    first_model, second_model = first.config().model, second.config().model
    if _tokenizer_checksums(first) != _tokenizer_checksums(second):
        difference = "tokenizers"
    elif (first_model.reads_bos, first_model.limits) != (second_model.reads_bos, second_model.limits):
        difference = "values of model.source_bos, or different longest sentences"
    else:
        return
    raise ConflictError(
        f"Runs {first.name!r} and {second.name!r} have different {difference}. The runs of an ensemble must read and "
        "write the same tokens. Leave one out, or train it on a dataset of ",
        Command("prepare", Argument("tokenizer_of", first.name)),
    )


def _tokenizer_checksums(run: Run) -> dict[str, str]:
    return {file.name: sha256(file) for file in run.tokenizer_files}


def choose_epoch(run: Run, choice: str | None, config: Config | None = None) -> WeightsId:
    """Return the weights to translate with.

    Args:
        run: owner of the weights.
        choice: number of an epoch, "last", "best", "average", or a name such as "step-1500"; None: the average if the
            run has one, else the best.
        config: the configuration of the run if it has been read already.

    Raises:
        NotFoundError: if the run does not have these weights.
    """
    epochs, best, kept = run.weights_epochs, run.best(config), run.saved_weights
    chosen: dict[str, WeightsId] = {str(weights): weights for weights in kept}
    if run.average():
        chosen["average"] = "average"
    if best in kept:
        chosen["best"] = best
    if epochs:
        chosen["last"] = epochs[-1]
    if choice is None:
        choice = next((name for name in ("average", "best", "last") if name in chosen), "last")
    if choice in chosen:
        return chosen[choice]
    if choice == "best":
        choice = str(best)
    if not epochs:
        raise NotFoundError(
            f"Run {run.name!r} has not finished an epoch yet. Continue with: ",
            Command("train", Argument("run", run.name)),
        )
    known = ", ".join(map(str, kept))
    if choice == "average":
        raise NotFoundError(
            f"Run {run.name!r} has no averaged weights. Training ends with an average if training.average_last is 2 or "
            "more and the run has eight epochs or more. Make an average with nmt average, leave ",
            Argument("epoch"),
            f" out, or give one of {known}.",
        )
    raise NotFoundError(
        f"Run {run.name!r} has no weights of epoch {choice!r}{did_you_mean(choice, ['best', 'last', 'average'])}. "
        f"An epoch is a number, best, last or average. Kept: {known}."
    )
