"""TODO."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras
import numpy as np

from nmt.storage.arrays import Arrays, value_of


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
