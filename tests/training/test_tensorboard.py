"""TensorBoard: its own reader reads the event files, also after a resume or a kill; failures switch it off."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import an_epoch, nmt, outcome

from nmt.config.schema import Config
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import (
    AverageMetrics,
    Sample,
    SampleMetrics,
    StepMetrics,
    StepValidation,
)
from nmt.training.listeners import StepEvent, ValidationEvent
from nmt.training.tensorboard import TensorBoard, samples_as_markdown, scalars

SAMPLE = Sample(source="im wet", reference="ich bin nass", translation="ich bin *nass* | <b>")


def steps(step: int, epoch: int = 1, tokens: int = 100, seconds: float = 2.0) -> StepMetrics:
    return StepMetrics(
        epoch=epoch, step=step, loss=2.0, accuracy=0.5, learning_rate=1e-3, target_tokens=tokens, seconds=seconds
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return create_run("first", Config(), [])


def follow(run: Run, numbers: range, listener: TensorBoard) -> None:
    """Call the listeners as training does, with epochs of 10 steps."""
    listener.on_start()
    for number in numbers:
        record = steps(10 * number - 5, number)
        run.append_metrics(record)
        listener.on_step(StepEvent(None, 2.0, record))
        listener.on_step(StepEvent(None, 2.1, None))
        done = an_epoch(number)
        run.append_metrics(done)
        run.append_metrics(SampleMetrics(epoch=number, step=done.step, samples=[SAMPLE]))
        listener.on_epoch(ValidationEvent(done, [SAMPLE], True))


def test_series_of_each_record() -> None:
    first, second = steps(5), steps(10, tokens=400, seconds=4.0)
    assert scalars(first, None) == {
        "train/loss": 2.0, "train/accuracy": 0.5, "train/learning_rate": 1e-3, "train/tokens_per_second": 50.0,
    }  # fmt: skip
    assert scalars(second, first)["train/tokens_per_second"] == 150.0
    assert scalars(steps(15, epoch=2, tokens=30, seconds=3.0), second)["train/tokens_per_second"] == 10.0
    unknown = StepMetrics(epoch=2, step=20, loss=2.0, accuracy=0.5, learning_rate=1e-3)
    assert "train/tokens_per_second" not in scalars(unknown, second)
    validated = scalars(an_epoch(1, seconds=2.0, validation_bleu=20.0), None)
    assert (validated["epoch/tokens_per_second"], validated["validation/bleu"]) == (50.0, 20.0)
    within = StepValidation(epoch=3, step=25, validation_loss=1.0, validation_accuracy=0.5)
    assert scalars(within, None).keys() == {"validation/loss", "validation/accuracy"}
    mean = AverageMetrics(epochs=[1, 2], step=20, validation_loss=0.5, validation_accuracy=0.75)
    assert scalars(mean, None) == {"average/loss": 0.5, "average/accuracy": 0.75}


def test_samples_are_escaped_in_markdown() -> None:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").enable("table").render(samples_as_markdown([SAMPLE]))
    cells = re.findall(r"<td>(.*?)</td>", html)
    assert cells == ["im wet", "ich bin nass", "ich bin *nass* | &lt;b&gt;"]


def events(run: Run) -> Any:
    """Return TensorBoard's reader of the event files of a run."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    everything = {"tensors": 0, "scalars": 0}
    return EventAccumulator(str(run.events_path), everything).Reload()


def scalar_steps(run: Run, tag: str) -> list[tuple[int, float]]:
    from nmt.runtime import tf

    return [(event.step, float(tf.make_ndarray(event.tensor_proto))) for event in events(run).Tensors(tag)]


def test_event_files_hold_scalars_and_texts_once_however_often_they_are_written(run: Run) -> None:
    for numbers in (range(1, 3), range(3, 4), range(0)):
        listener = TensorBoard(run, pytest.fail)
        follow(run, numbers, listener)
        listener.close()
    assert len([*run.events_path.iterdir()]) == 1
    assert scalar_steps(run, "train/loss") == [(5, 2.0), (15, 2.0), (25, 2.0)]
    assert [step for step, _ in scalar_steps(run, "validation/accuracy")] == [10, 20, 30]
    kinds = {kind: events(run).PluginTagToContent(kind) for kind in ("scalars", "text")}
    assert {"train/loss", "train/learning_rate", "epoch/loss", "validation/loss"} <= set(kinds["scalars"])
    assert list(kinds["text"]) == ["samples"]


def test_tensorboard_notices_files_that_no_longer_grow(run: Run) -> None:
    warnings: list[str] = []
    listener = TensorBoard(run, warnings.append)
    listener.on_start()
    listener.on_validation(ValidationEvent(an_epoch(1), [], True))
    assert events(run).Tags()["tensors"]
    shutil.rmtree(run.events_path)
    listener.on_validation(ValidationEvent(an_epoch(2), [], True))
    listener.on_validation(ValidationEvent(an_epoch(3), [], True))
    listener.close()
    [warning] = warnings
    assert "Recording for TensorBoard is switched off: checkpoints/first/events does not grow any more" in warning


def test_an_error_switches_the_record_off_with_one_warning(run: Run) -> None:
    warnings: list[str] = []
    run.events_path.write_text("in the way")
    follow(run, range(1, 3), TensorBoard(run, warnings.append))
    assert len(warnings) == 1 and "Training goes on." in warnings[0]


SETTINGS = ("--set", "training.decode_validation=8", "--set", "training.epochs=8", "--set", "training.save_every=10")


@pytest.mark.slow
def test_a_killed_run_ends_in_the_same_bits_and_the_same_events(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    nmt("train", "--config", "base.yaml", "--run", "plain", *SETTINGS, cwd=project)
    command = ("train", "--config", "base.yaml", "--run", "killed", "--tensorboard", *SETTINGS)
    process = subprocess.Popen([sys.executable, "-m", "nmt", *command], cwd=project, stderr=subprocess.PIPE, text=True)
    for line in process.stderr or ():
        if line.startswith("epoch 4/8, step"):
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    nmt(*command, cwd=project)
    killed, reference = Run(Path("checkpoints/killed")), Run(Path("checkpoints/plain"))
    mine, theirs = outcome(killed), outcome(reference)
    assert mine == theirs, "recording changes nothing, to the bit"
    records = killed.metrics()
    assert scalar_steps(killed, "train/loss") == [
        (record.step, pytest.approx(record.loss, rel=1e-6)) for record in records if isinstance(record, StepMetrics)
    ]
    epochs = [record.step for record in killed.epochs()]
    assert [event.step for event in events(killed).Tensors("samples")] == epochs
    [mean] = killed.averages()
    assert scalar_steps(killed, "average/bleu") == [(mean.step, pytest.approx(mean.validation_bleu, rel=1e-6))]
