"""Whole or absent: files and folders are written aside, synced and renamed, so no reader ever sees half of one."""

import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nmt.errors import ConflictError, DataError, NmtError, NotFoundError

MAX_NEAREST = 200
CONVERT = "Convert it, for example with iconv -f latin1 -t utf-8"
RESTORE = "Restore a copy, or prepare the corpus again with --overwrite."
MAX_JSON = 64 * 2**20  # bytes; four million words of a tokenizer
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_name(name: str, kind: str) -> str:
    """Return ``name`` if it can name a folder on every system.

    Raises:
        NmtError: if it could leave its parent folder or needs quoting in a shell.
    """
    if NAME.fullmatch(name) is None:
        raise NmtError(
            f"The name of a {kind} starts with a letter or digit and holds only letters, digits and . _ - "
            f"(at most 100); received {name[:200]!r}. Choose another name."
        )
    return name


def nearest(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known word closest to ``word``, or an empty string."""
    if len(word) > MAX_NEAREST:  # comparing takes the square of the length
        return ""
    close = difflib.get_close_matches(word, [one for one in known if len(one) <= MAX_NEAREST], n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` as durable as the data behind them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def _disk_errors_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NmtError(
            f"{path} cannot be written: {reason}. Nothing that was there before has changed; "
            "free some space or choose a folder that can be written, then repeat the command."
        ) from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what is written there replaces ``path`` when the block ends well.

    The temporary name keeps the suffixes of ``path``, for writers that choose a format by them.

    Raises:
        NmtError: if the disk refuses; ``path`` is then as it was.
    """
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".writing-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield aside / path.name
            sync_file(aside / path.name)
            (aside / path.name).replace(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def refuse_existing(path: Path) -> None:
    """Raise ConflictError if ``path`` exists."""
    if path.exists():
        raise ConflictError(f"What is there is not overwritten; {path} exists. Choose another name, or move it away.")


@contextlib.contextmanager
def whole_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block ends well.

    Raises:
        ConflictError: if ``path`` exists and ``replace`` is false.
        NmtError: if the disk refuses; ``path`` is then as it was.
    """
    if not replace:
        refuse_existing(path)
    with _disk_errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".writing-{path.name}-", dir=path.parent))
    try:
        with _disk_errors_in_words(path):
            yield aside
            for file in aside.rglob("*"):
                if file.is_file():
                    sync_file(file)
                else:
                    sync_folder(file)
            aside.chmod(0o777 & ~_umask())  # mkdtemp made it private to this user
            if path.exists():
                replaced = aside.with_name(aside.name + "-replaced")
                path.rename(replaced)
                try:
                    aside.rename(path)
                except OSError:
                    replaced.rename(path)
                    raise
                shutil.rmtree(replaced, ignore_errors=True)
            else:
                aside.rename(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with whole_file(path) as aside:
        aside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def append_line(path: Path, line: str) -> None:
    """Add a line to a text file; killed on the way, it may leave a last line without its end.

    Raises:
        NmtError: if the disk refuses.
    """
    with _disk_errors_in_words(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Return the JSON value in ``path``; ``what`` names the file's role in an error.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is not JSON, or longer than ``MAX_JSON``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_JSON + 1)
        if len(content) > MAX_JSON:
            raise DataError(f"{what} has at most {MAX_JSON:,} bytes; {path} has more. {RESTORE}")
        return json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{what} is missing: {path} does not exist. {RESTORE}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what} is JSON; {path} is damaged ({error}). {RESTORE}") from error


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a UTF-8 text file, split on ``\n`` alone; a byte-order mark and ``\r`` at line ends go.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is not UTF-8; the message names the first bad line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the name, or give the full path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Give the path of a text file.") from error
    return text_lines(content, str(path))


def text_lines(content: bytes, name: str) -> list[str]:
    """Return the lines of UTF-8 text as ``read_lines`` does; ``name`` is what a message calls it.

    Raises:
        DataError: if it is not UTF-8; the message names the first bad line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"Text must be UTF-8; {name}, line {line} holds the byte 0x{content[error.start]:02x}. {CONVERT}."
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def find_file(name: str, folders: Iterable[Path], what: str) -> Path:
    """Return ``name`` where it was said, else, if it is a bare name, in the first of ``folders`` that holds it.

    Raises:
        NotFoundError: naming every place that was looked in.
    """
    try:
        said = Path(name).expanduser()
    except RuntimeError:  # ~name of nobody
        said = Path(name)
    places = [said]
    if said.name == name:
        places += [folder / name for folder in folders]
    for place in places:
        if os.path.isfile(place):  # noqa: PTH113 - Path.is_file raises for a name too long
            return place
    looked = ", ".join(str(place) for place in places)
    neighbours = sorted({entry.name for place in places if place.parent.is_dir() for entry in place.parent.iterdir()})
    raise NotFoundError(
        f"There is no {what} {name!r}{nearest(said.name, neighbours)}; looked for: {looked}. Check the name, or give "
        "the full path."
    )
