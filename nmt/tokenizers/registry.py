"""Text to ids and back: the kinds of tokenizers, fitted by configuration and loaded from what they saved."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from nmt.config.data import DataConfig
from nmt.config.record import RenamedRecord
from nmt.errors import DataError, NotFoundError
from nmt.storage.atomic import sha256
from nmt.storage.json_file import RESTORE, read_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK, UNKNOWN, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

__all__ = [
    "BOS", "EOS", "FIRST_WORD", "PAD", "UNK", "UNKNOWN", "CharacterTokenizer", "SubwordTokenizer", "Tokenizer",
    "WordTokenizer", "fit_tokenizer", "load_tokenizer",
]  # fmt: skip


class _Stored(RenamedRecord):
    renamed = {"normalisation": "normalization"}  # noqa: RUF012 - a ClassVar of Record

    normalization: Literal["none", "nfkc", "ascii-words"]


class _WordFile(_Stored):
    kind: Literal["word", "char"]
    words: list[str]


class _SubwordFile(_Stored):
    kind: Literal["subword"]
    algorithm: Literal["unigram", "bpe"]
    model_sha256: str


_FILE: TypeAdapter[_WordFile | _SubwordFile] = TypeAdapter(
    Annotated[_WordFile | _SubwordFile, Field(discriminator="kind")]
)


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer that ``save`` wrote.

    Raises:
        NotFoundError, DataError: if the file, or the model beside it, is missing or damaged.
    """
    try:
        stored = _FILE.validate_python(read_json(path, "A tokenizer"))
    except ValidationError as error:
        raise DataError(
            f"A tokenizer file holds kind, normalization and vocabulary; {path} is damaged: "
            f"{error.errors()[0]['msg'][:200]}. {RESTORE}"
        ) from None
    if isinstance(stored, _SubwordFile):
        model = path.with_suffix(".model")
        if not model.is_file():
            raise NotFoundError(f"A subword tokenizer is two files; {model} is missing beside {path}. Restore a copy.")
        if sha256(model) != stored.model_sha256:
            raise DataError(f"A tokenizer's model is as nmt prepare wrote it; {model} has changed. Restore a copy.")
        try:
            return SubwordTokenizer(model.read_bytes(), stored.normalization, stored.algorithm)
        except DataError as error:
            raise DataError(f"{model} cannot be used: {error} Restore a copy.") from None
    kind = CharacterTokenizer if stored.kind == "char" else WordTokenizer
    if len(set(stored.words)) < len(stored.words):
        raise DataError(f"Each word of a tokenizer stands in it once; {path} repeats some. Restore a copy.")
    if (wrong := next((word for word in stored.words if not kind.is_piece(word)), None)) is not None:
        raise DataError(f"A tokenizer of {kind.unit} holds {kind.unit}; {path} holds {wrong[:60]!r}. Restore a copy.")
    try:
        "".join(stored.words).encode("utf-8")
    except UnicodeEncodeError:  # JSON can write half of a surrogate pair
        raise DataError(f"The words of a tokenizer are text; {path} holds what is none. Restore a copy.") from None
    return kind(stored.words, stored.normalization)


def fit_tokenizer(texts: Iterable[str], config: DataConfig, pairs: int | None = None) -> Tokenizer:
    """Return a tokenizer of the configured kind, fitted on ``texts`` (the training split of one side or of both).

    ``pairs`` says how many training pairs the texts are a sample of; the default size of a subword vocabulary goes by
    it.
    """
    if config.tokenizer == "subword":
        return SubwordTokenizer.fit(texts, config, pairs)
    return (CharacterTokenizer if config.tokenizer == "char" else WordTokenizer).fit(texts, config)
