"""Weights of a model as arrays by name: reading, setting, comparing shapes; layer names of older files."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nmt.storage.arrays import Arrays, value_of

if TYPE_CHECKING:
    import keras


Shapes = dict[str, list[int]]
"""Shapes of weights by name."""


def current_name(name: str) -> str:
    """Return today's name of a weight in a file of format 1."""
    return name.replace("_frame/", "_sublayer/")


def weight_name(variable: "keras.Variable") -> str:
    """Return the path of a variable in its model, such as "encoder_1/attention/query/kernel"."""
    return str(variable.path).partition("/")[2]


def weights_of(model: "keras.Model") -> Arrays:
    """Return the weights of a model by their path in it."""
    return {weight_name(weight): value_of(weight.value) for weight in model.weights}


def shape_difference(in_file: Shapes, in_model: Shapes) -> str | None:
    """Return in words the first difference between the weights of a file and of a model; None: they fit.

    Names of older files are understood.
    """
    in_file = {_name_in_model(name, in_model): shape for name, shape in in_file.items()}
    for name in sorted(in_model.keys() | in_file.keys()):
        if name not in in_file:
            return f"the file has no {name}, the model has one"
        if name not in in_model:
            return f"the file has {name}, the model has none"
        if in_file[name] != in_model[name]:
            return f"{name} has shape {in_file[name]} in the file and {in_model[name]} in the model"
    return None


def set_weights(model: "keras.Model", arrays: Arrays) -> None:
    """Put arrays into a model, in the precision of its variables. Names of older files are understood.

    Raises:
        ValueError: if the arrays are of another model; names the first difference. The model is unchanged then.
    """
    variables = {weight_name(weight): weight for weight in model.weights}
    in_model = {name: list(variable.shape) for name, variable in variables.items()}
    difference = shape_difference({name: list(array.shape) for name, array in arrays.items()}, in_model)
    if difference:
        raise ValueError(difference)
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise ValueError(f"{name} has type {array.dtype} in the file, weights are saved as float32")
    for name, array in arrays.items():
        variables[_name_in_model(name, in_model)].assign(array)


def _name_in_model(name: str, in_model: Shapes) -> str:
    return name if name in in_model else current_name(name)


@contextlib.contextmanager
def swapped_weights(model: "keras.Model", weights: Arrays | None) -> Iterator[None]:
    """Give the model other weights inside the block, and its own ones after it; None: the model keeps its own."""
    if weights is None:
        yield
        return
    own = weights_of(model)
    set_weights(model, weights)
    try:
        yield
    finally:
        set_weights(model, own)
