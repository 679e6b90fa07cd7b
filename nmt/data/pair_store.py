"""Sentence pairs on their way through preparation: on disk, so that memory does not grow with the corpus."""

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

_FLUSH = 10_000  # pairs between two writes
_FLUSH_BYTES = 16 * 2**20


class SpoolWriter:
    """Appends pairs to a folder. ``Spool`` reads them, from any process, once this is closed."""

    def __init__(self, folder: Path) -> None:
        """Begin an empty spool in an existing folder."""
        self._folder = folder
        self._text = (folder / "text").open("wb")
        self._ends = (folder / "ends").open("wb")
        self._numbers = (folder / "numbers").open("wb")
        self._waiting: list[bytes] = []
        self._waiting_ends = array("Q", [0])  # where the first text begins
        self._waiting_numbers = array("Q")
        self._end = self._written = 0
        self.count = 0

    def append(self, number: int, pair: Pair) -> None:
        """Add a pair and the number of its place in the file.

        Raises:
            NmtError: if the disk refuses, or would have no room for as much again.
        """
        for text in pair:
            content = text.encode("utf-8")
            self._waiting.append(content)
            self._end += len(content)
            self._waiting_ends.append(self._end)
        self._waiting_numbers.append(number)
        self.count += 1
        if len(self._waiting_numbers) >= _FLUSH or self._end - self._written >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        try:
            self._text.write(b"".join(self._waiting))
            self._waiting_ends.tofile(self._ends)
            self._waiting_numbers.tofile(self._numbers)
            for file in (self._text, self._ends, self._numbers):
                file.flush()
        except OSError as error:
            raise self._no_room(error.strerror or str(error)) from error
        self._waiting.clear()
        self._waiting_ends, self._waiting_numbers = array("Q"), array("Q")
        self._written = self._end
        # Ids take about as much as text; and what fills a disk may be an archive that was made to.
        free = shutil.disk_usage(self._folder).free
        if free < self._written:
            raise self._no_room(f"{free:,} bytes are free")

    def _no_room(self, reason: str) -> NmtError:
        return NmtError(
            f"Preparing takes twice the disk space of the unpacked corpus; in {self._folder.parent}, after "
            f"{self._written:,} bytes of text, {reason}. Nothing was kept. Free some space, or take the first pairs "
            "alone with --set data.n_sentences=1000000"
        )

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what waits, unless it is for nothing, and close the files."""
        try:
            if error is None:
                self._flush()
        finally:
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

    def portions(self, indices: np.ndarray, most: int) -> Iterator[np.ndarray]:
        """Yield ``indices`` in pieces whose texts have about ``most`` bytes: at most that and one pair."""
        start = total = 0
        for place, index in enumerate(indices.tolist()):
            first, _, last = struct.unpack("=3Q", os.pread(self._ends.fileno(), 24, 16 * index))
            total += last - first
            if total >= most:
                yield indices[start : place + 1]
                start, total = place + 1, 0
        if start < len(indices):
            yield indices[start:]

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
