"""What a person sees while training, on a terminal and elsewhere."""

import io
import os

import pyte
import pytest

from nmt.runs.metrics import EpochMetrics, Sample, StepMetrics, StepValidation
from nmt.training.console import REFRESH_SECONDS, Console
from nmt.training.listeners import StepEvent, ValidationEvent
from nmt.training.optimization.totals import TokenTotals

METRICS = EpochMetrics(
    epoch=1, step=4, train_loss=2.5, train_accuracy=0.4, validation_loss=2.0, validation_accuracy=0.5,
    target_tokens=1000, seconds=2.0,
)  # fmt: skip
SAMPLES = [
    Sample(source="im wet", reference="ich bin nass", translation="ich bin durstig"),
    Sample(source="im thirsty", reference="ich bin durstig", translation="ich bin durstig"),
]


class Screen(io.StringIO):
    """A terminal of 12 rows, and what it shows."""

    def __init__(self, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, 12, history=100)
        self.emulator = pyte.Stream(self.screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 12)))

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.emulator.feed(text.replace("\n", "\r\n"))  # as the terminal driver does
        return super().write(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]


def step(console: Console) -> None:
    """Take a step of 100 tokens and half a second, as if the display were due; every second step has a record."""
    console.refreshed -= 1
    if console.bar is not None:
        console.bar.last_print_t -= 1
    done = console.done + 1
    totals = TokenTotals(300.0 * done, 40.0 * done, 100.0 * done) if console.needs_totals() else None
    record = StepMetrics(
        epoch=console.epoch, step=done, loss=3.0, accuracy=0.4, learning_rate=1e-3, target_tokens=100 * done,
        seconds=0.5 * done,
    )  # fmt: skip
    console.on_step(StepEvent(totals, 0.5 * done, None if done % 2 else record))


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "dumb terminal"])
def test_without_a_terminal_there_are_plain_lines_with_the_figures(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Screen(150, monkeypatch) if terminal else io.StringIO()
    monkeypatch.setenv("TERM", "dumb")
    console = Console(epochs=3, stream=stream)
    console.on_epoch_start(1, steps=4, done=0)
    for _ in range(4):
        step(console)
    console.on_epoch(ValidationEvent(METRICS, SAMPLES, best=True))
    text = stream.getvalue()
    assert "\r" not in text and "\x1b" not in text
    half, whole, epoch, wrong, right = text.splitlines()
    for line, place, left in ((half, "step 2/4", "1 s left"), (whole, "step 4/4", "0 s left")):
        assert all(figure in line for figure in ("epoch 1/3", place, "3.000", "0.400", "rate 0.001", "200 to", left))
    assert all(figure in epoch for figure in ("1/3: loss 2.500", "0.400; validation loss 2.000", "0.500", "500 to"))
    assert all(words in wrong for words in ("im wet", "ich bin durstig", "ich bin nass"))
    assert right.count("ich bin durstig") == 1, "a right translation is its reference"


def test_scores_and_long_samples_have_lines_of_their_own() -> None:
    stream = io.StringIO()
    metrics = StepValidation(
        epoch=1, step=7, validation_loss=2.0, validation_accuracy=0.5, validation_bleu=12.34, validation_chrf=30.0
    )
    samples = [Sample(source="a " * 30, reference="c\x1b[2J", translation="b " * 20)]
    Console(epochs=3, stream=stream).on_validation(ValidationEvent(metrics, samples, best=False))
    first, *lines = stream.getvalue().splitlines()
    assert all(figure in first for figure in ("step 7", "2.000", "0.500", "BLEU 12.3", "chrF 30.0"))
    assert ["a a" in lines[0], "b b" in lines[1], r"c\x1b" in lines[2], len(lines)] == [True, True, True, 3]


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_terminal_shows_loss_rate_and_time_left_in_one_line(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(columns, monkeypatch)
    console = Console(epochs=3, stream=screen)
    console.on_epoch_start(1, steps=100, done=0)
    for _ in range(40):
        step(console)
    [line] = screen.lines
    assert line.startswith("epoch 1/3 |")
    parts = ("40/100", "loss 3.000", "200 tokens/s", "00:30 left", "run 02:10")
    assert columns < 80 or all(part in line for part in parts)
    console.close()
    assert screen.lines == []


def test_a_resumed_epoch_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(100, monkeypatch)
    console = Console(epochs=1, stream=screen)
    console.on_epoch_start(1, steps=100, done=50)
    step(console)
    assert "51/100" in screen.lines[0] and "200 tokens/s, 00:24 left" in screen.lines[0]
    console.close()


def test_validation_shows_its_progress_and_leaves_its_figures_and_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(150, monkeypatch)
    console = Console(epochs=3, stream=screen)
    console.on_epoch_start(1, steps=4, done=0)
    step(console)
    console.on_validation_start(3)
    for words in ("validating", "validating", "validating", "translating"):
        assert console.bar is not None
        console.on_validation_batch()
        console.bar.refresh()
        assert f"epoch 1/3, {words}" in screen.lines[0]
    console.on_epoch(ValidationEvent(METRICS, SAMPLES[:1], best=True))
    console.on_epoch_start(2, steps=4, done=0)
    step(console)
    assert screen.lines[0].startswith("epoch 1/3: loss 2.500")
    assert "im wet" in screen.lines[1] and "ich bin nass" in screen.lines[1]
    assert screen.lines[2].startswith("epoch 2/3 |")
    console.on_end(None)
    console.close()
    assert len(screen.lines) == 2
    assert not screen.screen.cursor.hidden and screen.screen.cursor.x == 0


def test_figures_are_read_only_when_they_will_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Console(epochs=1, stream=io.StringIO()).needs_totals(), "records of steps have them"
    console = Console(epochs=1, stream=Screen(80, monkeypatch))
    assert not console.needs_totals()
    console.refreshed -= REFRESH_SECONDS
    assert console.needs_totals()


def test_a_sample_is_shown_when_its_translation_is_new() -> None:
    stream, lines = io.StringIO(), []
    progress = Console(epochs=3, stream=stream)
    changed = [SAMPLES[0].model_copy(update={"translation": "ich bin nass"}), SAMPLES[1]]
    for samples in (SAMPLES, SAMPLES, changed, SAMPLES):
        progress.on_epoch(ValidationEvent(METRICS, samples, best=False))
        lines.append(stream.getvalue().count("\n    "))
    assert lines == [2, 2, 3, 4]
