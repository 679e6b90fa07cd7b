"""Text as people keep it, plain, gzipped or inside a zip archive, read as a stream of lines that cannot run away.

Nothing is unpacked to the disk. A packed file may grow to ``MAX_EXPANSION`` times its size (real text grows by three
to ten), and a line has at most ``MAX_LINE`` bytes, so memory stays small whatever the file holds.
"""

import contextlib
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, cast

from nmt.errors import DataError, NotFoundError
from nmt.storage.names import did_you_mean, find_file

MAX_EXPANSION = 200
FREE_EXPANSION = 100 * 2**20  # bytes that may come out of any packed file, however small it is
MAX_LINE = 2**20
# What zip programs write unless told otherwise. zipfile unpacks the others without a bound: all that a block holds.
_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_IN_ZIP = re.compile(r"(.+?\.zip)/(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TextFile:
    """A file, or a member of a zip archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        """Return the name as a user gives it: ``archive.zip/member`` for a member."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """The name without folders."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    @property
    def is_gzipped(self) -> bool:
        """Whether the content is packed with gzip."""
        return (self.member or self.path.name).lower().endswith(".gz")

    @property
    def suffix(self) -> str:
        """The suffix that names the format, in lower case, such as ".tsv" for "a.tsv.gz"."""
        name = (self.member or self.path.name).lower()
        return Path(name.removesuffix(".gz")).suffix

    @property
    def stem(self) -> str:
        """The file's name without its suffixes: "deu-eng" for "deu-eng.zip/deu.txt", "pairs" for "pairs.tsv.gz"."""
        name = self.path.name
        return Path(name[: -len(".gz")] if name.lower().endswith(".gz") else name).stem


class Undecodable(NamedTuple):
    """A line that is not UTF-8."""

    byte: int
    """The first byte that does not fit."""


def find_text_file(name: str, folders: Iterable[Path]) -> TextFile:
    """Return the file called ``name``, or for ``archive.zip/member`` that member; see ``files.find_file``.

    An archive with one member needs no member named; members that begin with "_" or "." are notes, not data.

    Raises:
        NotFoundError: for a file or member that is not there.
        DataError: for an archive that is damaged, or of which it is not clear which member is meant.
    """
    inside = _IN_ZIP.fullmatch(name)
    path = find_file(inside[1] if inside else name, folders, "file")
    if path.suffix.lower() != ".zip":
        return TextFile(path)
    with _damage_in_words(TextFile(path)), zipfile.ZipFile(path) as archive:
        # A name that a terminal would not show, or none at all, is no file that anyone packed.
        entries = [entry for entry in archive.infolist() if entry.filename and entry.filename.isprintable()]
    members = [entry.filename for entry in entries if not entry.is_dir()]
    if inside:
        if inside[2] not in members:
            raise NotFoundError(
                f"There is no member {inside[2]!r} in {path}{did_you_mean(inside[2], members)}. It holds: "
                f"{_some(members)}."
            )
        return TextFile(path, inside[2])
    data = [
        member for member in members if member.rsplit("/", 1)[-1][:1] not in {"_", "."} and "__MACOSX" not in member
    ]
    if len(data) != 1:
        remedy = f"Give for example {path}/{data[0]}" if data else "Give one that holds sentences."
        raise DataError(
            f"An archive holds one file of sentences, or one is named, as in archive.zip/member; {path} holds "
            f"{_some(data) or 'none'}. {remedy}"
        )
    return TextFile(path, data[0])


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


class _Bounded(io.RawIOBase):
    """The bytes of an unpacking stream, refused once they are implausibly many for what they were packed into."""

    def __init__(self, stream: IO[bytes], packed: int, file: TextFile) -> None:
        self.stream, self.packed, self.file, self.count = stream, packed, file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        with _damage_in_words(self.file):
            content = self.stream.read(len(buffer))
        self.count += len(content)
        if self.count > FREE_EXPANSION and self.count > MAX_EXPANSION * self.packed:
            raise DataError(
                f"A packed corpus grows to at most {MAX_EXPANSION} times its size, as no text grows more; "
                f"{self.file} has {self.packed:,} bytes and goes on after {self.count:,}. If it is no trap, unpack it "
                "and give the plain file."
            )
        buffer[: len(content)] = content
        return len(content)


def _packed_otherwise(file: TextFile) -> DataError:
    return DataError(f"Zip members are stored or deflated; {file} is packed in another way. Unpack it first.")


@contextlib.contextmanager
def _damage_in_words(file: TextFile) -> Iterator[None]:
    try:
        yield
    except NotImplementedError:  # what zipfile raises for a way of packing that it does not know
        raise _packed_otherwise(file) from None
    except RuntimeError as error:  # what zipfile raises for a member with a password
        raise DataError(f"{file} cannot be unpacked here: {error}. Unpack it first.") from None
    # Lengths and places that cannot be reach the system as they stand in the archive.
    except (zipfile.BadZipFile, OSError, zlib.error, EOFError, struct.error, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise DataError(f"A packed file must be whole; {file} is damaged or cut off ({error}). Copy it anew.") from None


@contextlib.contextmanager
def open_bytes(file: TextFile) -> Iterator[io.BufferedReader]:
    """Yield the unpacked content as a stream.

    Raises:
        DataError: while reading, for a damaged file and for one that unpacks to implausibly much.
    """
    with contextlib.ExitStack() as opened:
        packed = file.path.stat().st_size
        if file.member is None:
            stream: IO[bytes] = opened.enter_context(file.path.open("rb"))
        else:
            with _damage_in_words(file):
                archive = opened.enter_context(zipfile.ZipFile(file.path))
                entry = archive.getinfo(file.member)
                if entry.compress_type not in _READABLE:
                    raise _packed_otherwise(file)
                packed = min(packed, entry.compress_size)  # an archive can say that a member is longer than itself
                stream = opened.enter_context(archive.open(file.member))
        if file.is_gzipped:
            # Counted before gunzip too, for a gzip inside a zip.
            inner = io.BufferedReader(_Bounded(stream, packed, file)) if file.member else stream
            stream = cast(IO[bytes], opened.enter_context(gzip.GzipFile(fileobj=inner)))
        if file.is_gzipped or file.member:
            yield io.BufferedReader(_Bounded(stream, packed, file), 2**18)
        else:
            yield stream  # type: ignore[misc]


def numbered_lines(file: TextFile) -> Iterator[tuple[int, str | Undecodable]]:
    r"""Yield (number from 1, line) of a UTF-8 file, split on ``\n`` alone.

    A byte-order mark at the beginning and ``\r`` at the ends of lines go; U+2028 and the like stay where they are.

    Raises:
        DataError: for a line longer than ``MAX_LINE`` bytes, and as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        number = 0
        while content := stream.readline(MAX_LINE + 1):
            number += 1
            if len(content) > MAX_LINE:
                raise DataError(
                    f"A line of a corpus has at most {MAX_LINE:,} bytes; {file}, line {number} has more. "
                    "Give a text file with a sentence or a pair a line."
                )
            try:
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield number, Undecodable(content[error.start])
            else:
                yield number, line.rstrip("\r\n")
