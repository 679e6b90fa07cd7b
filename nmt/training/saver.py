"""Writer of a run's files in training: metrics, weights, and checkpoints, which a thread writes in the background."""

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Self

from nmt.config.training import TrainingConfig
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import save_weights
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import remove_abandoned
from nmt.training.checkpoints import Checkpoint, TrainingProgress, save_checkpoint
from nmt.training.listeners import Listener, MetricsFile


class Saver:
    """Writer of a run's files, a context manager. Leaving it waits for the file that is being written."""

    def __init__(
        self, run: Run, config: TrainingConfig, saved: TrainingProgress | None, metrics: bytes, *, writes: bool = True
    ) -> None:
        """Write nothing yet.

        Args:
            run: the run.
            config: the training section.
            saved: progress of the checkpoint that the run resumes from; None: a new run.
            metrics: content of its metrics file.
            writes: false on hosts other than the chief, which write nothing.
        """
        self.run, self.config, self.writes = run, config, writes
        self._metrics, self._saved = metrics, saved
        self._saved_at = time.monotonic()
        self._saving: Future[None] | None = None
        self.metrics_file: Listener = MetricsFile(run) if writes else Listener()
        """Listener that writes the metrics file."""

    def save_weights(self, weights: Arrays, weights_id: WeightsId) -> None:
        """Write weights to translate with."""
        if self.writes:
            save_weights(self.run, weights, weights_id)

    def __enter__(self) -> Self:
        """Remove temporary files of a killed process, cut the metrics file back, and start the thread."""
        if self.writes:
            remove_abandoned(self.run.folder)
            self.run.restore_metrics(self._metrics)
        self._thread = ThreadPoolExecutor(1)
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the file that is being written."""
        self._thread.shutdown()

    @property
    def saved(self) -> TrainingProgress | None:
        """Progress of the newest checkpoint on disk, after waiting for one being written; None: there is none."""
        if self._saving:
            wait([self._saving])
        return self._saved

    def is_due(self, step: int) -> bool:
        """Return whether ``save_every`` or ``save_every_minutes`` asks for a checkpoint after a step."""
        by_steps = self.config.save_every is not None and step % self.config.save_every == 0
        minutes = self.config.save_every_minutes
        return by_steps or (minutes is not None and time.monotonic() - self._saved_at >= 60 * minutes)

    def save(self, checkpoint: Checkpoint, epoch_weights: Arrays | None, superfluous: list[Path]) -> None:
        """Begin to save a checkpoint once the previous checkpoint is saved.

        Args:
            checkpoint: content of the checkpoint.
            epoch_weights: weights of an epoch that has just ended, which are saved first; None: within an epoch.
            superfluous: files to delete afterwards.

        Raises:
            NmtError: if the previous checkpoint could not be written.
        """
        self.wait()

        def write() -> None:
            saved = save_weights(self.run, epoch_weights, checkpoint.progress.epoch) if epoch_weights else None
            save_checkpoint(self.run, checkpoint, saved if checkpoint.state.weights is epoch_weights else None)
            self._saved = checkpoint.progress
            for path in superfluous:  # only now does no checkpoint need them
                path.unlink(missing_ok=True)

        self._saving = self._thread.submit(write)
        self._saved_at = time.monotonic()

    def check(self) -> None:
        """Raise NmtError if a checkpoint could not be written meanwhile."""
        if self._saving and self._saving.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the last checkpoint is saved.

        Raises:
            NmtError: if it could not be written.
        """
        if self._saving:
            self._saving.result()
        self._saving = None
