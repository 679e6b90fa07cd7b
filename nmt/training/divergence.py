"""Messages that end training: a loss, gradients or weights that are not finite, and memory that runs out."""

import numpy as np

from nmt.config.training import TrainingConfig
from nmt.errors import NmtError, OutOfMemoryError
from nmt.storage.arrays import Arrays
from nmt.training.checkpoints import LoopState
from nmt.training.state import TrainState


class DivergedError(NmtError):
    """Training that diverged."""


def failed_step(state: TrainState) -> str | None:
    """Return the batch whose loss or gradients ended training, in words; None: none did."""
    report, config = state.train_step.nonfinite_report(), state.config.training
    if report.first_bad_batch is None or report.last_bad_batch is None:
        return None
    number, skipped = report.first_bad_batch, 0
    if state.train_step.skips:
        if report.skipped <= config.skip_nonfinite:
            return None
        number, skipped = report.last_bad_batch, report.skipped - 1
    position, count = state.position, config.micro_batches
    step, place = divmod(number, count)
    batch = (step - 1 - position.step + position.steps_in_epoch) * count + place + 1
    after = f", after {skipped} skipped steps" if skipped else ""
    return f"step {step}, batch {batch} of epoch {position.epoch + 1}{after}"


def not_finite(weights: Arrays, state: TrainState) -> str | None:
    """Return the first weights that are not finite, in words; None: all are."""
    for name, array in weights.items():
        if not (np.isfinite(array.min()) and np.isfinite(array.max())):  # both are NaN if any value is
            return f"weights {name} after step {state.position.step}, in epoch {state.position.epoch + 1}"
    return None


def diverged(what: str, saved: LoopState | None, config: TrainingConfig) -> DivergedError:
    """Return the error for training that diverged at ``what``, given the position of the last checkpoint."""
    last = f"step {saved.step} is the last one saved" if saved else "nothing has been saved"
    key = "learning_rate_scale" if config.schedule == "noam" else "peak_learning_rate"
    return DivergedError(
        f"Training diverged: {what}; {last}. Loss, gradients and weights must stay finite. Start another run with a "
        f"lower rate, such as --set training.{key}={getattr(config, key) / 2:g}, with more training.warmup_steps or "
        "with --set training.clip_norm=1."
    )


def out_of_memory(what: str, saved: LoopState | None, config: TrainingConfig) -> OutOfMemoryError:
    """Return the error for memory that ran out at ``what``, given the position of the last checkpoint."""
    last = f"Step {saved.step:,} is the last one saved; the same command goes on from there" if saved else (
        "Nothing has been saved"
    )  # fmt: skip
    smaller = max(1, config.largest_batch // 2)
    return OutOfMemoryError(
        f"Memory ran out {what}. Batches are computed in parts where that helps; here it does not. {last}. End other "
        "programs, make the model smaller, or drop long sentences with nmt prepare --set data.max_tokens=100; another "
        f"run takes smaller batches with --set training.batch_size={smaller} --set "
        f"training.micro_batches={2 * config.micro_batches}."
    )
