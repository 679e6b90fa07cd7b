"""Random segmentations into subwords, which depend on text and seed alone.

sentencepiece can draw segmentations too. But its newer versions mix a number of the process into every seed, so a
resumed run would continue with other subwords. The sampler segments word by word, since no piece of nmt's models
crosses a space.
"""

import bisect
import heapq
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import sentencepiece

from nmt.tokenizers.base import SPACE_MARK, UNK

MOST_CACHED = 200_000  # number of words whose lattice is kept; a lattice takes about a kilobyte
UNKNOWN_PENALTY = 10.0  # score of the worst piece minus the score of an unknown character, as in sentencepiece
_WORD = re.compile(f"{SPACE_MARK}[^{SPACE_MARK}]*")


class Ends(NamedTuple):
    """Pieces that end at the same place of a word, in the order of their beginnings."""

    starts: list[int]
    """Place where each piece begins."""
    pieces: list[list[int]]
    """Ids of each piece: a single id, or the ids of the bytes of an unknown character."""
    cumulative: list[float]
    """Cumulative probabilities of the pieces, given that a piece ends at this place."""


class SubwordSampler:
    """Sampler of random segmentations by a sentencepiece model."""

    def __init__(self, model: sentencepiece.SentencePieceProcessor, algorithm: str, alpha: float) -> None:
        """Prepare the sampler.

        Args:
            model: sentencepiece model.
            algorithm: algorithm of the model, "unigram" or "bpe".
            alpha: smoothing of the distribution over segmentations (unigram), or rate of skipped merges (BPE).
        """
        self._model, self._alpha = model, alpha
        plain = []
        for id_ in range(model.get_piece_size()):
            is_special = model.is_control(id_) or model.is_unknown(id_)
            if not (is_special or model.is_byte(id_) or model.is_unused(id_)):
                plain.append(id_)
        self._ids = {model.id_to_piece(id_): id_ for id_ in plain}
        self._scores = {id_: float(model.get_score(id_)) for id_ in plain}
        self._lengths: dict[str, list[int]] = {}
        """Lengths of the pieces by the character that they end with, the longest first."""
        for piece in sorted(self._ids, key=len, reverse=True):
            lengths = self._lengths.setdefault(piece[-1], [])
            if len(piece) > 1 and len(piece) not in lengths:
                lengths.append(len(piece))
        for lengths in self._lengths.values():
            lengths.append(1)
        self._unknowns: dict[str, list[int]] = {}
        self._unknown_score = min(self._scores.values(), default=0.0) - UNKNOWN_PENALTY
        self._lattices: dict[str, list[Ends]] = {}
        self._segment: Callable[[str, random.Random], Iterator[list[int]]] = (
            self._segment_bpe if algorithm == "bpe" else self._segment_unigram
        )

    def sample(self, normalized: str, dice: random.Random) -> list[int]:
        """Return the ids of a random segmentation of a normalized text."""
        if not normalized:
            return []
        ids: list[int] = []
        for word in _WORD.findall(SPACE_MARK + normalized.replace(" ", SPACE_MARK)):
            previous = None
            for piece in self._segment(word, dice):
                if not piece == previous == [UNK]:  # neighbouring unknown characters are a single unknown piece
                    ids += piece
                previous = piece
        return ids

    def _ids_of_unknown(self, character: str) -> list[int]:
        """Return the ids of a character without a piece: its bytes, or unk."""
        if character not in self._unknowns:
            ids = [self._model.piece_to_id(f"<0x{byte:02X}>") for byte in character.encode("utf-8")]
            self._unknowns[character] = ids if all(self._model.is_byte(id_) for id_ in ids) else [UNK]
        return self._unknowns[character]

    # --- unigram language model: P(segmentation) is proportional to the product of its pieces' probabilities ** alpha
    # (Kudo 2018, but among all segmentations instead of the l best)

    def _segment_unigram(self, word: str, dice: random.Random) -> Iterator[list[int]]:
        lattice = self._lattices.get(word)
        if lattice is None:
            lattice = self._lattice(word)
            if len(self._lattices) < MOST_CACHED:
                self._lattices[word] = lattice
        place, pieces = len(word), []
        while place:  # from the end: draws the piece that ends at a place, by its probability given that place
            ends = lattice[place - 1]
            choice = bisect.bisect_right(ends.cumulative, dice.random(), hi=len(ends.cumulative) - 1)
            pieces.append(ends.pieces[choice])
            place = ends.starts[choice]
        return reversed(pieces)

    def _lattice(self, word: str) -> list[Ends]:
        """Return the pieces that end after each character, with their probabilities.

        ``sums[end]`` is the logarithm of the sum over all segmentations of ``word[:end]``.
        """
        sums, lattice = [0.0], []
        for end in range(1, len(word) + 1):
            starts, pieces, weights = [], [], []
            for length in self._lengths.get(word[end - 1], [1]):
                start = end - length
                id_ = self._ids.get(word[start:end]) if start >= 0 else None
                if id_ is None and length > 1:
                    continue
                starts.append(start)
                pieces.append([id_] if id_ is not None else self._ids_of_unknown(word[start]))
                score = self._scores[id_] if id_ is not None else self._unknown_score
                weights.append(sums[start] + self._alpha * score)
            largest = max(weights)
            shares = [math.exp(weight - largest) for weight in weights]
            total = math.fsum(shares)
            sums.append(largest + math.log(total))
            lattice.append(Ends(starts, pieces, list(itertools.accumulate(share / total for share in shares))))
        return lattice

    # --- byte-pair encoding, which skips each merge with probability alpha (BPE-dropout, Provilkov et al. 2020)

    def _segment_bpe(self, word: str, dice: random.Random) -> Iterator[list[int]]:
        symbols = list(word)
        before, after = list(range(-1, len(symbols) - 1)), list(range(1, len(symbols) + 1))
        agenda: list[tuple[float, int, int, str]] = []

        def consider(left: int, right: int) -> None:
            if left < 0 or right >= len(symbols):
                return
            merged = symbols[left] + symbols[right]
            id_ = self._ids.get(merged)
            if id_ is not None:
                heapq.heappush(agenda, (-self._scores[id_], left, right, merged))

        for left in range(len(symbols) - 1):
            consider(left, left + 1)
        while agenda:
            _, left, right, merged = heapq.heappop(agenda)
            if symbols[left] + symbols[right] != merged or not symbols[left] or not symbols[right]:
                continue  # a merge has changed one of the two symbols meanwhile
            if dice.random() < self._alpha:
                continue
            symbols[left], symbols[right] = merged, ""
            after[left] = after[right]
            if after[right] < len(symbols):
                before[after[right]] = left
            consider(before[left], left)
            consider(left, after[left])
        for symbol in symbols:
            if symbol:
                id_ = self._ids.get(symbol)
                yield [id_] if id_ is not None else self._ids_of_unknown(symbol)
