"""Reader of translation memories and catalogues as corpora, and of archives of many of them."""

import io
import itertools
import re
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from nmt.config.data import DataConfig
from nmt.data.sources.memories.catalogue import CatalogueReader
from nmt.data.sources.memories.tmx import TmxReader
from nmt.data.sources.memories.units import Languages, ReadUnit, choose_languages
from nmt.data.sources.memories.xliff import XliffReader
from nmt.data.sources.text_file import (
    FREE_EXPANSION,
    MAX_EXPANSION,
    TextFile,
    Unreadable,
    first_names,
    is_of_macos,
    open_bytes,
    open_text,
    reading,
)
from nmt.errors import DataError, printable

READERS: dict[str, type[TmxReader] | type[XliffReader] | type[CatalogueReader]] = {
    ".tmx": TmxReader, ".xlf": XliffReader, ".xliff": XliffReader, ".po": CatalogueReader,
}  # fmt: skip
"""Reader of each format by suffix."""
_TAR = re.compile(r"\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz|tbz2?|txz)$", re.IGNORECASE)
_BLOCK = 512  # bytes of a block of a tar archive
_LONGEST_NAME = 2**16  # bytes of the record of a long name in a tar archive

Document = tuple[str, io.BufferedIOBase]
"""Name and content of a file in an archive."""


def is_memory(file: TextFile) -> bool:
    """Return whether a file is a memory or catalogue, or an archive of many."""
    return file.suffix in READERS or _is_archive(file)


def unit_name(file: TextFile) -> str:
    """Return what ``read_memory`` numbers: "line" of a catalogue, "entry" of an archive, or "unit" of other files."""
    if _is_archive(file):
        return "entry"
    return "line" if file.suffix == ".po" else "unit"


def languages_of_memories(files: Sequence[TextFile], config: DataConfig) -> Languages | None:
    """Return the two languages of the memories of a corpus; None for files without translations.

    Raises:
        DataError: if a file breaks its format, or the languages must be named.
    """
    units = itertools.chain.from_iterable(map(_units, files))
    return choose_languages(str(files[0]), units, config)


def read_memory(file: TextFile, languages: Languages | None) -> Iterator[tuple[int, tuple[str, str] | Unreadable]]:
    """Yield the numbered pairs of a memory or catalogue. Several pairs of a unit have its number.

    Raises:
        DataError: if the file breaks its format.
    """
    kind = unit_name(file)
    for count, read in enumerate(_units(file), start=1):
        number = read.unit.line if kind == "line" else count
        pairs = languages.pairs(read.unit) if languages else []
        for pair in pairs:
            yield number, pair
        fault = read.unit.fault
        if fault is None and not pairs:
            fault = _without_language(read, f"{kind} {number}", languages, is_dropped=kind != "unit")
        if fault is not None and kind == "entry":  # its number alone leads to no line
            member = read.file.removeprefix(f"{file}/")
            fault = fault._replace(text=f"{member}, line {read.unit.line}: {fault.text}")
        if fault is not None:
            yield number, fault


def _without_language(read: ReadUnit, place: str, languages: Languages | None, *, is_dropped: bool) -> Unreadable:
    """Return the refusal of a unit in other languages. Catalogues of other languages are left out without a refusal."""
    codes = first_names(sorted({language for language, _ in read.unit.segments})) or "no language"
    needed = f"in {languages.source!r:.60} and in {languages.target!r:.60}" if languages else "in each of two languages"
    return Unreadable(
        "other language" if is_dropped else "no such language",
        f"{read.file}, {place} has segments in {codes}. Each unit needs a segment {needed}. Name two other languages "
        "in data.source_column and data.target_column",
        codes, is_dropped=is_dropped,
    )  # fmt: skip


def memory_languages(file: TextFile, config: DataConfig) -> tuple[str, str] | None:
    """Return the source and target language of a memory, in lower case; None for a file without translations.

    Raises:
        DataError: as ``languages_of_memories`` does.
    """
    languages = languages_of_memories(file.shards or (file,), config)
    return None if languages is None else (languages.source, languages.target)


def _units(file: TextFile) -> Iterator[ReadUnit]:
    """Yield the units of a file, or of all files in an archive."""
    if not _is_archive(file):
        # XML names its encoding, and a catalogue in UTF-16 has a byte-order mark.
        with open_text(file) if file.suffix == ".po" else open_bytes(file) as stream:
            yield from _read(str(file), file.suffix, stream)
        return
    others: list[str] = []
    has_memories = False
    for name, content in _members(file):
        suffix = PurePosixPath(name.lower()).suffix
        if suffix in READERS and not is_of_macos(name):
            has_memories = True
            yield from _read(f"{file}/{printable(name)}", suffix, content)
        elif len(others) < 20:
            others.append(printable(name))
    if not has_memories:
        raise DataError(
            f"{file} holds {first_names(others) or 'no file'}. nmt reads an archive as a whole if it holds memories or "
            f"catalogues ({', '.join(READERS)}). Unpack it with tar -xf, and give the files with sentences."
        )


def _read(name: str, suffix: str, stream: io.BufferedIOBase) -> Iterator[ReadUnit]:
    reader = READERS[suffix](name)
    for unit in reader.read(stream):
        yield ReadUnit(unit, name, reader.source_language)


# --- archives


def _is_archive(file: TextFile) -> bool:
    """Return whether a file is an archive that is read whole."""
    return file.member is None and (file.suffix == ".zip" or _TAR.search(file.path.name) is not None)


def _members(file: TextFile) -> Iterator[Document]:
    """Yield the files in an archive, in its order. Each must be read before the next is asked for."""
    if file.suffix == ".zip":
        with reading(file), zipfile.ZipFile(file.path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        # A member cannot be longer than its entry says.
        total = sum(entry.file_size for entry in entries)
        if total > max(FREE_EXPANSION, MAX_EXPANSION * file.path.stat().st_size):
            raise DataError(
                f"{file} unpacks to {total:,} bytes. A packed corpus grows to at most {MAX_EXPANSION} times its size. "
                "If you trust the archive, unpack it and give the files."
            )
        for entry in entries:
            with open_bytes(TextFile(file.path, entry.filename)) as stream:
                yield entry.filename, stream
        return
    with open_bytes(file) as stream:
        yield from _members_of_tar(stream, str(file))


class _Member(io.RawIOBase):
    """The next bytes of a stream."""

    def __init__(self, stream: io.BufferedIOBase, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        content = self._stream.read(min(len(buffer), self._left))
        buffer[: len(content)] = content
        self._left -= len(content)
        return len(content)


def _members_of_tar(stream: io.BufferedIOBase, name: str) -> Iterator[Document]:
    """Yield the regular files in a tar archive.

    ``tarfile`` parses each header. It does not go through the archive, since some versions take quadratic time for
    headers that are made for the purpose (CVE-2024-6232).
    """
    long_name = ""
    while (block := stream.read(_BLOCK)).strip(b"\0"):
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            raise _damaged(name, str(error)) from None
        if header.size < 0:
            raise _damaged(name, "negative size")
        content = io.BufferedReader(_Member(stream, header.size))
        if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
            long_name = _long_name(content.read(_LONGEST_NAME), header.type) or long_name
        elif header.type != tarfile.XGLTYPE:
            if header.isreg():
                yield long_name or header.name, content
            long_name = ""
        rest = -header.size % _BLOCK
        while content.read(2**16):  # what the reader has left
            pass
        if len(stream.read(rest)) < rest:
            raise _damaged(name, "it ends within a file")


def _long_name(record: bytes, kind: bytes) -> str:
    """Return the name of the next member in a record of GNU or POSIX; "" if the record has none."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        return record.rstrip(b"\0").decode("utf-8", "replace")
    for line in record.split(b"\n"):
        _, _, setting = line.partition(b" ")
        if setting.startswith(b"path="):
            return setting.removeprefix(b"path=").decode("utf-8", "replace")
    return ""


def _damaged(name: str, problem: str) -> DataError:
    return DataError(f"{name} is damaged or cut off ({problem}). Copy it again.")
