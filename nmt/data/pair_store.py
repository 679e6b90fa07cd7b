"""A pair store keeps sentence pairs on disk during preparation, so that memory does not grow with the corpus."""

import contextlib
import io
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from nmt.data.sources.formats import Pair
from nmt.errors import NmtError
from nmt.message import Settings

_FLUSH_BYTES = 16 * 2**20  # bytes buffered between two writes
_ENTRY = struct.Struct("=4Q")  # byte offsets of start, middle and end of a pair; its number in the corpus file


class PairStoreWriter:
    """Writer of a pair store. After it is closed, ``PairStore`` reads the pairs from any process."""

    def __init__(self, folder: Path) -> None:
        """Create an empty store in an existing folder."""
        self._folder = folder
        self._files = [(folder / name).open("wb") for name in ("text", "index")]
        self._buffers = bytearray(), bytearray()
        self._end = self.count = 0

    def append(self, number: int, pair: Pair) -> None:
        """Add a pair and its number in the corpus file.

        Raises:
            NmtError: if the disk is full, or has less space left than the store already takes.
        """
        source, target = (text.encode("utf-8") for text in pair)
        start, middle = self._end, self._end + len(source)
        self._end = middle + len(target)
        text, index = self._buffers
        text += source + target
        index += _ENTRY.pack(start, middle, self._end, number)
        self.count += 1
        if len(text) + len(index) >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        try:
            for file, buffer in zip(self._files, self._buffers, strict=True):
                file.write(buffer)
                file.flush()
                buffer.clear()
        except OSError as error:
            raise self._disk_full(error.strerror or str(error)) from error
        # Ids take about as much space as text, and a hostile archive may unpack to more than the disk holds.
        free = shutil.disk_usage(self._folder).free
        if free < self._end:
            raise self._disk_full(f"{free:,} bytes are free")

    def _disk_full(self, reason: str) -> NmtError:
        return NmtError(
            f"The disk of {self._folder.parents[1]} is too small: {reason} after {self._end:,} bytes of text. "
            "Preparing takes twice the size of the unpacked corpus. Nothing was kept. Free some space, or prepare the "
            "first pairs alone with ",
            Settings({"data.n_sentences": 1_000_000}),
        )

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        """Close the files, and write the buffer first unless an error ends the block."""
        try:
            if kind is None:
                self._flush()
        finally:
            for file in self._files:
                with contextlib.suppress(OSError):  # a full disk refuses the rest again
                    file.close()


def _read_at(file: io.FileIO, start: int, size: int) -> bytes:
    """Return ``size`` bytes of a file from the byte ``start``.

    They are read rather than mapped: pages of a memory map count as memory of this process.
    """
    file.seek(start)
    return file.read(size)


class PairStore:
    """Random access to the N pairs that a ``PairStoreWriter`` wrote. Pair N + i is pair i with its sides exchanged."""

    def __init__(self, folder: Path) -> None:
        """Open a store whose writer is closed."""
        self._text, self._index = ((folder / name).open("rb", buffering=0) for name in ("text", "index"))
        self._count = self._index.seek(0, io.SEEK_END) // _ENTRY.size

    def __len__(self) -> int:
        """Return N."""
        return self._count

    def _entry(self, index: int) -> tuple[int, ...]:
        # The file is read, not mapped: pages of a memory map count as memory of this process.
        return _ENTRY.unpack(_read_at(self._index, _ENTRY.size * (index % self._count), _ENTRY.size))

    def __getitem__(self, index: int) -> Pair:
        """Return pair ``index``, counted from 0."""
        start, middle, end, _ = self._entry(index)
        content = _read_at(self._text, start, end - start)
        pair = Pair(content[: middle - start].decode("utf-8"), content[middle - start :].decode("utf-8"))
        return pair if index < self._count else Pair(pair.target, pair.source)

    def read(self, indices: Sequence[int] | np.ndarray) -> list[Pair]:
        """Return the pairs at ``indices``, in that order."""
        return [self[int(index)] for index in indices]

    def chunks(self, indices: np.ndarray, max_bytes: int) -> Iterator[np.ndarray]:
        """Yield ``indices`` [N] in consecutive chunks. The text exceeds ``max_bytes`` by at most one pair."""
        start = total = 0
        for position, index in enumerate(indices.tolist()):
            first, _, last, _ = self._entry(index)
            total += last - first
            if total >= max_bytes:
                yield indices[start : position + 1]
                start, total = position + 1, 0
        if start < len(indices):
            yield indices[start:]

    def number(self, index: int) -> int:
        """Return the number of pair ``index`` in its corpus file: a line, row or unit, from 1."""
        return self._entry(index)[3]

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._text.close()
        self._index.close()
