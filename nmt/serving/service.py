"""The translation service without HTTP: it turns requests into answers."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

from nmt.config.languages import detector_code, language_name, matching_code
from nmt.data.languages import sentence_note
from nmt.documents.formats import output_suffix, suffix_of, supported_suffixes
from nmt.documents.isolation import Rendered, read_isolated, render_isolated
from nmt.errors import ConflictError, DataError, NmtError
from nmt.runs.calibration import CHECK_BELOW
from nmt.serving.batching import Batcher
from nmt.serving.detection import Detector
from nmt.serving.files import Files
from nmt.serving.metrics import Metrics
from nmt.serving.models import SCORED, Pair, SentenceResult, ServedModel
from nmt.serving.protocol import (
    AUTO,
    DetailsAnswer,
    DetailsRequest,
    DetectedLanguage,
    DetectRequest,
    FileRequest,
    Language,
    RequestError,
    TranslateAnswer,
    TranslateRequest,
)
from nmt.serving.texts import SplitTexts, lowest_confidence, render_all, sentence_details
from nmt.text.translator import USUAL, TextOptions
from nmt.tokenizers.scripts import direction
from nmt.tokenizers.sentences import Segment

PREPARING_THREADS, DOCUMENT_PROCESSES = 2, 2
MOST_FILE = 8 * 2**20
"""Most bytes of a request with a document."""
SHORT = 1_000
"""Most characters of a short request, which has a thread of its own for preparation."""
OTHER_CODES = {"pb": "pt-BR", "zt": "zh-Hant"}
"""Codes of LibreTranslate that other programs do not know."""
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
    max_document_characters: int = 1_000_000
    """Most characters of text in a document, such as a long book."""

    @property
    def max_body(self) -> int:
        """Most bytes of a body: 12 per character, and 16 KiB for everything besides the text.

        A character can take 12 bytes: an escaped surrogate pair in JSON, or four percent-encoded bytes in a form.
        """
        return 12 * self.max_characters + 16 * 1024

    @property
    def document_timeout(self) -> float:
        """Seconds until an unfinished request with a document is cancelled: ``timeout`` for each part of the document
        that could be a request."""
        return self.timeout * max(1.0, self.max_document_characters / self.max_characters)


class TranslatedFile(NamedTuple):
    """A translated document."""

    name: str
    """Name in ``Service.files``."""
    note: str
    """One line about everything with text that is not translated; empty if there is nothing."""


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
        self._batchers = {model.description: Batcher(settings.batch_size, self.metrics) for model in models}
        """Queue of each model, which its language pairs share."""
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
        """Return the languages of the service, likeliest for the text first."""
        texts = _texts(request.q)
        self._check(texts)
        codes = [language.code for language in self.languages()]
        return await self._prepare(self._detector.detect, "\n".join(texts), codes)

    async def translate(self, request: TranslateRequest) -> TranslateAnswer:
        """Return the translations of texts.

        Raises:
            RequestError: if the service does not support the language, length or number of alternatives.
        """
        texts, is_list = _texts(request.q), isinstance(request.q, list)
        alternatives = self._check(texts, request.alternatives)
        pairs, detected = await self._pairs(texts, request.source, request.target)
        is_html, is_short = request.format == "html", _is_short(texts)
        models = [self._models.get(pair) for pair in pairs]
        documents = await self._prepare(
            lambda: [
                SplitTexts.from_text(text, pair, model, is_html)
                for text, pair, model in zip(texts, pairs, models, strict=True)
            ],
            is_short=is_short,
        )
        if request.confidence and not all(model.is_calibrated for model in models if model):
            raise RequestError(400, "Confidence is not available", "Its owner can fit it: nmt evaluate --calibrate.")
        options = TextOptions(confident=request.confidence)
        results = await self._translate(documents, options, alternatives, request)
        rendered = await self._prepare(render_all, documents, results, alternatives, is_short=is_short)
        answer: dict[str, Any] = {"translatedText": [best for best, _ in rendered] if is_list else rendered[0][0]}
        if alternatives:
            answer["alternatives"] = [texts for _, texts in rendered] if is_list else rendered[0][1]
        if request.confidence:
            confidences = [lowest_confidence(document_results) for document_results in results]
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
        pair = pairs[0]
        model = self._models.get(pair)
        document = await self._prepare(SplitTexts.from_text, request.q, pair, model, False)
        options = SCORED._replace(confident=model is not None and model.is_calibrated)
        [results] = await self._translate([document], options, alternatives, request, attention=True)
        sentences = document.segments
        details = await self._prepare(lambda: [
            sentence_details(
                pair, model, sentence, result, alternatives + 1, self.settings.check_below, sentence is sentences[-1]
            )
            for sentence, result in zip(sentences, results, strict=True)
        ])  # fmt: skip
        return DetailsAnswer(sentences=details, detectedLanguage=detected[0] if detected else None)

    async def translate_file(self, request: FileRequest, name: str, content: bytes, client: str) -> TranslatedFile:
        """Translate a client's document, and keep the translation in ``files``.

        Raises:
            RequestError: if the service does not support the format, language or length, or the document is damaged.
        """
        if (suffix := suffix_of(name)) not in supported_suffixes():
            formats = f"Send one of {', '.join(supported_suffixes())}."
            raise RequestError(400, "Invalid request: file format not supported", formats)
        limit = self.settings.max_document_characters
        try:
            texts, characters = await self._read(read_isolated, name, content, limit)
            _check_length(characters, limit, "documents")
            self.metrics.characters.inc(sum(map(len, texts)))
            [pair], _ = await self._pairs(["\n".join(texts)], request.source, request.target)
            file = Rendered(content, "")
            if model := self._models.get(pair):
                document = await self._prepare(SplitTexts, texts, pair, model, list)
                [results] = await self._translate([document], USUAL, 0, request)
                translations = await self._prepare(document.render, results, 0)
                file = await self._read(render_isolated, name, content, translations, *pair, request.fuzzy)
        except NmtError as error:
            raise RequestError(400, "Invalid request: the file is damaged", str(error)) from None
        file_name = f"{secrets.token_urlsafe(16)}.{pair.target}{output_suffix(suffix)}"
        self.files.add(client, file_name, file.content)
        return TranslatedFile(file_name, file.note)

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
        """Return the language pair of each text, and the detected languages if the source is "auto".

        A pair without a model has the same language twice: the text is in the target language already.
        """
        names = {language.code: language.name for language in self.languages()}
        known_sources, known_targets = ([pair[side] for pair in self._models] for side in (0, 1))
        is_auto = source.lower() == AUTO
        source = _matching(source, known_sources, known_targets)
        target = _matching(target, known_targets, known_sources)
        served = f"The service translates {', '.join(f'{pair.source} to {pair.target}' for pair in self._models)}."
        for code in (target,) if is_auto else (source, target):
            if code not in names:
                raise RequestError(400, f"{code[:50]} is not supported", served)
        sources = [pair.source for pair in self._models if pair.target == target and (is_auto or pair.source == source)]
        if not sources and source != target:
            origin = "" if is_auto else f" from {names[source]} ({source})"
            error = f"{names[target]} ({target}) is not available as a target language{origin}"
            raise RequestError(400, error, served)
        if is_auto:
            is_short = _is_short(texts)
            detected = await self._prepare(self._detector.detect_each, texts, sources, target, is_short=is_short)
            return [Pair(language.language, target) for language in detected], detected
        return [Pair(source, target)] * len(texts), None

    async def _translate(
        self, documents: Sequence[SplitTexts], options: TextOptions, alternatives: int,
        request: DetailsRequest | FileRequest, *, attention: bool = False,
    ) -> list[list[SentenceResult | None]]:  # fmt: skip
        """Return the results for the sentences of each document; None for a sentence without words.

        With alternatives, the search options are the models' own; else they are ``options``.
        """
        by_pair: dict[Pair, list[Segment]] = {}
        for document in documents:
            if document.pair not in self._models:
                continue
            sentences = by_pair.setdefault(document.pair, [])
            sentences += filter(document.translates, document.segments)
        options_by_pair: dict[Pair, TextOptions] = {}
        for pair in by_pair:
            model = self._models[pair]
            name = request.glossary
            if name and name not in model.glossaries:
                names = f"The service has {', '.join(model.glossaries) or 'none'}."
                raise RequestError(400, f"There is no glossary {name[:50]}", names)
            try:
                glossary = await self._prepare(model.glossary, name, request.keep, is_short=True)
            except DataError as error:
                raise RequestError(400, "Invalid request: keep parameter", str(error)) from None
            search = model.alternatives if alternatives else options
            options_by_pair[pair] = search._replace(confident=options.confident, glossary=glossary)
        async with asyncio.TaskGroup() as group:
            tasks = {
                pair: group.create_task(
                    self._batchers[self._models[pair].description].translate(
                        self._models[pair], segments, options_by_pair[pair], attention=attention
                    )
                )
                for pair, segments in by_pair.items()
            }
        for pair, segments in by_pair.items():
            self.metrics.sentences.labels(*pair).inc(len(segments))
        results = {pair: iter(task.result()) for pair, task in tasks.items()}
        return [
            [next(results[document.pair]) if document.translates(sentence) else None for sentence in document.segments]
            for document in documents
        ]

    def _check(self, texts: Sequence[str], alternatives: int = 0) -> int:
        """Check the length of a request and its number of alternatives, and return this number."""
        # An empty text counts as a character, since a list of millions of them takes time too.
        settings = self.settings
        _check_length(sum(max(1, len(text)) for text in texts), settings.max_characters, "texts")
        if alternatives > settings.max_alternatives:
            problem = f"alternatives parameter must be <= {settings.max_alternatives}"
            raise RequestError(400, f"Invalid request: {problem}", f"Received {alternatives}.")
        self.metrics.characters.inc(sum(map(len, texts)))
        return max(0, alternatives)


def _matching(code: str, known: Sequence[str], others: Sequence[str]) -> str:
    """Return the code of the service that a client's code means, in ``known`` or else in ``others``."""
    code = OTHER_CODES.get(code.lower()) or code
    matching = matching_code(code, known)
    return matching if matching in known else matching_code(code, others)


def _check_length(characters: int, limit: int, what: str) -> None:
    if characters > limit:
        problem = f"request ({characters}) exceeds text limit ({limit})"
        raise RequestError(400, f"Invalid request: {problem}", f"The limit of {what} counts characters. Send parts.")


def _texts(q: str | list[str]) -> list[str]:
    return [q] if isinstance(q, str) else q


def _is_short(texts: Sequence[str]) -> bool:
    """Return whether a request with these texts is short; an empty text counts as a character."""
    return sum(map(len, texts)) + len(texts) <= SHORT
