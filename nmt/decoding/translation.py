"""Search options, translations and attention, and the interface of engines. Loads no TensorFlow.

Shapes: T target length, S source length, both in tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from nmt.config.schema import Config, DecodingConfig
from nmt.errors import DataError, NmtError, counted
from nmt.tokenizers.base import BOS, EOS, UNK, Tokenizer
from nmt.tokenizers.scripts import sentence_space

Attention = TypeVar("Attention")


class SearchOptions(NamedTuple):
    """Kind of search. Its numeric settings are in section decoding of the configuration."""

    sampled: bool = False
    """Whether tokens are sampled instead of searched for."""
    n_best: int = 1
    """Number of hypotheses for each sentence; more than 1 requires beam search."""
    scored: bool = False
    """Whether to compute scores."""
    first: int = 0
    """Index of the first sentence in a series of calls; (seed, index) selects the random numbers of sampling."""


BEST = SearchOptions()


class Hypothesis(NamedTuple):
    """A translation of a sentence as target token ids, and its score."""

    ids: list[int]
    """T ids without bos, with eos if the model ended the translation."""
    score: float
    """Log-probability, with the penalties of beam search; 0 if scores were not requested."""


class Engine(Protocol):
    """Computation with a trained model: ids in, ids out. An engine decides on batches and threads by itself.

    Several threads may use an engine. Source ids have no bos and no eos; target ids have no bos, but eos.
    """

    positions: int | None
    """Most tokens of a sentence, bos and eos included, if fewer than the model's own limit; else None."""

    only_greedy: bool
    """Whether it only gives the text of greedy translations: no scores, attention and further hypotheses."""

    @property
    def precision(self) -> str:
        """Number format that the layers compute in."""

    def search(
        self, rows: list[list[int]], limits: np.ndarray, options: SearchOptions, prefixes: Sequence[list[int]] = ()
    ) -> list[list[Hypothesis]]:
        """Return at most ``options.n_best`` hypotheses of each of B sentences, best first; none for an empty sentence.

        Args:
            rows: source ids of B sentences.
            limits: most tokens of each hypothesis, eos included: int32 [B].
            options: kind of search.
            prefixes: ids that the hypotheses of each sentence begin with; empty without prefixes.
        """

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """Return the natural log-probability of every target token, float [T] for each pair."""

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray] | None:
        """Return the decoder's attention to the source with bos and eos: float32 [layers, heads, T, S] for each pair.

        The result is None for a model without attention.
        """

    def attention_maps(self, source: list[int], target: list[int]) -> "AttentionMaps | None":
        """Return all attention on a sentence and at least one target token; None for a model without attention.

        Raises:
            DataError: if the engine gives only cross-attention.
        """

    def reconfigured(self, decoding: DecodingConfig, *, prepared: bool = True) -> Self:
        """Return an engine of the same weights with other decoding settings, prepared for many calls or for few."""


class Translation(NamedTuple):
    """Translation of a sentence or line."""

    text: str
    unknown: list[str]
    """Source words that the model does not know; the whole source if normalization leaves nothing of it."""
    finished: bool
    """Whether the model ended the translation; False if the length limit ended it."""
    ids: list[int]
    """Token ids, with eos if the model ended the translation."""
    score: float | None = None
    """Log-probability, with the penalties of beam search; None if scores were not requested."""
    read: str | None = None
    """Model input if it differs from the sentence (case restored, tags removed). ``ids`` translate this text."""
    confidence: float | None = None
    """Probability that the translation is good, by ``Calibration``; None if it was not requested."""
    words: tuple[tuple[str, float], ...] = ()
    """Words as the model wrote them, with their probabilities of occurring in a reference translation."""

    @property
    def is_skipped(self) -> bool:
        """Whether the sentence was skipped because it is longer than the model reads."""
        return not self.finished and not self.ids


def translations_of(
    text: str, ids: list[int], hypotheses: list[Hypothesis], options: SearchOptions, source: Tokenizer,
    target: Tokenizer,
) -> list[Translation]:  # fmt: skip
    """Return the translations of a raw sentence, without repeated texts.

    An empty or skipped sentence gets an empty translation.
    """
    unknown = source.unknown(text) if UNK in ids else []
    is_skipped = not ids and bool(source.encode(text))
    if not ids:  # if normalization leaves nothing of a sentence, all of it is unknown
        unknown = [] if is_skipped or not text.strip() else [text.strip()]
    by_text: dict[str, Translation] = {}
    for hypothesis in hypotheses:
        translation = Translation(
            target.decode(hypothesis.ids), unknown, EOS in hypothesis.ids, hypothesis.ids,
            hypothesis.score if options.scored else None,
        )  # fmt: skip
        by_text.setdefault(translation.text, translation)
    empty = Translation("", unknown, not is_skipped, [], 0.0 if options.scored else None)
    return list(by_text.values())[: options.n_best] or [empty]


def separator_in(language: str, before: str, separator: str) -> str:
    """Return what stands behind a translated sentence, from the white space behind the sentence itself.

    Line breaks and tabs stay. Spaces follow the rule of the language: Chinese and Japanese have none there.

    Args:
        language: code of the target language.
        before: translation of the sentence.
        separator: white space behind the sentence in the source.
    """
    spaces = separator.replace("\N{IDEOGRAPHIC SPACE}", " ")
    if spaces.strip(" "):
        return separator
    return sentence_space(before, language) and (spaces or " ")


def join_translations(
    translations: list[Translation], separators: list[str], languages: tuple[str, str] = ("source", "target")
) -> Translation:
    """Join the translations of the sentences of a line.

    Args:
        translations: translations of the sentences.
        separators: white space behind each sentence.
        languages: codes of the source and the target language.
    """
    unknown = [word for translation in translations for word in translation.unknown]
    if any(translation.is_skipped for translation in translations):
        return Translation("", unknown, False, [])
    source, target = languages
    text = read = ""
    for translation, separator in zip(translations, separators, strict=True):
        text += translation.text + separator_in(target, translation.text, separator)
        sentence = translation.read or ""
        read += sentence + sentence_space(sentence, source)
    ids = [id_ for translation in translations[:-1] for id_ in translation.ids if id_ != EOS]
    scores = [translation.score for translation in translations if translation.score is not None]
    confidences = [translation.confidence for translation in translations if translation.confidence is not None]
    return Translation(
        text.rstrip(),
        unknown,
        finished=all(translation.finished for translation in translations),
        ids=ids + translations[-1].ids,
        score=sum(scores) if scores else None,
        read=read.removesuffix(" "),
        confidence=min(confidences, default=None),
        words=tuple(word for translation in translations for word in translation.words),
    )


class CrossAttention(NamedTuple):
    """Cross-attention of the decoder on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids, without bos."""
    weights: np.ndarray
    """Attention of each target token to each source token: float32 [layers, heads, T, S]."""

    def alignment(self) -> list[tuple[int, int]]:
        """Return pairs (i, j), counted from 0: source token i gets the most attention from target token j.

        The attention is averaged over the heads of the last layer. Bos and eos are not aligned.
        """
        words = [position for position, id_ in enumerate(self.source) if id_ not in (BOS, EOS)]
        if not words:
            return []
        aligned = self.weights[-1].mean(axis=0)[:, words].argmax(axis=1)
        return [(int(i), j) for j, (i, id_) in enumerate(zip(aligned, self.target, strict=True)) if id_ != EOS]


class AttentionMaps(NamedTuple):
    """All attention of a model on a sentence and its translation."""

    source: list[int]
    """S ids as the encoder reads them: with eos, and with bos if the model reads it."""
    target: list[int]
    """T ids as the decoder writes them, without bos. The decoder reads bos and the first T - 1 ids."""
    encoder: np.ndarray | None
    """Attention between source tokens: float32 [layers, heads, S, S]; None without self-attention."""
    decoder: np.ndarray | None
    """Attention between the tokens that the decoder reads, 0 above the diagonal: float32 [layers, heads, T, T]; None
    without self-attention."""
    cross: np.ndarray
    """Attention of each target token, while it is written, to each source token: float32 [layers, heads, T, S]."""


def require_attention(attention: Attention | None, config: Config) -> Attention:
    """Return the attention of a model.

    Raises:
        DataError: if it is None, since the model has no attention.
    """
    if attention is None:
        raise DataError(
            f"This model of architecture {config.model.architecture!r} has no attention. Alignments and figures of "
            "attention need it. Choose a run whose model has attention."
        )
    return attention


def sentence_name(names: Sequence[str] | None, index: int) -> str:
    """Return the name of a sentence in messages."""
    return names[index] if names else f"sentence {index + 1}"


def check_pairs(sources: Sequence[str], translations: Sequence[object]) -> None:
    """Check that there is one translation for each source.

    Raises:
        NmtError: if their numbers differ.
    """
    if len(sources) != len(translations):
        raise NmtError(
            f"Received {counted(len(sources), 'source')} and {counted(len(translations), 'translation')}. Each source "
            "needs one translation. Give as many translations as sources."
        )
