"""What a file is, by its first bytes: its packing, its encoding, or a format that holds no lines of text."""

import bz2
import codecs
import importlib
import io
import lzma
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import NotFoundError

HEAD = 4096  # bytes that decide what a file is
MAX_XZ_MEMORY = 256 * 2**20  # bytes; xz -9 needs 65 MiB
_CHUNK = 2**16  # bytes
_END_OF_BZIP2_HEADER = (b"1AY&SY", b"\x17rE8P\x90")  # of a file with text, and of an empty file
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),  # before UTF-16, whose mark is their beginning
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


def packing_of(head: bytes) -> str | None:
    """Return the packing of a file that begins with ``head``: "gzip", "bzip2", "xz", "zstd", or None."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh") and head[4:10] in _END_OF_BZIP2_HEADER:
        return "bzip2"
    if head.startswith(b"\xfd7zXZ\0"):
        return "xz"
    return "zstd" if head.startswith(b"\x28\xb5\x2f\xfd") else None


def encoding_of(head: bytes) -> str:
    """Return the encoding that a byte-order mark names: "utf-16" or "utf-32"; "utf-8" without such a mark."""
    return next((encoding for mark, encoding in _BYTE_ORDER_MARKS if head.startswith(mark)), "utf-8")


def is_text(head: bytes) -> bool:
    """Return whether the first bytes are text without control characters, in an encoding that nmt reads."""
    text = head.decode(encoding_of(head), "replace")
    return not any(ord(character) < 32 and character not in "\t\n\r" for character in text) and (
        "\ufffd" not in text[:-1]  # the last character may be cut
    )


class Unpacked(io.RawIOBase):
    """Content of a file in bzip2 or xz, which may be several packed files in a row. Memory is bounded."""

    def __init__(self, stream: io.BufferedIOBase, packing: str) -> None:
        """Unpack ``stream``, whose packing is "bzip2" or "xz"."""
        self._stream, self._is_xz = stream, packing == "xz"
        self._unpacker: Any = self._new()
        self._rest = b""

    def _new(self) -> Any:
        return lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY) if self._is_xz else bz2.BZ2Decompressor()

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer, and return the number of bytes; 0 at the end."""
        content = b""
        while not content:
            if self._unpacker.eof:
                rest = self._unpacker.unused_data or self._stream.read(_CHUNK)
                rest = rest.lstrip(b"\0")  # padding between packed files
                if not rest and not (rest := self._stream.read(_CHUNK).lstrip(b"\0")):
                    return 0
                self._unpacker, packed = self._new(), rest
            elif self._unpacker.needs_input:
                packed = self._stream.read(_CHUNK)
                if not packed:
                    raise EOFError("it ends before its end-of-stream marker")
            else:
                packed = b""
            content = self._unpacker.decompress(packed, len(buffer))
        buffer[: len(content)] = content
        return len(content)


def unpack_zstd(stream: io.BufferedIOBase, name: object) -> io.BufferedIOBase:
    """Return the content of a file in zstd.

    Raises:
        NotFoundError: if the package zstandard is not installed.
    """
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise NotFoundError(
            f"{name} is packed with zstd, which needs a further package: pip install 'nmt[corpora]'. Or unpack it "
            "first with zstd -d, and give the plain file."
        ) from None
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**27)
    return io.BufferedReader(unpacker.stream_reader(stream, read_across_frames=True))


class Utf8(io.RawIOBase):
    r"""Text in UTF-16 or UTF-32, or with ``\r`` as its line ends, as UTF-8 with ``\n`` as its line ends.

    Half a surrogate pair becomes bytes that are not UTF-8, so that only its line is unreadable.
    """

    def __init__(self, stream: io.BufferedIOBase, encoding: str, *, ends_with_cr: bool) -> None:
        """Read ``stream`` in an encoding that ``encoding_of`` returned."""
        errors = "strict" if encoding == "utf-8" else "surrogatepass"
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(errors)
        self._stream, self._ends_with_cr, self._rest = stream, ends_with_cr, b""

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer, and return the number of bytes; 0 at the end."""
        while not self._rest:
            content = self._stream.read(_CHUNK)
            self._rest = content
            if self._decoder is not None:
                self._rest = self._decoder.decode(content, not content).encode("utf-8", "surrogatepass")
            if self._ends_with_cr:
                self._rest = self._rest.replace(b"\r", b"\n")
            if not content:
                break
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def ends_with_cr(head: bytes, encoding: str) -> bool:
    r"""Return whether a text that begins with ``head`` has ``\r`` alone as its line ends, as old Macs wrote them."""
    text = head if encoding == "utf-8" else head.decode(encoding, "ignore").encode("utf-8", "ignore")
    return b"\r" in text and b"\n" not in text


# --- formats that hold no lines of text


class Kind(NamedTuple):
    """A format that is not read as text."""

    name: str
    """Name in a message, such as "an Excel workbook"."""
    remedy: str
    """Sentence that says how to get text from the file; {file} stands for its name."""


_RENAME = "Give it the suffix {suffix}, by which nmt knows the format: mv {{file}} {{file}}{suffix}"
_UNPACK = "Unpack it first, and give a file in it"
_EXCEL = Kind(
    "an Excel workbook",
    'Save it as CSV UTF-8 in the spreadsheet program, or with pandas and openpyxl: python -c "import pandas; '
    "pandas.read_excel('{file}').to_csv('{file}.csv', index=False)\"",
)
_WORD = Kind("a document of a word processor", "Save it as plain text (.txt) in UTF-8")
_ZIP = Kind("a zip archive", _RENAME.format(suffix=".zip"))
_STARTS = (
    (b"PAR1", Kind("a Parquet file", _RENAME.format(suffix=".parquet"))),
    (b"ARROW1", Kind("an Arrow file", _RENAME.format(suffix=".arrow"))),
    (b"%PDF-", Kind("a PDF document", "Give the text from which it was made: a PDF has pages and no pairs")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind(
        "an old file of Excel, Word or PowerPoint",
        "Save it as CSV UTF-8 or as plain text in UTF-8 in its program",
    )),
    (b"SQLite format 3\0", Kind(
        "an SQLite database",
        "Write its pairs to a file: sqlite3 -header -csv {file} 'SELECT source, target FROM pairs' > pairs.csv (with "
        "the names of its columns and its table)",
    )),
    (b"7z\xbc\xaf\x27\x1c", Kind("a 7-Zip archive", _UNPACK)),
    (b"Rar!\x1a\x07", Kind("a RAR archive", _UNPACK)),
    (b"{\\rtf", _WORD),
    (b"version https://git-lfs.github.com/", Kind("a pointer of Git LFS, without the content", "Run git lfs pull")),
)  # fmt: skip
_TAR = Kind("a tar archive", "Unpack it with tar -xf {file}, and give a file in it")
_PICKLE = Kind("a pickle", _RENAME.format(suffix=".pkl"))
_HTML = Kind("a web page", "Look at it: a failed download often leaves an error page in place of the file")
_MEMORIES = (
    (b"<tmx", Kind("a translation memory (TMX)", _RENAME.format(suffix=".tmx"))),
    (b"<xliff", Kind("an XLIFF file", _RENAME.format(suffix=".xlf"))),
)
_CATALOGUE = Kind("a gettext catalogue", _RENAME.format(suffix=".po"))
_MOST_NULS = 0.3  # share of the bytes at odd or at even places
LEAST_SHOWN = 200  # bytes from which on NULs tell UTF-16


def foreign_kind(head: bytes, path: Path | None = None) -> Kind | None:
    """Return the format of a file that holds no lines of text; None for text.

    Args:
        head: first bytes of the unpacked content.
        path: the file itself, if it is not packed; of a zip archive the members are looked at.
    """
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(path)
    if head[257:262] == b"ustar":
        return _TAR
    if len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return _PICKLE
    return _kind_of_text(head.lstrip(b"\xef\xbb\xbf \t\r\n")) or _without_mark(head)


def _kind_of_text(head: bytes) -> Kind | None:
    """Recognize text that is not read as lines of a corpus: web pages, and memories and catalogues by another name."""
    if head[:15].lower().startswith((b"<!doctype html", b"<html")):
        return _HTML
    for element, kind in _MEMORIES:
        if head.startswith(element) or (head.startswith(b"<?xml") and element in head):
            return kind
    return _CATALOGUE if b'\nmsgid "' in b"\n" + head and b'\nmsgstr "' in head else None


def _kind_of_zip(path: Path | None) -> Kind:
    try:
        with zipfile.ZipFile(path or "") as archive:
            names = archive.namelist()
            mimetype = b""
            if "mimetype" in names[:1]:
                with archive.open("mimetype") as member:
                    mimetype = member.read(HEAD)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return _ZIP
    folders = {name.partition("/")[0] for name in names}
    if "xl" in folders or b"spreadsheet" in mimetype:
        return _EXCEL
    return _WORD if "word" in folders or b"opendocument" in mimetype else _ZIP


def _without_mark(head: bytes) -> Kind | None:
    """Recognize UTF-16 without a byte-order mark: every second byte of European text is NUL."""
    if encoding_of(head) != "utf-8" or len(head) < LEAST_SHOWN:
        return None
    odd, even = head[1::2], head[::2]
    shares = odd.count(0) / len(odd), even.count(0) / len(even)
    if max(shares) < _MOST_NULS or min(shares) > _MOST_NULS / 10:
        return None
    encoding = "UTF-16LE" if shares[0] > shares[1] else "UTF-16BE"
    return Kind(
        f"text in {encoding} without a byte-order mark",
        f"Convert it: iconv -f {encoding} -t UTF-8 {{file}} > {{file}}.utf8.tsv",
    )
