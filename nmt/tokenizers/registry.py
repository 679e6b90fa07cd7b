"""The kinds of tokenizers: fitted by configuration, loaded from the files that ``save`` writes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from nmt.config.data import DataConfig
from nmt.config.record import Record
from nmt.errors import DataError, NotFoundError
from nmt.storage.atomic import sha256
from nmt.storage.json_file import RESTORE, read_json
from nmt.tokenizers.base import TOKENIZER_FORMAT, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer


class _TokenizerFile(Record):
    format: Literal[2]
    normalization: Literal["none", "nfkc", "ascii-words"]


class _WordFile(_TokenizerFile):
    kind: Literal["word", "char"]
    words: list[str]


class _SubwordFile(_TokenizerFile):
    kind: Literal["subword"]
    algorithm: Literal["unigram", "bpe"]
    model_sha256: str


_FILE: TypeAdapter[_WordFile | _SubwordFile] = TypeAdapter(
    Annotated[_WordFile | _SubwordFile, Field(discriminator="kind")]
)


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer that ``save`` wrote, in format 1 or 2.

    Raises:
        NotFoundError: if the file, or the model beside it, is missing.
        DataError: if one of them is damaged, or has another format.
    """
    values = _in_format_2(read_json(path, "A tokenizer"), path)
    try:
        stored = _FILE.validate_python(values)
    except ValidationError as error:
        raise DataError(f"Tokenizer {path} is damaged: {error.errors()[0]['msg'][:200]}. {RESTORE}") from None
    if isinstance(stored, _SubwordFile):
        return _load_subwords(path, stored)
    kind = CharacterTokenizer if stored.kind == "char" else WordTokenizer
    if len(set(stored.words)) < len(stored.words):
        raise DataError(f"Tokenizer {path} is damaged: its vocabulary holds a word twice. Restore a copy.")
    if (invalid := next((word for word in stored.words if not kind.is_piece(word)), None)) is not None:
        raise DataError(
            f"Tokenizer {path} is damaged: its vocabulary of {kind.unit} holds {invalid[:60]!r}. Restore a copy."
        )
    try:
        "".join(stored.words).encode("utf-8")
    except UnicodeEncodeError:  # JSON can escape half of a surrogate pair
        raise DataError(
            f"Tokenizer {path} is damaged: its vocabulary holds half of a surrogate pair. Restore a copy."
        ) from None
    return kind(stored.words, stored.normalization)


def _in_format_2(values: Any, path: Path) -> Any:
    """Return the content of a tokenizer file with the keys of format 2."""
    if not isinstance(values, dict):
        return values
    if "format" not in values:  # format 1
        values = {"normalization" if key == "normalisation" else key: value for key, value in values.items()}
        return {"format": TOKENIZER_FORMAT, **values}
    number = values["format"]
    if type(number) is int and number != TOKENIZER_FORMAT:
        raise DataError(
            f"Tokenizer {path} has format {number}. This version of nmt reads tokenizers of formats 1 and "
            f"{TOKENIZER_FORMAT}. Use the version of nmt that wrote it, or prepare the corpus again with --overwrite."
        )
    return values


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
        texts: sentences of the training split, of one side or of both.
        config: kind, normalization and size.
        pairs: number of training pairs that ``texts`` are a sample of; it determines the default subword vocabulary.
    """
    if config.tokenizer == "subword":
        return SubwordTokenizer.fit(texts, config, pairs)
    return (CharacterTokenizer if config.tokenizer == "char" else WordTokenizer).fit(texts, config)
