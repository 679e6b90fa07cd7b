"""Options and results of translators, and the interface of their engines. Loads no TensorFlow.

Shapes: T target length, S source length, both in tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from nmt.config.schema import Config, DecodingConfig
from nmt.errors import DataError, NmtError, counted
from nmt.tokenizers.base import BOS, EOS, UNK, Tokenizer

Attention = TypeVar("Attention")


class SearchOptions(NamedTuple):
    """Kind of search; its numbers are in the decoding section of the configuration."""

    sampled: bool = False
    """Whether tokens are drawn instead of searched for."""
    n_best: int = 1
    """Number of hypotheses for each sentence; more than one need beam search."""
    scored: bool = False
    """Whether scores are wanted."""
    first: int = 0
    """Number of the first sentence, which decides with the seed what sampling draws."""


BEST = SearchOptions()


class Hypothesis(NamedTuple):
    """Target token ids that a search found for a sentence."""

    ids: list[int]
    """T ids from the first word on, with eos if the model ended the translation."""
    score: float
    """Log-probability, with the penalties of beam search; 0 where scores were not asked for."""


class Engine(Protocol):
    """Computes with a trained model: ids in, ids out. Batches and threads are its own matter.

    Several threads may use it.

    Source ids are without bos and eos, target ids without bos and with eos.
    """

    positions: int | None
    """Most tokens of a sentence, bos and eos included, where they are fewer than the model's own; else None."""

    @property
    def precision(self) -> str:
        """Number format that the layers compute in."""

    def search(
        self, rows: list[list[int]], limits: np.ndarray, options: SearchOptions, prefixes: Sequence[list[int]] = ()
    ) -> list[list[Hypothesis]]:
        """Return at most ``options.n_best`` hypotheses of each of B sentences, the best first; none of an empty one.

        Args:
            rows: source ids of B sentences.
            limits: most tokens of each hypothesis, eos included: int32 [B].
            options: kind of search.
            prefixes: ids that the hypotheses of each sentence begin with; empty: none.
        """

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """Return the log-probability, natural, of each target token of each pair: float [T] each."""

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray] | None:
        """Return the decoder's attention to each source with its bos and eos: float32 [layers, heads, T, S] each.

        None for a model without attention.
        """

    def attention_maps(self, source: list[int], target: list[int]) -> "AttentionMaps | None":
        """Return all attention on a sentence and at least one target token; None for a model without attention.

        Raises:
            DataError: for an engine that gives cross-attention alone.
        """

    def reconfigured(self, decoding: DecodingConfig, *, prepared: bool = True) -> Self:
        """Return an engine of the same weights with other settings of decoding, prepared for many calls or for few."""


class Translation(NamedTuple):
    """Translation of a sentence."""

    text: str
    unknown: list[str]
    """Words of the source that the model does not know; the whole source if normalization leaves nothing of it."""
    finished: bool
    """Whether the model ended the translation, rather than the limit on its length."""
    ids: list[int]
    """Token ids, with eos if the model ended the translation."""
    score: float | None = None
    """Log-probability, with the penalties of beam search; None where scores were not asked for."""
    read: str | None = None
    """What the model read, of which ``ids`` are the translation, where it is not the sentence itself."""
    confidence: float | None = None
    """Probability that the translation is good, as ``Calibration`` says; None where it was not asked for."""
    words: tuple[tuple[str, float], ...] = ()
    """Words as the model wrote them, each with the probability that it stands in a reference translation."""

    @property
    def is_skipped(self) -> bool:
        """Whether the sentence is longer than the model reads, and was skipped."""
        return not self.finished and not self.ids


def translations_of(
    text: str, ids: list[int], hypotheses: list[Hypothesis], options: SearchOptions, source: Tokenizer,
    target: Tokenizer,
) -> list[Translation]:  # fmt: skip
    """Return the translations of a raw sentence with different texts; of an empty or skipped one an empty one."""
    unknown = source.unknown(text) if UNK in ids else []
    is_skipped = not ids and bool(source.encode(text))
    if not ids:  # of a sentence of which normalization leaves nothing, all is unknown
        unknown = [] if is_skipped or not text.strip() else [text.strip()]
    different: dict[str, Translation] = {}
    for found, score in hypotheses:
        each = Translation(target.decode(found), unknown, EOS in found, found, score if options.scored else None)
        different.setdefault(each.text, each)
    empty = Translation("", unknown, not is_skipped, [], 0.0 if options.scored else None)
    return list(different.values())[: options.n_best] or [empty]


def joined(translations: list[Translation], separators: list[str]) -> Translation:
    """Return the translation of a line from those of its sentences, with the white space between them."""
    unknown = [word for each in translations for word in each.unknown]
    if any(each.is_skipped for each in translations):
        return Translation("", unknown, False, [])
    text = "".join(each.text + space for each, space in zip(translations, separators, strict=True)).rstrip()
    ids = [id_ for each in translations[:-1] for id_ in each.ids if id_ != EOS] + translations[-1].ids
    scores = [each.score for each in translations if each.score is not None]
    confidences = [each.confidence for each in translations if each.confidence is not None]
    return Translation(
        text, unknown, all(each.finished for each in translations), ids, sum(scores) if scores else None,
        " ".join(each.read or "" for each in translations), min(confidences, default=None),
        tuple(word for each in translations for word in each.words),
    )  # fmt: skip


class CrossAttention(NamedTuple):
    """Cross-attention of the decoder on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids, without bos."""
    weights: np.ndarray
    """Attention of each target token to each source token: float32 [layers, heads, T, S]."""

    def alignment(self) -> list[tuple[int, int]]:
        """Return pairs (i, j) from 0: the source token i with the most attention of each target token j.

        The attention is that of the last layer, averaged over its heads. Tokens bos and eos have no alignment.
        """
        words = [place for place, id_ in enumerate(self.source) if id_ not in (BOS, EOS)]
        if not words:
            return []
        aligned = self.weights[-1].mean(axis=0)[:, words].argmax(axis=1)
        return [(int(i), j) for j, (i, id_) in enumerate(zip(aligned, self.target, strict=True)) if id_ != EOS]


class AttentionMaps(NamedTuple):
    """All attention of a model on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids as the decoder writes them, without bos. It reads bos and the first T - 1 of them."""
    encoder: np.ndarray | None
    """Attention of each source token to each of them: float32 [layers, heads, S, S]; None without self-attention."""
    decoder: np.ndarray | None
    """Attention of each token that the decoder reads to each of them, 0 above the diagonal: float32 [layers, heads, T,
    T]; None without self-attention."""
    cross: np.ndarray
    """Attention of each target token, as it is written, to each source token: float32 [layers, heads, T, S]."""


def existing(attention: Attention | None, config: Config) -> Attention:
    """Return attention, or refuse a model without it."""
    if attention is None:
        raise DataError(
            f"This model of architecture {config.model.architecture!r} has no attention. Alignments and figures of "
            "attention need it. Choose a run whose model has attention."
        )
    return attention


def name_of(names: Sequence[str] | None, number: int) -> str:
    """Return the name of a sentence in messages."""
    return names[number] if names else f"sentence {number + 1}"


def check_pairs(sources: Sequence[str], translations: Sequence[object]) -> None:
    """Refuse sources without translations, and translations without sources."""
    if len(sources) != len(translations):
        raise NmtError(
            f"Received {counted(len(sources), 'source')} and {counted(len(translations), 'translation')}. Each source "
            "has one. Give as many."
        )
