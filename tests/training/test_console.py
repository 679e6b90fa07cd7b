"""What a person sees while training, on a terminal and elsewhere."""

import io
import logging
import re
import sys
import time

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.runs.metrics import EpochMetrics, Sample, StepMetrics, StepValidation
from nmt.training.console import Console
from nmt.training.listeners import StepEvent, ValidationEvent
from nmt.training.optimization.accumulators import Sums
from nmt.training.progress.pace import Pace
from nmt.training.progress.text import columns_of, fitted

METRICS = EpochMetrics(
    epoch=1, step=4, train_loss=2.5, train_accuracy=0.4, validation_loss=2.0, validation_accuracy=0.5,
    target_tokens=1000, seconds=2.0,
)  # fmt: skip
SAMPLES = [
    Sample(source="im wet", reference="ich bin nass", translation="ich bin durstig"),
    Sample(source="im thirsty", reference="ich bin durstig", translation="ich bin durstig"),
]


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


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "dumb terminal"])
def test_without_a_terminal_there_are_plain_lines_with_the_figures(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Screen(150, monkeypatch) if terminal else io.StringIO()
    monkeypatch.setenv("TERM", "dumb")
    text = run_epoch(stream, monkeypatch)
    assert "\r" not in text and "\x1b" not in text
    half, whole, epoch, wrong, right = text.splitlines()
    for line, place, left in ((half, "step 2/4", "1 s left"), (whole, "step 4/4", "0 s left")):
        assert all(figure in line for figure in ("epoch 1/3", place, "3.000", "0.400", "200 tokens/s", left))
    assert all(figure in epoch for figure in ("epoch 1/3", "2.500", "0.400", "2.000", "0.500", "2.0 s", "500 tokens/s"))
    assert all(words in wrong for words in ("im wet", "ich bin durstig", "ich bin nass"))
    assert right.count("ich bin durstig") == 1, "a right translation is its reference"


def test_scores_and_long_samples_have_lines_of_their_own() -> None:
    stream = io.StringIO()
    metrics = StepValidation(
        epoch=1, step=7, validation_loss=2.0, validation_accuracy=0.5, validation_bleu=12.34, validation_chrf=30.0
    )
    samples = [Sample(source="a " * 30, reference="c", translation="b " * 20)]
    Console(epochs=3, log_every=2, stream=stream).on_validation(ValidationEvent(metrics, samples, best=False))
    first, *lines = stream.getvalue().splitlines()
    assert all(figure in first for figure in ("step 7", "2.000", "0.500", "BLEU 12.3", "chrF 30.0"))
    assert ["a a" in lines[0], "b b" in lines[1], "c" in lines[2], len(lines)] == [True, True, True, 3]


class Screen(io.StringIO):
    """A terminal of 12 rows, and what it shows."""

    def __init__(self, columns: int, monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, 12, history=100)
        self.emulator = pyte.Stream(self.screen)
        self.patch, self.name = monkeypatch, encoding
        monkeypatch.setenv("TERM", "xterm")
        self.resize(columns)

    encoding = property(lambda self: self.name)  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.emulator.feed(text.replace("\n", "\r\n"))  # as the terminal driver does
        return super().write(text)

    def resize(self, columns: int) -> None:
        self.patch.setenv("COLUMNS", str(columns))
        self.screen.resize(12, columns)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]


def step(console: Console, loss: float = 3.0, rate: float | None = None) -> None:
    """Take a step of 100 tokens and half a second, as if the display were due."""
    console.refreshed -= 1
    done = console.done + 1
    metrics = rate and StepMetrics(epoch=1, step=done, loss=loss, accuracy=0.4, learning_rate=rate)
    console.on_step(StepEvent(Sums(100 * loss * done, 40.0 * done, 100.0 * done), 0.5 * done, metrics or None))


def test_a_terminal_shows_figures_and_time_left_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=screen)
    console.on_epoch_start(1, steps=100, done=0)
    for number in range(40):
        step(console, loss=3 - number / 100, rate=1e-3)
    assert len(screen.lines) == 2
    shown = " ".join(screen.lines)
    assert all(part in shown for part in ("1/3", "40/100", "0:30", "2:10", "0.400", "200 tokens/s", "1.0e-03", " GB"))


def test_validation_shows_its_progress_and_leaves_its_figures_and_samples_once(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=screen)
    console.on_epoch_start(1, steps=4, done=0)
    step(console)
    console.on_validation_start(3)
    for done in (1, 2, 3):
        console.refreshed -= 1
        console.on_validation_batch()
        assert f"{done}/3" in screen.lines[0]
    console.on_epoch(ValidationEvent(METRICS, SAMPLES[:1], best=True))
    console.on_epoch_start(2, steps=4, done=0)
    step(console)
    assert screen.lines[0].startswith("epoch 1/3: loss 2.500")
    assert any(line.startswith("epoch 2/3") for line in screen.lines)
    console.on_end(None)
    console.close()
    assert "im wet" in screen.lines[-1] and "ich bin nass" in screen.lines[-1]
    assert sum("im wet" in line for line in screen.lines) == sum("epoch 1/3" in line for line in screen.lines) == 1
    assert not screen.screen.cursor.hidden and screen.screen.cursor.x == 0


@pytest.mark.parametrize("columns", [10, 20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(columns, monkeypatch)
    console = Console(epochs=30, log_every=2, stream=screen)
    wide = Sample(source="两个年轻的白人男子在外面 " * 9, reference="b", translation="e\u0301 \x1b[2J " * 99)
    console.shown = [wide]
    console.on_epoch_start(12, steps=123456, done=1000)
    for _ in range(5):
        step(console, rate=1e-3)
    assert len(screen.lines) <= 4, "a line that wraps is two"
    assert all(line.startswith(start) for line, start in zip(screen.lines, ["e", "l"], strict=False))
    console.close()
    assert screen.lines == []


def test_a_resized_terminal_loses_nothing_that_was_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=screen)
    console.live.print("kept")  # type: ignore[union-attr]
    console.on_epoch_start(1, steps=100, done=0)
    for columns in (100, 40, 25, 70, 100, 30):
        screen.resize(columns)
        step(console)
        step(console)
        assert screen.lines[0] == "kept"
        assert len([line for line in screen.lines if line.startswith("loss")]) == 1
    assert len(screen.lines) == 3


def test_output_of_others_stands_above_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(60, monkeypatch)
    monkeypatch.setattr(sys, "stderr", screen)
    handler = logging.StreamHandler()
    logger = logging.getLogger("of-others")
    logger.addHandler(handler)
    console = Console(epochs=3, log_every=2)
    console.on_start()
    console.on_epoch_start(1, steps=100, done=0)
    step(console)
    logger.warning("a warning")
    print("printed ", end="", file=sys.stderr)
    step(console)
    print("in parts", file=sys.stderr)
    step(console)
    assert screen.lines[:2] == ["a warning", "printed in parts"]
    assert [line.split()[0] for line in screen.lines[2:]] == ["epoch", "loss"]
    print("without an end", end="", file=sys.stderr)
    console.close()
    logger.removeHandler(handler)
    assert screen.lines == ["a warning", "printed in parts", "without an end"]
    assert sys.stderr is screen and handler.stream is screen


def test_a_terminal_without_unicode_gets_ascii_and_one_that_refuses_colours_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Screen(80, monkeypatch, encoding="ascii")
    console = Console(epochs=3, log_every=2, stream=screen)
    console.shown = [Sample(source="ä" * 99, reference="b", translation="ö")]
    console.on_epoch_start(1, steps=10, done=0)
    step(console)
    step(console)
    assert screen.getvalue().isascii()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Screen(80, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=plain)
    console.on_epoch_start(1, steps=10, done=0)
    step(console)
    assert not re.search(r"\x1b\[[0-9;]*m", plain.getvalue())


def test_time_left_counts_validation_and_the_epochs_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    pace = Pace(epochs=3)
    assert pace.left() is None and pace.recent() is None
    pace.begin_epoch(1, steps=10, done=0)
    for done in range(1, 11):
        pace.read(done, 20.0 + done, Sums(3.0 * done, 1.0 * done, 10.0 * done))  # the first step compiled for 20 s
    assert pace.left() == (0.0, 20.0)
    assert pace.recent() == (0.3, 0.1, 10.0)
    pace.begin_pause()
    now = 7.0
    pace.begin_epoch(2, steps=10, done=0)
    pace.read(1, 1.0, Sums(3.0, 1.0, 10.0))
    pace.read(5, 5.0, Sums(15.0, 5.0, 50.0))
    assert pace.left() == (5.0, 5.0 + 10.0 + 2 * 7.0)


@given(st.text(), st.integers(0, 30))
def test_fitted_text_fits_and_is_whole_where_it_can_be(text: str, columns: int) -> None:
    assert columns_of(fitted(text, columns)) <= columns
    assert fitted(text, max(columns, columns_of(text))) == text


def test_figures_are_read_only_when_they_will_be_shown() -> None:
    progress = Console(epochs=1, log_every=10, stream=io.StringIO())
    progress.on_epoch_start(1, steps=100, done=0)
    due = []
    for _ in range(100):
        due.append(progress.needs_totals())
        progress.on_step(StepEvent(Sums(1.0, 1.0, 1.0) if due[-1] else None, 1.0, None))
    assert sum(due) == 10


def test_a_sample_is_shown_when_its_translation_is_new() -> None:
    stream, lines = io.StringIO(), []
    progress = Console(epochs=3, log_every=2, stream=stream)
    changed = [SAMPLES[0].model_copy(update={"translation": "ich bin nass"}), SAMPLES[1]]
    for samples in (SAMPLES, SAMPLES, changed, SAMPLES):
        progress.on_epoch(ValidationEvent(METRICS, samples, best=False))
        lines.append(stream.getvalue().count("\n    "))
    assert lines == [2, 2, 3, 4]
