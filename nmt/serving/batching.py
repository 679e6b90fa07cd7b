"""Batches of sentences from many requests, for a model, which may have several language pairs.

A batch is formed from the waiting sentences whenever the model is free; no sentence waits for later requests. Requests
take turns. Short requests get a second thread while a batch of a long request is computed, so that a long text does
not delay them. A batch has sentences of similar length and of the same language pair.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from nmt.serving.metrics import Metrics
from nmt.serving.models import SentenceResult, ServedModel
from nmt.text.translator import TextOptions
from nmt.tokenizers.sentences import Segment

WINDOW = 4
"""Size of the window of waiting sentences, in batches, in which sentences of similar length are chosen."""
SHORT_TOKENS = 100
"""Most tokens of a short request, which does not wait for the batch of a longer one."""


@dataclass(eq=False)
class _Sentence:
    """A sentence of a request."""

    model: ServedModel
    segment: Segment
    options: TextOptions
    attention: bool
    is_short: bool
    """Whether its request is short."""
    waiting: list["_Sentence"]
    """Sentences of its request that are not in a batch yet."""
    result: asyncio.Future[SentenceResult]
    """Result of the model."""


class Batcher:
    """Queue and batches of a model; an asynchronous context manager, which computes batches in two threads.

    The second thread only computes batches of short requests while the first computes a batch of a long request.
    """

    def __init__(self, batch_size: int, metrics: Metrics) -> None:
        """Create a batcher for a model, with the largest number of sentences in a batch."""
        self._batch_size, self._metrics = batch_size, metrics
        self._requests: deque[list[_Sentence]] = deque()
        self._batches: list[list[_Sentence]] = []
        """Batches that are being computed."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Number of sentences that are not in a batch yet."""
        return sum(map(len, self._requests))

    async def __aenter__(self) -> Self:
        """Start forming batches in the running event loop."""
        self._threads = ThreadPoolExecutor(2, "translate")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop when the batches that are being computed are finished."""
        self._requests.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown()

    async def translate(
        self, model: ServedModel, segments: Sequence[Segment], options: TextOptions, *, attention: bool = False
    ) -> list[SentenceResult]:
        """Return the results for sentences that have words. If the caller is cancelled, they leave the queue.

        Args:
            model: the model, for the language pair of the sentences.
            segments: the sentences.
            options: options of the translation.
            attention: whether to return attention.
        """
        loop, waiting = asyncio.get_running_loop(), list[_Sentence]()
        is_short = sum(segment.tokens for segment in segments) <= SHORT_TOKENS
        waiting += (
            _Sentence(model, segment, options, attention, is_short, waiting, loop.create_future())
            for segment in segments
        )
        sentences = [*waiting]
        self._requests.append(waiting)
        loop.call_soon(self._start)  # after requests that have already arrived
        try:
            return await asyncio.gather(*[sentence.result for sentence in sentences])
        finally:
            waiting.clear()

    def _start(self) -> None:
        """Start the batches for which a thread is free."""
        self._requests = deque(filter(None, self._requests))
        if self._requests and not self._batches:
            self._begin(list(self._requests))
        short = [request for request in self._requests if request and request[0].is_short]
        if short and len(self._batches) == 1 and not self._batches[0][0].is_short:
            self._begin(short)

    def _begin(self, requests: list[list[_Sentence]]) -> None:
        """Start a batch of these requests."""
        batch = self._next_batch(requests)
        self._metrics.batch_sentences.observe(len(batch))
        self._batches.append(batch)
        task = asyncio.create_task(self._finish(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, batch: list[_Sentence]) -> None:
        """Compute a batch, deliver its results, and start the next batch."""
        results = await asyncio.get_running_loop().run_in_executor(self._threads, self._compute, batch)
        for sentence, result in zip(batch, results, strict=True):
            if sentence.result.done():
                continue  # the request was cancelled
            if isinstance(result, Exception):
                sentence.result.set_exception(result)
            else:
                sentence.result.set_result(result)
        self._batches.remove(batch)
        self._start()

    def _next_batch(self, requests: list[list[_Sentence]]) -> list[_Sentence]:
        """Take a batch from the queue: the first sentence of the next request, and sentences of similar length.

        These come from a window that requests with the same language pair and search options fill in turn. Short
        requests have batches of their own.
        """
        next_request = requests[0]
        first = next_request[0]
        matching = [
            request for request in requests
            if request[0].model is first.model
            and request[0].options == first.options
            and request[0].is_short == first.is_short
        ]  # fmt: skip
        window = itertools.islice(
            filter(None, itertools.chain.from_iterable(itertools.zip_longest(*matching))), WINDOW * self._batch_size
        )
        candidates = sorted(window, key=lambda sentence: sentence.segment.tokens)
        start = max(0, min(candidates.index(first) - self._batch_size // 2, len(candidates) - self._batch_size))
        batch = candidates[start : start + self._batch_size]
        for sentence in batch:
            sentence.waiting.remove(sentence)
        self._requests.remove(next_request)
        self._requests.append(next_request)
        return batch

    def _compute(self, batch: list[_Sentence]) -> list[SentenceResult | Exception]:
        """Return the results of a batch. If it fails, its sentences are translated singly, so that others succeed."""
        try:
            texts = [sentence.segment.text for sentence in batch]
            attention = [sentence.attention for sentence in batch]
            return [*batch[0].model.translate(texts, batch[0].options, attention)]
        except Exception as error:  # no sentence may stop the service
            if len(batch) == 1:
                return [error]
            return [result for sentence in batch for result in self._compute([sentence])]
