"""Named arrays in a safetensors file with a checksum: weights and optimizer states."""

import contextlib
import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from nmt.errors import DataError, NotFoundError
from nmt.storage.json_file import check_format

if TYPE_CHECKING:
    import tensorflow as tf

Arrays = dict[str, np.ndarray]
CHECKSUM, FORMAT = "sha256", "format"  # keys of the file's metadata, whose values are text
CURRENT_FORMAT = "2"
FIRST_FORMAT = "1"  # files of this format hold no format number


def value_of(variable: "tf.Variable") -> np.ndarray:
    """Return the current value of a variable, read-only and, on a CPU, without a copy.

    Later updates of the variable leave the array unchanged: TensorFlow allocates new memory for a variable whose value
    is still in use.
    """
    return np.asarray(variable.read_value())


def checksum(arrays: Arrays) -> str:
    """Return the SHA-256 of names, dtypes, shapes and values in hexadecimal. The order of the arrays has no effect."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_arrays(path: Path, arrays: Arrays) -> str:
    """Write arrays with a format number and their checksum. Return the checksum."""
    digest = checksum(arrays)
    metadata = {CHECKSUM: digest, FORMAT: CURRENT_FORMAT}
    save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path, metadata)
    _sort_metadata(path, metadata)
    return digest


def _sort_metadata(path: Path, metadata: dict[str, str]) -> None:
    """Sort the metadata in the header, so that equal arrays give equal files. safetensors writes them in any order."""
    possible_headers = [
        b'{"__metadata__":' + json.dumps(dict(items), separators=(",", ":")).encode()
        for items in itertools.permutations(sorted(metadata.items()))
    ]
    with path.open("r+b") as file:
        file.seek(8)  # the header follows its length, an integer of 8 bytes
        if file.read(len(possible_headers[0])) in possible_headers:
            file.seek(8)
            file.write(possible_headers[0])


def read_shapes(path: Path) -> dict[str, list[int]]:
    """Return the shapes of the arrays of a file by name, from its header alone.

    Raises:
        NotFoundError, DataError: as for ``read_arrays``, but the values are not compared with the checksum.
    """
    with _open_arrays(path) as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 - no mapping


def read_checksum(path: Path) -> str | None:
    """Return the checksum that the header of a file holds; None if it holds none.

    Raises:
        NotFoundError, DataError: as for ``read_arrays``, but the values are not compared with the checksum.
    """
    with _open_arrays(path) as file:
        stored: str | None = (file.metadata() or {}).get(CHECKSUM)
        return stored


def read_arrays(path: Path, expected: str | None = None) -> Arrays:
    """Return the arrays of a file. Their checksum must match the stored one, and ``expected`` unless that is None.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if the file is damaged, has another checksum than expected, or has an unknown format.
    """
    with _open_arrays(path) as file:
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    if metadata.get(CHECKSUM) != checksum(arrays):
        raise DataError(f"{path} is damaged: its content does not match its stored SHA-256. Restore a copy of it.")
    if expected not in (None, metadata[CHECKSUM]):
        raise DataError(f"{path} was not saved together with the files beside it. Restore a copy of it.")
    return arrays


@contextlib.contextmanager
def _open_arrays(path: Path) -> Iterator[Any]:
    """Open a file of arrays, and turn errors of safetensors into messages."""
    try:
        with safe_open(path, "np") as file:
            check_format((file.metadata() or {}).get(FORMAT, FIRST_FORMAT), [FIRST_FORMAT, CURRENT_FORMAT], str(path))
            yield file
    except FileNotFoundError:
        raise NotFoundError(f"{path} is missing. Restore a copy of it.") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError) as error:
        raise DataError(f"{path} is damaged: {str(error) or type(error).__name__}. Restore a copy of it.") from None
