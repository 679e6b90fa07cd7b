"""Estimate before training: the time, memory and disk space that a run will take."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmt import runtime
from nmt.cluster.summation import slots
from nmt.config.architecture import BatchShape
from nmt.data.token_arrays import Split
from nmt.errors import NmtError, counted
from nmt.message import Message, Settings
from nmt.models.weights import weights_of
from nmt.storage.disk import free_bytes
from nmt.training.checkpoints import CHECKPOINTS_KEPT
from nmt.training.divergence import memory_remedy, shortage_in_words
from nmt.training.interrupts import never_stop
from nmt.training.stopping import weights_to_keep
from nmt.training.trainer import Trainer

TIMED_STEPS = 5
USABLE_SHARE = 0.85
"""Largest share of the free memory that counts as enough: other programs use memory too, and the estimate is rough."""
LOGITS_KEPT = 3.5
"""Matrices [N, V] that a step keeps for its N target tokens: logits, softmax, its difference to the targets, copies."""
R_DROP = 2.4
"""Activation memory of an R-Drop step relative to a plain step: two passes and their divergence."""
HALF_BYTES = 2.4
"""Mean bytes of a number in a 16-bit precision: some numbers are kept in 32 bits."""


class Estimate(NamedTuple):
    """Time, memory and disk space that a run will take."""

    epochs: int
    """Number of epochs left to train, including an interrupted epoch."""
    steps: int
    """Number of optimizer steps of the next epoch."""
    vary: bool
    """Whether the number of steps changes in later epochs, which belong to another stage."""
    epoch_seconds: float
    """Time of an epoch with its validation, without translating and saving, in seconds."""
    seconds: float
    """Time of all epochs left, in seconds."""
    memory: int | None
    """Peak memory of this process while the longest batches were profiled, in bytes; None if it is unknown."""
    disk: int
    """Most bytes that this host writes to the run's folder."""
    free: int
    """Free bytes on that disk."""

    @property
    def text(self) -> str:
        """The estimate in one line."""
        memory = size(self.memory) if self.memory is not None else "unknown"
        return (
            f"Ahead: {counted(self.epochs, 'epoch')}{', the next' if self.vary else ''} of "
            f"{counted(self.steps, 'step')}, {duration(self.epoch_seconds)}{'' if self.vary else ' each'}, "
            f"{duration(self.seconds)} in all; memory {memory}; on disk at most {size(self.disk)}, of "
            f"{size(self.free)} free"
        )


def duration(seconds: float) -> str:
    """Return a time in a suitable unit, as "about 26 s"."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"about {seconds:.0f} s"
    if seconds < 100 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


def size(count: int) -> str:
    """Return a number of bytes in a suitable unit, as "890 KB"."""
    if count < 1e6:
        return f"{max(1, round(count / 1e3))} KB"
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def estimate(trainer: Trainer, stop: Callable[[], None] = never_stop) -> Estimate:
    """Profile a few steps on the longest and on ordinary batches of the coming epoch. The state stays unchanged.

    Args:
        trainer: trainer of the run.
        stop: is called after each batch, and may raise to break off.

    Raises:
        NmtError: if the disk has less room than the run needs, or memory does not hold the longest batches.
    """
    settings, model = trainer.config.training, trainer.model
    needed = bytes_to_write(trainer) if trainer.group.is_chief else 0  # the others write nothing
    free = free_bytes(trainer.run.folder)
    if needed > free:
        weights = sum(array.nbytes for array in weights_of(model).values())
        raise NmtError(
            f"Not enough disk space: {trainer.run.folder} needs {size(needed)} more, {size(free)} are free. Free some, "
            f"or keep the weights of fewer epochs, {size(weights)} each: ",
            Settings({"training.max_to_keep": 2, "training.average_last": 1}),
        )
    epoch = trainer.progress.epoch + 1
    plan, validation = trainer.pipeline.plan(epoch), trainer.validator.plan
    ordinary = [plan[number] for number in np.linspace(0, len(plan) - 1, TIMED_STEPS).astype(int)]
    longest = longest_batch(trainer, trainer.pipeline.split(epoch), plan)
    longest_validated = longest_batch(trainer, trainer.validator.split, validation)
    # The first steps of a process also trace graphs and allocate memory, so only later steps count.
    with shortage_in_words("before training, on its longest batches", trainer.config):
        seconds = trainer.profile([longest, *ordinary], [longest_validated, validation[0]], stop)
    batch = float(np.median(seconds[1 : 1 + TIMED_STEPS]))
    steps = trainer.pipeline.steps(epoch)
    shares = trainer.group.count * len(trainer.update.devices)
    epoch_seconds = batch * len(plan) / shares + seconds[-1] * len(validation)
    epochs = settings.epochs - trainer.progress.epoch
    done = trainer.progress.steps_in_epoch / steps
    ahead = [range(max(epoch, span[0]), span[-1] + 1) for span in settings.spans if span[-1] >= epoch]
    pairs = [len(span) * sum(trainer.pipeline.seen(span[0]).values()) for span in ahead]
    epochs_ahead = sum(pairs) / pairs[0] * len(ahead[0])  # stages differ in pairs: counted in epochs like the next
    return Estimate(
        epochs=epochs, steps=steps, epoch_seconds=epoch_seconds,
        seconds=epoch_seconds * (epochs_ahead - done),
        vary=len(ahead) > 1, memory=runtime.peak_memory(), disk=needed, free=free,
    )  # fmt: skip


def foreseen_shortage(trainer: Trainer) -> Message | None:
    """Compare the memory of the coming epoch's longest batch with the free memory. Nothing is computed on the device.

    Returns:
        A message about the shortage and its remedy; None if all batches fit or the system does not tell what is free.
    """
    free, epoch, count = runtime.free_memory(), trainer.progress.epoch + 1, trainer.config.training.micro_batches
    split = trainer.pipeline.split(epoch)
    longest = longest_batch(trainer, split, trainer.pipeline.plan(epoch))
    batch, state = batch_bytes(trainer, split, longest), trainer.update.state()
    gradients = sum(4 * weight.shape.num_elements() for weight in trainer.update.optimizer.variables_trained)
    # A checkpoint is copied before it is written. With a GPU the copy takes host memory, not the GPU's.
    copied = 0 if runtime.GPUS else gradients + sum(array.nbytes for array in state.optimizer.values())

    def needed(halvings: int) -> int:
        sums = slots(count * 2**halvings) - (slots(count) if count > 1 else 0) if halvings else 0
        return (batch >> halvings) + (1 + sums) * gradients + copied

    if free is None or needed(0) <= USABLE_SHARE * free:
        return None
    most = len(longest).bit_length()  # a single sentence pair is not halved
    halvings = next((number for number in range(1, most) if needed(number) <= USABLE_SHARE * free), None)
    return Message(
        f"Note: a step on the longest batch takes about {size(needed(0))}, and {size(free)} are free. Without room for "
        "it the system may end training without a message. ",
        *memory_remedy(trainer.config, halvings),
    )


def longest_batch(trainer: Trainer, split: Split, plan: list[np.ndarray]) -> np.ndarray:
    """Return the batch of a plan that takes the most memory, as indices of pairs."""
    return max(plan, key=lambda indices: batch_bytes(trainer, split, indices))


def batch_bytes(trainer: Trainer, split: Split, indices: np.ndarray) -> int:
    """Estimate the bytes of a training step on the pairs at ``indices`` [B], without weights and gradients.

    Checked on a CPU in 16 cases of both architectures, with 10 to 500 tokens a sentence and peaks of 240 MB to 2.3 GB.
    With the gradients added, the estimate was 0.79 times (several micro-batches) to 1.38 times (small batches, additive
    attention) the peak that TensorFlow counts. In three cases the process grew by 0.96 to 1.06 times that peak. A
    validation batch of the same size takes at most half as much. GPUs have not been checked.
    """
    settings, vocabulary = trainer.config.training, trainer.dataset.manifest.vocabulary
    lengths = [side.offsets[indices + 1] - side.offsets[indices] + 1 for side in (split.source, split.target)]
    source, target = (int(side.max()) for side in lengths)
    tokens = [int(side.sum()) for side in lengths]
    if not settings.remove_padding:
        tokens = [len(indices) * source, len(indices) * target]
    numbers = trainer.config.model.activations(BatchShape(len(indices), source, target, *tokens))
    numbers += LOGITS_KEPT * tokens[1] * vocabulary["target"]
    return round(numbers * (4 if settings.precision == "float32" else HALF_BYTES) * (R_DROP if settings.r_drop else 1))


def bytes_to_write(trainer: Trainer) -> int:
    """Return the most bytes that a run's folder will grow by until its end."""
    settings = trainer.config.training
    state = trainer.update.state()
    weights = sum(array.nbytes for array in state.weights.values())
    checkpoint = weights + sum(array.nbytes for array in state.optimizer.values())
    # Besides the kept ones, the best weights, and the newest before the oldest is deleted.
    most_kept = weights_to_keep(settings)
    kept = settings.epochs if most_kept is None else most_kept + 2
    files = min(settings.epochs, kept) + bool(trainer.epochs_to_average) + 2 * bool(settings.validate_every)
    most = files * weights + (CHECKPOINTS_KEPT + 1) * checkpoint
    present = sum(
        file.stat().st_size
        for part in ("weights", "state")
        for file in (trainer.run.folder / part).rglob("*.safetensors")
    )
    return max(most - present, checkpoint)
