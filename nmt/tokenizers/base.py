"""Special token ids, the interface of every tokenizer, and the tokens of a text one by one."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from nmt.errors import NmtError
from nmt.storage.names import did_you_mean

# No text encodes to PAD, BOS or EOS: pieces of text have the ids from FIRST_WORD on, whatever their spelling.
PAD, UNK, BOS, EOS = range(4)
FIRST_WORD = 4
UNKNOWN = "<unk>"  # text that UNK decodes to
SPECIAL_PIECES = ("<pad>", UNKNOWN, "<s>", "</s>")  # how special ids are shown, in the order of the ids
SPACE_MARK = "\u2581"  # how a piece shows a space, as in sentencepiece

TOKENIZER_FORMAT = 2
"""Number of the file format that is written. Files of format 1 have no number and spell the key ``normalisation``."""
WITH_TAGS = 3  # number of the format of a tokenizer with tags


class Tokenizer(Protocol):
    """Text to ids and back. A tokenizer owns its normalization, its vocabulary and the special ids."""

    unit: str
    """What an id stands for: "words", "characters" or "subwords"."""
    tags: Sequence[str] = ()
    """Corpora with a tag. The ids of tags, which no text encodes to, are the last."""

    def normalize(self, text: str, /) -> str:
        """Return raw text in the normalized form that ``encode`` tokenizes."""

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos."""

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return a random segmentation of each raw text, for subword regularization in training.

        The ids decode to the same text and depend on ``texts`` and ``seed`` alone, an integer in [0, 2**32 - 1).
        Words and characters have a single segmentation.
        """
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to the first eos, without pad and bos; unk becomes "<unk>"."""

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return what each id stands for, special ids included. A piece shows a space as ``SPACE_MARK``."""

    def byte_of(self, id_: int) -> int | None:
        """Return the byte that an id stands for; None for any other id."""
        return None

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of raw text that become unk, in order."""

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON, and any further file beside it under the same name with another suffix."""


def ids_of_text(ids: Iterable[int], first_tag: int) -> Iterator[int]:
    """Yield the ids up to the first eos, without pad, bos and tags."""
    words = (int(id_) for id_ in itertools.takewhile(lambda id_: id_ != EOS, ids))
    return (id_ for id_ in words if id_ not in {PAD, BOS} and id_ < first_tag)


def tag_id(tokenizer: Tokenizer, name: str) -> int:
    """Return the id of the tag of a corpus.

    Raises:
        NmtError: if the tokenizer has no such tag.
    """
    tags = tokenizer.tags
    if name not in tags:
        raise NmtError(
            f"There is no tag {name!r}{did_you_mean(name, tags)}: the vocabulary has {', '.join(tags) or 'none'}. A "
            "tag is an id of the vocabulary. Leave it out, or prepare the corpora with this tag, without the "
            "tokenizers of a run, and train from the start."
        )
    return tokenizer.size - len(tags) + tags.index(name)


def file_header(kind: str, normalization: str, tags: Sequence[str]) -> dict[str, Any]:
    """Return the fields that the files of all tokenizers have."""
    with_tags = {"format": WITH_TAGS, "tags": [*tags]} if tags else {}
    return {"format": TOKENIZER_FORMAT, "kind": kind, "normalization": normalization} | with_tags


class Token(NamedTuple):
    """A token of a text."""

    id: int
    piece: str
    """Piece that the id stands for, with ``SPACE_MARK`` for a space; of an unknown piece, its text."""
    kind: Literal["piece", "unknown", "byte", "special"]
    character: str | None = None
    """Of a byte, the character that it is a part of."""
    place: tuple[int, int] | None = None
    """Of a byte, its number from 1 within the character, and their number."""


def tokens_of(tokenizer: Tokenizer, text: str) -> list[Token]:
    """Return the tokens of raw text, without bos and eos."""
    ids = tokenizer.encode(text)
    byte_of = {id_: tokenizer.byte_of(id_) for id_ in set(ids)}
    bytes_ = bytes(byte for byte in map(byte_of.__getitem__, ids) if byte is not None)
    characters = ((character, len(character.encode())) for character in bytes_.decode())  # bytes stand for whole ones
    parts = ((character, (number + 1, count)) for character, count in characters for number in range(count))
    unknown, found = iter(tokenizer.unknown(text)), []
    for id_, piece in zip(ids, tokenizer.pieces(ids), strict=True):
        if id_ == UNK:
            found.append(Token(id_, next(unknown).replace(" ", SPACE_MARK), "unknown"))
        elif byte_of[id_] is not None:
            found.append(Token(id_, piece, "byte", *next(parts)))
        else:
            found.append(Token(id_, piece, "piece"))
    return found
