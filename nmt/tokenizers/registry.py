"""Fitting of the configured kind of tokenizer, and loading of the files that ``save`` writes."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from nmt.config.data import DataConfig, check_corpus_name
from nmt.config.record import Record
from nmt.errors import DataError, NotFoundError
from nmt.storage.atomic import sha256
from nmt.storage.json_file import check_format, read_json, restore_remedy
from nmt.tokenizers.base import FORMATS, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

WORD_TOKENIZERS: dict[str, type[WordTokenizer]] = {"word": WordTokenizer, "char": CharacterTokenizer}
"""Classes of tokenizers whose vocabulary is a list of words or characters, by kind."""
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can escape half of a surrogate pair, but UTF-8 cannot hold it


class _TokenizerFile(Record):
    format: Literal[2, 3, 4]
    normalization: Literal["none", "nfc", "nfkc", "ascii-words"]
    tags: list[Annotated[str, AfterValidator(check_corpus_name)]] = Field(default_factory=list)


class _WordFile(_TokenizerFile):
    kind: Literal["word", "char"]
    words: list[str]


class _SubwordFile(_TokenizerFile):
    kind: Literal["subword"]
    algorithm: Literal["unigram", "bpe"]
    model_sha256: str


_FILE = TypeAdapter[_WordFile | _SubwordFile](Annotated[_WordFile | _SubwordFile, Field(discriminator="kind")])


def load_tokenizer(path: Path) -> Tokenizer:
    """Return a tokenizer that ``save`` wrote, in one of the formats 1 to 4.

    Raises:
        NotFoundError: if the file, or the model beside it, is missing.
        DataError: if one of the files is damaged, or has another format.
    """
    values = read_json(path, "A tokenizer")
    if isinstance(values, dict) and "format" not in values:  # format 1
        values = {"normalization" if key == "normalisation" else key: value for key, value in values.items()}
        values = {"format": FORMATS[0], **values}
    elif isinstance(values, dict):
        check_format(values["format"], FORMATS, f"Tokenizer {path}")
    try:
        stored = _FILE.validate_python(values)
    except ValidationError as error:
        raise DataError(
            f"Tokenizer {path} is damaged: {error.errors()[0]['msg'][:200]}. ", *restore_remedy(path)
        ) from None
    loaded = _load_subwords(path, stored) if isinstance(stored, _SubwordFile) else _load_words(path, stored)
    loaded.tags = stored.tags
    return loaded


def _load_words(path: Path, stored: _WordFile) -> WordTokenizer:
    kind, words = WORD_TOKENIZERS[stored.kind], stored.words
    invalid = next((word for word in words if not kind.is_piece(word) or _SURROGATE.search(word)), None)
    if invalid is not None or len(set(words)) < len(words):
        held = "a word twice" if invalid is None else repr(invalid[:60])
        raise DataError(f"Tokenizer {path} is damaged: its vocabulary of {kind.unit} holds {held}. Restore a copy.")
    return kind(words, stored.normalization)


def _load_subwords(path: Path, stored: _SubwordFile) -> SubwordTokenizer:
    model = path.with_suffix(".model")
    if not model.is_file():
        raise NotFoundError(f"{model} is missing. The subword tokenizer {path} needs it. Restore a copy.")
    if sha256(model) != stored.model_sha256:
        raise DataError(f"{model} has changed: its SHA-256 differs from the one in {path}. Restore a copy.")
    try:
        return SubwordTokenizer(model.read_bytes(), stored.normalization, stored.algorithm)
    except DataError as error:
        raise DataError(f"{model} cannot be used: {error} Restore a copy.") from None


def fit_tokenizer(texts: Iterable[str], config: DataConfig, pairs: int | None = None) -> Tokenizer:
    """Return a tokenizer of the configured kind, fitted on raw text.

    Args:
        texts: sentences of the training split, from one side or from both sides.
        config: kind, normalization and vocabulary size.
        pairs: number of training pairs that ``texts`` are a sample of. It determines the default number of subwords.
    """
    if config.tokenizer == "subword":
        return SubwordTokenizer.fit(texts, config, pairs)
    return WORD_TOKENIZERS[config.tokenizer].fit(texts, config)
