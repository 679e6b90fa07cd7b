"""Public corpora: where they are, what their bytes must be, and a download that resumes and never half-replaces a file.

While a file arrives it is ``<name>.part``; it gets its own name only when it is whole, checked and on the disk. Where
nobody has published a checksum, the first download is trusted: its SHA-256 goes into ``<name>.sha256``, and later
downloads must agree with it.
"""

import http.client
import importlib.metadata
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.storage.atomic import sha256, sync_file, sync_folder, write_text
from nmt.storage.names import did_you_mean

TIMEOUT = 30.0  # seconds without a byte, not for the whole file
BLOCK = 2**16
UNKNOWN_SIZE_LIMIT = 64 * 2**20  # the most that is downloaded of a file whose size nobody has published


@dataclass(frozen=True)
class PublicFile:
    """A file that anyone may download. A figure that nobody has published is ``None``, never a guess."""

    name: str
    address: str
    credit: str
    size: int | None
    sha256: str | None

    @property
    def size_limit(self) -> int:
        """The most bytes that a download may have."""
        return UNKNOWN_SIZE_LIMIT if self.size is None else self.size


_TATOEBA = "sentences of Tatoeba (tatoeba.org, CC BY 2.0 FR), paired by manythings.org/anki, cleaned and pickled in "
CORPORA = {
    # Size and checksum are those of the Git LFS pointer that stands for the file at this commit.
    "english-german-both": PublicFile(
        name="english-german-both.pkl",
        address="https://media.githubusercontent.com/media/LSRAO/transformer-model-from-scratch/"
        "777d22a9496feeab1002f7a95d23daedde6d975d/english-german-both.pkl",
        credit=f"{_TATOEBA}github.com/LSRAO/transformer-model-from-scratch",
        size=29_600_159,
        sha256="52944901e83d6f7ec010ad6cfc20eaeeebbe841dd805595b444230104195bbca",
    ),
    # The copy that the lesson links to; nobody has published a checksum of it.
    "english-german-lesson": PublicFile(
        name="english-german-lesson.pkl",
        address="https://raw.githubusercontent.com/Rishav09/Neural-Machine-Translation-System/master/"
        "english-german-both.pkl",
        credit=f"{_TATOEBA}github.com/Rishav09/Neural-Machine-Translation-System",
        size=None,
        sha256=None,
    ),
}


def public_file(name: str) -> PublicFile:
    """Return the public file of that name.

    Raises:
        NotFoundError: naming the nearest known name and all of them.
    """
    if name not in CORPORA:
        raise NotFoundError(
            f"A corpus to fetch is one of the public ones; there is no {name!r}{did_you_mean(name, CORPORA)}. "
            f"Known: {', '.join(sorted(CORPORA))}."
        )
    return CORPORA[name]


def fetch(file: PublicFile, folder: Path, report: Callable[[int, int], None] | None = None) -> Path:
    """Return the path of ``file`` in ``folder``, downloading it first unless the right file is there already.

    ``report`` is called with the bytes so far and in all (0 if the server does not say) as they arrive.

    Raises:
        ConflictError: if another file has that name; it stays as it is.
        NotFoundError: if the address holds nothing.
        DataError: if the download breaks off (what came is kept, and resumed next time) or is not the right file.
        NmtError: if the disk refuses.
    """
    path = folder / file.name
    with _disk_errors_in_words(path):
        expected = file.sha256 or _recorded_checksum(path)
        if path.exists():
            _check_existing(path, expected)
            return path
        folder.mkdir(parents=True, exist_ok=True)
        partial = _Partial(folder / f"{file.name}.part", folder / f"{file.name}.part.etag")
        if partial.size > file.size_limit or not (expected or partial.etag):
            partial.discard()  # too long, or nothing could show that the rest belongs to it
        if partial.size != file.size:
            _download(file, partial, report or (lambda done, total: None))
        received = sha256(partial.path)
        if expected and received != expected:
            partial.discard()
            origin = "published" if file.sha256 else f"of the first download, kept in {checksum_path(path)}"
            raise DataError(
                f"The SHA-256 of {file.name} must be the one {origin}, {expected}; {file.address} gave {received}. "
                "The download was removed; run the same command again. If this repeats, the source has another file."
            )
        sync_file(partial.path)
        if not expected:  # written first, so that a file is never without it
            write_text(checksum_path(path), f"{received}  {file.name}\n")
        partial.path.replace(path)
        partial.discard()
        sync_folder(folder)
    return path


def checksum_path(path: Path) -> Path:
    """Return where the checksum of a first download is kept, in the format of ``sha256sum``."""
    return path.with_name(f"{path.name}.sha256")


def verification(file: PublicFile, path: Path) -> str:
    """Return a sentence that says what the content of a fetched file was checked against."""
    if file.sha256:
        return f"The SHA-256 of {path} is the published one, {file.sha256}."
    return (
        f"No checksum of {file.name} has been published, so the first download was trusted: its SHA-256, "
        f"{_recorded_checksum(path)}, is kept in {checksum_path(path)}, and later downloads must agree with it."
    )


def _recorded_checksum(path: Path) -> str | None:
    record = checksum_path(path)
    if not record.exists():
        return None
    matched = re.match(r"[0-9a-f]{64}\b", record.read_text(encoding="ascii", errors="replace"))
    if matched is None:
        raise DataError(
            f"A record of a first download begins with a SHA-256 of 64 hexadecimal digits; {record} does not. "
            "Remove it to go on."
        )
    return matched[0]


def _check_existing(path: Path, expected: str | None) -> None:
    if not path.is_file():
        raise ConflictError(
            f"A corpus is a file; {path} is something else. Move it away, and run the same command again."
        )
    if expected is None:
        raise ConflictError(
            f"{path} exists already, and there is no published or recorded checksum to compare it with; it was left as "
            "it is. Use it if you trust it, or move it away and run the same command again."
        )
    if (received := sha256(path)) != expected:
        raise ConflictError(
            f"{path} exists already with other content (SHA-256 {received} instead of {expected}) and is not "
            "overwritten. Move it away and run the same command again."
        )


@dataclass(frozen=True)
class _Partial:
    """What has arrived so far, and the ETag that tells whether the server still has the same file."""

    path: Path
    etag_path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def etag(self) -> str:
        return self.etag_path.read_text(encoding="latin-1") if self.etag_path.exists() else ""

    def begin(self, etag: str) -> None:
        self.discard()
        if re.fullmatch(r'"[!-~]*"', etag):  # a weak one, W/"...", does not promise the same bytes
            self.etag_path.write_text(etag, encoding="latin-1")

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.etag_path.unlink(missing_ok=True)


def _download(file: PublicFile, partial: _Partial, report: Callable[[int, int], None]) -> None:
    """Bring the partial file to its full size, going on from where it ends if the server can."""
    with _network_errors_in_words(file, partial):
        response = _open(file, partial)
    if response is None:  # nothing is missing
        return
    with response:
        total = _begin(file, partial, response)
        most = total or file.size_limit
        with partial.path.open("ab") as output:
            done = output.tell()
            report(done, total)
            for block in _blocks(file, partial, response):
                done += len(block)
                if done > most:
                    break
                output.write(block)
                output.flush()  # so that a message counts all that is kept
                report(done, total)
    if done > most:
        partial.discard()
        raise DataError(
            f"{file.name} has at most {most} bytes; {file.address} sent more. "
            "The download was removed; look at the address in a browser."
        )
    if done < (total or file.size or 0):
        raise DataError(_broken_off(file, partial, f"the connection closed before byte {total or file.size}"))


def _blocks(file: PublicFile, partial: _Partial, response: Any) -> Iterator[bytes]:
    while True:
        with _network_errors_in_words(file, partial):
            block = response.read(BLOCK)
        if not block:
            return
        yield block


def _open(file: PublicFile, partial: _Partial) -> Any:
    """Return the response to a request for what is missing, or None if nothing is."""
    _check_scheme(file.address)
    headers = {"User-Agent": _user_agent(), "Accept-Encoding": "identity"}
    if offset := partial.size:
        headers["Range"] = f"bytes={offset}-"
        if partial.etag:
            headers["If-Range"] = partial.etag
    request = urllib.request.Request(file.address, headers=headers)
    try:
        return urllib.request.build_opener(_SafeRedirects).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or offset == 0:
            raise
        if error.headers.get("Content-Range", "").strip() == f"bytes */{offset}":
            return None
    partial.discard()  # longer than the file, or the server does not say
    return _open(file, partial)


def _begin(file: PublicFile, partial: _Partial, response: Any) -> int:
    """Return the size of the whole file, 0 if it is not announced, and start over unless the response is its rest."""
    if response.status == 206:
        content_range = response.headers.get("Content-Range", "").strip()
        matched = re.fullmatch(r"bytes (\d{1,15})-\d{1,15}/(\d{1,15})", content_range)
        if matched is None or int(matched[1]) != partial.size:
            partial.discard()
            raise DataError(
                f"A download goes on where it stopped; {file.address} answered with another part. "
                "The download was removed; run the same command again."
            )
        total = int(matched[2])
    else:
        partial.begin(response.headers.get("ETag", ""))
        total = response.length or 0
    if total > file.size_limit or (total and file.size and total != file.size):
        partial.discard()
        most = "at most " if file.size is None else ""
        raise DataError(
            f"{file.name} has {most}{file.size_limit} bytes; {file.address} announces {total}. "
            "Nothing was downloaded; look at the address in a browser."
        )
    if not total and file.size is None and file.sha256 is None:
        raise DataError(
            f"A file without a published size needs one from its server; {file.address} announces none, so half a file "
            f"could pass for the whole. Download it in a browser to {partial.path.with_suffix('')}."
        )
    return total


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to the web only, and none from an encrypted connection to an open one."""

    def redirect_request(self, req: urllib.request.Request, *response: Any) -> urllib.request.Request | None:
        _check_scheme(response[-1], ("https",) if req.type == "https" else ("http", "https"))
        return super().redirect_request(req, *response)


def _check_scheme(address: str, allowed: tuple[str, ...] = ("http", "https")) -> None:
    if urlsplit(address).scheme not in allowed:
        raise DataError(
            f"A file is fetched over {' or '.join(allowed)}; the address is {address}. Nothing was fetched; "
            "look at the address in a browser."
        )


def _user_agent() -> str:
    try:
        return f"nmt/{importlib.metadata.version('nmt')}"
    except importlib.metadata.PackageNotFoundError:  # run from its folder, without being installed
        return "nmt"


def _broken_off(file: PublicFile, partial: _Partial, reason: str) -> str:
    kept = f"; the {partial.size} bytes so far are kept" if partial.size else ""
    return f"{file.address} could not be downloaded: {reason}. Run the same command again{kept}."


@contextmanager
def _network_errors_in_words(file: PublicFile, partial: _Partial) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            raise NotFoundError(
                f"There is nothing at {file.address} any more (HTTP {error.code}). "
                f"Look for {file.name} elsewhere and copy it to {partial.path.with_suffix('')}."
            ) from None
        raise DataError(_broken_off(file, partial, f"the server answered HTTP {error.code}")) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)  # urllib wraps the error of the socket
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise DataError(_broken_off(file, partial, reason)) from error


@contextmanager
def _disk_errors_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NmtError(
            f"{path} cannot be written: {error.strerror or error}. Free some space or choose a folder that can be "
            "written, and run the same command again; what has arrived is kept."
        ) from error
