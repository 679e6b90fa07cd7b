"""End of a run: when training stops, and which weights it averages then."""

from collections.abc import Sequence

from nmt.config.training import TrainingConfig
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, StepValidation, validations_since_best
from nmt.training.state import Position

# Weights of early epochs lie too far apart for a good mean.
EPOCHS_FOR_EACH_AVERAGED = 4
Validations = Sequence[StepValidation | EpochMetrics]
"""Validations of a run in their order."""


def stopped_early(validations: Validations, config: TrainingConfig) -> bool:
    """Return whether ``training.patience`` has ended training."""
    return config.patience is not None and validations_since_best(validations, config.best_by) >= config.patience


def is_trained(position: Position, validations: Validations, config: TrainingConfig) -> bool:
    """Return whether no epoch is left to train."""
    if position.epoch >= config.epochs:
        return True
    return position.steps_in_epoch == 0 and stopped_early(validations, config)


def epochs_to_average(position: Position, validations: Validations, config: TrainingConfig) -> list[int]:
    """Return the epochs whose weights the run's average is made of; none if the run has too few."""
    last = position.epoch if stopped_early(validations, config) else config.epochs
    count = min(config.average_last, last // EPOCHS_FOR_EACH_AVERAGED)
    return list(range(last - count + 1, last + 1)) if count > 1 else []


def is_finished(run: Run, position: Position, validations: Validations, config: TrainingConfig) -> bool:
    """Return whether nothing is left to do, neither an epoch nor the average."""
    if not is_trained(position, validations, config):
        return False
    kept = set(run.weights_epochs)
    epochs = epochs_to_average(position, validations, config) if position.epoch <= config.epochs else []
    averaged = any(average.epochs == epochs for average in run.averages())  # nmt average may have added more
    return not epochs or not kept.issuperset(epochs) or averaged
