"""Trackio: a local SQLite database of all runs in ``checkpoints/trackio/``."""

import contextlib
import io
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from nmt.runs.directory import RUNS, Run
from nmt.tracking.base import Value

FOLDER = "TRACKIO_DIR"
"""Environment variable that Trackio reads when it is imported."""
os.environ.setdefault(FOLDER, str(RUNS.absolute() / "trackio"))

import trackio  # noqa: E402 - after the folder of its database is chosen

PROJECT = "nmt"


class TrackioTracker:
    """Run in the database of Trackio."""

    def __init__(self, run: Run) -> None:
        """Delete the run of that name from the database, if it is there."""
        self._name = run.name
        with contextlib.suppress(ValueError):  # no project yet
            for recorded in trackio.Api().runs(PROJECT):
                if recorded.name == run.name:
                    recorded.delete()
        shutil.rmtree(Path(os.environ[FOLDER]) / "media" / PROJECT / run.name, ignore_errors=True)
        self._run: trackio.Run | None = None

    def hyperparameters(self, values: Mapping[str, Value]) -> None:
        """Begin the run with its configuration."""
        with _silence():
            self._run = trackio.init(
                project=PROJECT, name=self._name, config=dict(values), resume="never", embed=False, auto_log_gpu=False,
                auto_log_cpu=False,
            )  # fmt: skip

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Record a value of each series."""
        self._log(step, dict(values))

    def text(self, step: int, name: str, markdown: str) -> None:
        """Record a text."""
        self._log(step, {name: trackio.Markdown(markdown)})

    def image(self, step: int, name: str, png: bytes) -> None:
        """Record a picture."""
        self._log(step, {name: trackio.Image(Image.open(io.BytesIO(png)))})

    def flush(self) -> None:
        """Do nothing: a thread of Trackio writes twice a second."""

    def close(self) -> None:
        """Write the rest."""
        if self._run is not None:
            with _silence():
                trackio.finish()

    def _log(self, step: int, values: Mapping[str, object]) -> None:
        if self._run is not None:
            self._run.log(dict(values), step=step)


def _silence() -> contextlib.AbstractContextManager[object]:
    """Keep Trackio's announcements off standard output, within a ``with`` block in the main thread."""
    return contextlib.redirect_stdout(io.StringIO())
