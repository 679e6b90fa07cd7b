"""A pair store: sentence pairs on disk during preparation, so that memory does not grow with the corpus."""

import os
import shutil
import struct
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from nmt.data.sources.formats import Pair
from nmt.errors import NmtError

_FLUSH_PAIRS = 10_000  # pairs buffered between two writes
_FLUSH_BYTES = 16 * 2**20  # bytes of text buffered between two writes


class PairStoreWriter:
    """Appends pairs to a folder. Once it is closed, ``PairStore`` reads them from any process."""

    def __init__(self, folder: Path) -> None:
        """Create an empty store in an existing folder."""
        self._folder = folder
        self._text = (folder / "text").open("wb")
        self._ends = (folder / "ends").open("wb")
        self._numbers = (folder / "numbers").open("wb")
        self._buffer: list[bytes] = []
        self._buffered_ends = array("Q", [0])  # 0: the start of the first text
        self._buffered_numbers = array("Q")
        self._end = self._written = 0
        self.count = 0

    def append(self, number: int, pair: Pair) -> None:
        """Add a pair and its number in the corpus file.

        Raises:
            NmtError: if the disk is full, or has less space left than the store already takes.
        """
        for text in pair:
            content = text.encode("utf-8")
            self._buffer.append(content)
            self._end += len(content)
            self._buffered_ends.append(self._end)
        self._buffered_numbers.append(number)
        self.count += 1
        if len(self._buffered_numbers) >= _FLUSH_PAIRS or self._end - self._written >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        try:
            self._text.write(b"".join(self._buffer))
            self._buffered_ends.tofile(self._ends)
            self._buffered_numbers.tofile(self._numbers)
            for file in (self._text, self._ends, self._numbers):
                file.flush()
        except OSError as error:
            raise self._disk_full(error.strerror or str(error)) from error
        self._buffer.clear()
        self._buffered_ends, self._buffered_numbers = array("Q"), array("Q")
        self._written = self._end
        # Ids take about as much space as text, and a hostile archive may unpack to fill the disk.
        free = shutil.disk_usage(self._folder).free
        if free < self._written:
            raise self._disk_full(f"{free:,} bytes are free")

    def _disk_full(self, reason: str) -> NmtError:
        return NmtError(
            f"The disk of {self._folder.parent} is too small: {reason} after {self._written:,} bytes of text. "
            "Preparing takes twice the size of the unpacked corpus. Nothing was kept. Free some space, or prepare the "
            "first pairs alone with --set data.n_sentences=1000000"
        )

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the files, and write the buffer first unless an error ends the block."""
        try:
            if error is None:
                self._flush()
        finally:
            for file in (self._text, self._ends, self._numbers):
                file.close()


class PairStore:
    """Random access to the pairs that a ``PairStoreWriter`` wrote."""

    def __init__(self, folder: Path) -> None:
        """Open a store whose writer is closed."""
        self.folder = folder
        self._text = (folder / "text").open("rb")
        self._ends = (folder / "ends").open("rb")
        self._numbers = (folder / "numbers").open("rb")

    # Reads rather than maps the files: pages of a memory map count as memory of this process.

    def __getitem__(self, index: int) -> Pair:
        """Return pair ``index``, counted from 0."""
        start, middle, end = struct.unpack("=3Q", os.pread(self._ends.fileno(), 24, 16 * index))
        content = os.pread(self._text.fileno(), end - start, start)
        return Pair(content[: middle - start].decode("utf-8"), content[middle - start :].decode("utf-8"))

    def read(self, indices: Sequence[int] | np.ndarray) -> list[Pair]:
        """Return the pairs at ``indices``, in that order."""
        return [self[int(index)] for index in indices]

    def chunks(self, indices: np.ndarray, max_bytes: int) -> Iterator[np.ndarray]:
        """Yield ``indices`` [N] in consecutive chunks; the texts of a chunk exceed ``max_bytes`` by at most a pair."""
        start = total = 0
        for position, index in enumerate(indices.tolist()):
            first, _, last = struct.unpack("=3Q", os.pread(self._ends.fileno(), 24, 16 * index))
            total += last - first
            if total >= max_bytes:
                yield indices[start : position + 1]
                start, total = position + 1, 0
        if start < len(indices):
            yield indices[start:]

    def number(self, index: int) -> int:
        """Return the number of pair ``index`` in its corpus file: a line, row or unit, from 1."""
        return int(struct.unpack("=Q", os.pread(self._numbers.fileno(), 8, 8 * index))[0])

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the files."""
        for file in (self._text, self._ends, self._numbers):
            file.close()
