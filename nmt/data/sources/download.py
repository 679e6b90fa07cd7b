"""The download of a public corpus.

A download gets its final name only when it is complete and its SHA-256 is checked. Where nobody has published a
checksum, the first download is trusted: its SHA-256 is recorded in ``<name>.sha256``, and later downloads must match.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

import pooch
import requests

from nmt.data.sources.public import PublicFile
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.storage.atomic import sha256, sync_folder, write_text

TIMEOUT = 30.0  # seconds without a byte
BLOCK = 2**16  # bytes between two progress reports
HEADERS = {"User-Agent": "nmt", "Accept-Encoding": "identity"}  # compressed, a body has another length than the file
Report = Callable[[int, int], None]
"""Progress callback: (bytes received, total number of bytes or 0 where it is unknown)."""


def fetch(file: PublicFile, folder: Path, report: Report | None = None) -> Path:
    """Return the path of ``file`` in ``folder``, after downloading it unless it is there already.

    Raises:
        ConflictError: if another file has that name; it is left unchanged.
        NotFoundError: if the address no longer exists.
        DataError: if the download fails or is not the expected file; nothing of it is kept.
        NmtError: if the disk is full or cannot be written.
    """
    path = folder / file.name
    expected = file.sha256 or _recorded_checksum(path)
    if path.exists():
        _check_existing(path, expected)
        return path
    _check_scheme(file.address, file.address)
    download = _Download(file, path, expected, report or (lambda done, total: None))
    pooch.get_logger().setLevel(logging.WARNING)
    with _errors_in_words(download):
        folder.mkdir(parents=True, exist_ok=True)
        known = f"sha256:{expected}" if expected else None
        pooch.retrieve(file.address, known, fname=file.name, path=folder, downloader=download)
        sync_folder(folder)
    return path


def checksum_path(path: Path) -> Path:
    """Return the path of the recorded checksum of a first download, in the format of ``sha256sum``."""
    return path.with_name(f"{path.name}.sha256")


def verification(file: PublicFile, path: Path) -> str:
    """Return a sentence on how the content of a fetched file was verified."""
    if file.sha256:
        return f"The SHA-256 of {path} is the published one, {file.sha256}."
    return (
        f"No checksum of {file.name} has been published, so the first download was trusted: its SHA-256, "
        f"{_recorded_checksum(path)}, is recorded in {checksum_path(path)}, and later downloads must match it."
    )


def _recorded_checksum(path: Path) -> str | None:
    record = checksum_path(path)
    if not record.exists():
        return None
    matched = re.match(r"[0-9a-f]{64}\b", record.read_text(encoding="ascii", errors="replace"))
    if matched is None:
        raise DataError(
            f"{record} is damaged: it does not begin with a SHA-256, 64 hexadecimal digits. It records the checksum "
            "of the first download. Remove it to trust the next download."
        )
    return matched[0]


def _check_existing(path: Path, expected: str | None) -> None:
    if not path.is_file():
        raise ConflictError(f"{path} exists and is not a file. Move it away, and run the same command again.")
    if expected is None:
        raise ConflictError(
            f"{path} exists already, and no published or recorded checksum can verify it. It was left as it is. Use "
            "it if you trust it, or move it away and run the same command again."
        )
    if (received := sha256(path)) != expected:
        raise ConflictError(
            f"{path} exists already with other content: its SHA-256 is {received} instead of {expected}. It was left "
            "as it is. Move it away, and run the same command again."
        )


def _check_scheme(address: str, origin: str) -> None:
    """Refuse addresses but http and https, and any that leads from https to an unencrypted connection."""
    allowed = ("https",) if urlsplit(origin).scheme == "https" and address != origin else ("http", "https")
    if urlsplit(address).scheme not in allowed:
        raise DataError(
            f"{address} cannot be fetched. A download takes {' or '.join(allowed)}. Nothing was fetched. Look at "
            "the address in a browser."
        )


class _Download:
    """A downloader for pooch: streams one file to a temporary path, within its size limit."""

    def __init__(self, file: PublicFile, path: Path, expected: str | None, report: Report) -> None:
        self.file, self.path, self.expected, self.report = file, path, expected, report
        self.digest = hashlib.sha256()
        self.done = self.total = 0
        self.output: BinaryIO

    def __call__(self, address: str, temporary: str, *_: Any) -> None:
        """Download ``address`` to the file ``temporary``, whose checksum pooch then compares."""
        Path(temporary).unlink()  # private to this user; created anew, it has the permissions of any other file
        with Path(temporary).open("wb") as self.output:
            get = pooch.HTTPDownloader(
                chunk_size=BLOCK, timeout=TIMEOUT, headers=HEADERS, hooks={"response": self._check_response}
            )
            get(address, self, None)
            if self.done < (self.file.size or 0):
                raise DataError(_failed(self.file, _closed_early(self.file.size)))
            os.fsync(self.output.fileno())
        if not self.expected:  # recorded before the file gets its name, so that it never lacks a checksum
            write_text(checksum_path(self.path), f"{self.digest.hexdigest()}  {self.file.name}\n")

    def write(self, block: bytes) -> None:
        """Write and count a block of the body."""
        if self.done + len(block) > (self.total or self.file.size_limit):
            raise DataError(
                f"{self.file.address} sent more than the {self.total or self.file.size_limit} bytes that "
                f"{self.file.name} may have. The download was removed. Look at the address in a browser."
            )
        self.output.write(block)
        self.digest.update(block)
        self.done += len(block)
        self.report(self.done, self.total)

    def flush(self) -> None:
        """Pass on the buffered bytes."""
        self.output.flush()

    def _check_response(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Check where a redirect leads, and the announced size of the body."""
        if response.is_redirect:
            _check_scheme(urljoin(response.url, response.headers["location"]), response.url)
        elif response.status_code == 200:
            announced = response.headers.get("content-length")
            self.total = int(announced) if announced and announced.isdecimal() else 0
            self._check_size()
            self.report(0, self.total)
        elif response.ok:  # whose body is not the file
            raise DataError(_failed(self.file, f"the server answered HTTP {response.status_code}"))

    def _check_size(self) -> None:
        file = self.file
        if self.total > file.size_limit or (self.total and file.size and self.total != file.size):
            bound = f"{file.size} bytes" if file.size else f"at most {file.size_limit} bytes"
            raise DataError(
                f"{file.address} announces {self.total} bytes, but {file.name} has {bound}. Nothing was downloaded. "
                "Look at the address in a browser."
            )
        if not self.total and file.size is None and file.sha256 is None:
            raise DataError(
                f"{file.address} announces no size. Without a published size or checksum, half of {file.name} could "
                f"pass for the whole. Download it in a browser to {self.path}."
            )


def _failed(file: PublicFile, reason: str) -> str:
    return f"{file.address} could not be downloaded: {reason}. Nothing was kept. Run the same command again."


def _closed_early(total: int | None) -> str:
    return f"the connection closed before byte {total}" if total else "the connection closed early"


@contextmanager
def _errors_in_words(download: _Download) -> Iterator[None]:
    file, path = download.file, download.path
    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code
        if status in (404, 410):
            raise NotFoundError(
                f"{file.address} no longer exists (HTTP {status}). Look for {file.name} elsewhere, and copy it to "
                f"{path}."
            ) from None
        raise DataError(_failed(file, f"the server answered HTTP {status}")) from None
    except requests.exceptions.ChunkedEncodingError as error:
        raise DataError(_failed(file, _closed_early(download.total))) from error
    except requests.RequestException as error:
        raise DataError(_failed(file, _root_cause(error))) from error
    except OSError as error:
        raise NmtError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was kept. Free some space or choose a "
            "folder that can be written, and run the same command again."
        ) from error
    except ValueError as error:  # from pooch, for a wrong checksum
        origin = "the published one" if file.sha256 else f"the one of the first download in {checksum_path(path)}"
        raise DataError(
            f"The download of {file.name} has the SHA-256 {download.digest.hexdigest()} instead of {origin}, "
            f"{download.expected}. It was removed. Run the same command again. If this repeats, {file.address} holds "
            "another file now."
        ) from error


def _root_cause(error: BaseException) -> str:
    """Return the innermost error in words: requests wraps that of urllib3, which wraps that of the socket."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
