"""Postprocessing of translations: case, quotes, tags and pieces of the sentence return to its translation.

The attention of the model tells which words of the translation belong to which words of the sentence.

Shapes: J words of a translation, I words of the model input.
"""

import bisect
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from nmt.data.repeats import repeats
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import CrossAttention, Translation
from nmt.text.inline import CLOSING, Span, weave
from nmt.text.pieces import NUMBER
from nmt.text.reading import Reading, Text
from nmt.tokenizers.base import BOS, EOS, SPACE_MARK, UNKNOWN, Tokenizer, tokens_of
from nmt.tokenizers.letter_case import upper
from nmt.tokenizers.marks import MARK
from nmt.tokenizers.scripts import split_words

_REPEATED = re.compile(r"(\S{1,20}?)(?:[\s,]*\1){2}")
"""Three repeats in a source, within a word (10,000) or of words (very, very, very)."""
_WORD = re.compile(r"[^\s,.;:!?…،۔।。！？，、]+")
_WRITTEN = re.compile(r"\d(?:[.,:/\u202f\xa0-]?\d)*")
_THOUSANDS = re.compile(r"(?<=\d)[.,\u202f\xa0](?=\d{3}(?!\d))")
_GROUPS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
"""Spaces between groups of digits."""


def keeps_pieces(translation: str, pieces: Sequence[str]) -> bool:
    """Return whether a translation contains all pieces, as often as they come. Numbers may have other separators."""
    grouped = _GROUPS.sub("", translation)
    for piece, count in Counter(pieces).items():
        if re.fullmatch(NUMBER, piece):
            number = _plain_number(piece)
            is_kept = any(_numbers(text)[number] == count for text in (translation, grouped))
        else:
            is_kept = translation.count(piece) == count
        if not is_kept:
            return False
    return True


def writes_as_words(translation: str, other: str, digits: Sequence[str]) -> bool:
    """Return whether a translation writes digits of its source as words: with other digits, as many words differ.

    Args:
        translation: translation.
        other: translation of the same sentence with other digits.
        digits: the digits that the translation may have written as words.
    """
    words, other_words = (Counter(word.text for word in split_words(text)) for text in (translation, other))
    has_digits = any(_numbers(translation)[digit] for digit in digits)
    return not has_digits and (words - other_words).total() == (other_words - words).total() == len(digits)


def _numbers(text: str) -> Counter[str]:
    """Return how often each number comes in a text."""
    return Counter(map(_plain_number, _WRITTEN.findall(text)))


def _plain_number(number: str) -> str:
    """Return a number in any script with the digits 0 to 9, without groups, and with points as other separators."""
    signs = _THOUSANDS.sub("", number)
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else "." for sign in signs)


def babbles(ids: Sequence[int], source: str, *, may_repeat: bool = False) -> bool:
    """Return whether a translation does not end, or repeats a phrase although its source repeats none.

    Args:
        ids: token ids of the translation.
        source: sentence as the model reads it.
        may_repeat: whether the translation may repeat phrases regardless of its source.
    """
    if not ids:
        return False
    if ids[-1] != EOS:
        return True
    if may_repeat or not repeats(ids):
        return False
    return not (_REPEATED.search(source) or repeats(_WORD.findall(source)))


# --- the alignment of words


class Alignment(NamedTuple):
    """Attention of the words of a translation to the words of the model input."""

    weights: np.ndarray
    """Attention of each translation word to each source word: float [J, I]."""

    @classmethod
    def from_attention(
        cls, attention: CrossAttention, source: Tokenizer, target: Tokenizer, text: str
    ) -> "Alignment":  # fmt: skip
        """Return the attention between words: the last layer's mean over heads, summed over the tokens of the words.

        Args:
            attention: attention to the tokens of ``text``.
            source: tokenizer of the source side.
            target: tokenizer of the target side.
            text: sentence as the model reads it.
        """
        first_tag = source.size - len(source.tags)
        columns = [column for column, id_ in enumerate(attention.source) if id_ not in (BOS, EOS) and id_ < first_tag]
        columns_of = _Membership.of(source_words(source, text)[: len(columns)])
        rows_of = _Membership.of(target_words(target, attention.target))
        weights = np.zeros([len(split_words(target.decode(attention.target))), len(split_words(text))])
        of_tokens = attention.weights[-1].mean(axis=0)[:, columns]
        shares = rows_of.shares[:, np.newaxis] * columns_of.shares
        of_words = of_tokens[rows_of.tokens][:, columns_of.tokens] * shares
        np.add.at(weights, (rows_of.words[:, np.newaxis], columns_of.words), of_words)
        return cls(weights)

    def source_of(self, word: int) -> int:
        """Return the index of the source word with the most attention from a word of the translation."""
        return int(self.weights[word].argmax())

    def targets_of(self, word: int) -> list[int]:
        """Return the indices of the translation words with this ``source_of``.

        If there are none, return the translation word with the most attention to the source word.
        """
        targets = [target for target in range(len(self.weights)) if self.source_of(target) == word]
        return targets or [int(self.weights[:, word].argmax())]


class _Membership(NamedTuple):
    """P pairs of a token and a word that the token is a part of. In a script without spaces, it may have several."""

    tokens: np.ndarray
    """Index of the token: int [P]."""
    words: np.ndarray
    """Index of the word: int [P]."""
    shares: np.ndarray
    """Share of the token that belongs to the word; 1 for a token of a single word: float [P]."""

    @classmethod
    def of(cls, ranges: Sequence[range]) -> Self:
        """Return the pairs of tokens with the words of each token."""
        sizes = np.array([len(words) for words in ranges], int)
        words = np.array([*itertools.chain(*ranges)], int)
        return cls(np.repeat(np.arange(len(ranges)), sizes), words, 1 / np.repeat(sizes, sizes))


def source_words(source: Tokenizer, text: str) -> list[range]:
    """Return the indices of the words of a text that each of its tokens is a part of. A space belongs to the next word.

    Characters are counted without white space, after normalization.
    """
    first_tag = source.size - len(source.tags)
    ends = [0, *itertools.accumulate(_size(source.normalize(word.text)) for word in split_words(text))]
    spans, place = list[Span](), 0
    for token in tokens_of(source, text):
        if token.place is not None:  # a byte
            spans.append((place, place + 1))
            place += token.place[0] == token.place[1]
        elif token.id < first_tag:
            size = _size(token.piece.replace(SPACE_MARK, " "))
            spans.append((place, place + max(1, size)))
            place += size
    return _words_of(spans, ends)


def target_words(target: Tokenizer, ids: Sequence[int]) -> list[range]:
    """Return the indices of the words that each target token is a part of; eos is left out.

    A space belongs to the word before it.
    """
    ids = [id_ for id_ in ids if id_ != EOS]
    ends = [0, *itertools.accumulate(len(word.text) for word in split_words(target.decode(ids)))]
    spans, place = list[Span](), 0
    for are_bytes, run in itertools.groupby(ids, lambda id_: target.byte_of(id_) is not None):
        tokens = [*run]
        if are_bytes:
            size = _size(target.decode(tokens))
            starts = [place + min(index, max(0, size - 1)) for index in _characters_of_bytes(target, tokens)]
            spans += ((start, start + 1) for start in starts)
            place += size
            continue
        for id_ in tokens:
            size = _size(target.decode([id_]))
            spans.append((place, place + size) if size else (place - 1, place))
            place += size
    return _words_of(spans, ends)


def _size(text: str) -> int:
    """Return the number of characters of a text without white space."""
    return sum(map(len, text.split()))


def _characters_of_bytes(target: Tokenizer, ids: Sequence[int]) -> Iterator[int]:
    """Yield the index of the character that each of some bytes in a row is a part of, without white space."""
    index = -1
    for id_ in ids:
        byte = target.byte_of(id_) or 0
        continues_character = byte & 0xC0 == 0x80
        index += not continues_character and not chr(byte).isspace()
        yield max(0, index)


def _words_of(spans: Sequence[Span], ends: Sequence[int]) -> list[range]:
    """Return the words of tokens by their spans in a text, whose words end at ``ends``, after a 0."""

    def word_at(place: int) -> int:
        return max(0, min(bisect.bisect(ends, place), len(ends) - 1) - 1)

    return [range(word_at(start), word_at(end - 1) + 1) for start, end in spans]


def align(translator: SentenceTranslator, texts: Sequence[str], translations: Sequence[Translation]) -> list[Alignment]:
    """Return the alignments of translations with model inputs; an empty list for a model without attention."""
    attentions = translator.cross_attention(texts, translations) or []
    return [
        Alignment.from_attention(attention, translator.source, translator.target, text)
        for attention, text in zip(attentions, texts, strict=False)
    ]


# --- the translation


def needs_alignment(text: Text, translation: str) -> bool:
    """Return whether ``postprocess`` needs the alignment."""
    count = len(split_words(text.text)) if text.cuts else 0
    has_inner_cuts = any(0 < cut.words < count for cut in text.cuts)
    return bool(translation and (text.capitals or has_inner_cuts)) or UNKNOWN in translation


def postprocess(
    reading: Reading, text: Text, translation: str, alignment: Alignment | None, language: str = "target"
) -> str:
    """Return a translation with the case, quotes, tags and pieces of its sentence, and without unknown words.

    An unknown word becomes the source word that it attends to (Luong et al. 2015b, without a dictionary).

    Args:
        reading: the sentence.
        text: model input of the sentence.
        translation: translation of the model input.
        alignment: alignment of the translation with the model input; None for a model without attention, and where
            ``needs_alignment`` is false.
        language: code of the language of the translation, for its capitals.
    """
    if not (text.cuts or text.capitals or text.is_upper or UNKNOWN in translation):
        return reading.before + _with_pieces(translation, text) + reading.after
    words = split_words(MARK.sub("", translation))
    source_texts = [word.text for word in split_words(text.text)]
    texts = [word.text for word in words]
    if alignment is not None and alignment.weights.shape == (len(words), len(source_texts)) and words:
        weights = alignment.weights
        for index, word in enumerate(texts):
            if UNKNOWN in word:
                attended = source_texts[alignment.source_of(index)]
                texts[index] = word.replace(UNKNOWN, attended.strip(CLOSING))
        for source_index in text.capitals:
            for index in alignment.targets_of(source_index):
                texts[index] = upper(texts[index], language)
        ends = {}
        for count in {cut.words for cut in text.cuts}:
            ends[count] = max(alignment.targets_of(count - 1)) + 1 if count else 0
        after = [ends[cut.words] for cut in text.cuts]
    else:
        weights = proportional_weights(len(words), len(source_texts))
        after = [round(cut.words * len(words) / max(1, len(source_texts))) for cut in text.cuts]
    if text.is_upper:
        texts = [upper(word, language) for word in texts]
    words = [word._replace(text=changed) for word, changed in zip(words, texts, strict=True)]
    return reading.before + _with_pieces(weave(words, text.cuts, weights, after), text) + reading.after


def _with_pieces(translation: str, text: Text) -> str:
    """Return a translation with the pieces of its sentence in the places of their stand-ins."""
    for word, piece in text.stand_ins:
        translation = translation.replace(word, piece, 1)
    return translation


def proportional_weights(target_words: int, source_words: int) -> np.ndarray:
    """Return weights for a model without attention, where words of equal relative position overlap: float [J, I]."""
    target_width, source_width = 1 / max(1, target_words), 1 / max(1, source_words)
    rows = np.arange(target_words)[:, np.newaxis] / max(1, target_words)
    columns = np.arange(source_words) / max(1, source_words)
    overlap = np.minimum(rows + target_width, columns + source_width) - np.maximum(rows, columns)
    return np.maximum(overlap, 0)
