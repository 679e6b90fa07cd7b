"""Sentence pairs on their way through preparation: on disk, so that memory does not grow with the corpus."""

import os
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from nmt.readers import Pair

_FLUSH = 10_000  # pairs between two writes


class SpoolWriter:
    """Appends pairs to a folder. ``Spool`` reads them, from any process, once this is closed."""

    def __init__(self, folder: Path) -> None:
        """Begin an empty spool in an existing folder."""
        self._text = (folder / "text").open("wb")
        self._ends = (folder / "ends").open("wb")
        self._numbers = (folder / "numbers").open("wb")
        self._waiting: list[bytes] = []
        self._waiting_ends = array("Q", [0])  # where the first text begins
        self._waiting_numbers = array("Q")
        self._end = 0
        self.count = 0

    def append(self, number: int, pair: Pair) -> None:
        """Add a pair and the number of its place in the file."""
        for text in pair:
            content = text.encode("utf-8")
            self._waiting.append(content)
            self._end += len(content)
            self._waiting_ends.append(self._end)
        self._waiting_numbers.append(number)
        self.count += 1
        if len(self._waiting_numbers) >= _FLUSH:
            self._flush()

    def _flush(self) -> None:
        self._text.write(b"".join(self._waiting))
        self._waiting_ends.tofile(self._ends)
        self._waiting_numbers.tofile(self._numbers)
        self._waiting.clear()
        self._waiting_ends, self._waiting_numbers = array("Q"), array("Q")

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what waits, and close the files."""
        self._flush()
        for file in (self._text, self._ends, self._numbers):
            file.close()


class Spool:
    """Random access to the pairs that a ``SpoolWriter`` wrote."""

    def __init__(self, folder: Path) -> None:
        """Open a closed spool."""
        self.folder = folder
        self._text = (folder / "text").open("rb")
        self._ends = (folder / "ends").open("rb")
        self._numbers = (folder / "numbers").open("rb")

    # Read rather than mapped: pages of a map count as this process's memory.

    def __getitem__(self, index: int) -> Pair:
        """Return pair ``index``, counted from 0."""
        start, middle, end = struct.unpack("=3Q", os.pread(self._ends.fileno(), 24, 16 * index))
        content = os.pread(self._text.fileno(), end - start, start)
        return Pair(content[: middle - start].decode("utf-8"), content[middle - start :].decode("utf-8"))

    def read(self, indices: Sequence[int] | np.ndarray) -> list[Pair]:
        """Return the pairs at ``indices``, in that order."""
        return [self[int(index)] for index in indices]

    def number(self, index: int) -> int:
        """Return the number of the place in its file that pair ``index`` stood at."""
        return int(struct.unpack("=Q", os.pread(self._numbers.fileno(), 8, 8 * index))[0])

    def __enter__(self) -> Self:
        """Return the spool."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the files."""
        for file in (self._text, self._ends, self._numbers):
            file.close()
