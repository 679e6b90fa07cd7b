"""Metrics are shown with the name, format and unit of their measure."""

from typing import Annotated

from nmt.runs.metrics import ACCURACY, EpochMetrics, Measure, StepMetrics, in_words, measures, metric_values

MEMORY = Measure("peak memory", ".1f", "min", unit="GB")
STEP = StepMetrics(epoch=1, step=50, loss=2.3456, accuracy=0.25, learning_rate=1e-3, gradient_norm=1.5)


class WithMemory(StepMetrics):
    """Record of a new metric with a unit."""

    peak_memory: Annotated[float | None, MEMORY] = None


def test_a_value_is_shown_with_its_unit_and_a_plain_number_without() -> None:
    assert (MEMORY.text(1.25), MEMORY.heading) == ("peak memory 1.2 GB", "peak memory (GB)")
    assert (ACCURACY.text(0.5), ACCURACY.heading) == ("accuracy 0.500", "accuracy")


def test_a_new_metric_is_shown_by_its_measure_alone() -> None:
    record = WithMemory(**dict(STEP), peak_memory=2.0)
    assert measures(WithMemory)["peak_memory"] == MEMORY
    assert in_words(record) == f"{in_words(STEP)}, peak memory 2.0 GB"
    assert [value.name for value in metric_values(record)][-1] == "peak_memory"


def test_metrics_without_a_value_are_left_out_and_validation_comes_last() -> None:
    epoch = EpochMetrics(
        epoch=2, step=80, train_loss=2.0, train_accuracy=0.5, validation_loss=2.5, validation_accuracy=0.25,
        target_tokens=900, seconds=3.0, loss_by_corpus={"original": 1.5, "bt": 2.5},
        pairs_by_corpus={"original": 30, "bt": 10},
    )  # fmt: skip
    names = [(value.group, value.name) for value in metric_values(epoch)]
    assert names == [
        ("epoch", "loss"), ("epoch", "accuracy"), ("validation", "loss"), ("validation", "accuracy"),
        ("corpora", "original"), ("corpora", "bt"),
    ]  # fmt: skip
    assert in_words(epoch) == (
        "loss 2.000, accuracy 0.500; validation loss 2.500, accuracy 0.250; "
        "training loss by corpus: original 1.500 (75% of pairs), bt 2.500 (25% of pairs)"
    )
