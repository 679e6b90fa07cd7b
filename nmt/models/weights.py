"""Weights of a model as arrays by name, and layer names of older files."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nmt.storage.arrays import Arrays, value_of

if TYPE_CHECKING:
    import keras


def current_name(name: str) -> str:
    """Return the name today of a weight that a file of format 1 names."""
    return name.replace("_frame/", "_sublayer/")


def weight_name(variable: "keras.Variable") -> str:
    """Return the path of a variable in its model, such as "encoder_1/attention/query/kernel"."""
    return str(variable.path).partition("/")[2]


def weights_of(model: "keras.Model") -> Arrays:
    """Return the weights of a model by their path in it."""
    return {weight_name(weight): value_of(weight.value) for weight in model.weights}


def set_weights(model: "keras.Model", arrays: Arrays) -> None:
    """Put arrays into a model, each in the precision of its variable. Names of older files are understood.

    Raises:
        ValueError: if the arrays are of another model; names the first difference. The model is unchanged then.
    """
    variables = {weight_name(weight): weight for weight in model.weights}
    arrays = {name if name in variables else current_name(name): array for name, array in arrays.items()}
    for name in sorted(variables.keys() | arrays.keys()):
        if name not in arrays:
            raise ValueError(f"the file has no {name}, the model has one")
        if name not in variables:
            raise ValueError(f"the file has {name}, the model has none")
        if arrays[name].shape != variables[name].shape:
            in_file, in_model = list(arrays[name].shape), list(variables[name].shape)
            raise ValueError(f"{name} has shape {in_file} in the file and {in_model} in the model")
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} has type {arrays[name].dtype} in the file, weights are saved as float32")
    for name, array in arrays.items():
        variables[name].assign(array)


@contextlib.contextmanager
def swapped_weights(model: "keras.Model", weights: Arrays | None) -> Iterator[None]:
    """Give the model these weights inside the block, and its own again after it; None: leave it as it is."""
    if weights is None:
        yield
        return
    own = weights_of(model)
    set_weights(model, weights)
    try:
        yield
    finally:
        set_weights(model, own)
