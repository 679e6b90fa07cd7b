"""Readers of Parquet and Arrow files with pyarrow, which the extra ``corpora`` brings."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from nmt.data.sources.text_file import FREE_EXPANSION, MAX_EXPANSION, TextFile
from nmt.errors import DataError
from nmt.extras import require

PARQUET, ARROW = ".parquet", ".arrow"
COLUMNAR = {PARQUET, ARROW}
"""Suffixes of the formats."""
_BATCH = 1000  # rows in memory
_FILE_MAGIC = b"ARROW1"  # of an Arrow file; a stream, as Hugging Face datasets writes it, has none


def columnar_rows(file: TextFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet or Arrow file as dictionaries, numbered from 1; structs become dictionaries too.

    Raises:
        NotFoundError: if pyarrow is not installed.
        DataError: if the file is packed, damaged or too large.
    """
    require("corpora", "pyarrow")
    if file.member is not None or file.path.suffix.lower() != file.suffix:
        raise DataError(f"{file} is packed. Files of this format are read in place, so they must not be. Unpack it.")
    most_bytes = max(FREE_EXPANSION, MAX_EXPANSION * file.path.stat().st_size)
    number = size = 0
    try:
        with contextlib.ExitStack() as stack:
            for batch in _parquet_batches(file) if file.suffix == PARQUET else _arrow_batches(file, stack):
                size += batch.nbytes
                if size > most_bytes:
                    raise DataError(
                        f"{file} unpacks to more than {most_bytes:,} bytes. A packed corpus grows to at most "
                        f"{MAX_EXPANSION} times its size. Write it again as JSON Lines."
                    )
                for start in range(0, batch.num_rows, _BATCH):
                    for row in batch.slice(start, _BATCH).to_pylist():
                        number += 1
                        yield number, row
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        name = "Parquet" if file.suffix == PARQUET else "Arrow"
        raise DataError(f"{file} is damaged or no {name} file ({str(error)[:200]}). Copy it again.") from None


def _parquet_batches(file: TextFile) -> Iterator[Any]:
    return importlib.import_module("pyarrow.parquet").ParquetFile(file.path).iter_batches(_BATCH)


def _arrow_batches(file: TextFile, stack: contextlib.ExitStack) -> Iterator[Any]:
    pyarrow = importlib.import_module("pyarrow")
    content = stack.enter_context(pyarrow.memory_map(str(file.path)))
    if content.read(len(_FILE_MAGIC)) == _FILE_MAGIC:
        reader = pyarrow.ipc.open_file(content)
        yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        content.seek(0)
        yield from pyarrow.ipc.open_stream(content)
