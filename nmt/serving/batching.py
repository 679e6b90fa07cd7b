"""Sentences of many requests, gathered into batches for a model.

A batch is formed whenever the model is free, of what waits then: no sentence waits for others to come. Requests take
turns, and short ones have a thread of their own while a batch of long ones is computed, so that a long text does not
hold them up. Sentences of like length go into a batch together.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from nmt.serving.metrics import Metrics
from nmt.serving.models import Found, ServedModel
from nmt.text.translator import TextOptions
from nmt.tokenizers.sentences import Segment

WINDOW = 4
"""Batches of waiting sentences among which those of like length are looked for."""


SHORT_TOKENS = 100
"""Tokens of a request that does not wait for a batch of longer ones."""


@dataclass(eq=False)
class _Sentence:
    """Sentence of a request."""

    segment: Segment
    options: TextOptions
    attention: bool
    is_short: bool
    """Whether all of its request is short."""
    waiting: list["_Sentence"]
    """Sentences of its request that are in no batch yet."""
    found: asyncio.Future[Found]
    """What the model finds."""


class Batcher:
    """Batches for one model, computed in two threads while the batcher, a context manager, is open.

    The second thread computes batches of short requests, and only while the first has one of longer requests.
    """

    def __init__(self, model: ServedModel, batch_size: int, metrics: Metrics) -> None:
        """Take the model, and the most sentences of a batch."""
        self.model, self._batch_size, self._metrics = model, batch_size, metrics
        self._requests: deque[list[_Sentence]] = deque()
        self._batches: list[list[_Sentence]] = []
        """Batches that are being computed."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Number of sentences that are in no batch yet."""
        return sum(map(len, self._requests))

    async def __aenter__(self) -> Self:
        """Begin to form batches, in the running event loop."""
        self._threads = ThreadPoolExecutor(2, f"translate-{'-'.join(self.model.pair)}")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End after the batches that are being computed."""
        self._requests.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown()

    async def find(self, segments: Sequence[Segment], options: TextOptions, *, attention: bool = False) -> list[Found]:
        """Return what the model finds for sentences with text. A caller that is cancelled leaves the queue."""
        loop, waiting = asyncio.get_running_loop(), list[_Sentence]()
        is_short = sum(segment.tokens for segment in segments) <= SHORT_TOKENS
        waiting += (
            _Sentence(segment, options, attention, is_short, waiting, loop.create_future()) for segment in segments
        )
        sentences = [*waiting]
        self._requests.append(waiting)
        loop.call_soon(self._start)  # other requests that have arrived come along
        try:
            return await asyncio.gather(*[sentence.found for sentence in sentences])
        finally:
            waiting.clear()

    def _start(self) -> None:
        """Begin the batches that have a thread."""
        self._requests = deque(filter(None, self._requests))
        if self._requests and not self._batches:
            self._begin(list(self._requests))
        short = [request for request in self._requests if request and request[0].is_short]
        if short and len(self._batches) == 1 and not self._batches[0][0].is_short:
            self._begin(short)

    def _begin(self, requests: list[list[_Sentence]]) -> None:
        batch = self._next_batch(requests)
        self._metrics.batch_sentences.observe(len(batch))
        self._batches.append(batch)
        task = asyncio.create_task(self._finish(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, batch: list[_Sentence]) -> None:
        """Compute a batch, hand out its results, and begin the next."""
        results = await asyncio.get_running_loop().run_in_executor(self._threads, self._compute, batch)
        for sentence, found in zip(batch, results, strict=True):
            if sentence.found.done():
                continue  # given up
            if isinstance(found, Exception):
                sentence.found.set_exception(found)
            else:
                sentence.found.set_result(found)
        self._batches.remove(batch)
        self._start()

    def _next_batch(self, requests: list[list[_Sentence]]) -> list[_Sentence]:
        """Take a batch out of the queue: the first sentence of the request whose turn it is, and others like it.

        These are looked for in a window, which each request with the same kind of search fills in turn. Short requests
        have batches of their own.
        """
        turn = requests[0]
        first = turn[0]
        alike = [
            request for request in requests
            if request[0].options == first.options and request[0].is_short == first.is_short
        ]  # fmt: skip
        window = itertools.islice(
            filter(None, itertools.chain.from_iterable(itertools.zip_longest(*alike))), WINDOW * self._batch_size
        )
        candidates = sorted(window, key=lambda sentence: sentence.segment.tokens)
        start = max(0, min(candidates.index(first) - self._batch_size // 2, len(candidates) - self._batch_size))
        batch = candidates[start : start + self._batch_size]
        for sentence in batch:
            sentence.waiting.remove(sentence)
        self._requests.remove(turn)
        self._requests.append(turn)
        return batch

    def _compute(self, batch: list[_Sentence]) -> list[Found | Exception]:
        """Return the results of a batch. Where it fails, each sentence is tried by itself, so that others succeed."""
        try:
            texts = [sentence.segment.text for sentence in batch]
            return [*self.model.find(texts, batch[0].options, [sentence.attention for sentence in batch])]
        except Exception as error:  # whatever a sentence does, the service goes on
            if len(batch) == 1:
                return [error]
            return [result for sentence in batch for result in self._compute([sentence])]
