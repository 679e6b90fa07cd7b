"""Special token ids, the interface of all tokenizers, and the tokens of a text with their kinds."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from nmt.errors import NmtError
from nmt.storage.names import did_you_mean

# No text encodes to PAD, BOS or EOS: pieces of text have the ids from FIRST_WORD on, even if spelled like special ones.
PAD, UNK, BOS, EOS = range(4)
FIRST_WORD = 4
UNKNOWN = "<unk>"  # the text that UNK decodes to
SPECIAL_PIECES = ("<pad>", UNKNOWN, "<s>", "</s>")  # pieces of the special ids, in the order of the ids
SPACE_MARK = "\u2581"  # a space in a piece, as in sentencepiece

FORMATS = (2, 3, 4)
"""Format numbers of tokenizer files. Format 2 has neither tags nor the normalization ``nfc``, format 3 has no ``nfc``.
A new file gets the lowest format that holds it, so that a corpus is prepared to the same bytes as by older versions.
Files of format 1 have no number and spell the key ``normalisation``."""


class Tokenizer(Protocol):
    """Converter from text to ids and back, with its own normalization, vocabulary and special ids."""

    unit: str
    """Name of the pieces: "words", "characters" or "subwords"."""
    tags: Sequence[str] = ()
    """Names of the tags: of corpora with a tag, and of target languages, such as "2gn". Tags have the last ids, which
    no text encodes to."""

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
        """Return the piece of each id, special ids included. A piece shows a space as ``SPACE_MARK``."""

    def byte_of(self, id_: int) -> int | None:
        """Return the byte that an id stands for; None if the id stands for no byte."""
        return None

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of raw text that become unk, in order."""

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON. Further files get the same name with another suffix."""


def ids_of_text(ids: Iterable[int], first_tag: int) -> Iterator[int]:
    """Yield the ids up to the first eos, without pad, bos and tags."""
    before_eos = (int(id_) for id_ in itertools.takewhile(lambda id_: id_ != EOS, ids))
    return (id_ for id_ in before_eos if id_ not in {PAD, BOS} and id_ < first_tag)


def leading_tags(tokenizer: Tokenizer, ids: Iterable[int]) -> list[int]:
    """Return the tags at the beginning of the ids of a sentence."""
    first_tag = tokenizer.size - len(tokenizer.tags)
    return [int(id_) for id_ in itertools.takewhile(lambda id_: id_ >= first_tag, ids)]


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
    """Return the fields that the files of all kinds of tokenizers share."""
    fields = {"kind": kind, "normalization": normalization}
    if normalization == "nfc":
        return {"format": 4, **fields, "tags": [*tags]}
    return {"format": 3, **fields, "tags": [*tags]} if tags else {"format": 2, **fields}


class Token(NamedTuple):
    """A token of a text."""

    id: int
    """Id in the vocabulary."""
    piece: str
    """Piece of the id, or the text itself for unk; ``SPACE_MARK`` stands for a space."""
    kind: Literal["piece", "unknown", "byte", "special"]
    """Kind of the id."""
    character: str | None = None
    """Character that a byte is a part of; None for other kinds."""
    place: tuple[int, int] | None = None
    """Number of a byte within its character, from 1, and the character's number of bytes; None for other kinds."""


def tokens_of(tokenizer: Tokenizer, text: str) -> list[Token]:
    """Return the tokens of raw text, without bos and eos."""
    ids = tokenizer.encode(text)
    byte_of = {id_: tokenizer.byte_of(id_) for id_ in set(ids)}
    bytes_ = bytes(byte for byte in map(byte_of.__getitem__, ids) if byte is not None)
    parts = _bytes_of_characters(bytes_.decode())  # a character becomes bytes as a whole, so they can be decoded
    unknown, tokens = iter(tokenizer.unknown(text)), []
    for id_, piece in zip(ids, tokenizer.pieces(ids), strict=True):
        if id_ == UNK:
            tokens.append(Token(id_, next(unknown).replace(" ", SPACE_MARK), "unknown"))
        elif byte_of[id_] is not None:
            tokens.append(Token(id_, piece, "byte", *next(parts)))
        else:
            tokens.append(Token(id_, piece, "piece"))
    return tokens


def _bytes_of_characters(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the character and the place, as in ``Token``, of each byte of a text in UTF-8."""
    for character in text:
        count = len(character.encode())
        for number in range(1, count + 1):
            yield character, (number, count)
