"""Text files, plain, gzipped or inside a zip archive, read as a stream of lines within bounds.

Nothing is unpacked to the disk. A packed file may grow to ``MAX_EXPANSION`` times its size (real text grows by three
to ten), and a line has at most ``MAX_LINE`` bytes, so memory stays small for any content.
"""

import contextlib
import errno
import gzip
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from nmt.errors import DataError, NotFoundError
from nmt.storage.names import did_you_mean, find_file
from nmt.storage.text import not_utf8, text_lines

MAX_EXPANSION = 200
FREE_EXPANSION = 100 * 2**20  # bytes that any packed file may grow to, however small it is
MAX_LINE = 2**20  # bytes
# The default methods of zip programs. For the others zipfile unpacks a whole block at once, without a bound.
_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_BUFFER = 2**18  # bytes
_IN_ZIP = re.compile(r"(.+?\.zip)/(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TextFile:
    """A file, or a member of a zip archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        """Return the name as a user writes it: ``archive.zip/member`` for a member."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """The name without folders, with the member if there is one."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    @property
    def own_name(self) -> str:
        """The name of the file or member without folders and archive."""
        return (self.member or self.path.name).rsplit("/", 1)[-1]

    @property
    def is_gzipped(self) -> bool:
        """Whether the content is compressed with gzip."""
        return self.own_name.lower().endswith(".gz")

    @property
    def suffix(self) -> str:
        """The suffix that determines the format, in lower case: ".tsv" for "a.tsv.gz"."""
        return Path(self.own_name.lower().removesuffix(".gz")).suffix

    @property
    def stem(self) -> str:
        """The file's name without its suffixes: "deu-eng" for "deu-eng.zip/deu.txt", "pairs" for "pairs.tsv.gz"."""
        name = self.path.name
        return Path(name[: -len(".gz")] if name.lower().endswith(".gz") else name).stem


class Unreadable(NamedTuple):
    """A line, row or unit of a file that holds no readable text or pair."""

    reason: str
    """Kind of the problem, as counted in the data report."""
    message: str
    """Place, problem, rule and remedy, for an error; a further remedy follows it."""


def find_text_file(name: str, folders: Iterable[Path]) -> TextFile:
    """Return the file ``name``, searched as by ``find_file``, or the member ``archive.zip/member``.

    The member may be left out if the archive has only one, apart from notes: members that begin with "_" or ".".

    Raises:
        NotFoundError: for a file or member that does not exist.
        DataError: for a damaged archive, and for one with several members or none.
    """
    inside = _IN_ZIP.fullmatch(name)
    path = find_file(inside[1] if inside else name, folders, "file")
    if path.suffix.lower() != ".zip":
        return TextFile(path)
    with reading(path), zipfile.ZipFile(path) as archive:
        # Only a forged archive has members with unprintable or empty names.
        entries = [entry for entry in archive.infolist() if entry.filename and entry.filename.isprintable()]
    members = [entry.filename for entry in entries if not entry.is_dir()]
    if inside:
        if inside[2] not in members:
            raise NotFoundError(
                f"There is no member {inside[2]!r} in {path}{did_you_mean(inside[2], members)}. It holds: "
                f"{first_names(members)}."
            )
        return TextFile(path, inside[2])
    data = [
        member for member in members if member.rsplit("/", 1)[-1][:1] not in {"_", "."} and "__MACOSX" not in member
    ]
    if len(data) != 1:
        remedy = f"Give for example {path}/{data[0]}" if data else "Give an archive with sentences."
        raise DataError(
            f"{path} holds {first_names(data) or 'no text file'}. An archive must hold one text file, unless you name "
            f"the member. {remedy}"
        )
    return TextFile(path, data[0])


def first_names(names: list[str]) -> str:
    """Return the first names of a file's content for a message, each cut off where it is long."""
    return ", ".join(name[:60] for name in names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _unread_method(name: object) -> DataError:
    return DataError(
        f"{name} is compressed by a method that nmt does not read. Zip members must be stored or deflated. Unpack it "
        "first."
    )


@contextlib.contextmanager
def reading(name: object) -> Iterator[None]:
    """Raise DataError, which begins with the name of a file, for what goes wrong while it is read or unpacked."""
    try:
        yield
    except NotImplementedError:  # from zipfile, for an unknown compression method
        raise _unread_method(name) from None
    except RuntimeError as error:  # from zipfile, for a member with a password
        raise DataError(f"{name} cannot be unpacked: {error}. Unpack it first.") from None
    # OSError, ValueError and OverflowError: zipfile hands impossible lengths and positions on to the system.
    except (zipfile.BadZipFile, OSError, zlib.error, EOFError, struct.error, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:
            raise DataError(f"{name} cannot be read: {error.strerror}. Check its permissions and its disk.") from error
        raise DataError(f"{name} is damaged or cut off ({error}). Copy it again.") from None


class _Bounded(io.RawIOBase):
    """A stream that fails in words, also once its content is implausibly large for its packed size."""

    def __init__(self, stream: io.BufferedIOBase, packed: float, file: TextFile) -> None:
        self.stream, self.packed, self.file, self.count = stream, packed, file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        with reading(self.file):
            count = self.stream.readinto(buffer)
        self.count += count
        if self.count > FREE_EXPANSION and self.count > MAX_EXPANSION * self.packed:
            raise DataError(
                f"{self.file} has {self.packed:,} bytes and unpacks to more than {self.count:,}. A packed corpus grows "
                f"to at most {MAX_EXPANSION} times its size; real text grows less. If you trust the file, unpack it "
                "and give the plain file."
            )
        return count


@contextlib.contextmanager
def open_bytes(file: TextFile) -> Iterator[io.BufferedIOBase]:
    """Yield the unpacked content as a stream.

    Raises:
        DataError: while reading, for a file that cannot be read, is damaged, or unpacks to an implausible size.
    """
    with contextlib.ExitStack() as opened:
        with reading(file):
            packed: float = file.path.stat().st_size
            if file.member is None:
                stream: io.BufferedIOBase = opened.enter_context(file.path.open("rb"))
            else:
                archive = opened.enter_context(zipfile.ZipFile(file.path))
                entry = archive.getinfo(file.member)
                if entry.compress_type not in _READABLE:
                    raise _unread_method(file)
                packed = min(packed, entry.compress_size)  # the archive may lie about a member
                stream = cast(io.BufferedIOBase, opened.enter_context(archive.open(file.member)))
        content = io.BufferedReader(_Bounded(stream, packed if file.member else math.inf, file), _BUFFER)
        if file.is_gzipped:
            unpacked = cast(io.BufferedIOBase, opened.enter_context(gzip.GzipFile(fileobj=content)))
            content = io.BufferedReader(_Bounded(unpacked, packed, file), _BUFFER)
        yield content


def numbered_lines(file: TextFile) -> Iterator[tuple[int, str | Unreadable]]:
    r"""Yield (number from 1, line) of a UTF-8 file, split on ``\n`` alone.

    Removes a byte-order mark at the beginning and ``\r`` at line ends, and keeps U+2028 and the like.

    Raises:
        DataError: for a line longer than ``MAX_LINE`` bytes, and as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        number = 0
        while content := stream.readline(MAX_LINE + 1):
            number += 1
            if len(content) > MAX_LINE:
                raise DataError(
                    f"{file}, line {number} is longer than {MAX_LINE:,} bytes. A corpus has one sentence or one pair "
                    "per line. Give another text file."
                )
            try:
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield number, Unreadable("not UTF-8", not_utf8(str(file), error, number - 1).rstrip("."))
            else:
                yield number, line.rstrip("\r\n")


def read_lines(file: TextFile) -> list[str]:
    """Return the lines of a UTF-8 file, split as by ``text_lines``.

    Raises:
        DataError: naming the first line that is not UTF-8, and as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        return text_lines(stream.read(), str(file))
