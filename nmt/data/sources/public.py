"""Public corpora that ``nmt fetch`` downloads: their addresses and checksums, and the download."""

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.storage.atomic import atomic_file, sha256
from nmt.storage.names import did_you_mean

RETRIES = 2


@dataclass(frozen=True)
class PublicFile:
    """A file for public download."""

    name: str
    """Name that the file gets."""
    address: str
    """URL."""
    credit: str
    """Origin and licence, which are printed after the download."""
    sha256: str
    """Checksum, in hexadecimal."""


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
            f"There is no public corpus {name!r}{did_you_mean(name, CORPORA)}. Known: {', '.join(sorted(CORPORA))}."
        )
    return CORPORA[name]


def fetch(file: PublicFile, folder: Path) -> Path:
    """Return the path of ``file`` in ``folder``. The file is downloaded unless it is there already.

    Raises:
        ConflictError: if another file has this name; it is left unchanged.
        DataError: if the download fails or has another checksum; nothing of it is kept.
        DiskError: if the folder cannot be written.
    """
    path = folder / file.name
    if path.exists():  # check it here, since pooch would replace another file
        if not path.is_file() or sha256(path) != file.sha256:
            raise ConflictError(
                f"{path} exists already and is not the public file, whose SHA-256 is {file.sha256}. It has not been "
                "changed. Move it away, and run the same command again."
            )
        return path
    pooch.get_logger().setLevel(logging.WARNING)
    with atomic_file(path, before=None) as temporary:
        store = pooch.Pooch(
            temporary.parent, base_url="", registry={file.name: file.sha256}, urls={file.name: file.address},
            retry_if_failed=RETRIES,
        )  # fmt: skip
        try:
            store.fetch(file.name, downloader=_download)
        except (OSError, ValueError) as error:  # of network and disk; of a wrong checksum
            raise DataError(
                f"{path} could not be downloaded from {file.address}: {_root_cause(error)}. A file is kept only whole, "
                f"with the SHA-256 {file.sha256}. Run the same command again, or copy the file there."
            ) from error
    return path


def _download(address: str, temporary: str, *_: Any) -> None:
    Path(temporary).unlink()  # pooch's file is private to this user; a new file gets the usual permissions
    pooch.HTTPDownloader(progressbar=sys.stderr.isatty())(address, temporary, None)


def _root_cause(error: BaseException) -> str:
    """Return the innermost error in words: requests wraps an error of urllib3, which wraps an error of the socket."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")
