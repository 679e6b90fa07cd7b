"""Unique pieces, and sentencepiece models whose normalization gives the tokenizer's ids for raw text."""

import functools
import unicodedata
from typing import NamedTuple

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.export.vocabulary import unique_pieces, with_normalization
from nmt.tokenizers.normalization import without_invisible
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

TEXTS = ["Ein Mädchen läuft.", "zwei Hunde", "drei schöne Straßen", "im thirsty, you too"] * 5
NORMALIZATIONS = ("none", "nfc", "nfkc")


class Subwords(NamedTuple):
    """A tokenizer, and sentencepiece with its normalization."""

    tokenizer: SubwordTokenizer
    processor: sentencepiece.SentencePieceProcessor


@functools.cache
def subwords(normalization: str) -> Subwords:
    """Return the subwords of a normalization, whose rules take seconds."""
    config = DataConfig(tokenizer="subword", normalization=normalization, vocabulary_size=330)
    tokenizer = SubwordTokenizer.fit(TEXTS, config)
    return Subwords(tokenizer, sentencepiece.SentencePieceProcessor(model_proto=with_normalization(tokenizer)))


def marks_are_ordered(text: str) -> bool:
    """Return whether all combining marks are in Unicode's order, with "¨" as a space and its mark.

    An invisible character between a letter and its mark counts as another order.
    """
    if without_invisible(text) != text and any(map(unicodedata.combining, text)):
        return False
    decomposed = "".join(unicodedata.normalize("NFKD", character) for character in text)
    return unicodedata.normalize("NFKD", text) == decomposed


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@settings(max_examples=400, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1)).filter(marks_are_ordered))
@example(text="¨a\u0308")
def test_raw_text_gives_the_ids_of_the_tokenizer(normalization: str, text: str) -> None:
    tokenizer, processor = subwords(normalization)
    assert processor.encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a\u00a0b\t c\n",
        "ﬁne ½ Ⅷ",
        "Ma\u0308dchen",
        "각 \u1100\u1161\u11a8",
        "\u2581x_",
        "\u3000\uff46\uff55\uff4c\uff4c",
        "\u0344 \u1e69",
    ],
)
def test_spaces_ligatures_and_composed_letters(text: str) -> None:
    for tokenizer, processor in map(subwords, NORMALIZATIONS):
        assert processor.encode(text) == tokenizer.encode(text)


def test_what_the_model_decodes_stays_the_same() -> None:
    tokenizer, processor = subwords("nfkc")
    ids = tokenizer.encode("zwei schöne Mädchen")
    assert processor.decode(ids) == "zwei schöne Mädchen"


def test_pieces_of_a_side_are_different() -> None:
    source = CharacterTokenizer([" ", "\u2581", "a"], "none")
    target = WordTokenizer(["<unk>", "<unk>_", "</s>"], "none")
    for pieces, tokenizer in zip(unique_pieces(source, target), (source, target), strict=True):
        assert len(set(pieces)) == len(pieces) == tokenizer.size
