"""Checkpoints, from which training resumes. Each is complete and has checksums.

A checkpoint is a folder ``state/step-N`` of a run: weights, optimizer, metrics file, and ``state.json``, which is
written last and holds the checksums of the other files.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from nmt.config.record import Record
from nmt.errors import DataError, NotFoundError
from nmt.message import Argument, Settings
from nmt.runs.directory import Run
from nmt.runs.weights import SavedWeights
from nmt.storage.arrays import Arrays, read_arrays, write_arrays
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import parse_json, write_json

CHECKPOINTS_KEPT = 2  # the newest, and its predecessor in case the newest is damaged
FORMAT = 2
WEIGHTS, OPTIMIZER, METRICS, MANIFEST = "weights.safetensors", "optimizer.safetensors", "metrics.jsonl", "state.json"
OPTIMIZER_OF_FORMAT_1 = "learner.safetensors"


class TrainingProgress(Record):
    """Progress of a run between two steps, and the environment on which the last bits of its result depend."""

    model_config = ConfigDict(frozen=False)

    epoch: int = Field(0, ge=0, le=2**53)
    """Number of completed epochs: trained, validated and recorded in the metrics."""
    step: int = Field(0, ge=0, le=2**53)
    """Number of optimizer steps since the run began."""
    steps_in_epoch: int = Field(0, ge=0, le=2**53)
    """Number of steps taken in the current epoch; all of them if only its validation is missing."""
    seconds: float = 0.0
    """Training time of the current epoch so far, in seconds."""
    totals: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Summed loss, correct tokens and tokens of the current epoch, as last read from the device."""
    logged: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The totals when the last record of steps was written."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Versions, device, processor and threads of the process that saved it."""


class CheckpointManifest(Record):
    """Content of ``state.json``: progress, and checksums that detect damaged or foreign files."""

    format: Literal[2] = 2
    """Format number."""
    loop: TrainingProgress
    """Progress of the run."""
    files: dict[str, str]
    """SHA-256 of each file of the checkpoint, by name."""
    sha256: str
    """SHA-256 of the fields above."""


def _digest(loop: dict[str, Any], files: dict[str, str], format_: int) -> str:
    parts = [loop, files] if format_ == 1 else [format_, loop, files]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class TrainingState(NamedTuple):
    """Everything that a step changes."""

    weights: Arrays
    """Weights of the model by name."""
    optimizer: Arrays
    """Optimizer moments, moving averages, loss scale and non-finite tracker."""
    totals: tuple[float, float, float]
    """Summed loss, correct tokens and tokens of the epoch so far."""


class Checkpoint(NamedTuple):
    """Content of a checkpoint."""

    progress: TrainingProgress
    """Progress of the run."""
    metrics: bytes
    """Content of the metrics file at that point."""
    state: TrainingState
    """Everything that the next step changes."""


def save_checkpoint(run: Run, checkpoint: Checkpoint, saved: SavedWeights | None = None) -> None:
    """Write a checkpoint. Then delete older checkpoints beyond ``CHECKPOINTS_KEPT``, and checkpoints of later steps.

    Args:
        run: the run.
        checkpoint: content of the checkpoint.
        saved: a file with the same weights, which is linked instead of writing them again; None: there is none.
    """
    progress, state = checkpoint.progress, checkpoint.state
    with atomic_folder(run.state_path(progress.step), replace=True) as temporary:
        (temporary / METRICS).write_bytes(checkpoint.metrics)
        weights = temporary / WEIGHTS
        files = {
            METRICS: sha256(temporary / METRICS),
            WEIGHTS: _link(saved, weights) if saved else write_arrays(weights, state.weights),
            OPTIMIZER: write_arrays(temporary / OPTIMIZER, state.optimizer),
        }
        digest = _digest(progress.model_dump(mode="json"), files, FORMAT)
        manifest = CheckpointManifest(loop=progress, files=files, sha256=digest)
        write_json(temporary / MANIFEST, manifest.model_dump(mode="json"))
    older = [step for step in run.state_steps if step < progress.step]
    later = [step for step in run.state_steps if step > progress.step]  # damaged, so training took their steps again
    for step in [*older[: 1 - CHECKPOINTS_KEPT], *later]:
        shutil.rmtree(run.state_path(step))


def _link(saved: SavedWeights, path: Path) -> str:
    """Link a file of weights at another path, or copy it, and return its SHA-256."""
    try:
        path.hardlink_to(saved.path)
    except OSError:  # a file system without links
        shutil.copyfile(saved.path, path)
    return saved.checksum


def restore_newest(run: Run, restore: Callable[[TrainingState], None]) -> tuple[Checkpoint | None, list[str]]:
    """Restore the newest usable checkpoint.

    Args:
        run: the run.
        restore: restores a state; raises KeyError or ValueError for the state of another model.

    Returns:
        The checkpoint, or None if the run has none; and a message about each newer checkpoint that is not usable.

    Raises:
        DataError: if there are checkpoints but none is usable, or if there are weights without any checkpoint.
    """
    damaged: list[str] = []
    for step in reversed(run.state_steps):
        folder = run.state_path(step)
        try:
            checkpoint = read_checkpoint(folder, step)
            restore(checkpoint.state)
        except (DataError, NotFoundError) as error:
            damaged.append(str(error))
        except (KeyError, ValueError) as error:
            damaged.append(f"{folder} is the state of another model: {error}.")
        else:
            return checkpoint, damaged
    if damaged:
        raise DataError(
            f"Run {run.name!r} cannot resume: {' '.join(damaged)} Training resumes from an undamaged state. The run's "
            "weights still translate where they are undamaged. To train, start another run with ",
            Argument("run", "NAME"),
            ".",
        )
    if max(run.weights_epochs, default=0) > 1:  # epoch 1's weights may have been saved just before its checkpoint
        states = run.state_path(0).parent
        raise DataError(
            f"Run {run.name!r} cannot resume: it has weights, but {states} holds no state. Training resumes from a "
            f"state. Restore a copy of it, or start another run from these weights: ",
            Argument("run", "NAME"),
            " ",
            Settings({"training.start_from": run.name}),
            ".",
        )
    return None, []


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Return the checkpoint in a folder after verifying all of it.

    Args:
        folder: folder of the checkpoint.
        step: the step after which it was saved, by the name of the folder.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if a file is damaged, has an unknown format, or belongs to another checkpoint.
    """
    manifest = _read_manifest(folder / MANIFEST, step)
    optimizer = OPTIMIZER if OPTIMIZER in manifest.files else OPTIMIZER_OF_FORMAT_1
    try:
        metrics = (folder / METRICS).read_bytes()
    except OSError as error:
        raise NotFoundError(f"{folder / METRICS} cannot be read: {error.strerror}.") from None
    if hashlib.sha256(metrics).hexdigest() != manifest.files[METRICS]:
        raise DataError(f"{folder / METRICS} is damaged: its SHA-256 differs from the one recorded at its saving.")
    weights = read_arrays(folder / WEIGHTS, manifest.files[WEIGHTS])
    arrays = read_arrays(folder / optimizer, manifest.files[optimizer])
    return Checkpoint(manifest.loop, metrics, TrainingState(weights, arrays, manifest.loop.totals))


def _read_manifest(path: Path, step: int) -> CheckpointManifest:
    try:
        content = parse_json(path.read_bytes())
        number = content.get("format") or 1
        if number not in (1, FORMAT):
            raise DataError(
                f"{path} has format {str(number)[:20]}; this version of nmt reads formats 1 and {FORMAT}. Update nmt."
            )
        if number == 1:  # the same content under other names
            loop = dict(content.pop("standing"))
            digest = _digest(loop, content["files"], number)
            content |= {"format": FORMAT, "loop": loop | {"environment": loop.pop("made_with")}}
        else:
            digest = _digest(content["loop"], content["files"], number)
        manifest = CheckpointManifest.model_validate_json(json.dumps(content))
    except FileNotFoundError:
        raise NotFoundError(f"{path} is missing.") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        reason = (problem.splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} is damaged: {reason}.") from None
    optimizer = OPTIMIZER_OF_FORMAT_1 if number == 1 else OPTIMIZER
    if (
        manifest.sha256 != digest
        or manifest.loop.step != step
        or manifest.files.keys() != {WEIGHTS, optimizer, METRICS}
    ):
        raise DataError(f"{path} is damaged: its content is not as it was saved.")
    return manifest


def newest_environment(run: Run) -> dict[str, str]:
    """Return the environment recorded in the newest readable checkpoint; empty if there is none."""
    for step in reversed(run.state_steps):
        with contextlib.suppress(DataError, NotFoundError):
            return _read_manifest(run.state_path(step) / MANIFEST, step).loop.environment
    return {}
