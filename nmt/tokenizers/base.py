"""The ids that no text produces, and what the rest of the house knows of a tokenizer."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

# No text encodes to PAD, BOS or EOS: pieces of text get the ids from FIRST_WORD on, whatever their spelling.
PAD, UNK, BOS, EOS = range(4)
FIRST_WORD = 4
UNKNOWN = "<unk>"


class Tokenizer(Protocol):
    """Text to ids and back. A tokenizer owns its normalization, its vocabulary and the special ids."""

    unit: str
    """What an id stands for: "words", "characters" or "subwords"."""

    def normalize(self, text: str, /) -> str:
        """Return what ``encode`` makes of raw text first."""

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos."""

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return for each text ids that decode to it, cut in another way where there are several: for training.

        A pure function of texts and seed, an integer from 0 below 2**32 - 1. Words and characters are cut in one way
        only.
        """

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to the first eos; pad and bos are left out."""

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of ``text`` that become unk."""

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON, and whatever it needs beside that under names that begin like ``path``."""
