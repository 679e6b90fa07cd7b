"""Sentences of many requests, gathered into batches for a model.

A batch is formed whenever the model is free, of what waits then: no sentence waits for others to come. Requests take
turns, so that a long text does not hold up short ones. Sentences of like length go into a batch together.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from nmt.decoding.translation import SearchOptions
from nmt.serving.metrics import Metrics
from nmt.serving.models import Found, ServedModel
from nmt.tokenizers.sentences import Segment

WINDOW = 4
"""Batches of waiting sentences among which those of like length are looked for."""


@dataclass(eq=False)
class _Sentence:
    """Sentence of a request."""

    segment: Segment
    search: SearchOptions
    attention: bool
    waiting: list["_Sentence"]
    """Sentences of its request that are in no batch yet."""
    found: asyncio.Future[Found]
    """What the model finds."""


class Batcher:
    """Batches for one model, computed in a thread of their own while the batcher, a context manager, is open."""

    def __init__(self, model: ServedModel, batch_size: int, metrics: Metrics) -> None:
        """Take the model, and the most sentences of a batch."""
        self.model, self._batch_size, self._metrics = model, batch_size, metrics
        self._requests: deque[list[_Sentence]] = deque()
        self._arrived = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of sentences that are in no batch yet."""
        return sum(map(len, self._requests))

    async def __aenter__(self) -> Self:
        """Begin to form batches, in the running event loop."""
        self._thread = ThreadPoolExecutor(1, f"translate-{'-'.join(self.model.pair)}")
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End after the batch that is being computed."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown()

    async def find(self, segments: Sequence[Segment], search: SearchOptions, *, attention: bool = False) -> list[Found]:
        """Return what the model finds for sentences with text. A caller that is cancelled leaves the queue."""
        loop, waiting = asyncio.get_running_loop(), list[_Sentence]()
        waiting += (_Sentence(each, search, attention, waiting, loop.create_future()) for each in segments)
        self._requests.append(waiting)
        self._arrived.set()
        try:
            return await asyncio.gather(*[each.found for each in waiting])
        finally:
            waiting.clear()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            self._requests = deque(filter(None, self._requests))
            if not self._requests:
                self._arrived.clear()
                continue
            batch = self._next_batch()
            self._metrics.batch_sentences.observe(len(batch))
            results = await loop.run_in_executor(self._thread, self._compute, batch)
            for sentence, found in zip(batch, results, strict=True):
                if sentence.found.done():
                    continue  # given up
                if isinstance(found, Exception):
                    sentence.found.set_exception(found)
                else:
                    sentence.found.set_result(found)

    def _next_batch(self) -> list[_Sentence]:
        """Take the next batch out of the queue: the first sentence of the request whose turn it is, and others like it.

        These are looked for in a window, which each request with the same kind of search fills in turn.
        """
        first = self._requests[0][0]
        turns = itertools.zip_longest(*(each for each in self._requests if each[0].search == first.search))
        window = itertools.islice(filter(None, itertools.chain.from_iterable(turns)), WINDOW * self._batch_size)
        candidates = sorted(window, key=lambda sentence: sentence.segment.tokens)
        start = max(0, min(candidates.index(first) - self._batch_size // 2, len(candidates) - self._batch_size))
        batch = candidates[start : start + self._batch_size]
        for sentence in batch:
            sentence.waiting.remove(sentence)
        self._requests.rotate(-1)
        return batch

    def _compute(self, batch: list[_Sentence]) -> list[Found | Exception]:
        """Return the results of a batch. Where it fails, each sentence is tried by itself, so that others succeed."""
        try:
            texts = [sentence.segment.text for sentence in batch]
            return [*self.model.find(texts, batch[0].search, [sentence.attention for sentence in batch])]
        except Exception as error:  # whatever a sentence does, the service goes on
            if len(batch) == 1:
                return [error]
            return [result for sentence in batch for result in self._compute([sentence])]
