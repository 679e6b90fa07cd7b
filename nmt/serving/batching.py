"""Sentences of many requests, gathered into batches for a model.

A batch is formed whenever the model is free, of what waits then: no sentence waits for others to come. Requests take
turns, so that a long text does not hold up short ones. Sentences of like length go into a batch together.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from nmt.decoding.translation import SearchOptions
from nmt.serving.metrics import Metrics
from nmt.serving.models import Found, ServedModel
from nmt.serving.segmentation import Segment

WINDOW = 4
"""Batches of waiting sentences among which those of like length are looked for."""


@dataclass(eq=False)
class _Job:
    """Sentences of a request."""

    segments: Sequence[Segment]
    search: SearchOptions
    attention: bool
    waiting: list[int]
    """Indices of the sentences that are in no batch yet."""
    found: list[asyncio.Future[Found]]
    """What the model finds, by index."""


_Place = tuple[_Job, int]
"""Sentence of a job, by its index."""


class Batcher:
    """Batches for one model, computed in a thread of their own while the batcher, a context manager, is open."""

    def __init__(self, model: ServedModel, batch_size: int, metrics: Metrics) -> None:
        """Take the model, and the most sentences of a batch."""
        self.model, self._batch_size, self._metrics = model, batch_size, metrics
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of sentences that are in no batch yet."""
        return sum(len(job.waiting) for job in self._jobs)

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
        futures = [asyncio.get_running_loop().create_future() for _ in segments]
        job = _Job(segments, search, attention, list(range(len(segments))), futures)
        self._jobs.append(job)
        self._arrived.set()
        try:
            return await asyncio.gather(*futures)
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if not self._jobs:
                self._arrived.clear()
                continue
            batch = self._next_batch()
            self._metrics.batch_sentences.observe(len(batch))
            results = await loop.run_in_executor(self._thread, self._compute, batch)
            for (job, index), found in zip(batch, results, strict=True):
                future = job.found[index]
                if future.done():
                    continue  # given up
                if isinstance(found, Exception):
                    future.set_exception(found)
                else:
                    future.set_result(found)

    def _next_batch(self) -> list[_Place]:
        """Take the next batch out of the queue: the first sentence of the job whose turn it is, and others like it."""
        first = self._jobs[0]
        candidates = sorted(self._in_turns(first.search), key=lambda place: place[0].segments[place[1]].tokens)
        middle = candidates.index((first, first.waiting[0]))
        start = max(0, min(middle - self._batch_size // 2, len(candidates) - self._batch_size))
        batch = candidates[start : start + self._batch_size]
        for job, index in batch:
            job.waiting.remove(index)
        self._jobs.rotate(-1)
        self._jobs = deque(job for job in self._jobs if job.waiting)
        return batch

    def _in_turns(self, search: SearchOptions) -> list[_Place]:
        """Return waiting sentences for a kind of search, of each job in turn; at most a window of them."""
        jobs = [job for job in self._jobs if job.search == search]
        places: list[_Place] = []
        turn = 0
        while jobs and len(places) < WINDOW * self._batch_size:
            jobs = [job for job in jobs if turn < len(job.waiting)]
            places += [(job, job.waiting[turn]) for job in jobs]
            turn += 1
        return places

    def _compute(self, batch: list[_Place]) -> list[Found | Exception]:
        """Return the results of a batch. Where it fails, each sentence is tried by itself, so that others succeed."""
        try:
            texts = [job.segments[index].text for job, index in batch]
            return [*self.model.find(texts, batch[0][0].search, [job.attention for job, _ in batch])]
        except Exception as error:  # whatever a sentence does, the service goes on
            if len(batch) == 1:
                return [error]
            return [result for place in batch for result in self._compute([place])]
