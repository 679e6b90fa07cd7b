"""Text to ids and back in TensorFlow's own operations, for word and character tokenizers.

Strings are UTF-8. Results are those of ``nmt.tokenizers.word`` for every text that Python can encode.

Shapes: B texts, N tokens of a text, V vocabulary.
"""

import functools
import sys
import unicodedata

from nmt.runtime import tf
from nmt.tokenizers.base import EOS, FIRST_WORD, PAD, UNK, UNKNOWN
from nmt.tokenizers.normalization import ascii_words
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

_DIGIT = ord("0")
_SPACE = ord(" ")
_REMOVED = 0


class TextEncoder(tf.Module):
    """Raw text to ids, as ``WordTokenizer.encode``."""

    def __init__(self, tokenizer: WordTokenizer) -> None:
        """Take a tokenizer with the normalization none or ascii-words."""
        super().__init__(name="source_text")
        self._characters = isinstance(tokenizer, CharacterTokenizer)
        self._ascii_words = tokenizer.normalization == "ascii-words"
        # A table cannot be empty, as a vocabulary can; no piece of text is the empty string.
        pieces = tf.constant(["", *tokenizer.words])
        ids = tf.constant([UNK, *range(FIRST_WORD, tokenizer.size)], tf.int64)
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(pieces, ids), UNK)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Texts, string [B] -> ids without bos and eos, ragged int32 [B, N]."""
        pieces = _ascii_words(texts) if self._ascii_words else tf.strings.split(_with_plain_spaces(texts))
        if self._characters:
            pieces = tf.strings.unicode_split(_join(pieces, " "), "UTF-8")
        return pieces.with_flat_values(tf.cast(self.table.lookup(pieces.flat_values), tf.int32))


class TextDecoder(tf.Module):
    """Ids to text, as ``WordTokenizer.decode``."""

    def __init__(self, tokenizer: WordTokenizer) -> None:
        """Take the tokenizer of the target side."""
        super().__init__(name="target_text")
        self._separator = tokenizer.separator
        special = [UNKNOWN if id_ == UNK else "" for id_ in range(FIRST_WORD)]
        self._words = tf.constant([*special, *tokenizer.words])

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids int32 [B, N], padding 0, eos where a text ends -> string [B]."""
        words = tf.ragged.boolean_mask(ids, tf.not_equal(ids, PAD) & tf.not_equal(ids, EOS))
        return _join(words.with_flat_values(tf.gather(self._words, words.flat_values)), self._separator)


def _join(pieces: tf.RaggedTensor, separator: str) -> tf.Tensor:
    """Ragged string [B, N] -> string [B]."""
    return tf.strings.unsorted_segment_join(
        pieces.flat_values, pieces.value_rowids(), tf.cast(pieces.nrows(), tf.int64), separator
    )


def _with_plain_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Return texts with a space instead of each run of what ``str.split`` takes for white space."""
    return tf.strings.regex_replace(texts, f"[{_white_space()}]+", " ")


@functools.cache
def _white_space() -> str:
    return "".join(f"\\x{{{code:X}}}" for code in range(sys.maxunicode + 1) if chr(code).isspace())


def _ascii_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Texts, string [B] -> words after the normalization ascii-words, ragged string [B, N]."""
    mapping = ascii_words_mapping()
    codes = tf.strings.unicode_decode(texts, "UTF-8")
    # A code point past the end of the mapping disappears, as the last of the mapping does.
    mapped = tf.gather(tf.constant(mapping, tf.int32), tf.minimum(codes.flat_values, len(mapping) - 1))
    kept = tf.ragged.boolean_mask(
        codes.with_flat_values(mapped), codes.with_flat_values(tf.not_equal(mapped, _REMOVED))
    )
    words = tf.strings.split(tf.strings.unicode_encode(kept, "UTF-8"))
    alphabetic = words.with_flat_values(tf.strings.regex_full_match(words.flat_values, "[a-z]+"))
    return tf.ragged.boolean_mask(words, alphabetic)


@functools.cache
def ascii_words_mapping() -> tuple[int, ...]:
    """Return what ``ascii_words`` makes of each code point, from 0 to one past the last that does not disappear.

    It is a letter, a space, a digit (whichever, since words with digits are dropped) or 0 for nothing. NFD maps code
    points one at a time; what it reorders are combining marks, and none is ASCII.
    """
    mapping = [_REMOVED] * (sys.maxunicode + 1)
    last = 0
    for code, character in enumerate(map(chr, range(sys.maxunicode + 1))):
        if not (code < 128 or character.isspace() or unicodedata.decomposition(character)):
            continue
        match ascii_words(f"a{character}b"):
            case "ab":
                continue
            case "a b":
                mapping[code] = _SPACE
            case "":
                mapping[code] = _DIGIT
            case word:
                mapping[code] = ord(word[1])
        last = code
    return tuple(mapping[: last + 2])
