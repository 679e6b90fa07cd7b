"""Sentencepiece models that normalize text themselves, for programs that give them raw text.

A tokenizer of nmt normalizes text before its sentencepiece model sees it. Here the rules go into the model: a table of
strings with their replacements, the longest match first, computed from the same functions.
"""

import functools
import io
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from nmt.errors import NmtError
from nmt.tokenizers.base import SPACE_MARK, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer

REPLACING = ("none", "nfkc")
"""Normalizations that replace characters alone, never whole words."""


def has_sentencepiece(*tokenizers: Tokenizer) -> bool:
    """Return whether sentencepiece models can do all that the tokenizers do."""
    return all(isinstance(side, SubwordTokenizer) and side.normalization in REPLACING for side in tokenizers)


def check_normalization(tokenizer: Tokenizer, consumer: str) -> SubwordTokenizer:
    """Return the tokenizer if its normalization can live inside a sentencepiece model.

    Raises:
        NmtError: for words and characters, and for normalization by words.
    """
    if not isinstance(tokenizer, SubwordTokenizer):
        raise NmtError(
            f"The model has {tokenizer.unit} as tokens. {consumer} makes tokens with sentencepiece. Prepare the corpus "
            "with --set data.tokenizer=subword and train again, or export with --to saved-model."
        )
    if not has_sentencepiece(tokenizer):
        raise NmtError(
            f"The model normalizes text to ascii-words, which drops whole words with digits. {consumer} replaces "
            "characters alone. Prepare the corpus with --set data.normalization=nfkc and train again, or export with "
            "--to ctranslate2."
        )
    return tokenizer


def write_sentencepiece(source: Tokenizer, target: Tokenizer, folder: Path) -> None:
    """Write ``source.spm`` and ``target.spm``, which take raw text."""
    for side, tokenizer in (("source", source), ("target", target)):
        (folder / f"{side}.spm").write_bytes(with_normalization(check_normalization(tokenizer, "sentencepiece")))


def with_normalization(tokenizer: SubwordTokenizer) -> bytes:
    """Return the serialized sentencepiece model of a tokenizer, which normalizes as the tokenizer does.

    Combining marks in another order than Unicode's are left as they are.
    """
    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    model.normalizer_spec.name = f"nmt-{tokenizer.normalization}"
    model.normalizer_spec.precompiled_charsmap = _compiled_rules(tokenizer.normalization)
    model.normalizer_spec.remove_extra_whitespaces = True
    return model.SerializeToString()


@functools.cache
def _compiled_rules(normalization: str) -> bytes:
    """Return the rules of a normalization in sentencepiece's binary form, which only its trainer writes."""
    rules = sorted({key: value for key, value in _rules(normalization) if key != value}.items())
    lines = ["\t".join(" ".join(f"{ord(character):X}" for character in text) for text in rule) for rule in rules]
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"]), model_writer=model, model_type="char", vocab_size=8,
            hard_vocab_limit=False, normalization_rule_tsv=str(table), minloglevel=2,
        )  # fmt: skip
    trained = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return bytes(trained.normalizer_spec.precompiled_charsmap)


def _rules(normalization: str) -> Iterator[tuple[str, str]]:
    """Yield strings with their normalized form: single characters, and with NFKC what composes to one."""
    for code in range(1, sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF:  # halves of surrogate pairs
            continue
        character = chr(code)
        yield character, _spaced(unicodedata.normalize("NFKC", character) if normalization == "nfkc" else character)
        if normalization == "nfkc" and (decomposed := unicodedata.normalize("NFD", character)) != character:
            composed = _spaced(unicodedata.normalize("NFKC", character))
            yield decomposed, composed
            # The last mark alone may stand behind a character that is composed already.
            yield unicodedata.normalize("NFC", decomposed[:-1]) + decomposed[-1], composed


def _spaced(text: str) -> str:
    """Return text with spaces for white space, and "_" for sentencepiece's own sign of a space."""
    return "".join(" " if character.isspace() else character for character in text).replace(SPACE_MARK, "_")
