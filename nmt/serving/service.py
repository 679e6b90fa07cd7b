"""The translation service without HTTP: it turns requests into answers."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from nmt.config.languages import detector_code, language_name, matching_code
from nmt.data.languages import sentence_note
from nmt.decoding.translation import CrossAttention, Translation, separator_in
from nmt.documents.formats import output_suffix, suffix_of, supported_suffixes
from nmt.documents.html import Markup
from nmt.documents.isolation import read_isolated, render_isolated
from nmt.errors import ConflictError, NmtError
from nmt.runs.calibration import CHECK_BELOW
from nmt.serving.batching import Batcher
from nmt.serving.detection import Detector
from nmt.serving.files import Files
from nmt.serving.metrics import Metrics
from nmt.serving.models import MOST_ATTENTION, SCORED, SPECIAL, Pair, SentenceResult, ServedModel
from nmt.serving.protocol import (
    AUTO,
    DetailsAnswer,
    DetailsRequest,
    DetectedLanguage,
    DetectRequest,
    FileRequest,
    Language,
    RequestError,
    SentenceDetails,
    TranslateAnswer,
    TranslateRequest,
    TranslationDetails,
)
from nmt.text.translator import USUAL, TextOptions
from nmt.tokenizers.scripts import direction
from nmt.tokenizers.sentences import Segment, segment

PREPARING_THREADS, DOCUMENT_PROCESSES = 2, 2
MOST_FILE = 8 * 2**20
"""Most bytes of a request with a document."""
SHORT = 1_000
"""Most characters of a short request, which has a thread of its own for preparation."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service."""

    batch_size: int = 32
    """Most sentences in a batch."""
    max_characters: int = 20_000
    """Most characters of text in a request."""
    max_alternatives: int = 3
    """Most alternatives that a request may ask for."""
    max_queue: int = 128
    """Most requests at a time, waiting or in progress."""
    timeout: float = 60.0
    """Seconds until an unfinished request is cancelled."""
    check_below: float = CHECK_BELOW
    """Confidence below which a translation is marked for checking."""

    @property
    def max_body(self) -> int:
        """Most bytes of a body: 12 per character, and 16 KiB for everything besides the text.

        A character can take 12 bytes: an escaped surrogate pair in JSON, or four percent-encoded bytes in a form.
        """
        return 12 * self.max_characters + 16 * 1024


class _Document:
    """Texts split into sentences, which can be rendered again with the translations of the sentences."""

    def __init__(self, texts: Sequence[str], model: ServedModel, render: Callable[[list[str]], Any]) -> None:
        """Split texts into sentences; ``render`` makes a text or a file from the translated texts."""
        self.pair, self._render = model.pair, render
        self._texts = [segment(text, self.pair.source, model.count_tokens, model.most_tokens) for text in texts]

    @classmethod
    def from_text(cls, text: str, model: ServedModel, is_html: bool) -> "_Document":
        """Create a document from a text or HTML."""
        if not is_html:
            return cls([text], model, "".join)
        html = Markup(text)
        source, target = model.pair
        return cls(html.texts, model, lambda texts: html.render(texts, source, target))

    @property
    def segments(self) -> list[Segment]:
        """All sentences in order."""
        return [sentence for sentences in self._texts for sentence in sentences]

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


class Service:
    """Models with their queues; an asynchronous context manager, which runs threads while it is open."""

    def __init__(self, models: Sequence[ServedModel], settings: ServiceSettings) -> None:
        """Create a service for models.

        Raises:
            ConflictError: if two models have the same language pair.
        """
        self.settings, self.metrics = settings, Metrics()
        self.files = Files()
        """Translated documents, under names that cannot be guessed."""
        self._models: dict[Pair, ServedModel] = {}
        for model in models:
            if model.pair in self._models:
                raise ConflictError(
                    f"Two models translate {model.pair.source} to {model.pair.target}: "
                    f"{self._models[model.pair].description}, and {model.description}. A service has one model for "
                    "each language pair. Leave out one of the two."
                )
            self._models[model.pair] = model
        self._batchers = {
            pair: Batcher(model, settings.batch_size, self.metrics) for pair, model in self._models.items()
        }
        self._detector = Detector()
        self._open_requests = 0
        self._resources = AsyncExitStack()
        self.metrics.watch(
            lambda: self._open_requests, lambda: sum(batcher.waiting for batcher in self._batchers.values())
        )

    @property
    def pairs(self) -> list[Pair]:
        """Language pairs in the order of the models."""
        return list(self._models)

    async def __aenter__(self) -> Self:
        """Start the threads, and form batches in the running event loop."""
        for batcher in self._batchers.values():
            await self._resources.enter_async_context(batcher)
        # Splitting and parsing take up to a second for the longest texts, so the event loop leaves them to threads.
        self._preparing = self._resources.enter_context(ThreadPoolExecutor(PREPARING_THREADS, "prepare"))
        self._preparing_short = self._resources.enter_context(ThreadPoolExecutor(1, "prepare-short"))
        self._reading = self._resources.enter_context(ThreadPoolExecutor(DOCUMENT_PROCESSES, "documents"))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop when the batches that are being computed are finished, and end all threads."""
        await self._resources.aclose()

    def notes(self) -> list[str]:
        """Return what sentence splitting and language detection do not know of the source languages."""
        codes = list(dict.fromkeys(pair.source for pair in self._models))
        undetected = [f"{language_name(code)} ({code})" for code in codes if detector_code(code) is None]
        notes = [note for code in codes if (note := sentence_note(code))]
        if undetected and len(codes) > 1:
            notes.append(
                f"the language detector does not know {', '.join(undetected)}; requests should give the source"
            )
        return notes

    def languages(self) -> list[Language]:
        """Return all languages; a language that is only a target has no targets of its own."""
        codes = dict.fromkeys([pair.source for pair in self._models] + [pair.target for pair in self._models])
        targets = {code: [pair.target for pair in self._models if pair.source == code] for code in codes}
        return [
            Language(code=code, name=language_name(code), targets=targets[code], direction=direction(code))
            for code in codes
        ]

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue.

        Raises:
            RequestError: if the queue is full.
        """
        if self._open_requests >= self.settings.max_queue:
            waiting = f"{self.settings.max_queue} requests are waiting. Try again later."
            raise RequestError(503, "The queue is full", waiting)
        self._open_requests += 1
        try:
            yield
        finally:
            self._open_requests -= 1

    async def detect(self, request: DetectRequest) -> list[DetectedLanguage]:
        """Return the source languages of the models, likeliest for the text first."""
        texts = _texts(request.q)
        self._check(texts)
        sources = list(dict.fromkeys(pair.source for pair in self._models))
        return await self._prepare(self._detector.detect, "\n".join(texts), sources)

    async def translate(self, request: TranslateRequest) -> TranslateAnswer:
        """Return the translations of texts.

        Raises:
            RequestError: if the service does not support the language, length or number of alternatives.
        """
        texts, is_list = _texts(request.q), isinstance(request.q, list)
        alternatives = self._check(texts, request.alternatives)
        pairs, detected = await self._pairs(texts, request.source, request.target)
        is_html, is_short = request.format == "html", _is_short(texts)
        documents = await self._prepare(
            lambda: [
                _Document.from_text(text, self._models[pair], is_html) for text, pair in zip(texts, pairs, strict=True)
            ],
            is_short=is_short,
        )
        if request.confidence and not all(self._models[pair].is_calibrated for pair in pairs):
            raise RequestError(400, "Confidence is not available", "Its owner can fit it: nmt evaluate --calibrate.")
        options = TextOptions(confident=request.confidence)
        results = await self._translate(documents, options, alternatives, request.glossary)
        rendered = await self._prepare(_render, documents, results, alternatives, is_short=is_short)
        answer: dict[str, Any] = {"translatedText": [best for best, _ in rendered] if is_list else rendered[0][0]}
        if alternatives:
            answer["alternatives"] = [texts for _, texts in rendered] if is_list else rendered[0][1]
        if request.confidence:
            confidences = [_lowest_confidence(document_results) for document_results in results]
            answer["confidence"] = confidences if is_list else confidences[0]
        if detected is not None:
            answer["detectedLanguage"] = detected if is_list else detected[0]
        return TranslateAnswer(**answer)

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return the translations of every sentence of a text with scores and attention.

        Raises:
            RequestError: if the service does not support the language, length or number of alternatives.
        """
        alternatives = self._check([request.q], request.alternatives)
        pairs, detected = await self._pairs([request.q], request.source, request.target)
        model = self._models[pairs[0]]
        document = await self._prepare(_Document.from_text, request.q, model, False)
        options = SCORED._replace(confident=model.is_calibrated)
        [results] = await self._translate([document], options, alternatives, request.glossary, attention=True)
        sentences = document.segments
        details = await self._prepare(lambda: [
            _details(model, sentence, result, alternatives + 1, self.settings.check_below, sentence is sentences[-1])
            for sentence, result in zip(sentences, results, strict=True)
        ])  # fmt: skip
        return DetailsAnswer(sentences=details, detectedLanguage=detected[0] if detected else None)

    async def translate_file(self, request: FileRequest, name: str, content: bytes, client: str) -> str:
        """Translate a client's document, and return the name of the translation in ``files``.

        Raises:
            RequestError: if the service does not support the format, language or length, or the document is damaged.
        """
        if (suffix := suffix_of(name)) not in supported_suffixes():
            formats = f"Send one of {', '.join(supported_suffixes())}."
            raise RequestError(400, "Invalid request: file format not supported", formats)
        try:
            texts, characters = await self._read(read_isolated, name, content, self.settings.max_characters)
            self._check_length(characters)
            self.metrics.characters.inc(sum(map(len, texts)))
            pairs, _ = await self._pairs(["\n".join(texts)], request.source, request.target)
            document = await self._prepare(_Document, texts, self._models[pairs[0]], list)
            [results] = await self._translate([document], USUAL, 0, request.glossary)
            translations = await self._prepare(document.render, results, 0)
            translated = await self._read(render_isolated, name, content, translations, *pairs[0], request.fuzzy)
        except NmtError as error:
            raise RequestError(400, "Invalid request: the file is damaged", str(error)) from None
        file_name = f"{secrets.token_urlsafe(16)}.{pairs[0].target}{output_suffix(suffix)}"
        self.files.add(client, file_name, translated)
        return file_name

    async def _read(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of a function that waits for the process of a document."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def _prepare(self, function: Callable[..., Result], *arguments: Any, is_short: bool = False) -> Result:
        """Return the result of a function that prepares sentences or answers, from a thread."""
        threads = self._preparing_short if is_short else self._preparing
        return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    async def _pairs(
        self, texts: Sequence[str], source: str, target: str
    ) -> tuple[list[Pair], list[DetectedLanguage] | None]:
        """Return the language pair of each text, and the detected languages if the source is "auto"."""
        names = {language.code: language.name for language in self.languages()}
        if source != AUTO:
            source = matching_code(source, [pair.source for pair in self._models])
        target = matching_code(target, [pair.target for pair in self._models])
        served = f"The service translates {', '.join(f'{pair.source} to {pair.target}' for pair in self._models)}."
        for code in (target,) if source == AUTO else (source, target):
            if code not in names:
                raise RequestError(400, f"{code[:50]} is not supported", served)
        sources = [pair.source for pair in self._models if pair.target == target and source in (pair.source, AUTO)]
        if not sources:
            origin = "" if source == AUTO else f" from {names[source]} ({source})"
            error = f"{names[target]} ({target}) is not available as a target language{origin}"
            raise RequestError(400, error, served)
        if source == AUTO:
            detected = await self._prepare(self._detector.detect_each, texts, sources, is_short=_is_short(texts))
            return [Pair(language.language, target) for language in detected], detected
        return [Pair(source, target)] * len(texts), None

    async def _translate(
        self, documents: Sequence[_Document], options: TextOptions, alternatives: int, glossary: str | None, *,
        attention: bool = False,
    ) -> list[list[SentenceResult | None]]:  # fmt: skip
        """Return the results for the sentences of each document; None for a sentence without words.

        With alternatives, the search options are the models' own; else they are ``options``.
        """
        by_pair: dict[Pair, list[Segment]] = {}
        for document in documents:
            sentences = by_pair.setdefault(document.pair, [])
            sentences += (sentence for sentence in document.segments if sentence.has_words)
        options_by_pair: dict[Pair, TextOptions] = {}
        for pair in by_pair:
            model = self._models[pair]
            if glossary and glossary not in model.glossaries:
                names = f"The service has {', '.join(model.glossaries) or 'none'}."
                raise RequestError(400, f"There is no glossary {glossary[:50]}", names)
            search = model.alternatives if alternatives else options
            options_by_pair[pair] = search._replace(
                confident=options.confident, glossary=model.glossaries[glossary] if glossary else None
            )
        async with asyncio.TaskGroup() as group:
            tasks = {
                pair: group.create_task(
                    self._batchers[pair].translate(segments, options_by_pair[pair], attention=attention)
                )
                for pair, segments in by_pair.items()
            }
        for pair, segments in by_pair.items():
            self.metrics.sentences.labels(*pair).inc(len(segments))
        results = {pair: iter(task.result()) for pair, task in tasks.items()}
        return [
            [next(results[document.pair]) if sentence.has_words else None for sentence in document.segments]
            for document in documents
        ]

    def _check(self, texts: Sequence[str], alternatives: int = 0) -> int:
        """Check the length of a request and its number of alternatives, and return this number."""
        # An empty text counts as a character, since a list of millions of them takes time too.
        self._check_length(sum(max(1, len(text)) for text in texts))
        settings = self.settings
        if alternatives > settings.max_alternatives:
            problem = f"alternatives parameter must be <= {settings.max_alternatives}"
            raise RequestError(400, f"Invalid request: {problem}", f"Received {alternatives}.")
        self.metrics.characters.inc(sum(map(len, texts)))
        return max(0, alternatives)

    def _check_length(self, characters: int) -> None:
        if characters > self.settings.max_characters:
            problem = f"request ({characters}) exceeds text limit ({self.settings.max_characters})"
            raise RequestError(400, f"Invalid request: {problem}", "The limit counts characters. Send it in parts.")


def _texts(q: str | list[str]) -> list[str]:
    return [q] if isinstance(q, str) else q


def _is_short(texts: Sequence[str]) -> bool:
    """Return whether a request with these texts is short; an empty text counts as a character."""
    return sum(map(len, texts)) + len(texts) <= SHORT


def _render(
    documents: Sequence[_Document], results: Sequence[Sequence[SentenceResult | None]], alternatives: int
) -> list[tuple[str, list[str]]]:
    """Return the best translation and the distinct alternatives of each document.

    Alternative n has the translations of rank n of its sentences.
    """
    rendered = []
    for document, document_results in zip(documents, results, strict=True):
        best, *texts = (document.render(document_results, rank) for rank in range(alternatives + 1))
        rendered.append((best, [text for text in dict.fromkeys(texts) if text != best]))
    return rendered


def _lowest_confidence(results: Sequence[SentenceResult | None]) -> float | None:
    """Return the lowest confidence among the sentences of a text; None for a text without words."""
    return min((result.translations[0].confidence or 0.0 for result in results if result), default=None)


def _details(
    model: ServedModel, segment: Segment, result: SentenceResult | None, n_best: int, check_below: float, is_last: bool
) -> SentenceDetails:
    """Return the details of a sentence; without words, the sentence stands for its translation."""
    unchanged = Translation(segment.text, [], finished=True, ids=[], score=None)
    translations = result.translations[:n_best] if result else [unchanged]
    source_tokens, target_tokens = model.pieces(segment.text, translations[0]) if result else ([], [])
    return SentenceDetails(
        source=segment.text, separator=segment.separator,
        target_separator=_separator(model.pair, translations[0].text, segment, is_last=is_last),
        translations=[TranslationDetails(
            text=translation.text, score=translation.score, unknown=translation.unknown,
            finished=translation.finished, words=list(translation.words), confidence=translation.confidence,
            check=translation.confidence is not None and translation.confidence < check_below,
        ) for translation in translations],
        source_tokens=source_tokens, target_tokens=target_tokens,
        attention=_weights(result.attention) if result else None,
    )  # fmt: skip


def _weights(attention: CrossAttention | None) -> list[list[float]] | None:
    """Return the last layer's attention, averaged over heads, without special tokens: T rows of S weights."""
    if attention is None or len(attention.source) * len(attention.target) > MOST_ATTENTION:
        return None
    rows = [place for place, id_ in enumerate(attention.target) if id_ not in SPECIAL]
    columns = [place for place, id_ in enumerate(attention.source) if id_ not in SPECIAL]
    weights = attention.weights[-1].mean(axis=0)[rows][:, columns]
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]
