"""Text to ids and back. A tokenizer owns its normalisation, its vocabulary and the special ids."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Protocol

from pydantic import ValidationError

from nmt.config import DataConfig, Section
from nmt.errors import DataError
from nmt.files import read_json, write_json
from nmt.normalisation import NORMALISERS, Normaliser

# No text encodes to PAD, BOS or EOS: words get the ids from FIRST_WORD on, whatever their spelling.
PAD, UNK, BOS, EOS = range(4)
FIRST_WORD = 4
UNKNOWN = "<unk>"


class Tokenizer(Protocol):
    """What the rest of the house knows of a tokenizer."""

    normalise: Normaliser
    """What ``encode`` does to raw text first."""

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; pad, bos and eos are left out."""

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of ``text`` that become unk."""

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON."""


class _WordFile(Section):
    kind: Literal["word"]
    normalisation: Literal["none", "nfkc", "ascii-words"]
    words: list[str]


class WordTokenizer:
    """One id a word. Words are what white space separates after normalisation."""

    def __init__(self, words: list[str], normalisation: str) -> None:
        """Take the vocabulary in the order of its ids, the first getting ``FIRST_WORD``."""
        self.words = words
        self.normalisation = normalisation
        self.normalise = NORMALISERS[normalisation]
        self._ids = {word: id_ for id_, word in enumerate(words, start=FIRST_WORD)}

    @classmethod
    def fit(cls, texts: Iterable[str], config: DataConfig) -> "WordTokenizer":
        """Build the vocabulary of ``texts``: most frequent first, equals in alphabetical order."""
        normalise = NORMALISERS[config.normalisation]
        counts = Counter(word for text in texts for word in normalise(text).split(" "))
        counts.pop("", None)
        kept = [(-count, word) for word, count in counts.items() if count >= config.min_count]
        return cls([word for _, word in sorted(kept)], config.normalisation)

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return FIRST_WORD + len(self.words)

    def _words(self, text: str) -> list[str]:
        return self.normalise(text).split(" ") if text and not text.isspace() else []

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos; unknown words become unk."""
        return [self._ids.get(word, UNK) for word in self._words(text) if word]

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
        return " ".join(words)

    def unknown(self, text: str) -> list[str]:
        """Return the words of ``text`` that become unk, in order."""
        return [word for word in self._words(text) if word and word not in self._ids]

    def save(self, path: Path) -> None:
        """Write the vocabulary and the name of the normalisation as JSON."""
        write_json(path, {"kind": "word", "normalisation": self.normalisation, "words": self.words})


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer that ``save`` wrote.

    Raises:
        NotFoundError, DataError: if the file is missing or damaged.
    """
    try:
        stored = _WordFile.model_validate(read_json(path, "A tokenizer"))
    except ValidationError as error:
        raise DataError(
            f"A tokenizer file holds kind, normalisation and words; {path} is damaged ({error.error_count()} "
            f"problems, first: {error.errors()[0]['msg']}). Restore a copy or prepare the corpus again."
        ) from None
    if len(set(stored.words)) < len(stored.words):
        raise DataError(f"Each word of a tokenizer stands in it once; {path} repeats some. Restore a copy.")
    return WordTokenizer(stored.words, stored.normalisation)


def fit_tokenizer(texts: Iterable[str], config: DataConfig) -> Tokenizer:
    """Return a tokenizer of the configured kind, fitted on ``texts`` (the training split of one side or of both)."""
    return WordTokenizer.fit(texts, config)
