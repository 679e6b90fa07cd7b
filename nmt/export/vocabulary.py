"""Vocabularies as lists of different strings, which programs that know tokens by their text need."""

from nmt.tokenizers.base import FIRST_WORD, SPECIAL_PIECES, Tokenizer


def unique_pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the piece of each id of both sides, each different from the others of its side.

    Special pieces are spelled alike on both sides. A special piece that is also a word of a vocabulary gets underscores
    behind it, and so does a word that looks like an earlier one: characters show a space as ``SPACE_MARK``.
    """
    sides = [tokenizer.pieces(range(FIRST_WORD, tokenizer.size)) for tokenizer in (source, target)]
    words = {word for side in sides for word in side}
    special: list[str] = []
    for piece in SPECIAL_PIECES:
        special.append(_different(piece, words.union(special)))
    found = []
    for side in sides:
        pieces, taken = list(special), words.union(special)
        seen: set[str] = set()
        for word in side:
            pieces.append(_different(word, taken) if word in seen else word)
            seen.add(word)
            taken.add(pieces[-1])
        found.append(pieces)
    return found[0], found[1]


def _different(piece: str, taken: set[str]) -> str:
    """Return a piece with as many underscores behind it as make it different from those taken."""
    while piece in taken:
        piece += "_"
    return piece
