"""Runs with all kinds of records, and a parser of pages, for tests of reports."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from conftest import an_epoch

from nmt.config.schema import Config
from nmt.evaluation.result import EvaluationRecord, EvaluationSetRecord, Example, Examples, StressRow, System
from nmt.evaluation.scoring import LengthBucket, Score, Scores
from nmt.evaluation.test_set import TrainingOverlap
from nmt.reporting.charts import attention_figure
from nmt.reporting.page import AttentionMap
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import Sample, SampleMetrics, StepMetrics

VOID = {"meta", "link", "br"}


def made_run(name: str, epochs: int = 3, better: float = 0.0, **settings: Any) -> Run:
    """Return a run with records of N epochs of 20 steps, trained on the unpacked dataset."""
    config = Config.model_validate({"data": {"dataset": "old"}, "training": {"epochs": max(1, epochs), **settings}})
    run = create_run(name, config, [Path("data/old/manifest.json")])
    for epoch in range(1, epochs + 1):
        for half in (1, 2):
            run.append_metrics(
                StepMetrics(
                    epoch=epoch, step=20 * (epoch - 1) + 10 * half, loss=4 / epoch + 0.1 / half, accuracy=0.1 * epoch,
                    learning_rate=1e-4 * epoch, target_tokens=500 * half, seconds=2.5 * half,
                )
            )  # fmt: skip
        trained = {"train_loss": 4 / epoch, "train_accuracy": 0.1 * epoch, "target_tokens": 1000, "seconds": 5.0}
        trained["peak_memory"] = 1.25
        validated = {"validation_loss": 4.2 / epoch, "validation_accuracy": 0.1 * epoch + better}
        decoded = {"validation_bleu": 3.0 * epoch, "validation_chrf": 5.0 * epoch}
        run.append_metrics(an_epoch(epoch, step=20 * epoch, **trained, **validated, **decoded))
        run.append_metrics(sampled(epoch, 20 * epoch, f"ein hund {'läuft ' * epoch}hier"))
    return run


def sampled(epoch: int, step: int, translation: str, source: str = "a dog runs", reference: str = "x") -> SampleMetrics:
    sample = Sample(source=source, reference=reference, translation=translation)
    return SampleMetrics(epoch=epoch, step=step, samples=[sample])


def scored(names: Sequence[str], first: int, p_value: float = 0.01) -> Scores:
    """Return scores of runs, each one point better than the previous."""
    systems = {
        name: {"BLEU": Score(score=score, mean=score + 0.1, ci=1.5, p_value=p_value if score > first else None)}
        for score, name in enumerate(names, start=first)
    }
    return Scores(sentences=100, signatures={"BLEU": "nrefs:1|case:mixed"}, systems=systems)


def evaluation(*names: str, p_value: float = 0.01) -> EvaluationRecord:
    """Return an evaluation of runs."""
    example = Example(number=7, chrf=12.5, source="a dog", references=["ein Hund"], translation="eine Katze")
    return EvaluationRecord(
        nmt="1.0",
        test_set=EvaluationSetRecord(dataset="old", source="s.txt", references=["t.txt"], sentences=100, sha256={}),
        resamples=1000,
        systems=[System(name=name, run=name, epoch=2, dataset="old") for name in names],
        scores=scored(names, 30, p_value),
        overlap=TrainingOverlap(checked={"old": 0}, unchecked=[], numbers=[]),
        without_overlap=None,
        examples={names[0]: Examples(worst=[example], best=[example])},
        stress={
            names[0]: [
                StressRow(variant="plain", sentences=100, bleu=40.0, share=100.0, cut_off=0, repeating=0),
                StressRow(
                    variant="url",
                    sentences=100,
                    bleu=20.0,
                    share=50.0,
                    copied=75.0,
                    cut_off=3,
                    repeating=1,
                    worst=example,
                ),
            ]
        },
        by_length=[LengthBucket(shortest=n, longest=n + 3, scores=scored(names, 40 + n)) for n in (1, 5)],
    )


def attention_map(source: str = "a dog runs", target: str = "ein hund") -> AttentionMap:
    words, translated = source.split(), target.split()
    weights = np.random.default_rng(1).dirichlet(np.ones(len(words)), len(translated))
    return AttentionMap("first", source, target, attention_figure(weights, words, translated))


class Page(HTMLParser):
    """Parser for the elements and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html, self.elements = html, list[tuple[str, dict[str, str | None]]]()
        self.texts, self.open, self.headings = list[str](), list[str](), list[int]()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closed at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())
