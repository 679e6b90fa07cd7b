"""Downloads of public corpora for ``nmt fetch``: bounded in size unless allowed, and verified by their checksums."""

import datetime
import logging
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pooch

from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.message import Argument
from nmt.storage.atomic import atomic_file, sha256
from nmt.storage.json_file import MAX_JSON, parse_json, read_json, write_json
from nmt.storage.names import did_you_mean

RETRIES = 2
TIMEOUT = 30.0
"""Seconds to wait for an answer."""
LARGE = 100 * 10**6
"""Size in bytes above which a download must be allowed."""
RECORD_FORMAT = 1


@dataclass(frozen=True)
class PublicFile:
    """A file for public download."""

    name: str
    """Name that the file gets."""
    address: str
    """URL."""
    credit: str
    """Origin and licence, which are printed after the download."""
    sha256: str | None = None
    """Published checksum, in hexadecimal. None if none is published: the first download records it."""


CORPORA = {
    # The checksum is from the Git LFS pointer of the file at this commit.
    "english-german-both": PublicFile(
        name="english-german-both.pkl",
        address="https://media.githubusercontent.com/media/LSRAO/transformer-model-from-scratch/"
        "777d22a9496feeab1002f7a95d23daedde6d975d/english-german-both.pkl",
        credit="sentences of Tatoeba (tatoeba.org, CC BY 2.0 FR), paired by manythings.org/anki, cleaned and pickled "
        "in github.com/LSRAO/transformer-model-from-scratch",
        sha256="52944901e83d6f7ec010ad6cfc20eaeeebbe841dd805595b444230104195bbca",
    ),
}
"""Public corpora by the name that ``nmt fetch`` takes."""


def public_file(name: str) -> PublicFile:
    """Return the public corpus of that name.

    Raises:
        NotFoundError: if the name is unknown; suggests the most similar name.
    """
    if name not in CORPORA:
        raise NotFoundError(
            f"There is no public corpus {name!r}{did_you_mean(name, CORPORA)}. Known: {', '.join(sorted(CORPORA))}, "
            "tatoeba, opus:CORPUS, sacrebleu:TEST_SET and huggingface:NAME. See them with nmt fetch --list."
        )
    return CORPORA[name]


# --- what a server says


class Answer(NamedTuple):
    """An answer of a server."""

    content: bytes
    length: int | None
    """Length in bytes that the server states; None if it does not."""


def _ask(address: str, method: str) -> Answer:
    """Return the answer to a request.

    Raises:
        DataError: if the server cannot be reached, refuses, or answers with more than ``MAX_JSON`` bytes.
    """
    request = urllib.request.Request(address, method=method)
    host = urllib.parse.urlsplit(address).netloc
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            content = answer.read(MAX_JSON + 1)
            length = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        raise DataError(f"{host} answers {error.code} {error.reason} to {address}. Check the name.") from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{host} cannot be reached: {_root_cause(error)}. nmt fetch needs a network. Check the connection, or "
            "give nmt prepare a file that you have."
        ) from None
    if len(content) > MAX_JSON:
        raise DataError(f"{host} answers with more than {MAX_JSON:,} bytes to {address}. Try again later.")
    return Answer(content, int(length) if length and length.isdecimal() else None)


def query(address: str, parameters: dict[str, str]) -> Any:
    """Return the JSON answer of an interface.

    Raises:
        DataError: if it cannot be reached, or does not answer with JSON.
    """
    full = f"{address}?{urllib.parse.urlencode(parameters)}"
    try:
        return parse_json(_ask(full, "GET").content)
    except ValueError as error:
        raise DataError(f"{full} does not answer with JSON: {error}. Try again later.") from None


def checked_fields(entry: Any, kinds: dict[str, type], address: str) -> dict[str, Any]:
    """Return the fields of an entry in the answer of an interface.

    Args:
        entry: the entry.
        kinds: types of the fields by name.
        address: address of the interface, for the message.

    Raises:
        DataError: if a field is missing or has another type.
    """
    fields = entry if isinstance(entry, dict) else {}
    wrong = [name for name, kind in kinds.items() if not isinstance(fields.get(name), kind)]
    if wrong:
        raise DataError(
            f"{address} answers with an entry without {', '.join(wrong)}. It may have changed. Download the corpus "
            "yourself, and give it to nmt prepare."
        )
    return fields


def size_of(address: str) -> int | None:
    """Return the size in bytes of a file on a server; None if the server does not state it.

    Raises:
        DataError: if the server cannot be reached, or has no such file.
    """
    return _ask(address, "HEAD").length


def shown_size(size: int | None) -> str:
    """Return a size in words, such as "4.0 MB" or "unknown size"."""
    return "unknown size" if size is None else f"{size / 10**6:,.1f} MB"


def check_size(name: str, size: int | None, credit: str, *, large: bool) -> None:
    """Refuse a download of more than ``LARGE`` bytes, or of unknown size, unless ``large`` allows it.

    Raises:
        DataError: with the size and the licence.
    """
    if not large and (size is None or size > LARGE):
        raise DataError(
            f"{name}: {shown_size(size)}; {credit}. A download of more than {LARGE // 10**6} MB, or of unknown size, "
            "must be allowed. Repeat the command with ",
            Argument("large", True),
            ".",
        )


# --- download


def fetch(file: PublicFile, folder: Path) -> Path:
    """Return the path of ``file`` in ``folder``. The file is downloaded unless it is there already.

    Without a published checksum, the first download writes one to NAME.fetched.json, and later ones are compared.

    Raises:
        ConflictError: if another file has this name; it is left unchanged.
        DataError: if the download fails or has another checksum; nothing of it is kept.
        DiskError: if the folder cannot be written.
    """
    path = folder / file.name
    record = path.with_name(f"{file.name}.fetched.json")
    expected = file.sha256 or _recorded_checksum(record)
    if path.exists():  # check it here, since pooch would replace another file
        if not path.is_file() or (expected and sha256(path) != expected):
            whose = "the public file" if file.sha256 else f"the file that {record} describes"
            raise ConflictError(
                f"{path} exists already and is not {whose}, whose SHA-256 is {expected}. It has not been changed. Move "
                "it away, and run the same command again."
            )
        if expected is None:
            _write_record(record, file, path)
        return path
    pooch.get_logger().setLevel(logging.WARNING)
    with atomic_file(path, before=None) as temporary:
        store = pooch.Pooch(
            temporary.parent, base_url="", registry={file.name: expected}, urls={file.name: file.address},
            retry_if_failed=RETRIES,
        )  # fmt: skip
        try:
            store.fetch(file.name, downloader=_download)
        except (OSError, ValueError) as error:  # of network and disk; of a wrong checksum
            rule = f"A file is kept only whole, with the SHA-256 {expected}." if expected else ""
            if expected and not file.sha256:
                rule += f" If its source has a new version that you want, delete {record}."
            raise DataError(
                f"{path} could not be downloaded from {file.address}: {_root_cause(error)}. {rule} Run the same "
                "command again, or copy the file there.".replace("  ", " ")
            ) from error
        if expected is None:  # before the file has its name, so that no file is without its record
            _write_record(record, file, temporary)
    return path


def _recorded_checksum(record: Path) -> str | None:
    """Return the checksum of the first download, or None before it."""
    if not record.exists():
        return None
    stored = read_json(record, "The record of a download")
    checksum = stored.get("sha256") if isinstance(stored, dict) else None
    if not isinstance(checksum, str):
        raise DataError(f"{record} is damaged: it has no sha256. Delete it, and run the same command again.")
    return checksum


def _write_record(record: Path, file: PublicFile, path: Path) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    write_json(record, {
        "format": RECORD_FORMAT, "address": file.address, "credit": file.credit, "date": today,
        "bytes": path.stat().st_size, "sha256": sha256(path),
    })  # fmt: skip


def _download(address: str, temporary: str, *_: Any) -> None:
    Path(temporary).unlink()  # pooch's file is private to this user; a new file gets the usual permissions
    pooch.HTTPDownloader(progressbar=sys.stderr.isatty())(address, temporary, None)


def _root_cause(error: BaseException) -> str:
    """Return the innermost error in words: requests wraps an error of urllib3, which wraps an error of the socket."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")
