"""Evaluation as a Python program calls it."""

from pathlib import Path

import pytest

from nmt.config.decoding import DecodingConfig
from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.overlap import TrainingOverlap
from nmt.evaluation.progress import EvaluationProgress
from nmt.evaluation.result import System


class Recorder(EvaluationProgress):
    """Collects the events of an evaluation."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.translations: list[str] = []

    def compared_with_training(self, overlap: TrainingOverlap, sentences: int) -> None:
        self.events.append(f"{len(overlap.numbers)} of {sentences}")

    def translating(self, system: str, done: int, sentences: int) -> None:
        self.events.append(f"{system} {done} of {sentences}")

    def translated(self, system: System, translations: list[str]) -> None:
        self.events.append(system.name)
        self.translations = translations

    def scoring(self) -> None:
        self.events.append("scoring")


def test_a_run_and_a_file_are_evaluated_with_progress(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    Path("s").write_text("im one two three\n\nim seven seven seven\n")
    Path("r").write_text("ich bin eins zwei drei\n\nich bin sieben sieben sieben\n")
    recorder = Recorder()
    evaluation = evaluate(
        ["base:1"], ["r"], source="s", references=["r"], decoding={"beam_size": 2, "batch_size": 1},
        metrics=["chrf"], resamples=0, examples=1, progress=recorder,
    )  # fmt: skip
    record, texts = evaluation.record, evaluation.texts
    assert [(system.name, system.epoch) for system in record.systems] == [("base:1", 1), ("r", None)]
    assert record.systems[0].decoding == DecodingConfig(beam_size=2, batch_size=1)
    assert record.scores.systems["r"]["chrF2"].score == 100
    assert record.resamples == 0 and record.scores.systems["r"]["chrF2"].ci is None
    assert texts.sources == ["im one two three", "", "im seven seven seven"]
    assert texts.translations == {"base:1": recorder.translations, "r": texts.references[0]}
    assert texts.translations["base:1"][1] == ""
    assert len(record.examples["base:1"].worst) == 1
    compared, *translating, name, scoring = recorder.events
    assert compared == f"{len(record.overlap.numbers)} of 3"
    assert (translating[0], translating[-1]) == ("base:1 0 of 3", "base:1 3 of 3")
    assert (name, scoring) == ("base:1", "scoring")
