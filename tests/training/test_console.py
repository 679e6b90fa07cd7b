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
from nmt.training.progress.text import columns_of, fitted, sparkline

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


def test_a_terminal_shows_figures_time_left_and_memory_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=screen)
    console.on_epoch_start(1, steps=100, done=0)
    for number in range(40):
        step(console, loss=3 - number / 100, rate=1e-3)
    first, second = screen.lines
    assert re.fullmatch(r"epoch 1/3  ━+─+  40/100  0:30 left  run 2:10", first)
    assert re.fullmatch(r"loss \d\.\d{3}  [▁▂▃▄▅▆▇█]{12}  accuracy 0.400  200 tokens/s  lr 1.0e-03  \d+\.\d GB", second)
    assert max(map(len, screen.lines)) < 100


def test_validation_shows_its_progress_and_leaves_a_line_and_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=screen)
    console.on_epoch_start(1, steps=4, done=0)
    step(console)
    console.on_validation_start(3)
    seen = []
    for _ in range(4):
        console.refreshed -= 1
        console.on_validation_batch()
        seen.append(screen.lines[0])
    assert [re.sub("[ ━─]+", " ", line) for line in seen] == [
        *(f"epoch 1/3 validating {done}/3" for done in (1, 2, 3)),
        "epoch 1/3 translating validation sentences, batch 1",
    ]
    console.on_epoch(ValidationEvent(METRICS, SAMPLES[:1], best=True))
    console.on_epoch_start(2, steps=4, done=0)
    step(console)
    assert screen.lines[0].startswith("epoch 1/3: loss 2.500, accuracy 0.400; validation loss 2.000")
    *_, position, figures, sample = screen.lines
    assert (position[:9], figures[:10], sample) == ("epoch 2/3", "loss 3.000", "im wet  →  ich bin durstig")
    console.on_end(None)
    console.close()
    assert screen.lines[-1] == "    im wet  ->  ich bin durstig  (reference: ich bin nass)"
    assert sum("im wet" in line for line in screen.lines) == 1, "nothing twice"
    assert sum("epoch 1/3:" in line for line in screen.lines) == 1
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
    assert "#-" in re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Screen(80, monkeypatch)
    console = Console(epochs=3, log_every=2, stream=plain)
    console.on_epoch_start(1, steps=10, done=0)
    step(console)
    assert not re.search(r"\x1b\[[0-9;]*m", plain.getvalue())


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(80, monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in run_epoch(screen, monkeypatch)


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


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=600), st.integers(2, 50))
def test_a_sparkline_goes_from_its_lowest_to_its_highest_value(values: list[float], columns: int) -> None:
    line = sparkline(values, columns)
    assert len(line) == min(columns, len(values))
    assert set(line) <= set("▁▂▃▄▅▆▇█") and "▁" in line
    if len(values) <= columns and max(values) > min(values):
        assert line[values.index(max(values))] == "█" and line[values.index(min(values))] == "▁"


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
    stream = io.StringIO()
    progress = Console(epochs=3, log_every=2, stream=stream)
    changed = [SAMPLES[0].model_copy(update={"translation": "ich bin nass"}), SAMPLES[1]]
    for samples in (SAMPLES, SAMPLES, changed, SAMPLES):
        progress.on_epoch(ValidationEvent(METRICS, samples, best=False))
    shown = [line.strip() for line in stream.getvalue().splitlines() if line.startswith("    ")]
    wrong, right = "im wet  ->  ich bin durstig  (reference: ich bin nass)", "im thirsty  ->  ich bin durstig"
    assert shown == [wrong, right, "im wet  ->  ich bin nass", wrong]
