"""Text files (plain, gzipped or inside a zip archive) and their bounded readers.

Nothing is unpacked to disk. A packed file may grow to ``MAX_EXPANSION`` times its size (real text grows three to ten
times), and a line has at most ``MAX_LINE`` bytes, so any content can be read with little memory.
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
FREE_EXPANSION = 100 * 2**20  # bytes to which even a very small packed file may grow
MAX_LINE = 2**20  # bytes
MEMORIES = frozenset({".tmx", ".xlf", ".xliff", ".po"})
"""Suffixes of translation memories and catalogues. An archive of many files of one of them is a single corpus."""
# The default methods of zip programs. With other methods, zipfile unpacks a whole block at once, without a bound.
_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_BUFFER = 2**18  # bytes
_IN_ZIP = re.compile(r"(.+?\.zip)/(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TextFile:
    """A text file, or a member of a zip archive."""

    path: Path
    """Path of the file or archive."""
    member: str | None = None
    """Name of the member in the archive; None for a file."""

    def __str__(self) -> str:
        """Return the name as a user writes it: ``archive.zip/member`` for a member."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """Name without folders, such as "deu-eng.zip/deu.txt" for a member."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    @property
    def own_name(self) -> str:
        """Name of the file or member without folders and archive."""
        return (self.member or self.path.name).rsplit("/", 1)[-1]

    @property
    def is_gzipped(self) -> bool:
        """Whether the content is compressed with gzip."""
        return self.own_name.lower().endswith(".gz")

    @property
    def suffix(self) -> str:
        """Suffix that determines the format, in lower case: ".tsv" for "a.tsv.gz"."""
        return Path(self.own_name.lower().removesuffix(".gz")).suffix

    @property
    def stem(self) -> str:
        """Name of the file without suffixes: "deu-eng" for "deu-eng.zip/deu.txt", "pairs" for "pairs.tsv.gz"."""
        name = self.path.name
        return Path(name[: -len(".gz")] if name.lower().endswith(".gz") else name).stem


class Unreadable(NamedTuple):
    """A line, row or unit of a file that holds no readable text or pair."""

    reason: str
    """Kind of the problem, by which the data report counts it."""
    message: str
    """Place, problem, rule and remedy in words, without the final full stop: an error adds a further remedy."""
    text: str = ""
    """Text that the data report shows beside the place."""
    is_dropped: bool = False
    """Whether it is dropped and counted even if unreadable lines are refused."""


def find_text_file(name: str, folders: Iterable[Path]) -> TextFile:
    """Return the file ``name``, which ``find_file`` looks for, or the member of an archive, ``archive.zip/member``.

    The member may be left out if the archive has only one, or only memories of one format, which are read together.
    Members whose names begin with "_" or "." do not count.

    Raises:
        NotFoundError: if the file or member does not exist.
        DataError: if the archive is damaged, or no member is named and it does not have exactly one.
    """
    archive_and_member = _IN_ZIP.fullmatch(name)
    path = find_file(archive_and_member[1] if archive_and_member else name, folders, "file")
    if path.suffix.lower() != ".zip":
        return TextFile(path)
    with reading(path), zipfile.ZipFile(path) as archive:
        # Only a forged archive has members with unprintable or empty names.
        entries = [entry for entry in archive.infolist() if entry.filename and entry.filename.isprintable()]
    members = [entry.filename for entry in entries if not entry.is_dir()]
    suffixes = {Path(member.lower()).suffix for member in members if not is_of_macos(member)}
    if not archive_and_member and len(members) > 1 and len(suffixes) == 1 and suffixes <= MEMORIES:
        return TextFile(path)
    if archive_and_member:
        member = archive_and_member[2]
        if member not in members:
            raise NotFoundError(
                f"There is no member {member!r} in {path}{did_you_mean(member, members)}. It holds: "
                f"{first_names(members)}."
            )
        return TextFile(path, member)
    texts = [member for member in members if not _is_note(member)]
    if len(texts) != 1:
        remedy = f"Give for example {path}/{texts[0]}" if texts else "Give an archive with sentences."
        raise DataError(
            f"{path} holds {first_names(texts) or 'no text file'}. An archive must hold one text file, unless you name "
            f"the member. {remedy}"
        )
    return TextFile(path, texts[0])


def is_of_macos(member: str) -> bool:
    """Return whether a member has attributes of a file, which macOS adds as "__MACOSX/._name"."""
    return "__MACOSX/" in member or member.rsplit("/", 1)[-1].startswith("._")


def _is_note(member: str) -> bool:
    """Return whether a member is no corpus, such as "_about.txt" of Tatoeba or "__MACOSX/corpus.txt"."""
    return member.rsplit("/", 1)[-1].startswith(("_", ".")) or "__MACOSX" in member


def first_names(names: list[str]) -> str:
    """Return up to ten names for a message, cut to 60 characters, and the number of further names."""
    rest = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(name[:60] for name in names[:10]) + rest


def _unread_method(name: object) -> DataError:
    return DataError(
        f"{name} is compressed by a method that nmt does not read. Zip members must be stored or deflated. Unpack it "
        "first."
    )


@contextlib.contextmanager
def reading(name: object) -> Iterator[None]:
    """Turn errors of reading or unpacking a file into DataError, whose message begins with the file's name."""
    try:
        yield
    except NotImplementedError:  # from zipfile, for an unknown compression method
        raise _unread_method(name) from None
    except RuntimeError as error:  # from zipfile, for a member with a password
        raise DataError(f"{name} cannot be unpacked: {error}. Unpack it first.") from None
    # OSError, ValueError and OverflowError: zipfile passes impossible lengths and positions to the system.
    except (zipfile.BadZipFile, OSError, zlib.error, EOFError, struct.error, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:
            raise DataError(f"{name} cannot be read: {error.strerror}. Check its permissions and its disk.") from error
        raise DataError(f"{name} is damaged or cut off ({error}). Copy it again.") from None


class _Bounded(io.RawIOBase):
    """Stream that raises DataError if reading fails, or if the content is implausibly large for its packed size."""

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
        DataError: also during reading, if the file cannot be read, is damaged, or unpacks to an implausible size.
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
    r"""Yield the lines of a UTF-8 file with their numbers, from 1; only ``\n`` ends a line.

    A byte-order mark at the beginning and ``\r`` at line ends are removed. U+2028 and similar characters are kept.

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
    """Return the lines of a UTF-8 file, split as ``text_lines`` splits.

    Raises:
        DataError: if the file is not UTF-8, naming the first such line; also as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        return text_lines(stream.read(), str(file))
