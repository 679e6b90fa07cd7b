"""TensorBoard: event files in the run's folder ``events/``, through TensorFlow's own writer."""

from collections.abc import Mapping
from pathlib import Path

from tensorboard.plugins.hparams import api as hparams

from nmt.errors import NmtError
from nmt.runs.directory import Run
from nmt.runtime import tf
from nmt.tracking.base import Value

EVENT_FILES = "events.out.tfevents.*"
FLUSH_MILLISECONDS = 20_000


class TensorBoardTracker:
    """Event files of a run."""

    def __init__(self, run: Run) -> None:
        """Delete the run's older event files, and begin another."""
        self._name, self._folder = run.name, run.events_path
        for path in self._files():
            path.unlink()
        self._writer = tf.summary.create_file_writer(str(self._folder), flush_millis=FLUSH_MILLISECONDS)
        self._size = -1
        self._is_flushed = True

    def hyperparameters(self, values: Mapping[str, Value]) -> None:
        """Record the configuration for the tab HParams, whose scores are the series best/ and average/."""
        with self._writer.as_default(step=0):
            hparams.hparams(dict(values), trial_id=self._name)
        self._is_flushed = False

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Record a value of each series."""
        with self._writer.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._is_flushed = False

    def text(self, step: int, name: str, markdown: str) -> None:
        """Record a text."""
        with self._writer.as_default(step=step):
            tf.summary.text(name, markdown)
        self._is_flushed = False

    def image(self, step: int, name: str, png: bytes) -> None:
        """Record a picture."""
        with self._writer.as_default(step=step):
            tf.summary.image(name, tf.io.decode_png(png, channels=3)[tf.newaxis])
        self._is_flushed = False

    def flush(self) -> None:
        """Write what is recorded to the disk.

        Raises:
            NmtError: if the files have not grown: TensorFlow's writer drops what a full disk refuses, and says nothing.
        """
        if self._is_flushed:
            return
        self._writer.flush()
        size = sum(path.stat().st_size for path in self._files())
        if size <= self._size:
            raise NmtError(f"{self._folder} does not grow any more; the disk may be full")
        self._size, self._is_flushed = size, True

    def close(self) -> None:
        """Write the rest."""
        self.flush()
        self._writer.close()

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(EVENT_FILES))
