"""The mean of the weights of some epochs (Vaswani et al. 2017, section 6.1), made after training."""

from nmt import runtime
from nmt.data.dataset import Dataset
from nmt.evaluation.validation_decoder import ValidationDecoder
from nmt.models.build import build_model
from nmt.models.weights import set_weights
from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics
from nmt.runs.weights import average_weights, save_weights
from nmt.storage.arrays import Arrays
from nmt.training.validation import ValidationPass


def average(run: Run, epochs: list[int], dataset: Dataset | None) -> AverageMetrics:
    """Write the mean of the weights of some epochs, to translate with, and what it comes to in validation.

    Args:
        run: whose weights are kept.
        epochs: at least two.
        dataset: what to validate on, as training did; None: the figures are left out.

    Raises:
        NotFoundError, DataError: if weights or the dataset are missing or damaged; nothing is written then.
    """
    weights = average_weights(run, epochs)
    # Training that goes on after this line outdates it: `Run.averages` goes by their order.
    step = max((one.step for one in run.validations()), default=0)
    metrics = AverageMetrics(epochs=epochs, step=step)
    if dataset:
        metrics = metrics.model_copy(update=_validate(run, weights, dataset))
    run.repair_metrics()
    save_weights(run, weights, "average")
    run.append_metrics(metrics)
    return metrics


def _validate(run: Run, weights: Arrays, dataset: Dataset) -> dict[str, float | None]:
    config, vocabulary = run.config(), dataset.manifest.vocabulary
    precision = runtime.resolve_precision(config.training.precision)
    model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision)
    set_weights(model, weights)
    loss, accuracy = ValidationPass(model, config, dataset.split("validation")).measure(_stay)
    scored = config.training.decode_validation
    decoded = ValidationDecoder(config, dataset)(weights, _stay) if scored else None
    return {
        "validation_loss": loss, "validation_accuracy": accuracy,
        "validation_bleu": decoded.bleu if decoded else None, "validation_chrf": decoded.chrf if decoded else None,
    }  # fmt: skip


def _stay() -> None:
    """Nobody asks to leave: nothing is written before all is done."""
