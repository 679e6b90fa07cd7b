"""Average of the weights of several epochs, made after training (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Callable

from nmt import runtime
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.models.build import build_model
from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics
from nmt.runs.weights import average_weights, save_weights
from nmt.training.interrupts import never_stop
from nmt.training.validation import Decode, Validator

MakeDecode = Callable[[Config, Dataset], Decode]
"""Returns the function that translates validation sentences, for a configuration and a dataset."""


def average(run: Run, epochs: list[int], dataset: Dataset | None, make_decode: MakeDecode) -> AverageMetrics:
    """Write the mean of the weights of some epochs, to translate with, and its record in the metrics file.

    Args:
        run: run whose weights are kept.
        epochs: at least two epochs.
        dataset: dataset to validate on, as in training; None: the record has no figures.
        make_decode: makes the function that translates, for runs with ``training.decode_validation``.

    Raises:
        NotFoundError, DataError: if weights or the dataset are missing or damaged; nothing is written then.
    """
    weights = average_weights(run, epochs)
    # Training that goes on after this record outdates it: `Run.averages` goes by their order.
    step = max((validation.step for validation in run.validations()), default=0)
    metrics = AverageMetrics(epochs=epochs, step=step)
    if dataset:
        config, vocabulary = run.config(), dataset.manifest.vocabulary
        precision = runtime.resolve_precision(config.training.precision)
        model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision)
        decode = make_decode(config, dataset) if config.training.decode_validation else None
        result = Validator(model, config, dataset.split("validation"), decode).validate(weights, never_stop)
        metrics = metrics.model_copy(update=result.fields())
    run.repair_metrics()
    save_weights(run, weights, "average")
    run.append_metrics(metrics)
    return metrics
