"""The service without HTTP: requests to answers."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from nmt.data.languages import language_name
from nmt.decoding.translation import CrossAttention, Translation
from nmt.documents.formats import suffix_of, supported_suffixes
from nmt.documents.html import Markup
from nmt.documents.isolation import read_isolated, render_isolated
from nmt.errors import ConflictError, NmtError
from nmt.runs.calibration import CHECK_BELOW
from nmt.serving.batching import Batcher
from nmt.serving.detection import Detector
from nmt.serving.files import Files
from nmt.serving.metrics import Metrics
from nmt.serving.models import MOST_ATTENTION, SCORED, SPECIAL, Found, Pair, ServedModel
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
from nmt.tokenizers.sentences import Segment, segment

PREPARING_THREADS, DOCUMENT_PROCESSES = 2, 2
MOST_FILE = 8 * 2**20
"""Bytes of a request with a document."""
SHORT = 1_000
"""Characters of a request that is not prepared behind longer ones."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServiceSettings:
    """Settings that a user chooses."""

    batch_size: int = 32
    """Most sentences in a batch."""
    max_characters: int = 20_000
    """Most characters of text in a request."""
    max_alternatives: int = 3
    """Most alternatives that a request may ask for."""
    max_queue: int = 128
    """Most requests at a time, waiting or in work."""
    timeout: float = 60.0
    """Seconds until a request without a result is given up."""
    check_below: float = CHECK_BELOW
    """Confidence below which a translation is marked to be checked."""

    @property
    def max_body(self) -> int:
        """Most bytes of a body: 12 for a character, and 16 KiB for all that is not text.

        12 bytes has an escaped surrogate pair in JSON, and so have four percent-encoded bytes in a form.
        """
        return 12 * self.max_characters + 16 * 1024


class _Document:
    """Texts to translate: sentences, and what becomes of their translations."""

    def __init__(self, texts: Sequence[str], model: ServedModel, render: Callable[[list[str]], Any]) -> None:
        """Split texts into sentences, and take what makes a text or a file of their translations."""
        self.pair, self._render = model.pair, render
        self._texts = [segment(each, self.pair.source, model.count_tokens, model.most_tokens) for each in texts]

    @classmethod
    def of(cls, text: str, model: ServedModel, markup: bool) -> "_Document":
        """Return the document of a text, or of HTML."""
        html = Markup(text) if markup else None
        return cls(html.texts, model, html.render) if html else cls([text], model, "".join)

    @property
    def segments(self) -> list[Segment]:
        """All sentences in order."""
        return [each for text in self._texts for each in text]

    def render(self, found: Sequence[Found | None], rank: int) -> Any:
        """Return the text, HTML or content of a file with what was found for its sentences.

        A sentence with fewer translations than the rank has its last, one without words stays as it is.
        """
        translations = (
            sentence.text if each is None else each.translations[min(rank, len(each.translations) - 1)].text
            for sentence, each in zip(self.segments, found, strict=True)
        )
        return self._render(["".join(next(translations) + each.separator for each in text) for text in self._texts])


class Service:
    """Models with their queues; an asynchronous context manager, which has threads while it is open."""

    def __init__(self, models: Sequence[ServedModel], settings: ServiceSettings) -> None:
        """Take models.

        Raises:
            ConflictError: names the first two models of the same language pair.
        """
        self.settings, self.metrics = settings, Metrics()
        self.files = Files()
        """Translated documents, by names that cannot be guessed."""
        self._models: dict[Pair, ServedModel] = {}
        for model in models:
            if model.pair in self._models:
                raise ConflictError(
                    f"Two models translate {model.pair.source} to {model.pair.target}: "
                    f"{self._models[model.pair].description}, and {model.description}. A service has one model for "
                    "each language pair. Leave one of them out."
                )
            self._models[model.pair] = model
        self._batchers = {
            pair: Batcher(model, settings.batch_size, self.metrics) for pair, model in self._models.items()
        }
        self._detector = Detector()
        self._under_way = 0
        self._open = AsyncExitStack()
        self.metrics.watch(lambda: self._under_way, lambda: sum(batcher.waiting for batcher in self._batchers.values()))

    @property
    def pairs(self) -> list[Pair]:
        """Language pairs in the order of the models."""
        return list(self._models)

    async def __aenter__(self) -> Self:
        """Begin to form batches, in the running event loop."""
        for batcher in self._batchers.values():
            await self._open.enter_async_context(batcher)
        # Splitting and parsing take up to a second for the longest texts: the event loop stays free.
        self._preparing = self._open.enter_context(ThreadPoolExecutor(PREPARING_THREADS, "prepare"))
        self._preparing_short = self._open.enter_context(ThreadPoolExecutor(1, "prepare-short"))
        self._reading = self._open.enter_context(ThreadPoolExecutor(DOCUMENT_PROCESSES, "documents"))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End after the batches that are being computed. No thread is left."""
        await self._open.aclose()

    def languages(self) -> list[Language]:
        """Return all languages, those that are only translated to without targets."""
        codes = dict.fromkeys([pair.source for pair in self._models] + [pair.target for pair in self._models])
        targets = {code: [pair.target for pair in self._models if pair.source == code] for code in codes}
        return [Language(code=code, name=language_name(code), targets=found) for code, found in targets.items()]

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue.

        Raises:
            RequestError: if there is none.
        """
        if self._under_way >= self.settings.max_queue:
            most = self.settings.max_queue
            raise RequestError(503, "The queue is full", f"{most} requests wait. Try again later.")
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def detect(self, request: DetectRequest) -> list[DetectedLanguage]:
        """Return the source languages of the models, the likeliest for a text first."""
        texts = _texts(request.q)
        self._check(texts)
        sources = list(dict.fromkeys(pair.source for pair in self._models))
        return await self._prepare(self._detector.detect, "\n".join(texts), sources)

    async def translate(self, request: TranslateRequest) -> TranslateAnswer:
        """Return the translations of texts.

        Raises:
            RequestError: for a language, a length or a number of alternatives that the service has not.
        """
        texts, is_list = _texts(request.q), isinstance(request.q, list)
        alternatives = self._check(texts, request.alternatives)
        pairs, detected = await self._pairs(texts, request.source, request.target)
        markup, is_short = request.format == "html", sum(map(len, texts)) + len(texts) <= SHORT
        documents = await self._prepare(
            lambda: [_Document.of(text, self._models[pair], markup) for text, pair in zip(texts, pairs, strict=True)],
            is_short=is_short,
        )
        if request.confidence and not all(self._models[pair].is_calibrated for pair in pairs):
            raise RequestError(400, "Confidence is not available", "Its owner can fit it: nmt evaluate --calibrate.")
        wanted = TextOptions(confident=request.confidence)
        found = await self._find(documents, wanted, alternatives, request.glossary)
        results = await self._prepare(_render, documents, found, alternatives, is_short=is_short)
        answer: dict[str, Any] = {"translatedText": [best for best, _ in results] if is_list else results[0][0]}
        if alternatives:
            answer["alternatives"] = [others for _, others in results] if is_list else results[0][1]
        if request.confidence:
            least = [_least_confidence(each) for each in found]
            answer["confidence"] = least if is_list else least[0]
        if detected is not None:
            answer["detectedLanguage"] = detected if is_list else detected[0]
        return TranslateAnswer(**answer)

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return the translations of each sentence of a text with scores and attention.

        Raises:
            RequestError: for a language, a length or a number of alternatives that the service has not.
        """
        alternatives = self._check([request.q], request.alternatives)
        pairs, detected = await self._pairs([request.q], request.source, request.target)
        model = self._models[pairs[0]]
        document = await self._prepare(_Document.of, request.q, model, False)
        wanted = SCORED._replace(confident=model.is_calibrated)
        found = await self._find([document], wanted, alternatives, request.glossary, attention=True)
        sentences, least = zip(document.segments, found[0], strict=True), self.settings.check_below
        parts = await self._prepare(lambda: [_details(model, *each, alternatives + 1, least) for each in sentences])
        return DetailsAnswer(sentences=parts, detectedLanguage=detected[0] if detected else None)

    async def translate_file(self, request: FileRequest, name: str, content: bytes, client: str) -> str:
        """Return the name by which ``files`` has the translation of a client's document.

        Raises:
            RequestError: for a format, a language or a length that the service has not, and for a damaged document.
        """
        if (suffix := suffix_of(name)) not in supported_suffixes():
            formats = f"Send one of {', '.join(supported_suffixes())}."
            raise RequestError(400, "Invalid request: file format not supported_suffixes", formats)
        try:
            texts, characters = await self._read(read_isolated, name, content, self.settings.max_characters)
            self._check_length(characters)
            self.metrics.characters.inc(sum(map(len, texts)))
            pairs, _ = await self._pairs(["\n".join(texts)], request.source, request.target)
            document = await self._prepare(_Document, texts, self._models[pairs[0]], list)
            found = await self._find([document], USUAL, 0, request.glossary)
            translations = await self._prepare(document.render, found[0], 0)
            translated = await self._read(render_isolated, name, content, translations)
        except NmtError as error:
            raise RequestError(400, "Invalid request: the file is damaged", str(error)) from None
        result = f"{secrets.token_urlsafe(16)}.{request.target}{suffix}"
        self.files.add(client, result, translated)
        return result

    async def _read(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a function returns that waits for the process of a document."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def _prepare(self, function: Callable[..., Result], *arguments: Any, is_short: bool = False) -> Result:
        threads = self._preparing_short if is_short else self._preparing
        return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    async def _pairs(
        self, texts: Sequence[str], source: str, target: str
    ) -> tuple[list[Pair], list[DetectedLanguage] | None]:
        """Return the language pair of each text, and with source "auto" what was detected."""
        names = {language.code: language.name for language in self.languages()}
        served = f"The service translates {', '.join(f'{pair.source} to {pair.target}' for pair in self._models)}."
        for code in (target,) if source == AUTO else (source, target):
            if code not in names:
                raise RequestError(400, f"{code[:50]} is not supported_suffixes", served)
        sources = [pair.source for pair in self._models if pair.target == target and source in (pair.source, AUTO)]
        if not sources:
            origin = "" if source == AUTO else f" from {names[source]} ({source})"
            error = f"{names[target]} ({target}) is not available as a target language{origin}"
            raise RequestError(400, error, served)
        if source == AUTO:
            is_short = sum(map(len, texts)) + len(texts) <= SHORT
            detected = await self._prepare(self._detector.detect_each, texts, sources, is_short=is_short)
            return [Pair(each.language, target) for each in detected], detected
        return [Pair(source, target)] * len(texts), None

    async def _find(
        self, documents: Sequence[_Document], options: TextOptions, alternatives: int, glossary: str | None, *,
        attention: bool = False,
    ) -> list[list[Found | None]]:  # fmt: skip
        """Return what the models find for the sentences of each document; None for a sentence without words.

        Without alternatives ``options`` say what is searched for, else the models' own search for alternatives.
        """
        by_pair: dict[Pair, list[Segment]] = {}
        for document in documents:
            by_pair.setdefault(document.pair, []).extend(each for each in document.segments if each.has_words)
        wanted: dict[Pair, TextOptions] = {}
        for pair in by_pair:
            model = self._models[pair]
            if glossary and glossary not in model.glossaries:
                names = f"The service has {', '.join(model.glossaries) or 'none'}."
                raise RequestError(400, f"There is no glossary {glossary[:50]}", names)
            chosen = model.alternatives if alternatives else options
            wanted[pair] = chosen._replace(
                confident=options.confident, glossary=model.glossaries[glossary] if glossary else None
            )
        async with asyncio.TaskGroup() as group:
            tasks = {
                pair: group.create_task(self._batchers[pair].find(segments, wanted[pair], attention=attention))
                for pair, segments in by_pair.items()
            }
        for pair, segments in by_pair.items():
            self.metrics.sentences.labels(*pair).inc(len(segments))
        results = {pair: iter(task.result()) for pair, task in tasks.items()}
        return [
            [next(results[document.pair]) if each.has_words else None for each in document.segments]
            for document in documents
        ]

    def _check(self, texts: Sequence[str], alternatives: int = 0) -> int:
        """Refuse a request for too much, and return its number of alternatives."""
        # An empty text counts too: a list of millions of them is work.
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


def _render(
    documents: Sequence[_Document], found: Sequence[Sequence[Found | None]], alternatives: int
) -> list[tuple[str, list[str]]]:
    """Return the best translation and different alternatives of each document: alternative n has those of rank n."""
    results = []
    for document, each in zip(documents, found, strict=True):
        best, *others = (document.render(each, rank) for rank in range(alternatives + 1))
        results.append((best, [text for text in dict.fromkeys(others) if text != best]))
    return results


def _least_confidence(found: Sequence[Found | None]) -> float | None:
    """Return the confidence in a text, that in the least probable of its sentences; None without words."""
    return min((each.translations[0].confidence or 0.0 for each in found if each), default=None)


def _details(model: ServedModel, segment: Segment, found: Found | None, most: int, least: float) -> SentenceDetails:
    kept = Translation(segment.text, [], finished=True, ids=[], score=None)  # nothing to translate
    translations = found.translations[:most] if found else [kept]
    source_tokens, target_tokens = model.pieces(segment.text, translations[0]) if found else ([], [])
    return SentenceDetails(
        source=segment.text, separator=segment.separator,
        translations=[TranslationDetails(
            text=each.text, score=each.score, unknown=each.unknown, finished=each.finished, words=list(each.words),
            confidence=each.confidence, check=each.confidence is not None and each.confidence < least,
        ) for each in translations],
        source_tokens=source_tokens, target_tokens=target_tokens,
        attention=_weights(found.attention) if found else None,
    )  # fmt: skip


def _weights(attention: CrossAttention | None) -> list[list[float]] | None:
    """Return the attention of the last layer, averaged over heads, without special tokens: T rows of S numbers."""
    if attention is None or len(attention.source) * len(attention.target) > MOST_ATTENTION:
        return None
    rows = [place for place, id_ in enumerate(attention.target) if id_ not in SPECIAL]
    columns = [place for place, id_ in enumerate(attention.source) if id_ not in SPECIAL]
    weights = attention.weights[-1].mean(axis=0)[rows][:, columns]
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]
