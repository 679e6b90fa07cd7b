"""Text files (plain, packed or inside a zip archive) and their bounded readers.

The first bytes of a file determine its packing (gzip, bzip2, xz, zstd) and its encoding (UTF-8, or UTF-16 and UTF-32
with a byte-order mark), whatever its name is.

Nothing is unpacked to disk. A packed file may grow to ``MAX_EXPANSION`` times its size (real text grows three to ten
times), and a line has at most ``MAX_LINE`` bytes, so any content can be read with little memory.
"""

import contextlib
import errno
import gzip
import io
import lzma
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from nmt.data.sources.kinds import (
    HEAD,
    Unpacked,
    Utf8,
    encoding_of,
    ends_with_cr,
    foreign_kind,
    is_text,
    packing_of,
    unpack_zstd,
)
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
LONG_LINE = "longer than a mebibyte"
"""Reason for which a line is dropped."""
_PACKINGS = (".gz", ".bz2", ".xz", ".zst")
SHARD = 2**40
"""Distance between the numbers of the first lines of two shards."""
_IN_ZIP = re.compile(r"(.+?\.zip)/(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TextFile:
    """A text file, or a member of a zip archive."""

    path: Path
    """Path of the file or archive."""
    member: str | None = None
    """Name of the member in the archive; None for a file."""
    shards: tuple["TextFile", ...] = ()
    """Files that are read one after the other as a single corpus, this one first; empty for a single file."""

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
    def has_packing_suffix(self) -> bool:
        """Whether the name ends with the suffix of a packing, such as ".xz"."""
        return self.own_name.lower().endswith(_PACKINGS)

    @property
    def suffix(self) -> str:
        """Suffix that determines the format, in lower case: ".tsv" for "a.tsv.gz"."""
        return Path(_without_packing(self.own_name.lower())).suffix

    @property
    def stem(self) -> str:
        """Name of the file without suffixes: "deu-eng" for "deu-eng.zip/deu.txt", "pairs" for "pairs.tsv.gz"."""
        return Path(_without_packing(self.path.name)).stem


def _without_packing(name: str) -> str:
    """Return a file name without the suffix of a packing: "a.tsv" for "a.tsv.gz"."""
    suffix = next((suffix for suffix in _PACKINGS if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


def every_file(files: list[TextFile]) -> list[TextFile]:
    """Return the files of a corpus, with all shards."""
    return [shard for file in files for shard in file.shards or (file,)]


def shard_of(files: list[TextFile], number: int) -> tuple[list[TextFile], int]:
    """Return the files in which a line stands that a reader has numbered, and its number there."""
    if not files[0].shards:
        return files, number
    index, line = divmod(number, SHARD)
    return [files[0].shards[index]], line


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
    Members whose names begin with "_" or "." do not count, nor do README and LICENSE.

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
    if archive_and_member:
        member = archive_and_member[2]
        if member not in members:
            raise NotFoundError(
                f"There is no member {member!r} in {path}{did_you_mean(member, members)}. It holds: "
                f"{first_names(members)}."
            )
        return TextFile(path, member)
    texts = [member for member in members if not is_note(member)]
    suffixes = {Path(member.lower()).suffix for member in texts}
    if len(texts) > 1 and len(suffixes) == 1 and suffixes <= MEMORIES:
        return TextFile(path)
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


_NOTES = re.compile(r"(readme|licen[cs]e|copying|changelog|notice|citation)\b.*", re.IGNORECASE)


def is_note(member: str) -> bool:
    """Return whether a member of an archive is no corpus, such as "_about.txt" of Tatoeba, README or LICENSE.

    Catalogues have the names of the files that they translate, such as "license.po" and "__main__.po".
    """
    name = member.rsplit("/", 1)[-1]
    if Path(name.lower()).suffix in MEMORIES:
        return is_of_macos(member)
    return name.startswith(("_", ".")) or "__MACOSX" in member or _NOTES.fullmatch(name) is not None


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
    except (zipfile.BadZipFile, OSError, zlib.error, lzma.LZMAError, EOFError, struct.error, ValueError,
            OverflowError) as error:  # fmt: skip
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
def open_bytes(file: TextFile) -> Iterator[io.BufferedReader]:
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
        packing = packing_of(content.peek(HEAD))
        if packing is not None:
            if packing == "gzip":
                unpacked = cast(io.BufferedIOBase, opened.enter_context(gzip.GzipFile(fileobj=content)))
            elif packing == "zstd":
                unpacked = unpack_zstd(content, file)
            else:
                unpacked = cast(io.BufferedIOBase, Unpacked(content, packing))
            content = io.BufferedReader(_Bounded(unpacked, packed, file), _BUFFER)
        elif file.has_packing_suffix and not is_text(content.peek(HEAD)[:HEAD]):
            raise DataError(f"{file} is damaged or cut off: it is not packed as its name says. Copy it again.")
        yield cast(io.BufferedReader, content)


def refuse_foreign(file: TextFile) -> None:
    """Check that a file holds text, whatever its encoding is.

    Raises:
        DataError: if its first bytes are of another format, which the message names; also as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        head = stream.peek(HEAD)[:HEAD]
    kind = foreign_kind(head, file.path if file.member is None else None)
    if kind is not None:
        remedy = kind.remedy.format(file=file)
        raise DataError(f"{file} is {kind.name}. A corpus is text. {remedy}.")


def text_facts(file: TextFile) -> list[str]:
    """Return what the first bytes of a text file show that its name does not: packing, encoding, line ends."""
    with open_bytes(file) as stream:
        head = stream.peek(HEAD)
        encoding = encoding_of(head)
        facts = []
        if encoding != "utf-8":
            facts.append(f"{file.name}: the text is in {encoding.upper()}")
        if ends_with_cr(head, encoding):
            facts.append(f"{file.name}: lines end with CR alone, as on old Macs")
        return facts


@contextlib.contextmanager
def open_text(file: TextFile) -> Iterator[io.BufferedReader]:
    r"""Yield the content of a text file in UTF-8. A UTF-8 byte-order mark is kept.

    UTF-16 and UTF-32 are converted if the file begins with a byte-order mark, and ``\r`` becomes ``\n`` if the text
    has no other line ends.

    Raises:
        DataError: as ``open_bytes`` does.
    """
    with open_bytes(file) as stream:
        head = stream.peek(HEAD)
        encoding = encoding_of(head)
        old_mac = ends_with_cr(head, encoding)
        if encoding == "utf-8" and not old_mac:
            yield stream
            return
        converted = cast(io.BufferedIOBase, Utf8(stream, encoding, ends_with_cr=old_mac))
        yield cast(io.BufferedReader, io.BufferedReader(_Bounded(converted, math.inf, file), _BUFFER))


def numbered_lines(file: TextFile) -> Iterator[tuple[int, str | Unreadable]]:
    r"""Yield the lines of a UTF-8 file with their numbers, from 1; only ``\n`` ends a line.

    A byte-order mark at the beginning and ``\r`` at line ends are removed. U+2028 and similar characters are kept.

    A line longer than ``MAX_LINE`` bytes is dropped.

    Raises:
        DataError: as ``open_bytes`` does.
    """
    with open_text(file) as stream:
        number = 0
        while content := stream.readline(MAX_LINE + 1):
            number += 1
            if len(content) > MAX_LINE:
                while content and not content.endswith(b"\n"):
                    content = stream.readline(MAX_LINE)
                yield number, Unreadable(LONG_LINE, (
                    f"{file}, line {number} is longer than {MAX_LINE:,} bytes. A corpus has one sentence or one pair "
                    "per line. Remove the line"
                ), is_dropped=True)  # fmt: skip
                continue
            try:
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield number, Unreadable("not UTF-8", not_utf8(str(file), error, number - 1).rstrip("."))
            else:
                yield number, line.rstrip("\r\n")


def read_lines(file: TextFile) -> list[str]:
    """Return the lines of a text file, split as ``text_lines`` splits.

    Raises:
        DataError: if the file is not UTF-8, naming the first such line, or the format of the file if it is no text;
            also as ``open_bytes`` does.
    """
    with open_text(file) as stream:
        content = stream.read()
    try:
        return text_lines(content, str(file))
    except DataError:
        refuse_foreign(file)
        raise
