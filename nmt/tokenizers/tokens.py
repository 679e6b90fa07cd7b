"""Tokens of a text one by one: what each stands for, and what the tokenizer does not know."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from nmt.tokenizers.base import FIRST_WORD, SPACE_MARK, UNK, Tokenizer


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
    unknown = iter(tokenizer.unknown(text))
    characters = _characters(tokenizer, ids)
    found = []
    for id_, piece in zip(ids, tokenizer.pieces(ids), strict=True):
        if id_ == UNK:
            found.append(Token(id_, next(unknown).replace(" ", SPACE_MARK), "unknown"))
        elif tokenizer.byte_of(id_) is not None:
            character, place = next(characters)
            found.append(Token(id_, piece, "byte", character, place))
        else:
            found.append(Token(id_, piece, "piece"))
    return found


def special_token(tokenizer: Tokenizer, id_: int) -> Token:
    """Return bos or eos as a token.

    Raises:
        ValueError: for an id that is no special one.
    """
    if id_ >= FIRST_WORD:
        raise ValueError(f"{id_} is no special id")
    return Token(id_, tokenizer.pieces([id_])[0], "special")


def _characters(tokenizer: Tokenizer, ids: list[int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield for each id that is a byte its character, and its place among the bytes of the character."""
    run = bytearray()
    for id_ in [*ids, None]:
        byte = None if id_ is None else tokenizer.byte_of(id_)
        if byte is not None:
            run.append(byte)
            continue
        for character in run.decode("utf-8"):  # bytes stand for whole characters: the text was one
            count = len(character.encode())
            yield from ((character, (number, count)) for number in range(1, count + 1))
        run.clear()
