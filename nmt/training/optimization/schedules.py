"""Learning-rate schedules as pure functions of the step, shared by training and plots.

All rise in a straight line over ``warmup_steps`` to their peak and fall from there, each in its way.
"""

import math

from nmt.config.training import TrainingConfig


def learning_rate(step: int, d_model: int, training: TrainingConfig, total_steps: int | None = None) -> float:
    """Return the learning rate of a step, the first being 1, by the schedule that the section names.

    Args:
        step: 1 or more.
        d_model: width of the model, on which schedule "noam" depends.
        training: the training section.
        total_steps: what ``steps_of_run`` returns; only a schedule that ``ends_with_run`` needs it.

    Raises:
        ValueError: for a step below 1, and without ``total_steps`` where they are needed.
    """
    if step < 1:
        raise ValueError(f"steps count from 1; received {step}")
    peak, final, warmup_steps = training.peak_learning_rate, training.final_learning_rate, training.warmup_steps
    if training.schedule == "noam" or peak is None:
        return warmup_rate(step, d_model=d_model, warmup_steps=warmup_steps, scale=training.learning_rate_scale)
    if training.schedule == "inverse_sqrt":
        return inverse_sqrt_rate(step, peak=peak, warmup_steps=warmup_steps)
    decay_steps = training.decay_steps
    if decay_steps is None:
        if total_steps is None:
            raise ValueError(f"schedule {training.schedule} to the end of the run needs the steps of the run")
        decay_steps = max(1, total_steps - warmup_steps)  # a run shorter than its rise never falls
    falling = cosine_rate if training.schedule == "cosine" else linear_rate
    return falling(step, peak=peak, final=final, warmup_steps=warmup_steps, decay_steps=decay_steps)


def warmup_rate(step: int, *, d_model: int, warmup_steps: int, scale: float = 1.0) -> float:
    """Return the learning rate of a step, the first being 1 (Vaswani et al. 2017, equation 3).

    scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5): a straight rise over ``warmup_steps``, then a
    fall with the square root of the step.

    Raises:
        ValueError: for a step below 1, where the formula has no value.
    """
    if step < 1:
        raise ValueError(f"steps count from 1; received {step}")
    return float(scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_sqrt_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return peak * min(step / warmup_steps, sqrt(warmup_steps / step)): the paper's shape with its peak given."""
    return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))


def cosine_rate(step: int, *, peak: float, final: float, warmup_steps: int, decay_steps: int) -> float:
    """Return the rate that falls from peak to final along half a cosine (Loshchilov and Hutter 2017, equation 5)."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    share = min(1.0, (step - warmup_steps) / decay_steps)
    return final + (peak - final) * (1 + math.cos(math.pi * share)) / 2


def linear_rate(step: int, *, peak: float, final: float, warmup_steps: int, decay_steps: int) -> float:
    """Return the rate that falls from peak to final in a straight line."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    share = min(1.0, (step - warmup_steps) / decay_steps)
    return final + (peak - final) * (1 - share)


def ends_with_run(training: TrainingConfig) -> bool:
    """Return whether the schedule falls to the end of the run, so that other ``epochs`` would be another schedule."""
    return training.schedule in {"cosine", "linear"} and training.decay_steps is None


def steps_of_run(first_epoch_batches: int, training: TrainingConfig) -> int:
    """Return the steps that schedules take a run to have: those of its first epoch, times the epochs.

    Batches by tokens vary by a few from epoch to epoch; what the run takes beyond this number has the final rate.

    Args:
        first_epoch_batches: length of the plan of epoch 1 (see ``nmt.data.batch_plan``).
        training: the training section.
    """
    return math.ceil(first_epoch_batches / training.accumulation_steps) * training.epochs
