"""What a person sees while training, on a terminal and elsewhere."""

import io

import pytest

from nmt.runs.metrics import EpochMetrics, Sample, StepValidation
from nmt.training.console import Console
from nmt.training.listeners import StepEvent, ValidationEvent
from nmt.training.optimization.accumulators import Sums

METRICS = EpochMetrics(
    epoch=1, step=4, train_loss=2.5, train_accuracy=0.4, validation_loss=2.0, validation_accuracy=0.5,
    target_tokens=1000, seconds=2.0,
)  # fmt: skip
SAMPLES = [
    Sample(source="im wet", reference="ich bin nass", translation="ich bin durstig"),
    Sample(source="im thirsty", reference="ich bin durstig", translation="ich bin durstig"),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_epoch(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "150")
    progress = Console(epochs=3, log_every=2, stream=stream)
    progress.on_epoch_start(1, steps=4, done=0)
    for done in range(1, 5):
        progress.refreshed -= 1  # as if a second had passed
        totals = Sums(300.0 * done, 40.0 * done, 100.0 * done) if progress.needs_totals() else None
        progress.on_step(StepEvent(totals, 0.5 * done, None))
    progress.on_epoch(ValidationEvent(METRICS, SAMPLES, best=True))
    return stream.getvalue()


def test_a_pipe_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run_epoch(io.StringIO(), monkeypatch)
    assert "\r" not in text and "\x1b" not in text
    lines = text.splitlines()
    assert lines == [
        "epoch 1/3, step 2/4: loss 3.000, accuracy 0.400, 200 tokens/s, 1 s left",
        "epoch 1/3, step 4/4: loss 3.000, accuracy 0.400, 200 tokens/s, 0 s left",
        "epoch 1/3: loss 2.500, accuracy 0.400; validation loss 2.000, accuracy 0.500 (best so far); "
        "2.0 s, 500 tokens/s",
        "    im wet  ->  ich bin durstig  (reference: ich bin nass)",
        "    im thirsty  ->  ich bin durstig",
    ]


def test_long_samples_are_broken_before_the_translation() -> None:
    stream = io.StringIO()
    progress = Console(epochs=3, log_every=2, stream=stream)
    metrics = StepValidation(
        epoch=1, step=7, validation_loss=2.0, validation_accuracy=0.5, validation_bleu=12.34, validation_chrf=30.0
    )
    samples = [Sample(source="a " * 30, reference="c", translation="b " * 20)]
    progress.on_validation(ValidationEvent(metrics, samples, best=False))
    first, *lines = stream.getvalue().splitlines()
    assert first == "step 7: validation loss 2.000, accuracy 0.500, BLEU 12.3, chrF 30.0"
    assert [line.strip()[:4] for line in lines] == ["a a ", "->  ", "(ref"]


def test_a_terminal_gets_a_bar_with_figures_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run_epoch(Terminal(), monkeypatch)
    drawn = [part for part in text.split("\r") if "loss 3.000, accuracy 0.400" in part and "%" in part]
    assert drawn
    assert all("left" in part and "tokens/s" in part for part in drawn)
    assert "epoch 1/3: loss 2.500" in text.split("\r")[-1]


def test_figures_are_read_only_when_they_will_be_shown() -> None:
    progress = Console(epochs=1, log_every=10, stream=io.StringIO())
    progress.on_epoch_start(1, steps=100, done=0)
    due = []
    for _ in range(100):
        due.append(progress.needs_totals())
        progress.on_step(StepEvent(Sums(1.0, 1.0, 1.0) if due[-1] else None, 1.0, None))
    assert sum(due) == 10


def test_a_sample_is_shown_when_its_translation_is_new() -> None:
    stream = io.StringIO()
    progress = Console(epochs=3, log_every=2, stream=stream)
    changed = [SAMPLES[0].model_copy(update={"translation": "ich bin nass"}), SAMPLES[1]]
    for samples in (SAMPLES, SAMPLES, changed, SAMPLES):
        progress.on_epoch(ValidationEvent(METRICS, samples, best=False))
    shown = [line.strip() for line in stream.getvalue().splitlines() if line.startswith("    ")]
    wrong, right = "im wet  ->  ich bin durstig  (reference: ich bin nass)", "im thirsty  ->  ich bin durstig"
    assert shown == [wrong, right, "im wet  ->  ich bin nass", wrong]
