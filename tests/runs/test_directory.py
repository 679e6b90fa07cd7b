"""A run directory: the metrics file survives interruptions, the best epoch is found, runs are found by name."""

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.runs.directory import Run, create_run, find_run, run_exists
from nmt.runs.metrics import (
    EpochMetrics,
    Metrics,
    Sample,
    SampleMetrics,
    ShortageMetrics,
    StepMetrics,
    StepValidation,
)

QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**40)
STEPS = st.builds(StepMetrics, epoch=COUNTS, step=COUNTS, loss=NUMBERS, accuracy=NUMBERS, learning_rate=NUMBERS)
EPOCHS = st.builds(
    EpochMetrics,
    epoch=COUNTS, step=COUNTS, train_loss=NUMBERS, train_accuracy=NUMBERS,
    validation_loss=NUMBERS, validation_accuracy=NUMBERS, target_tokens=COUNTS, seconds=NUMBERS,
)  # fmt: skip
VALIDATIONS = st.builds(
    StepValidation, epoch=COUNTS, step=COUNTS, validation_loss=NUMBERS, validation_accuracy=NUMBERS,
    validation_bleu=st.none() | NUMBERS,
)  # fmt: skip
SHORTAGES = st.builds(ShortageMetrics, epoch=COUNTS, step=COUNTS, tokens=COUNTS)
SENTENCES = st.builds(Sample, source=st.text(), reference=st.text(), translation=st.text())
SAMPLES = st.builds(SampleMetrics, epoch=COUNTS, step=COUNTS, samples=st.lists(SENTENCES))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """A run that has not begun."""
    return create_run("first", Config(), [])


def an_epoch(epoch: int, validation_loss: float = 1.0, step: int | None = None) -> EpochMetrics:
    """Return the metrics of an epoch of ten steps."""
    return EpochMetrics(
        epoch=epoch, step=10 * epoch if step is None else step, train_loss=2.0, train_accuracy=0.5,
        validation_loss=validation_loss, validation_accuracy=0.6, target_tokens=100, seconds=1.5,
    )  # fmt: skip


def a_step(step: int) -> StepMetrics:
    """Return the metrics of a step."""
    return StepMetrics(epoch=1 + step // 10, step=step, loss=3.0, accuracy=0.1, learning_rate=1e-4)


# --- metrics


@QUICK
@given(st.lists(STEPS | EPOCHS | VALIDATIONS | SAMPLES | SHORTAGES))
def test_metrics_are_read_back_as_appended(run: Run, records: list[Metrics]) -> None:
    run.metrics_path.unlink(missing_ok=True)
    for record in records:
        run.append_metrics(record)
    assert run.metrics() == records
    assert run.epochs() == [record for record in records if isinstance(record, EpochMetrics)]


def test_each_record_is_a_line_of_json(run: Run) -> None:
    run.append_metrics(a_step(5))
    run.append_metrics(an_epoch(1))
    header, first, second = run.metrics_path.read_text(encoding="utf-8").splitlines()
    assert json.loads(header) == {"kind": "header", "format": 2}
    assert json.loads(first) == {
        "kind": "step", "epoch": 1, "step": 5, "loss": 3.0, "accuracy": 0.1, "learning_rate": 1e-4,
    }  # fmt: skip
    assert json.loads(second) == {
        "kind": "epoch", "epoch": 1, "step": 10, "train_loss": 2.0, "train_accuracy": 0.5, "validation_loss": 1.0,
        "validation_accuracy": 0.6, "target_tokens": 100, "seconds": 1.5,
    }  # fmt: skip


def test_a_run_that_has_not_begun_has_no_metrics(run: Run) -> None:
    assert run.metrics() == []
    assert run.epochs() == []
    assert run.best() is None


def test_a_last_line_cut_anywhere_is_left_out(run: Run) -> None:
    run.append_metrics(a_step(5))
    before = run.metrics_path.read_bytes()
    run.append_metrics(an_epoch(1))
    whole = run.metrics_path.read_bytes()
    for end in range(len(before), len(whole) - 1):
        run.metrics_path.write_bytes(whole[:end])
        assert run.metrics() == [a_step(5)], whole[:end]


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b"nonsense",
        b"[]",
        b"5",
        b"null",
        b'{"kind": "epoch"}',
        b'{"epoch": 1}',
        b'{"kind": "step", "epoch": 1, "step": 5, "loss": "low", "accuracy": 0.1, "learning_rate": 1e-4}',
        b'{"kind": "step", "epoch": 1, "step": 5, "loss": NaN, "accuracy": 0.1, "learning_rate": 1e-4}',
        b"\0" * 30,
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_before_the_last_is_named(run: Run, damaged: bytes) -> None:
    run.append_metrics(a_step(5))
    with run.metrics_path.open("ab") as file:
        file.write(damaged + b"\n")
    run.append_metrics(an_epoch(1))
    with pytest.raises(DataError) as caught:
        run.metrics()
    assert str(caught.value).startswith("checkpoints/first/metrics.jsonl, line 3 is damaged: ")
    assert str(caught.value).endswith(
        ". Each line of a metrics file is a record that nmt train wrote. Remove the line."
    )


def test_a_damaged_last_line_that_was_finished_is_named(run: Run) -> None:
    run.append_metrics(a_step(5))
    with run.metrics_path.open("a") as file:
        file.write('{"kind": "step"}\n')
    with pytest.raises(DataError, match="line 3 is damaged"):
        run.metrics()


def test_metrics_that_are_no_numbers_are_not_taken() -> None:
    with pytest.raises(ValueError, match="finite"):
        an_epoch(1, validation_loss=math.nan)


@pytest.mark.parametrize(
    ("losses", "best"),
    [([3.0], 1), ([3.0, 2.0, 1.0], 3), ([3.0, 1.0, 2.0], 2), ([2.0, 1.0, 1.0, 1.5], 2), ([1.0, 1.0], 1)],
)
def test_of_epochs_with_equal_accuracy_the_best_has_the_lowest_loss_and_is_the_earliest(
    run: Run, losses: list[float], best: int
) -> None:
    for epoch, loss in enumerate(losses, start=1):
        run.append_metrics(a_step(10 * epoch))
        run.append_metrics(an_epoch(epoch, loss))
    assert run.best() == best


def test_the_best_epoch_has_the_highest_validation_accuracy(run: Run) -> None:
    for epoch, (loss, accuracy) in enumerate([(1.0, 0.5), (1.2, 0.7), (1.1, 0.6)], start=1):
        values = an_epoch(epoch, loss).model_dump()
        run.append_metrics(EpochMetrics.model_validate({**values, "validation_accuracy": accuracy}))
    assert run.best() == 2


@pytest.mark.parametrize(
    ("by", "best"),
    [("accuracy", "step-15"), ("loss", 1), ("bleu", 2), ("chrf", "step-5")],
)
def test_the_best_validation_is_that_by_the_configured_measure(folder: Path, by: str, best: int | str) -> None:
    training = TrainingConfig.model_validate({"best_by": by, "decode_validation": 9})
    run = create_run("measured", Config(training=training), [])
    for step, epoch, loss, accuracy, bleu, chrf in (
        (5, None, 3.0, 0.4, 9.0, 70.0), (10, 1, 1.0, 0.5, 20.0, 60.0), (15, None, 2.0, 0.9, 19.0, 65.0),
        (20, 2, 1.5, 0.8, 30.0, 50.0),
    ):  # fmt: skip
        values = {"step": step, "validation_loss": loss, "validation_accuracy": accuracy, "validation_bleu": bleu}
        values |= {"validation_chrf": chrf}
        if epoch is None:
            run.append_metrics(StepValidation(epoch=1, **values))
        else:
            run.append_metrics(
                EpochMetrics(epoch=epoch, train_loss=1.0, train_accuracy=1.0, target_tokens=1, seconds=1.0, **values)
            )
    assert run.best() == best


@QUICK
@given(st.lists(STEPS | EPOCHS | VALIDATIONS | SAMPLES, min_size=1, max_size=4), STEPS, st.data())
def test_lines_are_added_after_a_last_one_cut_anywhere(
    records: list[Metrics], added: Metrics, data: st.DataObject
) -> None:
    run = Run(Path("checkpoints/cut"))
    run.folder.mkdir(parents=True, exist_ok=True)
    run.metrics_path.unlink(missing_ok=True)
    for record in records:
        run.append_metrics(record)
    content = run.metrics_path.read_bytes()
    run.restore_metrics(content[: data.draw(st.integers(0, len(content)))])
    whole = run.metrics()
    run.repair_metrics()
    run.append_metrics(added)
    assert run.metrics() == [*whole, added]


def test_metrics_are_made_what_they_were(run: Run) -> None:
    run.append_metrics(an_epoch(1))
    before = run.metrics_path.read_bytes()
    run.append_metrics(a_step(15))
    with run.metrics_path.open("a") as file:
        file.write('{"kind": "ste')
    run.restore_metrics(before)
    run.append_metrics(a_step(15))
    assert run.metrics() == [an_epoch(1), a_step(15)]


# --- format numbers


def test_metrics_without_a_header_are_of_the_first_format_and_stay_so(run: Run) -> None:
    line = a_step(5).model_dump_json().encode() + b"\n"
    run.metrics_path.write_bytes(line)
    assert run.metrics() == [a_step(5)]
    run.append_metrics(an_epoch(1))
    assert run.metrics() == [a_step(5), an_epoch(1)]
    assert run.metrics_path.read_bytes().startswith(line)


@pytest.mark.parametrize("number", ["0", "3", "true", "null", '"2"', "2.0"])
def test_metrics_of_another_format_are_refused_in_words(run: Run, number: str) -> None:
    run.metrics_path.write_text(f'{{"kind": "header", "format": {number}}}\n' + a_step(5).model_dump_json() + "\n")
    with pytest.raises(DataError, match=r"^checkpoints/first/metrics\.jsonl has format .*\. This version of nmt reads"):
        run.metrics()


def test_a_header_stands_in_the_first_line_alone(run: Run) -> None:
    run.append_metrics(a_step(5))
    run.metrics_path.write_bytes(2 * run.metrics_path.read_bytes())
    with pytest.raises(DataError, match="line 3 is damaged"):
        run.metrics()


def test_the_stored_configuration_begins_with_its_format(run: Run) -> None:
    run.write_config(Config())
    for stored in (run, create_run("second", Config(), [])):
        assert stored.config_path.read_text().startswith("format: 2\ndata:\n")
        assert stored.config() == Config()


# --- paths and configuration


def test_epochs_are_listed_in_order_of_their_numbers(run: Run) -> None:
    for epoch in (10_000, 2, 10, 1):
        run.weights_path(epoch).parent.mkdir(exist_ok=True)
        run.weights_path(epoch).touch()
        run.state_path(epoch).mkdir(parents=True)
    assert run.weights_epochs == run.state_steps == [1, 2, 10, 10_000]
    assert len({run.weights_path(epoch) for epoch in (1, 2, 10, 10_000)}) == 4


def test_what_an_interrupted_save_left_is_no_epoch(run: Run) -> None:
    (run.folder / "weights" / ".writing-abc").mkdir(parents=True)
    (run.folder / "weights" / ".writing-abc" / "epoch-0001.safetensors").touch()
    (run.folder / "state" / ".writing-step-00000001-abc").mkdir(parents=True)
    assert run.weights_epochs == run.state_steps == []


def test_what_is_not_named_by_training_is_no_epoch_and_no_state(run: Run) -> None:
    (run.folder / "weights").mkdir()
    for name in ("epoch-x.safetensors", "epoch-.safetensors", "step-1e3.safetensors", "epoch-0001.weights.h5"):
        (run.folder / "weights" / name).touch()
    (run.folder / "state" / "step-old").mkdir(parents=True)
    assert run.weights_epochs == run.step_weights == run.state_steps == []


def test_the_configuration_is_stored_whole_and_can_be_replaced(run: Run) -> None:
    assert run.config() == Config()
    changed = Config(data=DataConfig(dataset="some"), training=TrainingConfig(epochs=7))
    run.write_config(changed)
    assert run.config() == changed


# --- creating and finding


def test_a_new_run_holds_its_configuration_and_what_translating_needs(folder: Path) -> None:
    (folder / "data").mkdir()
    for name in ("manifest.json", "tokenizer.source.json", "tokenizer.target.json"):
        (folder / "data" / name).write_text(name)
    run = create_run("new", Config(), (folder / "data").iterdir())
    files = {file.name: file.read_text() for file in run.folder.iterdir() if file.name != "config.yaml"}
    assert files == {
        "dataset.json": "manifest.json",
        "tokenizer.source.json": "tokenizer.source.json",
        "tokenizer.target.json": "tokenizer.target.json",
    }
    assert run.folder == Path("checkpoints/new")
    assert run.dataset_path.is_file()
    assert all(run.tokenizer_path(side).is_file() for side in ("source", "target"))
    assert run.config() == Config()


def test_an_existing_run_is_not_created_again(run: Run) -> None:
    run.append_metrics(an_epoch(1))
    before = {file: file.read_bytes() for file in run.folder.iterdir()}
    with pytest.raises(ConflictError, match=r"^checkpoints/first exists already\. It is never overwritten\."):
        create_run("first", Config(), [])
    assert {file: file.read_bytes() for file in run.folder.iterdir()} == before


def test_a_run_that_cannot_be_created_leaves_nothing(folder: Path) -> None:
    with pytest.raises(NmtError):
        create_run("new", Config(), [folder / "missing.json"])
    assert not run_exists("new")
    assert list((folder / "checkpoints").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".x"])
def test_a_name_that_leaves_the_folder_is_refused(folder: Path, name: str) -> None:
    for function in (lambda: create_run(name, Config(), []), lambda: run_exists(name)):
        with pytest.raises(NmtError, match="cannot be the name of a run"):
            function()
    assert list(folder.iterdir()) == []


def test_a_run_exists_once_it_has_a_configuration(folder: Path) -> None:
    (folder / "checkpoints" / "empty").mkdir(parents=True)
    create_run("whole", Config(), [])
    assert run_exists("whole")
    assert not run_exists("empty")
    assert not run_exists("absent")


def set_time(path: Path, hour: int) -> None:
    """Set the time at which a file was written."""
    os.utime(path, (3600 * hour, 3600 * hour))


def test_without_a_name_the_run_that_trained_last_is_found() -> None:
    runs = {name: create_run(name, Config(), []) for name in ("a", "b", "c")}
    for run, hour in zip(runs.values(), (1, 3, 2), strict=True):
        set_time(run.config_path, hour)
    assert find_run(None).name == "b"
    runs["a"].append_metrics(a_step(1))
    set_time(runs["a"].metrics_path, 4)
    assert find_run(None).name == "a"
    assert find_run("c").name == "c"


def test_a_missing_run_is_told_with_the_nearest_name() -> None:
    for name in (None, "first"):
        with pytest.raises(NotFoundError) as caught:
            find_run(name)
        assert str(caught.value) == ("No run is in checkpoints/ yet. Train first, for example: nmt train")
    create_run("first", Config(), [])
    create_run("other", Config(), [])
    with pytest.raises(NotFoundError) as caught:
        find_run("frist")
    assert str(caught.value) == (
        "There is no run 'frist' in checkpoints/ (did you mean 'first'?). There are: first, other."
    )


def test_what_an_interrupted_creation_left_is_no_run() -> None:
    create_run("first", Config(), []).folder.rename("checkpoints/.writing-first-abc")
    with pytest.raises(NotFoundError):
        find_run(None)
