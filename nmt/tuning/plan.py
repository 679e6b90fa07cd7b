"""Plan of successive halving (Jamieson and Talwalkar 2016; Li et al. 2018): rungs, trials, their length.

R rungs share the budget equally. Rung r has n_r candidates besides the base; a third of them, at least 1, goes on to
rung r + 1. All trials of a rung train for the same time, so that a faster model takes more steps.
"""

import math
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.config.training import TrainingConfig

ETA = 3
"""Candidates of a rung for each that goes on."""
FIRST_RUNGS = (27, 9, 6, 3, 2, 1)
"""Numbers of candidates besides the base in the first rung. Those between have a rung more, and all rungs shorter."""
LEAST_STEPS = 10
"""Fewest steps of a trial of the base."""
USEFUL_STEPS = 500
"""Steps of the base in the first rung, or an epoch if it is shorter."""
USEFUL_SHARE = 4
"""Training time of a trial in the first rung, in times of what the trial takes besides."""
WARMUP_SHARE = 5
"""The warm-up takes at most this part of a trial, one fifth."""


class Score(NamedTuple):
    """Quality of a trial; scores compare in this order."""

    bleu: float
    """BLEU of greedy translations of validation sentences, 0 to 100."""
    chrf: float
    """Their chrF, 0 to 100, which decides between equal BLEU."""


def halving(count: int) -> list[int]:
    """Return the number of candidates besides the base by rung, from N in the first to 1 in the last."""
    rungs = [count]
    while rungs[-1] > 1:
        rungs.append(math.ceil(rungs[-1] / ETA))
    return rungs


def training_seconds(left: float, rungs: int, trials: int, overhead: float) -> float:
    """Return the training time of each trial of the next rung.

    Args:
        left: seconds that are left of the budget.
        rungs: number of rungs left, the next included.
        trials: number of trials of the next rung, that of the base included.
        overhead: seconds that a trial takes besides training.
    """
    return left / rungs / trials - overhead


def shape(available: int, left: float, overhead: float, step_seconds: float, epoch_steps: int) -> list[int]:
    """Return the number of candidates besides the base by rung: as many as get a useful training time.

    Args:
        available: largest number of candidates besides the base.
        left: seconds of the budget.
        overhead: seconds that a trial takes besides training.
        step_seconds: time of a step of the base.
        epoch_steps: steps of an epoch of the base.

    Returns:
        n_r by rung; empty if the budget is too small for a single candidate beside the base.
    """
    useful = max(USEFUL_SHARE * overhead, min(USEFUL_STEPS, epoch_steps) * step_seconds)
    for count in (count for count in FIRST_RUNGS if count <= available):
        rungs = halving(count)
        least = useful if count > 1 else LEAST_STEPS * step_seconds
        if training_seconds(left, len(rungs), count + 1, overhead) >= least:
            return rungs
    return []


def least_budget(overhead: float, step_seconds: float) -> float:
    """Return the fewest seconds in which a candidate can be compared with the base."""
    return 2 * (overhead + LEAST_STEPS * step_seconds)


def steps_in(seconds: float, step_seconds: float) -> int:
    """Return the number of steps that fit into a time, at least 1."""
    return max(1, int(seconds / step_seconds))


def ranked(scores: dict[int, Score]) -> list[int]:
    """Return the numbers of candidates, the best first; among equals the lower number."""
    return sorted(scores, key=lambda number: (tuple(-value for value in scores[number]), number))


def going_on(scores: dict[int, Score], base: int, count: int) -> list[int]:
    """Return the candidates of the next rung: the base, then the best N others.

    Args:
        scores: scores by candidate, without those that failed.
        base: number of the base, which always goes on.
        count: number N of others.
    """
    return [base, *[number for number in ranked(scores) if number != base][:count]]


def worth_combining(scores: dict[int, Score], base: int) -> tuple[int, int] | None:
    """Return the two best candidates, if both are better than the base."""
    better = [number for number in ranked(scores) if base in scores and scores[number] > scores[base]]
    return (better[0], better[1]) if len(better) > 1 else None


def trial_config(config: Config, steps: int, epoch_steps: int, rung: int) -> Config:
    """Return the configuration of a trial of N steps: its schedule ends with it, so that trials can be compared.

    A warm-up longer than a fifth of the trial is cut to it, with the same peak. Each rung has a seed of its own, so
    that luck with the seed of a rung does not go on to the next. Nothing is translated or kept in between.

    Args:
        config: configuration of the candidate.
        steps: number of steps N.
        epoch_steps: number of steps of an epoch.
        rung: number of the rung, from 1.
    """
    training = config.training
    changes = {
        **_schedule(training, steps),
        "seed": (training.seed + rung - 1) % 2**32,
        # Epochs differ by a few steps: with one more, training never ends before step N.
        "epochs": steps // epoch_steps + 2,
        "decode_validation": 0, "samples": 0, "best_by": "accuracy", "patience": None, "validate_every": None,
        "trackers": [], "save_every": None, "save_every_minutes": 2.0, "max_to_keep": 1,
    }  # fmt: skip
    values = config.model_dump()
    values["training"].update(changes)
    return Config.model_validate(values)


def _schedule(training: TrainingConfig, steps: int) -> dict[str, object]:
    warmup = min(training.warmup_steps, max(1, steps // WARMUP_SHARE))
    changes: dict[str, object] = {"warmup_steps": warmup}
    if training.schedule == "noam":  # its peak is scale / sqrt(d_model * warmup)
        changes["learning_rate_scale"] = training.learning_rate_scale * math.sqrt(warmup / training.warmup_steps)
    if training.schedule in {"cosine", "linear"}:
        changes["decay_steps"] = max(1, steps - warmup)
    return changes


def full_epochs(base_epochs: int, base_epoch_seconds: float, epoch_seconds: float) -> int:
    """Return the epochs in which a candidate trains as long as the base in its own, at least 1."""
    return max(1, round(base_epochs * base_epoch_seconds / epoch_seconds))
