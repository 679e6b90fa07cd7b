"""States to go on from, each whole and with checksums.

The order of writing matters: weights, metrics, and only then the state that refers to them.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pydantic import Field, ValidationError

from nmt.config.record import Record
from nmt.errors import DataError, NotFoundError
from nmt.models.weights import set_weights
from nmt.runs.directory import Run
from nmt.runs.weights import SavedWeights
from nmt.storage.arrays import Arrays, read_arrays, write_arrays
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import write_json

if TYPE_CHECKING:
    import keras

STATES_KEPT = 2  # the newest, and the one before in case the newest is damaged
WEIGHTS, LEARNER, METRICS, STANDING = "weights.safetensors", "learner.safetensors", "metrics.jsonl", "state.json"


class Stateful(Protocol):
    """What learns besides the weights: the optimizer, or all that a step of training keeps."""

    def state(self) -> Arrays:
        """Return arrays by name, the count of steps as "steps" among them."""

    def restore(self, arrays: Arrays) -> None:
        """Take them back; KeyError or ValueError if they are those of something else."""


class Standing(Record):
    """How far a run has come, between two steps: ``state.json`` without its checksums."""

    epoch: int = Field(ge=0, le=2**53)
    """Epochs ended: trained, validated and noted in the metrics."""
    step: int = Field(ge=0, le=2**53)
    """Optimizer steps taken since the run began."""
    steps_in_epoch: int = Field(ge=0, le=2**53)
    """Those of the epoch after; all of its steps if only its validation is missing."""
    seconds: float
    """That the epoch after has been trained so far."""
    totals: tuple[float, float, float]
    """Summed loss, right tokens and tokens of the epoch after, so far."""
    logged: tuple[float, float, float]
    """The same when a line about steps was last written."""
    made_with: dict[str, str]
    """Versions and processor, on which the last bits of a result depend."""


class State(Record):
    """``state.json``: a damaged one gives itself away, and so does a file beside it that is not its own."""

    standing: Standing
    files: dict[str, str]
    """Checksums of the files beside it, by name."""
    sha256: str
    """Of all of the above."""

    @classmethod
    def of(cls, standing: Standing, files: dict[str, str]) -> "State":
        """Return the state with its checksum."""
        return cls(standing=standing, files=files, sha256=_digest(standing, files))

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it was changed."""
        return self.sha256 == _digest(self.standing, self.files)


def _digest(standing: Standing, files: dict[str, str]) -> str:
    content = json.dumps([standing.model_dump(mode="json"), files], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


class Content(NamedTuple):
    """What a state holds."""

    standing: Standing
    metrics: bytes
    """The metrics file, as it is to be gone on with."""
    weights: Arrays
    """The model's, those that the next step changes."""
    learner: Arrays
    """What else the next step changes."""


@dataclass(frozen=True)
class Restored:
    """Where a resumed run stands, and what had to be passed over to get there."""

    standing: Standing
    metrics: bytes
    """The metrics file as it was then."""
    damaged: list[str]
    """In words: states that could not be used."""


def save_state(run: Run, content: Content, saved: SavedWeights | None = None) -> None:
    """Write what training needs to go on from here, and drop older states and such as lie ahead of it.

    Args:
        run: the run.
        content: where it stands, and all that the next step changes.
        saved: a file with the same weights, to share their place on the disk.
    """
    standing = content.standing
    with atomic_folder(run.state_path(standing.step), replace=True) as aside:
        (aside / METRICS).write_bytes(content.metrics)
        files = {
            METRICS: sha256(aside / METRICS),
            WEIGHTS: _share(saved, aside / WEIGHTS) if saved else write_arrays(aside / WEIGHTS, content.weights),
            LEARNER: write_arrays(aside / LEARNER, content.learner),
        }
        write_json(aside / STANDING, State.of(standing, files).model_dump(mode="json"))
    older = [step for step in run.state_steps if step < standing.step]
    ahead = [step for step in run.state_steps if step > standing.step]  # damaged, so their steps are taken again
    for step in [*older[: 1 - STATES_KEPT], *ahead]:
        shutil.rmtree(run.state_path(step))


def _share(saved: SavedWeights, path: Path) -> str:
    try:
        path.hardlink_to(saved.path)
    except OSError:  # a file system without links
        shutil.copyfile(saved.path, path)
    return saved.checksum


def restore(run: Run, model: "keras.Model", learner: Stateful) -> Restored | None:
    """Load the newest undamaged state into model and learner; None if the run has none.

    Raises:
        DataError: if there are states and none of them can be used, or weights whose states are gone.
    """
    damaged: list[str] = []
    for step in reversed(run.state_steps):
        folder = run.state_path(step)
        try:
            content = read_state(folder, step)
            set_weights(model, content.weights)
            learner.restore(content.learner)
        except (DataError, NotFoundError) as error:
            damaged.append(str(error))
        except (KeyError, ValueError) as error:
            damaged.append(f"{folder} is the state of another model: {error}.")
        else:
            return Restored(content.standing, content.metrics, damaged)
    if damaged:
        raise DataError(
            f"A run goes on from a whole state; none of run {run.name!r} is: {' '.join(damaged)} Its weights, where "
            "they are whole, still translate; to train, start another run with --run NAME."
        )
    if max(run.weights_epochs, default=0) > 1:  # those of epoch 1 may have come just before its state could
        states = run.state_path(0).parent
        raise DataError(
            f"A run goes on from a state; run {run.name!r} has weights, but {states} holds none. Restore a copy of it, "
            f"or begin another run with these weights: --run NAME --from {run.name}."
        )
    return None


def read_state(folder: Path, step: int) -> Content:
    """Return what the state after a step holds, all of it checked.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if one is damaged, or is not of this state.
    """
    place = folder / STANDING
    try:
        state = State.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f"{place} is missing.") from None
    except (OSError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error).splitlines()[0]
        raise DataError(f"{place} is damaged: {said}.") from None
    if not state.is_whole or state.standing.step != step or state.files.keys() != {WEIGHTS, LEARNER, METRICS}:
        raise DataError(f"{place} is damaged: it is not as it was saved.")
    try:
        metrics = (folder / METRICS).read_bytes()
    except OSError as error:
        raise NotFoundError(f"{folder / METRICS} cannot be read: {error.strerror}.") from None
    if hashlib.sha256(metrics).hexdigest() != state.files[METRICS]:
        raise DataError(f"{folder / METRICS} is damaged: its SHA-256 is not the one noted when it was saved.")
    weights = read_arrays(folder / WEIGHTS, state.files[WEIGHTS])
    learner = read_arrays(folder / LEARNER, state.files[LEARNER])
    return Content(state.standing, metrics, weights, learner)


def sweep(run: Run) -> None:
    """Remove what a process that was killed while it wrote has left in the run's folder."""
    for left in run.folder.rglob(".writing-*"):
        shutil.rmtree(left, ignore_errors=True)
