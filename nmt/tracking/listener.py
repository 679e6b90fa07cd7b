"""The listener that trackers share.

A tracker begins anew whenever training starts: it first gets the metrics file, cut back to the checkpoint, then each
new record. So its record has no step twice, however often the run was killed. A thread records, so that training does
not wait.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from nmt.plotting.style import run_title
from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Metrics, SampleMetrics
from nmt.tracking import attention
from nmt.tracking.base import Tracker
from nmt.tracking.series import Series, hyperparameters, samples_as_markdown
from nmt.training.listeners import Listener, StepEvent, ValidationEvent

OpenTracker = Callable[[Run], Tracker]
"""Returns a tracker of a run, without what an earlier one has recorded."""


class Tracking(Listener):
    """Listener that passes everything on to trackers. A tracker that fails is switched off; training goes on."""

    def __init__(self, run: Run, openers: Mapping[str, OpenTracker], warn: Callable[[str], None]) -> None:
        """Take the run, trackers by name, and what says that a tracker has failed."""
        self._run, self._openers, self._warn = run, dict(openers), warn
        self._trackers: dict[str, Tracker] = {}
        self._thread: ThreadPoolExecutor | None = None

    def on_start(self) -> None:
        """Open the trackers, and record the metrics file."""
        for name, opener in self._openers.items():
            try:
                self._trackers[name] = opener(self._run)
            except Exception as error:
                self._fail(name, error)
        if not self._trackers:
            return
        self._thread = ThreadPoolExecutor(1)
        config = self._run.config()
        self._series = Series(config.training.best_by)
        self._each(lambda tracker: tracker.hyperparameters(hyperparameters(config)))
        # Read now: the metrics file grows as soon as training goes on.
        records = self._run.metrics()
        self._submit(lambda: self._replay(records))

    def on_step(self, event: StepEvent) -> None:
        """Record steps, every ``training.log_every`` steps."""
        if event.metrics is not None and self._trackers:
            record = event.metrics
            self._submit(lambda: self._record(record))

    def on_validation(self, event: ValidationEvent) -> None:
        """Record a validation and its samples."""
        if not self._trackers:
            return
        metrics, samples = event.metrics, event.samples

        def work() -> None:
            self._record(metrics)
            if samples:
                self._record(SampleMetrics(epoch=metrics.epoch, step=metrics.step, samples=samples))
            if isinstance(metrics, EpochMetrics) and event.attention:
                self._draw(event, metrics.epoch)
            self._each(lambda tracker: tracker.flush())

        self._submit(work)

    def on_epoch(self, event: ValidationEvent) -> None:
        """Record an epoch, its samples and their attention."""
        self.on_validation(event)

    def on_end(self, average: AverageMetrics | None) -> None:
        """Record the scores of the averaged weights."""
        if average is not None and self._trackers:
            self._submit(lambda: self._record(average))

    def close(self) -> None:
        """Wait until all is recorded, and close the trackers."""
        if self._thread is None:
            return
        self._thread.shutdown()
        self._thread = None
        self._each(lambda tracker: tracker.close())
        self._trackers = {}

    # --- in the thread

    def _submit(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:  # no picture can be drawn or kept; a thread would keep it to itself
                for name in list(self._trackers):
                    self._fail(name, error)

        if self._thread is not None:
            self._thread.submit(guarded)

    def _replay(self, records: Sequence[Metrics]) -> None:
        """Record what the metrics file holds, and the pictures of its epochs."""
        attention.remove_all_but(self._run, {record.step for record in records if isinstance(record, EpochMetrics)})
        for record in records:
            self._record(record)
        for step, number, path in attention.kept(self._run):
            self._image(step, number, path.read_bytes())
        self._each(lambda tracker: tracker.flush())

    def _record(self, record: Metrics) -> None:
        if isinstance(record, SampleMetrics):
            text = samples_as_markdown(record.samples)
            self._each(lambda tracker: tracker.text(record.step, "samples", text))
            return
        values = self._series.scalars(record)
        self._each(lambda tracker: tracker.scalars(record.step, values))

    def _draw(self, event: ValidationEvent, epoch: int) -> None:
        heading, details = f"Cross-attention, epoch {epoch}", run_title(self._run)
        pictures = [attention.draw(sample, heading, details) for sample in event.attention]
        attention.keep(self._run, event.metrics.step, pictures)
        for number, png in enumerate(pictures, start=1):
            self._image(event.metrics.step, number, png)

    def _image(self, step: int, number: int, png: bytes) -> None:
        self._each(lambda tracker: tracker.image(step, f"attention/{number}", png))

    def _each(self, call: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                call(tracker)
            except Exception as error:
                self._fail(name, error)

    def _fail(self, name: str, error: Exception) -> None:
        """Switch a tracker off, and say so once."""
        self._trackers.pop(name, None)
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        self._warn(
            f"Tracker {name} is switched off: {reason}. Training goes on. To record the run again from its metrics "
            f"file: nmt train --run {self._run.name} --set training.trackers=[{name}]"
        )
