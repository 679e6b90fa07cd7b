"""Messages that end training: values that are not finite, a loss no better than guesses, memory that runs out."""

import contextlib
from collections.abc import Iterable, Iterator

import numpy as np

from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.data.token_arrays import Sequences
from nmt.errors import NmtError, OutOfMemoryError, counted
from nmt.message import Argument, Command, Message, Part, Settings
from nmt.runs.metrics import Validation
from nmt.runtime import tf
from nmt.storage.arrays import Arrays
from nmt.tokenizers.base import EOS
from nmt.training.checkpoints import TrainingProgress
from nmt.training.optimization.update import Update

USUAL_RATES = {"learning_rate_scale": 1.0, "peak_learning_rate": 5e-4}
"""Learning rates with which models train; half of a rate far above them diverges too."""
AT_ONCE = 10_000_000
"""Tokens that are counted at once, for their memory."""


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


def loss_of_guessing(train: Sequences, validation: Sequences, vocabulary: int) -> float:
    """Return the mean loss of a validation target token, eos included, of guesses by how often training has each id.

    A model that ignores the source and the words before learns this and no more; an untrained one is above it.
    """
    counts = np.ones(vocabulary)  # an id that training does not have is possible
    for place in range(0, len(train.tokens), AT_ONCE):
        counts += np.bincount(train.tokens[place : place + AT_ONCE], minlength=vocabulary)
    counts[EOS] += len(train)
    expected = np.bincount(validation.tokens, minlength=vocabulary)
    expected[EOS] += len(validation)
    return float(-(expected @ np.log(counts / counts.sum())) / expected.sum())


def without_success(validations: Iterable[Validation], guessing: float, config: TrainingConfig) -> Message | None:
    """Return in words that training has ended without success, and the remedy; None if a validation was better.

    Overfitting and a late divergence raise the validation loss too, so the lowest counts: its weights are kept.

    Args:
        validations: all validations of the run.
        guessing: ``loss_of_guessing``.
        config: the section training.
    """
    lowest = min((validation.validation_loss for validation in validations), default=0.0)
    if lowest < guessing:
        return None
    return Message(
        f"Training failed: the lowest validation loss is {lowest:.3f}; guesses by how often each token occurs have "
        f"{guessing:.3f}. ",
        *_lower_rate(config),
        " If the loss hardly changed, the run needs more epochs or a higher rate.",
    )


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
