"""Learning-rate schedules: pure functions of the step, which rise linearly to their peak over ``warmup_steps``.

A schedule is a name in ``TrainingConfig.schedule`` and a branch of ``learning_rate``.
"""

import math
from collections.abc import Callable

from nmt.config.training import TrainingConfig


def learning_rate(step: int, width: int, training: TrainingConfig, total_steps: int | None = None) -> float:
    """Return the learning rate of a step by the configured schedule.

    - noam: scale * width^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (Vaswani et al. 2017, equation 3)
    - inverse_sqrt: the same shape with a given peak
    - cosine: falls from the peak to the final rate along half a cosine (Loshchilov and Hutter 2017, equation 5)
    - linear: falls from the peak to the final rate along a line

    Args:
        step: number of the step, from 1.
        width: width D of the model, for the noam schedule.
        training: the training section.
        total_steps: number of steps of the run by ``steps_of_run``, for a schedule that ``ends_with_run``.

    Raises:
        ValueError: for a step below 1, or a missing ``total_steps``.
    """
    if step < 1:
        raise ValueError(f"steps count from 1; received {step}")
    peak, final, warmup_steps = training.peak_learning_rate, training.final_learning_rate, training.warmup_steps
    if training.schedule == "noam" or peak is None:
        return float(training.learning_rate_scale * width**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
    if training.schedule == "inverse_sqrt":
        return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))
    if total_steps is None:
        raise ValueError(f"schedule {training.schedule} to the end of the run needs total_steps")
    if step < warmup_steps:
        return peak * step / warmup_steps
    share = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))  # a longer warm-up never ends
    left = (1 + math.cos(math.pi * share)) / 2 if training.schedule == "cosine" else 1 - share
    return final + (peak - final) * left


def ends_with_run(training: TrainingConfig) -> bool:
    """Return whether the schedule falls to the end of the run, so that it depends on ``training.epochs``."""
    return training.schedule in {"cosine", "linear"}


def steps_of_run(batches: Callable[[int], int], training: TrainingConfig) -> int:
    """Return the number of steps of a run for its schedule.

    All epochs of a stage count as many steps as its first epoch. With batches by tokens, epochs differ by a few steps.
    Steps beyond the returned number have the final rate.

    Args:
        batches: function from an epoch to its number of batches.
        training: the training section.
    """
    return sum(math.ceil(batches(epochs[0]) / training.micro_batches) * len(epochs) for epochs in training.spans)
