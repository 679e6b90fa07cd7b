"""Texts of a request: split into sentences for a model, and put together again from their translations."""

from collections.abc import Callable, Sequence
from typing import Any

from nmt.decoding.translation import CrossAttention, Translation, separator_in
from nmt.documents.html import Markup
from nmt.serving.models import MOST_ATTENTION, SPECIAL, Pair, SentenceResult, ServedModel
from nmt.serving.protocol import SentenceDetails, TranslationDetails
from nmt.text.translator import MOST_CHARACTERS
from nmt.tokenizers.sentences import Segment, segment


class SplitTexts:
    """The texts of a request or document, split into sentences, which can be rendered with their translations."""

    def __init__(
        self, texts: Sequence[str], pair: Pair, model: ServedModel | None, render: Callable[[list[str]], Any]
    ) -> None:
        """Split texts into sentences.

        Args:
            texts: the texts.
            pair: language pair.
            model: model of the pair; None if the texts are in the target language already and stay as they are.
            render: makes a text or a file from the translated texts.
        """
        self.pair, self._render, self._is_translated = pair, render, model is not None
        count, most = (model.count_tokens, model.most_tokens) if model else (len, MOST_CHARACTERS)
        self._texts = [segment(text, pair.source, count, most) for text in texts]

    @classmethod
    def from_text(cls, text: str, pair: Pair, model: ServedModel | None, is_html: bool) -> "SplitTexts":
        """Split a text or HTML."""
        if not is_html or model is None:
            return cls([text], pair, model, "".join)
        html = Markup(text)
        return cls(html.texts, pair, model, lambda texts: html.render(texts, pair.source, pair.target))

    @property
    def segments(self) -> list[Segment]:
        """All sentences in order."""
        return [sentence for sentences in self._texts for sentence in sentences]

    def translates(self, sentence: Segment) -> bool:
        """Return whether a sentence is to be translated."""
        return self._is_translated and sentence.has_words

    def render(self, results: Sequence[SentenceResult | None], rank: int) -> Any:
        """Return the text, HTML or file content with the translations of this rank.

        A sentence with fewer translations gets its last one. A sentence without words stays as it is.
        """
        translations = (
            sentence.text if result is None else result.translations[min(rank, len(result.translations) - 1)].text
            for sentence, result in zip(self.segments, results, strict=True)
        )
        texts = list[str]()
        for sentences in self._texts:
            text = ""
            for sentence in sentences:
                translation = next(translations)
                text += translation + _separator(self.pair, translation, sentence, is_last=sentence is sentences[-1])
            texts.append(text)
        return self._render(texts)


def _separator(pair: Pair, translation: str, sentence: Segment, *, is_last: bool) -> str:
    """Return the text behind the translation of a sentence."""
    if is_last or not sentence.text:
        return sentence.separator
    return separator_in(pair.target, translation, sentence.separator)


def render_all(
    documents: Sequence[SplitTexts], results: Sequence[Sequence[SentenceResult | None]], alternatives: int
) -> list[tuple[str, list[str]]]:
    """Return the best translation and the distinct alternatives of each document.

    Alternative n has the translations of rank n of its sentences.
    """
    rendered = []
    for document, document_results in zip(documents, results, strict=True):
        best, *texts = (document.render(document_results, rank) for rank in range(alternatives + 1))
        rendered.append((best, [text for text in dict.fromkeys(texts) if text != best]))
    return rendered


def lowest_confidence(results: Sequence[SentenceResult | None]) -> float | None:
    """Return the lowest confidence among the sentences of a text; None for a text without words."""
    return min((result.translations[0].confidence or 0.0 for result in results if result), default=None)


def sentence_details(
    pair: Pair,
    model: ServedModel | None,
    segment: Segment,
    result: SentenceResult | None,
    n_best: int,
    check_below: float,
    is_last: bool,
) -> SentenceDetails:
    """Return the details of a sentence; without words, the sentence stands for its translation."""
    unchanged = Translation(segment.text, [], finished=True, ids=[], score=None)
    translations = result.translations[:n_best] if result else [unchanged]
    source_tokens, target_tokens = model.pieces(segment.text, translations[0]) if model and result else ([], [])
    return SentenceDetails(
        source=segment.text, separator=segment.separator,
        target_separator=_separator(pair, translations[0].text, segment, is_last=is_last),
        translations=[TranslationDetails(
            text=translation.text, score=translation.score, unknown=translation.unknown,
            finished=translation.finished, words=list(translation.words), confidence=translation.confidence,
            check=translation.confidence is not None and translation.confidence < check_below,
        ) for translation in translations],
        source_tokens=source_tokens, target_tokens=target_tokens,
        attention=_weights(result.attention, model.tags) if model and result else None,
    )  # fmt: skip


def _weights(attention: CrossAttention | None, tags: int) -> list[list[float]] | None:
    """Return the last layer's attention, averaged over heads, without special tokens and tags: T rows of S weights."""
    if attention is None or len(attention.source) * len(attention.target) > MOST_ATTENTION:
        return None
    rows = [place for place, id_ in enumerate(attention.target) if id_ not in SPECIAL]
    columns = [place for place, id_ in enumerate(attention.source) if id_ not in SPECIAL][tags:]
    weights = attention.weights[-1].mean(axis=0)[rows][:, columns]
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]
