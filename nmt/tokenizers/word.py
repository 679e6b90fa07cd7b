"""One id for each word, or for each character."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from nmt.config.data import DataConfig
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import EOS, FIRST_WORD, UNK, UNKNOWN
from nmt.tokenizers.normalization import NORMALIZERS


class WordTokenizer:
    """One id a word. Words are what white space separates after normalization."""

    kind: ClassVar = "word"
    unit: str = "words"
    joint: ClassVar = " "  # what stands between two words

    def __init__(self, words: list[str], normalization: str) -> None:
        """Take the vocabulary in the order of its ids, the first getting ``FIRST_WORD``."""
        self.words = words
        self.normalization = normalization
        self.normalize = NORMALIZERS[normalization]
        self._ids = {word: id_ for id_, word in enumerate(words, start=FIRST_WORD)}

    @classmethod
    def fit(cls, texts: Iterable[str], config: DataConfig) -> "WordTokenizer":
        """Build the vocabulary of ``texts``: most frequent first, equals in alphabetical order."""
        normalize = NORMALIZERS[config.normalization]
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(cls._split(normalize(text)))
        kept = sorted((-count, word) for word, count in counts.items() if count >= config.min_count)
        limit = None if config.vocabulary_size is None else config.vocabulary_size - FIRST_WORD
        return cls([word for _, word in kept[:limit]], config.normalization)

    @staticmethod
    def is_piece(text: str) -> bool:
        """Return whether text can stand in the vocabulary: a word is not empty and holds no white space."""
        return text.split() == [text]

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return FIRST_WORD + len(self.words)

    @staticmethod
    def _split(normal: str) -> Iterable[str]:
        return normal.split(" ") if normal else []

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos; unknown words become unk."""
        return [self._ids.get(word, UNK) for word in self._split(self.normalize(text))]

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return the ids of each raw text: there is one way alone to cut it."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words of ids, up to the first eos; pad and bos are left out, unk is shown as such."""
        words = []
        for id_ in ids:
            if id_ == EOS:
                break
            if id_ >= FIRST_WORD:
                words.append(self.words[id_ - FIRST_WORD])
            elif id_ == UNK:
                words.append(UNKNOWN)
        return self.joint.join(words)

    def unknown(self, text: str) -> list[str]:
        """Return the words of ``text`` that become unk, in order."""
        return [word for word in self._split(self.normalize(text)) if word not in self._ids]

    def save(self, path: Path) -> None:
        """Write the vocabulary and the name of the normalization as JSON."""
        write_json(path, {"kind": self.kind, "normalization": self.normalization, "words": self.words})


class CharacterTokenizer(WordTokenizer):
    """One id a character, the space included."""

    kind: ClassVar = "char"
    unit: str = "characters"
    joint: ClassVar = ""

    @staticmethod
    def is_piece(text: str) -> bool:
        """Return whether text can stand in the vocabulary: one character, and of white space the space alone."""
        return len(text) == 1 and (text == " " or not text.isspace())

    @staticmethod
    def _split(normal: str) -> Iterable[str]:
        return normal
