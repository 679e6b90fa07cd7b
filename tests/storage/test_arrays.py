"""Files of arrays: format number and checksum in the metadata, equal bytes for equal arrays."""

from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from nmt.errors import DataError
from nmt.storage.arrays import checksum, read_arrays, read_shapes, write_arrays

ARRAYS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array(7)}


@pytest.mark.parametrize("arrays", [ARRAYS, {}], ids=["some", "none"])
def test_a_file_holds_its_format_and_checksum(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    write_arrays(tmp_path / "x.safetensors", arrays)
    with safe_open(tmp_path / "x.safetensors", "np") as file:
        assert file.metadata() == {"format": "2", "sha256": checksum(arrays)}


def test_equal_arrays_make_equal_files(tmp_path: Path) -> None:
    path, contents = tmp_path / "x.safetensors", set()
    for _ in range(20):
        write_arrays(path, ARRAYS)
        contents.add(path.read_bytes())
    assert len(contents) == 1
    assert np.array_equal(read_arrays(path)["b"], ARRAYS["b"])


@pytest.mark.parametrize("metadata", [{}, {"format": "1"}, {"format": "2"}])
def test_a_file_of_today_or_before_is_read(tmp_path: Path, metadata: dict[str, str]) -> None:
    save_file(ARRAYS, tmp_path / "x.safetensors", {"sha256": checksum(ARRAYS), **metadata})
    assert read_arrays(tmp_path / "x.safetensors").keys() == ARRAYS.keys()
    assert read_shapes(tmp_path / "x.safetensors") == {name: list(array.shape) for name, array in ARRAYS.items()}


@pytest.mark.parametrize("number", ["3", "0", "", "pt", "2.0", "x" * 1000])
def test_another_format_is_refused_in_words(tmp_path: Path, number: str) -> None:
    path = tmp_path / "x.safetensors"
    save_file(ARRAYS, path, {"sha256": checksum(ARRAYS), "format": number})
    with pytest.raises(
        DataError, match=r"x\.safetensors has format .{,63}\. This version of nmt reads format 1 or 2\."
    ):
        read_arrays(path)
