"""End of a run: when training stops, and which weights are averaged and kept."""

from collections.abc import Sequence

from nmt import runtime
from nmt.config.training import TrainingConfig
from nmt.data.dataset import Dataset
from nmt.models.build import build_model
from nmt.runs.directory import RUNS, Run, new_run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, StepValidation, WeightsId, validations_since_best
from nmt.runs.weights import average_files, average_weights, check_same_model, save_weights
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import refuse_existing
from nmt.storage.names import check_name
from nmt.training.checkpoints import TrainingProgress
from nmt.training.interrupts import never_stop
from nmt.training.validation import MakeDecode, Validator

EPOCHS_FOR_EACH_AVERAGED = 4
"""Least number of epochs per averaged epoch: weights of early epochs are too far apart for a good mean."""
Validations = Sequence[StepValidation | EpochMetrics]
"""Validations of a run in order."""


def stopped_early(validations: Validations, config: TrainingConfig) -> bool:
    """Return whether ``training.patience`` has ended training."""
    return config.patience is not None and validations_since_best(validations, config.best_by) >= config.patience


def is_trained(progress: TrainingProgress, validations: Validations, config: TrainingConfig) -> bool:
    """Return whether no epoch is left to train."""
    if progress.epoch >= config.epochs:
        return True
    return progress.steps_in_epoch == 0 and stopped_early(validations, config)


def epochs_to_average(progress: TrainingProgress, validations: Validations, config: TrainingConfig) -> list[int]:
    """Return the epochs whose weights the run averages at its end; empty if it has too few."""
    last = progress.epoch if stopped_early(validations, config) else config.epochs
    count = min(config.average_last, last // EPOCHS_FOR_EACH_AVERAGED)
    return list(range(last - count + 1, last + 1)) if count > 1 else []


def weights_to_keep(config: TrainingConfig) -> int | None:
    """Return the number of last epochs whose weights are kept; None: all epochs."""
    return None if config.max_to_keep is None else max(config.max_to_keep, config.average_last)


def is_finished(run: Run, progress: TrainingProgress, validations: Validations, config: TrainingConfig) -> bool:
    """Return whether neither an epoch nor the average is left to do."""
    if not is_trained(progress, validations, config):
        return False
    kept = set(run.weights_epochs)
    epochs = epochs_to_average(progress, validations, config) if progress.epoch <= config.epochs else []
    averaged = any(average.epochs == epochs for average in run.averages())  # nmt average may have added more
    return not epochs or not kept.issuperset(epochs) or averaged


def average(run: Run, epochs: list[int], dataset: Dataset | None, make_decode: MakeDecode) -> AverageMetrics:
    """Write the mean of the weights of some epochs, and its record in the metrics file.

    Args:
        run: run whose weights are averaged.
        epochs: at least two epochs.
        dataset: dataset to validate on, as in training; None: the record has no scores.
        make_decode: makes the function that translates, for runs with ``training.decode_validation``.

    Raises:
        NotFoundError, DataError: if weights or the dataset are missing or damaged; nothing is written then.
    """
    weights = average_weights(run, epochs)
    # `Run.averages` goes by the order of records: an epoch that is trained after this record outdates it.
    step = max((validation.step for validation in run.validations()), default=0)
    metrics = _with_scores(run, weights, AverageMetrics(epochs=epochs, step=step), dataset, make_decode)
    run.repair_metrics()
    save_weights(run, weights, "average")
    run.append_metrics(metrics)
    return metrics


def average_runs(
    name: str, members: Sequence[tuple[Run, WeightsId]], dataset: Dataset | None, make_decode: MakeDecode
) -> AverageMetrics:
    """Create a run with the mean of the weights of several runs and the configuration of the first.

    Args:
        name: name of the new run.
        members: the runs, each with the weights to average.
        dataset, make_decode: as for ``average``.

    Raises:
        NotFoundError, DataError: if weights or the dataset are missing or damaged; nothing is written then.
        ConflictError: if the name is taken, or the runs have different models.
    """
    first = members[0][0]
    refuse_existing(RUNS / check_name(name, "run"))
    for run, _ in members[1:]:
        check_same_model(first, run)
    weights = average_files([run.weights_path(weights_id) for run, weights_id in members])
    metrics = AverageMetrics(
        epochs=[max(run.weights_epochs, default=0) for run, _ in members],
        step=max((record.step for run, _ in members for record in run.validations()), default=0),
        runs=[f"{run.name}:{weights_id}" for run, weights_id in members],
    )
    metrics = _with_scores(first, weights, metrics, dataset, make_decode)
    with new_run(name, first.config(), [first.dataset_path, *first.tokenizer_files]) as created:
        save_weights(created, weights, "average")
        created.append_metrics(metrics)
    return metrics


def _with_scores(
    run: Run, weights: Arrays, metrics: AverageMetrics, dataset: Dataset | None, make_decode: MakeDecode
) -> AverageMetrics:
    """Return a record with the scores of the weights; without a dataset the record itself."""
    if dataset:
        config, vocabulary = run.config(), dataset.manifest.vocabulary
        precision = runtime.resolve_precision(config.training.precision)
        model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision)
        decode = make_decode(config, dataset) if config.training.decode_validation else None
        result = Validator.of(model, config, dataset, decode).validate(weights, never_stop)
        metrics = metrics.model_copy(update=result.fields())
    return metrics
