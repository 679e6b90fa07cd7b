"""Checkpoints to resume training from, each whole and with checksums.

A checkpoint is a folder ``state/step-N`` of a run: weights, optimizer, metrics file, and ``state.json``, which is
written last and has the checksums of the others.
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
from nmt.runs.directory import Run
from nmt.runs.weights import SavedWeights
from nmt.storage.arrays import Arrays, read_arrays, write_arrays
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import write_json

CHECKPOINTS_KEPT = 2  # the newest, and the one before in case the newest is damaged
FORMAT = 2
WEIGHTS, OPTIMIZER, METRICS, MANIFEST = "weights.safetensors", "optimizer.safetensors", "metrics.jsonl", "state.json"
OPTIMIZER_OF_FORMAT_1 = "learner.safetensors"


class TrainingProgress(Record):
    """Where a run stands between two steps, and what the last bits of its result depend on."""

    model_config = ConfigDict(frozen=False)

    epoch: int = Field(0, ge=0, le=2**53)
    """Number of completed epochs: trained, validated and recorded in the metrics."""
    step: int = Field(0, ge=0, le=2**53)
    """Number of optimizer steps since the run began."""
    steps_in_epoch: int = Field(0, ge=0, le=2**53)
    """Number of steps in the current epoch; all of its steps if only its validation is missing."""
    seconds: float = 0.0
    """Training time of the current epoch so far."""
    totals: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Summed loss, correct tokens and tokens of the current epoch, when they were last read from the device."""
    logged: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Totals when the last step record was written."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Versions and processor, on which the last bits of a result depend."""


class CheckpointManifest(Record):
    """Content of ``state.json``. Its checksum detects damage; those in ``files`` detect damaged or foreign files."""

    format: Literal[2] = 2
    """Number of this format."""
    loop: TrainingProgress
    """Where the run stands."""
    files: dict[str, str]
    """SHA-256 of each file beside it, by name."""
    sha256: str
    """SHA-256 of all of the above."""


def _digest(loop: dict[str, Any], files: dict[str, str], format_: int) -> str:
    parts = [loop, files] if format_ == 1 else [format_, loop, files]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class TrainingState(NamedTuple):
    """All that a step changes."""

    weights: Arrays
    """Weights of the model by name."""
    optimizer: Arrays
    """Optimizer moments, moving averages, loss scale and non-finite tracker."""
    totals: tuple[float, float, float]
    """Summed loss, correct tokens and tokens of the epoch so far."""


class Checkpoint(NamedTuple):
    """Content of a checkpoint."""

    progress: TrainingProgress
    """Where the run stands."""
    metrics: bytes
    """Metrics file up to there."""
    state: TrainingState
    """All that the next step changes."""


def save_checkpoint(run: Run, checkpoint: Checkpoint, saved: SavedWeights | None = None) -> None:
    """Write a checkpoint, then delete the older ones beyond ``CHECKPOINTS_KEPT`` and all of later steps.

    Args:
        run: the run.
        checkpoint: its content.
        saved: a file with the same weights, to be linked instead of written again.
    """
    progress, state = checkpoint.progress, checkpoint.state
    with atomic_folder(run.state_path(progress.step), replace=True) as temporary:
        (temporary / METRICS).write_bytes(checkpoint.metrics)
        files = {
            METRICS: sha256(temporary / METRICS),
            WEIGHTS: _link(saved, temporary / WEIGHTS) if saved else write_arrays(
                temporary / WEIGHTS, state.weights
            ),
            OPTIMIZER: write_arrays(temporary / OPTIMIZER, state.optimizer),
        }  # fmt: skip
        digest = _digest(progress.model_dump(mode="json"), files, FORMAT)
        manifest = CheckpointManifest(loop=progress, files=files, sha256=digest)
        write_json(temporary / MANIFEST, manifest.model_dump(mode="json"))
    older = [step for step in run.state_steps if step < progress.step]
    later = [step for step in run.state_steps if step > progress.step]  # damaged, so their steps are taken again
    for step in [*older[: 1 - CHECKPOINTS_KEPT], *later]:
        shutil.rmtree(run.state_path(step))


def _link(saved: SavedWeights, path: Path) -> str:
    try:
        path.hardlink_to(saved.path)
    except OSError:  # a file system without links
        shutil.copyfile(saved.path, path)
    return saved.checksum


def restore_newest(run: Run, restore: Callable[[TrainingState], None]) -> tuple[Checkpoint | None, list[str]]:
    """Restore the newest checkpoint that can be used.

    Args:
        run: the run.
        restore: restores a state; raises KeyError or ValueError for that of another model.

    Returns:
        The checkpoint, None if the run has none; and newer ones that could not be used, with the reason in words.

    Raises:
        DataError: if there are checkpoints and none can be used, or weights without any checkpoint.
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
            f"Run {run.name!r} cannot go on: {' '.join(damaged)} Training resumes from a whole state. The "
            "run's weights, where they are whole, still translate; to train, start another run with --run NAME."
        )
    if max(run.weights_epochs, default=0) > 1:  # those of epoch 1 may have been saved just before its checkpoint
        states = run.state_path(0).parent
        raise DataError(
            f"Run {run.name!r} cannot go on: it has weights, but {states} holds no state. Training resumes from a "
            f"state. Restore a copy of it, or start another run from these weights: --run NAME --from {run.name}."
        )
    return None, []


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Return the checkpoint after a step, all of it verified.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if a file is damaged, of an unknown format, or not of this checkpoint.
    """
    manifest = _read_manifest(folder / MANIFEST, step)
    optimizer = OPTIMIZER if OPTIMIZER in manifest.files else OPTIMIZER_OF_FORMAT_1
    try:
        metrics = (folder / METRICS).read_bytes()
    except OSError as error:
        raise NotFoundError(f"{folder / METRICS} cannot be read: {error.strerror}.") from None
    if hashlib.sha256(metrics).hexdigest() != manifest.files[METRICS]:
        raise DataError(f"{folder / METRICS} is damaged: its SHA-256 is not the one recorded when it was saved.")
    weights = read_arrays(folder / WEIGHTS, manifest.files[WEIGHTS])
    arrays = read_arrays(folder / optimizer, manifest.files[optimizer])
    return Checkpoint(manifest.loop, metrics, TrainingState(weights, arrays, manifest.loop.totals))


def _read_manifest(path: Path, step: int) -> CheckpointManifest:
    try:
        content = json.loads(path.read_bytes())
        number = content.get("format") or 1
        if number not in (1, FORMAT):
            raise DataError(
                f"{path} has format {str(number)[:20]}; this version of nmt reads formats 1 and {FORMAT}. Update nmt."
            )
        if number == 1:  # other names, the same content
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
        raise DataError(f"{path} is damaged: it is not as it was saved.")
    return manifest


def newest_environment(run: Run) -> dict[str, str]:
    """Return versions and processor of the newest checkpoint that can be read; empty without one."""
    for step in reversed(run.state_steps):
        with contextlib.suppress(DataError, NotFoundError):
            return _read_manifest(run.state_path(step) / MANIFEST, step).loop.environment
    return {}
