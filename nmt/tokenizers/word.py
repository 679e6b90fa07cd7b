"""Word and character tokenizers, with an id for each word or each character."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from nmt.config.data import DataConfig
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import FIRST_WORD, SPACE_MARK, SPECIAL_PIECES, UNK, Tokenizer, file_header, ids_of_text
from nmt.tokenizers.normalization import NORMALIZERS


class WordTokenizer(Tokenizer):
    """Tokenizer with an id for each word. White space separates words after normalization."""

    kind: ClassVar = "word"
    unit: str = "words"
    separator: ClassVar = " "  # text between two pieces

    def __init__(self, words: list[str], normalization: str) -> None:
        """Take the vocabulary in the order of its ids; the first word gets the id ``FIRST_WORD``."""
        self.words = words
        self.normalization = normalization
        self._ids = {word: id_ for id_, word in enumerate(words, start=FIRST_WORD)}

    @classmethod
    def fit(cls, texts: Iterable[str], config: DataConfig) -> "WordTokenizer":
        """Build the vocabulary of ``texts``: the most frequent words first, equally frequent words alphabetically."""
        normalize = NORMALIZERS[config.normalization]
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(cls._split(normalize(text)))
        frequent = sorted((-count, word) for word, count in counts.items() if count >= config.min_count)
        limit = None if config.vocabulary_size is None else config.vocabulary_size - FIRST_WORD
        return cls([word for _, word in frequent[:limit]], config.normalization)

    @staticmethod
    def is_piece(text: str) -> bool:
        """Return whether text can be in the vocabulary: a word is not empty and holds no white space."""
        return text.split() == [text]

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return FIRST_WORD + len(self.words) + len(self.tags)

    @staticmethod
    def _split(normalized: str) -> Iterable[str]:
        return normalized.split(" ") if normalized else []

    def normalize(self, text: str) -> str:
        """Return normalized text."""
        return NORMALIZERS[self.normalization](text)

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos; unknown words become unk."""
        return [self._ids.get(word, UNK) for word in self._split(self.normalize(text))]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words of ids up to the first eos, without pad and bos; unk becomes "<unk>"."""
        words = ids_of_text(ids, FIRST_WORD + len(self.words))
        return self.separator.join(SPECIAL_PIECES[UNK] if id_ == UNK else self.words[id_ - FIRST_WORD] for id_ in words)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the piece of each id, special ids included. A space as a character becomes ``SPACE_MARK``."""
        end, tags = FIRST_WORD + len(self.words), [f"<{tag}>" for tag in self.tags]
        return [
            SPECIAL_PIECES[id_] if id_ < FIRST_WORD
            else self.words[id_ - FIRST_WORD].replace(" ", SPACE_MARK) if id_ < end else tags[id_ - end]
            for id_ in ids
        ]  # fmt: skip

    def unknown(self, text: str) -> list[str]:
        """Return the words of raw text that become unk, in order."""
        return [word for word in self._split(self.normalize(text)) if word not in self._ids]

    def save(self, path: Path) -> None:
        """Write the vocabulary and the name of the normalization as JSON."""
        write_json(path, {**file_header(self.kind, self.normalization, self.tags), "words": self.words})


class CharacterTokenizer(WordTokenizer):
    """Tokenizer with an id for each character, the space included."""

    kind: ClassVar = "char"
    unit: str = "characters"
    separator: ClassVar = ""

    @staticmethod
    def is_piece(text: str) -> bool:
        """Return whether text can be in the vocabulary: a single character that is no white space except the space."""
        return len(text) == 1 and (text == " " or not text.isspace())

    @staticmethod
    def _split(normalized: str) -> Iterable[str]:
        return normalized
