"""Arrays by name in a file that knows its own checksum: weights, and all else that training keeps, as safetensors."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from nmt.errors import DataError, NotFoundError

if TYPE_CHECKING:
    import tensorflow as tf

Arrays = dict[str, np.ndarray]
CHECKSUM = "sha256"


def value_of(variable: "tf.Variable") -> np.ndarray:
    """Return the value that a variable has now, read-only and, on a CPU, not copied.

    It stays what it is: TensorFlow gives a variable that is to change other memory if its value is still in use.
    """
    return np.asarray(variable.read_value())


def checksum(arrays: Arrays) -> str:
    """Return the SHA-256 of names, types, shapes and values, whatever their order, in hexadecimal."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        whole.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        whole.update(array.reshape(-1).view(np.uint8).data)
    return whole.hexdigest()


def write_arrays(path: Path, arrays: Arrays) -> str:
    """Write arrays of numbers, their checksum among them, and return it."""
    content = checksum(arrays)
    save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path, {CHECKSUM: content})
    return content


def read_arrays(path: Path, expected: str | None = None) -> Arrays:
    """Return the arrays in a file, checked against the checksum in it, and against ``expected`` if given.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is damaged, or whole but not the expected one.
    """
    try:
        with safe_open(path, "np") as file:
            noted = (file.metadata() or {}).get(CHECKSUM)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise NotFoundError(f"{path} is missing. Restore a copy of it.") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError) as error:
        raise DataError(f"{path} is damaged: {str(error) or type(error).__name__}. Restore a copy of it.") from None
    if noted != checksum(arrays):
        raise DataError(f"{path} is damaged: its SHA-256 is not the one noted when it was saved. Restore a copy of it.")
    if expected not in (None, noted):
        raise DataError(f"{path} is not the file that was saved with those beside it. Restore a copy of it.")
    return arrays


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in a file, without reading them."""
    with safe_open(path, "np") as file:
        return list(file.keys())
