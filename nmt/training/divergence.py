"""Messages that end training: values that are not finite, a loss no better than guessing, memory that runs out."""

import contextlib
import math
from collections.abc import Iterator, Sequence

import numpy as np

from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import NmtError, OutOfMemoryError, counted
from nmt.message import Argument, Command, Message, Part, Settings
from nmt.runs.metrics import EpochMetrics, StepValidation
from nmt.runtime import tf
from nmt.storage.arrays import Arrays
from nmt.training.checkpoints import TrainingProgress
from nmt.training.optimization.update import Update

USUAL_RATES = {"learning_rate_scale": 1.0, "peak_learning_rate": 5e-4}
"""Learning rates with which models train; half of a rate far above them diverges too."""


class DivergedError(NmtError):
    """Training that diverged."""


def failed_step(update: Update, progress: TrainingProgress) -> str | None:
    """Return the batch whose loss or gradients ended training, in words; None: none did."""
    report, config = update.nonfinite.read(), update.config
    if report.first_bad_batch is None or report.last_bad_batch is None:
        return None
    number, skipped = report.first_bad_batch, 0
    if update.skips:
        if report.skipped <= config.skip_nonfinite:
            return None
        number, skipped = report.last_bad_batch, report.skipped - 1
    step, place = divmod(number, config.micro_batches)
    batch = (step - 1 - progress.step + progress.steps_in_epoch) * config.micro_batches + place + 1
    after = f", after {counted(skipped, 'skipped step')}" if skipped else ""
    return f"step {step}, batch {batch} of epoch {progress.epoch + 1}{after}"


def not_finite(weights: Arrays, progress: TrainingProgress) -> str | None:
    """Return the first weights that are not finite, in words; None: all are."""
    for name, array in weights.items():
        if not (np.isfinite(array.min()) and np.isfinite(array.max())):  # both are NaN if any value is
            return f"weights {name} after step {progress.step}, in epoch {progress.epoch + 1}"
    return None


def diverged(what: str, saved: TrainingProgress | None, config: TrainingConfig) -> DivergedError:
    """Return the error for training that diverged at ``what``, given where the last checkpoint stands."""
    last = f"step {saved.step} is the last one saved" if saved else "nothing has been saved"
    return DivergedError(
        f"Training diverged: {what}; {last}. Loss, gradients and weights must stay finite. ", *_lower_rate(config)
    )


def _lower_rate(config: TrainingConfig) -> tuple[Part, ...]:
    key = "learning_rate_scale" if config.schedule == "noam" else "peak_learning_rate"
    lower = min(getattr(config, key) / 2, USUAL_RATES[key])
    return (
        "Start another run with a lower rate, such as ",
        Settings({f"training.{key}": lower}),
        ", with more training.warmup_steps or with ",
        Settings({"training.clip_norm": 1}),
        ".",
    )


def without_success(
    validations: Sequence[EpochMetrics | StepValidation], vocabulary: int, config: TrainingConfig
) -> Message | None:
    """Return in words that training has ended without success, and the remedy; None if a validation was better.

    The loss of guessing is that of equally probable target ids. Overfitting raises the validation loss above it too,
    so the lowest loss counts, or a training loss that falls.

    Args:
        validations: all validations of the run.
        vocabulary: number of target ids.
        config: the section training.
    """
    guessing = math.log(vocabulary)
    lowest = min((validation.validation_loss for validation in validations), default=0.0)
    best_bleu = max((validation.validation_bleu or 0.0 for validation in validations), default=0.0)
    train_losses = [epoch.train_loss for epoch in validations if isinstance(epoch, EpochMetrics)]
    falls = len(train_losses) < 2 or train_losses[-1] < train_losses[0]
    if lowest >= guessing:
        finding = f"no validation loss is below {guessing:.3f}, that of guessing among {vocabulary:,} ids"
    elif not falls and lowest >= guessing / 2 and best_bleu < 1:
        finding = (
            f"the training loss was {train_losses[0]:.3f} in the first epoch and is {train_losses[-1]:.3f} in the "
            "last, and the translations do not resemble the references"
        )
    else:
        return None
    few_steps = " A run of few steps may need more epochs instead."
    return Message(f"Training failed: {finding}. ", *_lower_rate(config), few_steps)


@contextlib.contextmanager
def shortage_in_words(where: str, config: Config) -> Iterator[None]:
    """Raise OutOfMemoryError for memory that runs out in the block, which is ``where`` in training."""
    try:
        yield
    except (tf.errors.ResourceExhaustedError, MemoryError) as error:
        halvings = 1 if config.training.batch_size > 1 else None
        raise OutOfMemoryError(
            f"Memory ran out {where}. It must hold a batch and what its gradient needs. With more memory the same "
            "command goes on from the last state saved. ",
            *memory_remedy(config, halvings),
        ) from error


def memory_remedy(config: Config, halvings: int | None) -> tuple[Part, ...]:
    """Return what to do about a lack of memory: batches halved N times, in more micro-batches; None: no help."""
    if halvings is None:
        return (
            "End other programs, make the model smaller, or drop long sentences with ",
            Command("prepare", Settings({"data.max_tokens": 100})),
            ".",
        )
    smaller = max(1, config.training.batch_size // 2**halvings)
    more = config.training.micro_batches * 2**halvings
    return (
        "End other programs, or give ",
        Settings({"training.batch_size": smaller, "training.micro_batches": more}),
        ", which learns from as many tokens a step. A run that has begun needs ",
        Argument("allow_changes", True),
        " too.",
    )
