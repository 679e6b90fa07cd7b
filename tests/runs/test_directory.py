"""Run directories: the metrics file survives interruptions, and the best epoch and runs by name are found."""

import json
import os
from pathlib import Path

import pytest
from conftest import an_epoch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.runs.directory import Run, create_run, find_run, run_exists
from nmt.runs.metrics import EpochMetrics, Metrics, Sample, SampleMetrics, StepMetrics, StepValidation

pytestmark = pytest.mark.usefixtures("folder")
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
SENTENCES = st.builds(Sample, source=st.text(), reference=st.text(), translation=st.text())
SAMPLES = st.builds(SampleMetrics, epoch=COUNTS, step=COUNTS, samples=st.lists(SENTENCES))


@pytest.fixture
def run(folder: Path) -> Run:
    """Return a run before its first step."""
    return create_run("first", Config(), [])


def a_step(step: int) -> StepMetrics:
    """Return the metrics of a step."""
    return StepMetrics(epoch=1 + step // 10, step=step, loss=3.0, accuracy=0.1, learning_rate=1e-4)


# --- metrics


@QUICK
@given(st.lists(STEPS | EPOCHS | VALIDATIONS | SAMPLES))
def test_metrics_are_read_back_as_appended(run: Run, records: list[Metrics]) -> None:
    run.metrics_path.unlink(missing_ok=True)
    for record in records:
        run.append_metrics(record)
    assert run.metrics() == records
    assert run.epochs() == [record for record in records if isinstance(record, EpochMetrics)]


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b"null",
        b'{"kind": "epoch"}',
        b'{"epoch": 1}',
        b'{"kind": "header", "format": 2}',
        b'{"kind": "step", "epoch": 1, "step": 5, "loss": "low", "accuracy": 0.1, "learning_rate": 1e-4}',
        b'{"kind": "step", "epoch": 1, "step": 5, "loss": NaN, "accuracy": 0.1, "learning_rate": 1e-4}',
        b"\0" * 30,
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_that_was_finished_is_named(run: Run, damaged: bytes) -> None:
    run.append_metrics(a_step(5))
    with run.metrics_path.open("ab") as file:
        file.write(damaged + b"\n")
    for _ in range(2):  # the last line, then one before the last
        with pytest.raises(DataError, match=r"metrics\.jsonl, line 3 is damaged"):
            run.metrics()
        run.append_metrics(an_epoch(1))


Validated = tuple[int | str, float, float, float | None, float | None]
MEASURED: list[Validated] = [
    ("step-5", 3.0, 0.4, 9.0, 70.0), (1, 1.0, 0.5, 20.0, 60.0), ("step-15", 2.0, 0.9, 19.0, 65.0),
    (2, 1.5, 0.8, 30.0, 50.0),
]  # fmt: skip


def equally_accurate(*losses: float) -> list[Validated]:
    return [(epoch, loss, 0.6, None, None) for epoch, loss in enumerate(losses, start=1)]


@pytest.mark.parametrize(
    ("by", "validations", "best"),
    [
        ("accuracy", [], None),
        ("accuracy", MEASURED, "step-15"), ("loss", MEASURED, 1), ("bleu", MEASURED, 2), ("chrf", MEASURED, "step-5"),
        ("accuracy", equally_accurate(3.0, 2.0, 1.0), 3), ("accuracy", equally_accurate(3.0, 1.0, 2.0), 2),
        ("bleu", equally_accurate(2.0, 1.0, 1.0, 1.5), 2), ("accuracy", equally_accurate(1.0, 1.0), 1),
    ],
)  # fmt: skip
def test_the_best_weights_are_those_by_the_measure_then_by_the_loss_then_the_earliest(
    run: Run, by: str, validations: list[Validated], best: int | str | None
) -> None:
    run.write_config(Config.model_validate({"training": {"best_by": by, "decode_validation": 9}}))
    for number, (weights, loss, accuracy, bleu, chrf) in enumerate(validations, start=1):
        values = {"step": 5 * number, "validation_loss": loss, "validation_accuracy": accuracy}
        values |= {"validation_bleu": bleu, "validation_chrf": chrf}
        if isinstance(weights, int):
            run.append_metrics(an_epoch(weights, **values))
        else:
            run.append_metrics(StepValidation(epoch=1, **values))
    assert run.best() == best


@QUICK
@given(st.lists(STEPS | EPOCHS | VALIDATIONS | SAMPLES, min_size=1, max_size=4), STEPS, st.data())
def test_lines_are_added_after_a_last_one_cut_anywhere(
    run: Run, records: list[Metrics], added: Metrics, data: st.DataObject
) -> None:
    run.metrics_path.unlink(missing_ok=True)
    for record in records:
        run.append_metrics(record)
    content = run.metrics_path.read_bytes()
    cut = content[: len(content) - data.draw(st.integers(0, 2) | st.integers(0, len(content)))]
    run.restore_metrics(cut)
    assert run.metrics_path.read_bytes() == cut
    whole = run.metrics()
    run.repair_metrics()
    run.append_metrics(added)
    assert run.metrics() == [*whole, added]


# --- format numbers


def test_metrics_of_older_versions_are_read_without_what_is_no_longer_written_and_stay_so(run: Run) -> None:
    epoch = json.dumps({**an_epoch(1).model_dump(), "energy_joules": 36_000.0})
    shortage = '{"kind": "shortage", "epoch": 1, "step": 5, "tokens": 900}'
    older = "".join(f"{line}\n" for line in (a_step(5).model_dump_json(), shortage, epoch))
    run.metrics_path.write_text(older)
    assert run.metrics() == [a_step(5), an_epoch(1)]
    run.append_metrics(an_epoch(2))
    assert run.metrics() == [a_step(5), an_epoch(1), an_epoch(2)]
    assert run.metrics_path.read_text().startswith(older)


def test_the_configuration_is_stored_whole_with_its_format_and_can_be_replaced(run: Run) -> None:
    changed = Config.model_validate({"data": {"dataset": "some"}, "training": {"epochs": 7}})
    for config in (Config(), changed):
        assert run.config_path.read_text().startswith("format: 2\ndata:\n")
        assert run.config() == config
        run.write_config(changed)


# --- paths


def test_epochs_are_what_training_named_in_order_of_their_numbers(run: Run) -> None:
    assert run.saved_weights == run.state_steps == []
    weights, states = run.folder / "weights", run.folder / "state"
    for name in ("epoch-x.safetensors", "epoch-.safetensors", "step-1e3.safetensors", "epoch-0001.weights.h5",
                 ".writing-abc/epoch-0001.safetensors"):  # fmt: skip
        (weights / name).parent.mkdir(parents=True, exist_ok=True)
        (weights / name).touch()
    for name in ("step-old", ".writing-step-00000001-abc"):
        (states / name).mkdir(parents=True)
    assert run.saved_weights == run.state_steps == []
    for epoch in (10_000, 2, 10, 1):
        run.weights_path(epoch).touch()
        run.state_path(epoch).mkdir()
    assert run.weights_epochs == run.state_steps == [1, 2, 10, 10_000]


# --- creating and finding


def test_a_new_run_holds_its_configuration_and_what_translating_needs(folder: Path) -> None:
    (folder / "data").mkdir()
    for name in ("manifest.json", "tokenizer.source.json", "tokenizer.target.json"):
        (folder / "data" / name).write_text(name)
    run = create_run("new", Config(), (folder / "data").iterdir())
    with pytest.raises(ConflictError):
        create_run("new", Config(), [])
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


def test_a_run_exists_once_it_was_created_whole(folder: Path) -> None:
    (folder / "checkpoints" / "empty").mkdir(parents=True)
    create_run("whole", Config(), [])
    with pytest.raises(NmtError):
        create_run("part", Config(), [folder / "missing.json"])
    assert [run_exists(name) for name in ("whole", "empty", "part", "absent")] == [True, False, False, False]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["empty", "whole"]


def test_without_a_name_the_run_that_trained_last_is_found() -> None:
    create_run("first", Config(), []).folder.rename("checkpoints/.writing-first-abc")  # an interrupted creation
    for name in (None, "first"):
        with pytest.raises(NotFoundError):
            find_run(name)
    runs = {name: create_run(name, Config(), []) for name in ("a", "b", "c")}
    for run, hour in zip(runs.values(), (1, 3, 2), strict=True):
        os.utime(run.config_path, (3600 * hour, 3600 * hour))
    assert find_run(None).name == "b"
    runs["a"].append_metrics(a_step(1))
    os.utime(runs["a"].metrics_path, (14400, 14400))
    assert find_run(None).name == "a"
    assert find_run("c").name == "c"
    with pytest.raises(NotFoundError):
        find_run("d")
