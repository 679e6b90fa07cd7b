"""Translations of ordinary text: words aligned by attention, case, quotes and what was cut out given back.

Shapes: J words of a translation, I words of what the model read.
"""

import itertools
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
"""What a source repeats within words, or of words: 10,000; very, very, very."""
_WORD = re.compile(r"[^\s,.;:!?…،۔।。！？，、]+")  # noqa: RUF001
_DIGITS = re.compile(r"\D+")


def keeps(translation: str, pieces: Sequence[str]) -> bool:
    """Return whether a translation has all pieces; numbers may have other separators."""
    digits = _DIGITS.sub(" ", re.sub(r"(?<=\d)[.,:/\u202f\xa0-](?=\d)", "", translation)).split()
    return all(
        _DIGITS.sub("", piece) in digits if re.fullmatch(NUMBER, piece) else piece in translation for piece in pieces
    )


def babbles(ids: Sequence[int], source: str, *, may_repeat: bool = False) -> bool:
    """Return whether a translation does not end, or repeats a phrase where its source repeats none.

    Args:
        ids: token ids of the translation.
        source: what the model read.
        may_repeat: whether the translation may repeat phrases whatever its source does.
    """
    if not ids:
        return False
    if ids[-1] != EOS:
        return True
    if may_repeat or not repeats(ids):
        return False
    return not (_REPEATED.search(source) or repeats(_WORD.findall(source)))


# --- the translation


class Alignment(NamedTuple):
    """Attention of the J words of a translation to the I words of what the model read: float [J, I]."""

    weights: np.ndarray

    @classmethod
    def of(cls, attention: CrossAttention, source: Tokenizer, target: Tokenizer, text: str) -> "Alignment":
        """Return the attention of words: sums over their tokens of the mean of the last layer's heads.

        Args:
            attention: attention to the tokens of ``text``.
            source: tokenizer of the source side.
            target: tokenizer of the target side.
            text: what the model read.
        """
        words = text.split()
        ends = _ends_of_words(source, words)
        first_tag = source.size - len(source.tags)
        columns = [place for place, id_ in enumerate(attention.source) if id_ not in (BOS, EOS) and id_ < first_tag]
        of_token = np.searchsorted(ends, np.arange(len(columns)), side="right")
        rows = words_of(target, attention.target)
        weights = np.zeros([max(rows, default=-1) + 1, len(words)])
        tokens = attention.weights[-1].mean(axis=0)[: len(rows)][:, columns]
        np.add.at(weights, (np.array(rows, int)[:, np.newaxis], of_token[np.newaxis].clip(max=len(words) - 1)), tokens)
        return cls(weights)

    def source_of(self, word: int) -> int:
        """Return the source word that a word of the translation attends to most."""
        return int(self.weights[word].argmax())

    def targets_of(self, word: int) -> list[int]:
        """Return the words of the translation that attend to a source word most; the one that does most, if none."""
        found = [target for target in range(len(self.weights)) if self.source_of(target) == word]
        return found or [int(self.weights[:, word].argmax())]


def _ends_of_words(source: Tokenizer, words: Sequence[str]) -> list[int]:
    """Return the number of tokens up to the end of each word of a text."""
    space = len(source.encode("a a")) - 2 * len(source.encode("a"))  # a tokenizer of characters has a token for it
    ends, end = list[int](), 0
    for word in words:
        tokens = len(source.encode(word))
        end += tokens + (space if tokens and end else 0)
        ends.append(end)
    return ends


def words_of(target: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Return the number of the word of each target token before eos."""
    ids = [id_ for id_ in ids if id_ != EOS]
    numbers, number, start = list[int](), 0, 0
    for place in range(len(ids)):
        words = target.decode(ids[start : place + 1]).split()
        if len(words) > 1:
            number += len(words) - 1
            start = place
        numbers.append(number)
    return numbers


def align(translator: SentenceTranslator, texts: Sequence[str], translations: Sequence[Translation]) -> list[Alignment]:
    """Return the alignments of translations with what the model read; none for a model without attention."""
    found = translator.cross_attention(texts, translations) or []
    return [
        Alignment.of(attention, translator.source, translator.target, text)
        for attention, text in zip(found, texts, strict=False)
    ]


def needs_alignment(text: Text, translation: str) -> bool:
    """Return whether ``rewritten`` asks for the alignment."""
    within = any(0 < cut.words < len(text.text.split()) for cut in text.cuts)
    return bool(translation and (text.capitals or within)) or UNKNOWN in translation


def rewritten(reading: Reading, read: Text, translation: str, alignment: Alignment | None) -> str:
    """Return a translation with the case of its sentence, what was cut out, and words for those that are unknown.

    An unknown word becomes the source word that it attends to (Luong et al. 2015b, without a dictionary).

    Args:
        reading: the sentence.
        read: what the model read of it.
        translation: its translation.
        alignment: of the translation with ``read``; None for a model without attention, and where ``needs_alignment``
            is false.
    """
    if not (read.cuts or read.capitals or read.is_upper or UNKNOWN in translation):
        return reading.before + translation + reading.after
    words, source = MARK.sub("", translation).split(), read.text.split()
    if alignment is not None and alignment.weights.shape == (len(words), len(source)) and words:
        for place in (place for place, word in enumerate(words) if UNKNOWN in word):
            words[place] = words[place].replace(UNKNOWN, source[alignment.source_of(place)].strip(CLOSING))
        for place in itertools.chain(*map(alignment.targets_of, read.capitals)):
            words[place] = words[place].upper()
        ends = {
            count: max(alignment.targets_of(count - 1)) + 1 if count else 0 for count in {c.words for c in read.cuts}
        }
        after = [ends[cut.words] for cut in read.cuts]
        weights = alignment.weights
    else:
        after = [round(cut.words * len(words) / max(1, len(source))) for cut in read.cuts]
        weights = _in_proportion(len(words), len(source))
    if read.is_upper:
        words = [word.upper() for word in words]
    return reading.before + weave(words, read.cuts, weights, after) + reading.after


def _in_proportion(words: int, source: int) -> np.ndarray:
    """Return weights for a model without attention: float [J, I]."""
    rows, columns = np.arange(words)[:, np.newaxis] / max(1, words), np.arange(source) / max(1, source)
    overlap = np.minimum(rows + 1 / max(1, words), columns + 1 / max(1, source)) - np.maximum(rows, columns)
    return np.maximum(overlap, 0)
