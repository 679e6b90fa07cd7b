"""Vocabularies as lists of different strings, which programs that know tokens by their text need."""

from nmt.tokenizers.base import FIRST_WORD, SPECIAL_PIECES, Tokenizer


def unique_pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the piece of each id of both sides.

    Special pieces are spelled alike on both sides. A special piece that is also a word of a vocabulary gets underscores
    behind it.
    """
    pieces = [tokenizer.pieces(range(tokenizer.size)) for tokenizer in (source, target)]
    words = {word for side in pieces for word in side[FIRST_WORD:]}
    special = []
    for piece in SPECIAL_PIECES:
        name = piece
        while name in words:
            name += "_"
        special.append(name)
    source_pieces, target_pieces = ([*special, *side[FIRST_WORD:]] for side in pieces)
    return source_pieces, target_pieces
