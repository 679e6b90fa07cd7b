"""``nmt samples`` shows how translations of sample sentences changed in training. It reads only the metrics file."""

from pathlib import Path

import pytest
from conftest import an_epoch, nmt

from nmt.config.schema import Config
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import Sample, SampleMetrics, StepValidation


@pytest.fixture
def run(folder: Path) -> Run:
    return create_run("first", Config(), [])


def validated(run: Run, epoch: int, step: int, translations: list[str], *, within_epoch: bool = False) -> None:
    """Append a validation within or after an epoch, with translations of the sentences a, b and c."""
    if within_epoch:
        run.append_metrics(StepValidation(epoch=epoch, step=step, validation_loss=1.0, validation_accuracy=0.5))
    else:
        run.append_metrics(an_epoch(epoch, step=step))
    translated = [
        Sample(source=source, reference=source.upper(), translation=translation)
        for source, translation in zip("abc", translations, strict=False)
    ]
    run.append_metrics(SampleMetrics(epoch=epoch, step=step, samples=translated))


def test_each_sentence_is_followed_through_training(run: Run, tmp_path: Path) -> None:
    validated(run, 1, 500, ["x"], within_epoch=True)
    validated(run, 1, 1000, ["y"], within_epoch=True)
    validated(run, 1, 1200, ["y"])
    validated(run, 2, 1500, ["z"], within_epoch=True)
    validated(run, 2, 2400, ["w", "v"])  # resumed with a larger training.samples
    validated(run, 3, 3600, ["w", "v"])
    assert nmt("samples", cwd=tmp_path).stdout == (
        "1. a\n   reference: A\n   step 500               ->  x\n   step 1,000 to epoch 1  ->  y\n"
        "   step 1,500             ->  z\n   epochs 2-3             ->  w\n"
        "2. b\n   reference: B\n   epochs 2-3  ->  v\n"
    )


def test_the_translations_are_those_that_training_printed(trained_project: Path) -> None:
    shown = nmt("samples", cwd=trained_project).stdout
    records = Run(trained_project / "checkpoints" / "base").metrics()
    kept = [record for record in records if isinstance(record, SampleMetrics)]
    assert [record.epoch for record in kept] == [1, 2]
    for sample in kept[-1].samples:
        assert f". {sample.source}\n   reference: {sample.reference}\n" in shown
        assert f"2  ->  {sample.translation}\n" in shown
