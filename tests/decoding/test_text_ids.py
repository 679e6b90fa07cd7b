"""A translation that a person gives becomes ids within the limits of the model."""

import pytest

from nmt.config.schema import Config
from nmt.decoding.text_ids import encode_target
from nmt.errors import DataError
from nmt.tokenizers.base import EOS, UNK
from nmt.tokenizers.word import WordTokenizer

TOKENIZER = WordTokenizer(["ich", "bin"], "ascii-words")


def test_a_given_translation_ends_with_eos() -> None:
    assert encode_target(TOKENIZER, Config(), "Ich bin hier!") == [4, 5, UNK, EOS]


def test_a_given_translation_fits_the_positions_that_the_decoder_reads() -> None:
    config = Config.model_validate({"model": {"positions": "learned", "max_positions": 3}})
    assert encode_target(TOKENIZER, config, "ich bin") == [4, 5, EOS]  # reads bos, ich, bin
    with pytest.raises(DataError, match=r"'ich bin ich' has 3 tokens\. This model writes at most 2 tokens"):
        encode_target(TOKENIZER, config, "ich bin ich")
