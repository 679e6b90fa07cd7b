"""Weights of a model as arrays by name."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nmt.storage.arrays import Arrays, value_of

if TYPE_CHECKING:
    import keras


def weight_name(variable: "keras.Variable") -> str:
    """Return the path of a variable in its model, such as "encoder_1/attention/query/kernel"."""
    return str(variable.path).partition("/")[2]


def weights_of(model: "keras.Model") -> Arrays:
    """Return the weights of a model by their path in it."""
    return {weight_name(weight): value_of(weight.value) for weight in model.weights}


def set_weights(model: "keras.Model", arrays: Arrays) -> None:
    """Assign float32 arrays to the weights of a model, rounded to its precision.

    Raises:
        ValueError: naming the first difference, for weights of another model; the model is unchanged then.
    """
    variables = {weight_name(weight): weight for weight in model.weights}
    for name in sorted(variables.keys() | arrays.keys()):
        if name not in arrays:
            raise ValueError(f"the model has {name}, the file has not")
        if name not in variables:
            raise ValueError(f"the file has {name}, the model has not")
        if arrays[name].shape != variables[name].shape:
            saved, built = list(arrays[name].shape), list(variables[name].shape)
            raise ValueError(f"{name} is {saved} in the file and {built} in the model")
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} is {arrays[name].dtype} in the file, and weights are saved in float32")
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
