"""Trackers by name: their packages, and how each is opened."""

import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nmt.extras import require
from nmt.runs.directory import RUNS, Run
from nmt.tracking.base import Tracker
from nmt.tracking.listener import OpenTracker, Tracking


class TrackerKind(NamedTuple):
    """A kind of tracker, loaded when it is used."""

    package: str
    """Package that it needs, which is also the name of the extra of nmt."""
    module: str
    """Module with its class."""
    name: str
    """Name of its class, whose instances are made with a run."""
    viewer: str
    """Command that shows its records."""


TRACKERS = {
    "tensorboard": TrackerKind(
        "tensorboard", "nmt.tracking.tensorboard", "TensorBoardTracker", f"tensorboard --logdir {RUNS}"
    ),
    "trackio": TrackerKind(
        "trackio", "nmt.tracking.trackio", "TrackioTracker", f"TRACKIO_DIR={RUNS}/trackio trackio show --project nmt"
    ),
}


def check_trackers(names: Sequence[str]) -> None:
    """Make sure that the packages of trackers are installed, before anything begins.

    Raises:
        NotFoundError: if a package is missing; names the extra.
    """
    for name in names:
        require(TRACKERS[name].package, TRACKERS[name].package)


def viewers(names: Sequence[str]) -> list[str]:
    """Return the commands that show what trackers record."""
    return [TRACKERS[name].viewer for name in names]


def tracking(run: Run, names: Sequence[str], warn: Callable[[str], None]) -> Tracking:
    """Return the listener of the trackers of a run; ``warn`` says that a tracker has failed."""
    return Tracking(run, {name: _opener(TRACKERS[name]) for name in names}, warn)


def _opener(kind: TrackerKind) -> OpenTracker:
    def opener(run: Run) -> Tracker:
        tracker: Tracker = getattr(importlib.import_module(kind.module), kind.name)(run)
        return tracker

    return opener
