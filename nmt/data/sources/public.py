"""Public corpora: their addresses, sizes and checksums."""

from dataclasses import dataclass

from nmt.errors import NotFoundError
from nmt.storage.names import did_you_mean

UNKNOWN_SIZE_LIMIT = 64 * 2**20  # largest download of a file without a published size, in bytes


@dataclass(frozen=True)
class PublicFile:
    """A file for public download. Size and checksum are None where nobody has published them."""

    name: str
    address: str
    credit: str
    """Origin and licence, as printed after the download."""
    size: int | None
    """Number of bytes."""
    sha256: str | None

    @property
    def size_limit(self) -> int:
        """Largest number of bytes that a download may have."""
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
    # The copy that the lesson links to. Nobody has published its checksum.
    "english-german-lesson": PublicFile(
        name="english-german-lesson.pkl",
        address="https://raw.githubusercontent.com/Rishav09/Neural-Machine-Translation-System/master/"
        "english-german-both.pkl",
        credit=f"{_TATOEBA}github.com/Rishav09/Neural-Machine-Translation-System",
        size=None,
        sha256=None,
    ),
}
"""Public corpora, by the name that ``nmt fetch`` takes."""


def public_file(name: str) -> PublicFile:
    """Return the public corpus of that name.

    Raises:
        NotFoundError: if the name is unknown; the message suggests the nearest.
    """
    if name not in CORPORA:
        raise NotFoundError(
            f"There is no public corpus {name!r}{did_you_mean(name, CORPORA)}. Known: {', '.join(sorted(CORPORA))}."
        )
    return CORPORA[name]
