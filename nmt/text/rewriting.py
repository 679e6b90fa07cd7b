"""Postprocessing of translations: case, quotes, tags and pieces of the sentence return to its translation.

The attention of the model tells which words of the translation belong to which words of the sentence.

Shapes: J words of a translation, I words of the model input.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.data.repeats import repeats
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import CrossAttention, Translation
from nmt.text.inline import CLOSING, weave
from nmt.text.reading import NUMBER, Reading, Text
from nmt.tokenizers.base import BOS, EOS, UNKNOWN, Tokenizer
from nmt.tokenizers.marks import MARK

_REPEATED = re.compile(r"(\S{1,20}?)(?:[\s,]*\1){2}")
"""Three repeats in a source, within a word (10,000) or of words (very, very, very)."""
_WORD = re.compile(r"[^\s,.;:!?…،۔।。！？，、]+")
_DIGITS = re.compile(r"\D+")


def keeps_pieces(translation: str, pieces: Sequence[str]) -> bool:
    """Return whether a translation contains all pieces. Numbers may have other separators."""
    joined = re.sub(r"(?<=\d)[.,:/\u202f\xa0-](?=\d)", "", translation)
    numbers = _DIGITS.sub(" ", joined).split()
    for piece in pieces:
        is_number = re.fullmatch(NUMBER, piece) is not None
        is_kept = _DIGITS.sub("", piece) in numbers if is_number else piece in translation
        if not is_kept:
            return False
    return True


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
        words = text.split()
        ends = _token_ends(source, words)
        first_tag = source.size - len(source.tags)
        columns = [column for column, id_ in enumerate(attention.source) if id_ not in (BOS, EOS) and id_ < first_tag]
        source_words = np.searchsorted(ends, np.arange(len(columns)), side="right").clip(max=len(words) - 1)
        target_words = word_indices(target, attention.target)
        of_tokens = attention.weights[-1].mean(axis=0)[: len(target_words)][:, columns]
        weights = np.zeros([max(target_words, default=-1) + 1, len(words)])
        np.add.at(weights, (np.array(target_words, int)[:, np.newaxis], source_words[np.newaxis]), of_tokens)
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


def _token_ends(source: Tokenizer, words: Sequence[str]) -> list[int]:
    """Return the number of tokens up to the end of each word of a text."""
    space = len(source.encode("a a")) - 2 * len(source.encode("a"))  # a tokenizer of characters has a token for it
    ends, end = list[int](), 0
    for word in words:
        tokens = len(source.encode(word))
        end += tokens + (space if tokens and end else 0)
        ends.append(end)
    return ends


def word_indices(target: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Return the index of the word to which each target token belongs; eos is left out."""
    ids = [id_ for id_ in ids if id_ != EOS]
    indices, index, start = list[int](), 0, 0
    for position in range(len(ids)):
        words = target.decode(ids[start : position + 1]).split()
        if len(words) > 1:
            index += len(words) - 1
            start = position
        indices.append(index)
    return indices


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
    has_inner_cuts = any(0 < cut.words < len(text.text.split()) for cut in text.cuts)
    return bool(translation and (text.capitals or has_inner_cuts)) or UNKNOWN in translation


def postprocess(reading: Reading, text: Text, translation: str, alignment: Alignment | None) -> str:
    """Return a translation with the case, quotes, tags and pieces of its sentence, and without unknown words.

    An unknown word becomes the source word that it attends to (Luong et al. 2015b, without a dictionary).

    Args:
        reading: the sentence.
        text: model input of the sentence.
        translation: translation of the model input.
        alignment: alignment of the translation with the model input; None for a model without attention, and where
            ``needs_alignment`` is false.
    """
    if not (text.cuts or text.capitals or text.is_upper or UNKNOWN in translation):
        return reading.before + translation + reading.after
    words, source_words = MARK.sub("", translation).split(), text.text.split()
    if alignment is not None and alignment.weights.shape == (len(words), len(source_words)) and words:
        weights = alignment.weights
        for index, word in enumerate(words):
            if UNKNOWN in word:
                attended = source_words[alignment.source_of(index)]
                words[index] = word.replace(UNKNOWN, attended.strip(CLOSING))
        for source_index in text.capitals:
            for index in alignment.targets_of(source_index):
                words[index] = words[index].upper()
        ends = {}
        for count in {cut.words for cut in text.cuts}:
            ends[count] = max(alignment.targets_of(count - 1)) + 1 if count else 0
        after = [ends[cut.words] for cut in text.cuts]
    else:
        weights = _proportional_weights(len(words), len(source_words))
        after = [round(cut.words * len(words) / max(1, len(source_words))) for cut in text.cuts]
    if text.is_upper:
        words = [word.upper() for word in words]
    return reading.before + weave(words, text.cuts, weights, after) + reading.after


def _proportional_weights(target_words: int, source_words: int) -> np.ndarray:
    """Return weights for a model without attention, where words of equal relative position overlap: float [J, I]."""
    target_width, source_width = 1 / max(1, target_words), 1 / max(1, source_words)
    rows = np.arange(target_words)[:, np.newaxis] / max(1, target_words)
    columns = np.arange(source_words) / max(1, source_words)
    overlap = np.minimum(rows + target_width, columns + source_width) - np.maximum(rows, columns)
    return np.maximum(overlap, 0)
