"""What a person sees while training, on a terminal and elsewhere."""

import io

import pytest

from nmt.progress import TrainingProgress
from nmt.run import EpochMetrics

METRICS = EpochMetrics(
    epoch=1, step=4, train_loss=2.5, train_accuracy=0.4, validation_loss=2.0, validation_accuracy=0.5,
    target_tokens=1000, seconds=2.0,
)  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_epoch(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "150")
    progress = TrainingProgress(epochs=3, log_every=2, stream=stream)
    progress.start_epoch(1, steps=4)
    for done in range(1, 5):
        progress.refreshed -= 1  # as if a second had passed
        progress.step((300.0 * done, 40.0 * done, 100.0 * done) if progress.is_due() else None)
    progress.end_epoch(METRICS, best=True)
    return stream.getvalue()


def test_a_pipe_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run_epoch(io.StringIO(), monkeypatch)
    assert "\r" not in text and "\x1b" not in text
    lines = text.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1/3, step 2/4", "epoch 1/3, step 4/4", "epoch 1/3"]
    assert "loss 3.000, accuracy 0.400," in lines[0]
    assert lines[0].endswith("s left")
    assert lines[2] == (
        "epoch 1/3: loss 2.500, accuracy 0.400; validation loss 2.000, accuracy 0.500 (best so far); "
        "2.0 s, 500 tokens/s"
    )


def test_a_terminal_gets_a_bar_with_figures_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run_epoch(Terminal(), monkeypatch)
    drawn = [part for part in text.split("\r") if "loss 3.000, accuracy 0.400" in part and "%" in part]
    assert drawn
    assert all("left" in part and "tokens/s" in part for part in drawn)
    assert "epoch 1/3: loss 2.500" in text.split("\r")[-1]


def test_figures_are_read_only_when_they_will_be_shown() -> None:
    progress = TrainingProgress(epochs=1, log_every=10, stream=io.StringIO())
    progress.start_epoch(1, steps=100)
    due = []
    for _ in range(100):
        due.append(progress.is_due())
        progress.step((1.0, 1.0, 1.0) if due[-1] else None)
    assert sum(due) == 10
