"""The overview of runs shows states, scores, times, sizes and differences. Damaged files hide only their own values."""

import json
import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import an_epoch, nmt

from nmt.config.schema import Config
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import StepMetrics
from nmt.runs.overview import Overview, differences, overview, run_folders, sort_overviews
from nmt.storage.arrays import write_arrays
from nmt.storage.file_lock import holder, locked


@pytest.fixture
def here(trained_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with runs that differ from "base" in configuration and metrics."""
    monkeypatch.chdir(tmp_path)
    return trained_project / "checkpoints" / "base"


def look(run: Run) -> Overview:
    return overview(run)


def make(base: Path, name: str, accuracies: list[float], **training: Any) -> Run:
    """Return a new run with one epoch of 10 steps and 2 seconds for each accuracy, and a weights file."""
    config = Config.model_validate({"data": {"dataset": "pairs"}, "training": {"epochs": 3, **training}})
    run = create_run(name, config, [base / "dataset.json", *base.glob("tokenizer.*")])
    for epoch, accuracy in enumerate(accuracies, start=1):
        validated = {"validation_loss": 3.0 - accuracy, "validation_accuracy": accuracy}
        run.append_metrics(an_epoch(epoch, seconds=2.0, **validated))
        run.weights_path(epoch).parent.mkdir(exist_ok=True)
        write_arrays(run.weights_path(epoch), {"matrix": np.zeros([20, 10], np.float32)})
    return run


def hold(path: Path, ready: Any, done: Any) -> None:
    with locked(path, "Run"):
        ready.set()
        done.wait(60)


def test_states(here: Path) -> None:
    assert look(make(here, "new", [])).state == "new"
    assert look(make(here, "stopped", [0.1, 0.2])).state == "stopped"
    assert look(make(here, "finished", [0.1, 0.2, 0.3])).state == "finished"
    assert look(make(here, "early", [0.2, 0.1], patience=1)).state == "ended early"
    assert look(make(here, "patient", [0.1, 0.2], patience=1)).state == "stopped"
    saved = make(here, "within", [])
    saved.state_path(7).mkdir(parents=True)
    assert (look(saved).state, look(saved).step) == ("stopped", 7)


def test_a_run_in_training_is_one_whose_lock_is_held_and_looking_leaves_it_alone(here: Path) -> None:
    run = make(here, "base", [0.1])
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(run.lock_path, ready, done))
    process.start()
    try:
        assert ready.wait(60)
        before = {path.name: path.read_bytes() for path in run.folder.glob("lock*")}
        shown = look(run)
        assert shown.state == "training"
        assert f"process {process.pid} " in str(shown.held_by)
        assert {path.name: path.read_bytes() for path in run.folder.glob("lock*")} == before
    finally:
        done.set()
        process.join()
    assert look(run).state == "stopped"
    for name, content in before.items():  # as a killed process leaves them
        (run.folder / name).write_bytes(content)
    assert holder(run.lock_path) is None
    assert look(run).state == "stopped"


def test_figures_are_those_of_the_files(here: Path) -> None:
    run = make(here, "base", [0.1, 0.4, 0.3], best_by="accuracy")
    run.append_metrics(
        StepMetrics(epoch=4, step=35, loss=1.0, accuracy=0.5, learning_rate=1e-3, target_tokens=50, seconds=1.25)
    )
    os.link(run.weights_path(1), run.folder / "linked")  # counts once
    shown = look(run)
    assert (shown.epochs, shown.step, shown.seconds) == (3, 35, 7.25)
    assert (shown.best, shown.score) == (run.epochs()[1], 0.4)
    files = [path for path in run.folder.rglob("*") if path.is_file() and path.name != "linked"]
    assert shown.size == sum(path.stat().st_size for path in files)
    assert abs(shown.trained - run.metrics_path.stat().st_mtime) < 1e-3
    assert look(make(here, "by-loss", [0.1, 0.4], best_by="loss")).score == 2.6


@pytest.mark.parametrize(("file", "content", "hidden"), [
    ("config.yaml", "model: {d_modl: 3}", "config"), ("config.yaml", None, "config"),
    ("metrics.jsonl", "x\ny\n", "epochs"), ("metrics.jsonl", '{"kind": "header", "format": 99}\nx\n', "epochs"),
    ("dataset.json", "{", None), ("dataset.json", None, None), ("tokenizer.source.json", None, None),
    ("weights", None, "weights"), ("weights/epoch-0003.safetensors", "w", "weights"),
])  # fmt: skip
def test_a_damaged_run_says_why_and_hides_no_other(
    file: str, content: str | None, hidden: str | None, here: Path
) -> None:
    damaged = make(here, "damaged", [0.1, 0.2, 0.3])
    make(here, "whole", [0.1, 0.2, 0.3])
    path = damaged.folder / file
    if content is not None:
        path.write_text(content)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    first, second = (look(run) for run in run_folders())
    assert first.state == "damaged"
    [problem] = first.problems
    assert str(path) in problem
    unknown = {name for name in ("config", "epochs", "weights") if getattr(first, name) is None}
    assert unknown == {hidden} - {None}
    assert (second.state, second.problems) == ("finished", [])


def test_differences_are_those_between_the_runs_alone() -> None:
    wide = {"model": {"d_model": 512, "heads": 8}}
    configs = {
        "a": Config.model_validate(wide | {"training": {"seed": 2}}), "b": Config.model_validate(wide),
        "c": Config.model_validate({"model": {"d_model": 256}}), "d": None,
    }  # fmt: skip
    found = differences(configs)
    assert found == {
        "a": {"model.d_model": 512, "training.seed": 2}, "b": {"model.d_model": 512, "training.seed": 1},
        "c": {"model.d_model": 256, "training.seed": 1}, "d": {},
    }  # fmt: skip
    recurrent = Config.model_validate({"model": {"architecture": "recurrent"}})
    both = differences({"a": Config.model_validate(wide), "b": recurrent})
    assert "model.cell" not in both["b"] and both["a"]["model.architecture"] == "transformer"


def test_orders(here: Path) -> None:
    runs = [make(here, *made) for made in (("c", [0.1]), ("a", [0.3]), ("b", []))]
    for number, run in enumerate(runs):
        os.utime(run.config_path, (0, 0))
        os.utime(run.metrics_path if run.metrics_path.exists() else run.config_path, (number, number))
    found = [look(run) for run in runs]
    orders = {by: [shown.name for shown in sort_overviews(found, by)] for by in ("name", "date", "score")}  # type: ignore[arg-type]
    assert orders == {"name": ["a", "b", "c"], "date": ["b", "a", "c"], "score": ["a", "c", "b"]}


# --- the command


def nmt_runs(*arguments: str) -> list[str]:
    return nmt("runs", *arguments, cwd=Path()).stdout.splitlines()


def test_the_table_has_a_row_for_each_run_and_fits_its_width(here: Path) -> None:
    for name, rate in (("short", 0.1), ("a-run-with-a-name-that-is-longer-than-its-column", 0.2), ("third", 0.2)):
        make(here, name, [0.25], label_smoothing=rate)
    Run(Path("checkpoints/third")).metrics_path.write_text("x\ny\n")
    lines = nmt_runs()
    names = ["a-run-with-a-name-that-is-longer-than-its-column", "short", "third"]
    assert [line.split()[0] for line in lines[1:4]] == names
    assert [line.split()[0] for line in lines[4:] if line[:1].strip()] == names
    text = " ".join(" ".join(lines).split())
    assert "damaged: checkpoints/third/metrics.jsonl, line" in text
    assert "label_smoothing=0.1" in text and "label_smoothing=0.2" in text
    assert max(map(len, lines)) <= 120


def test_json_has_all_of_it(here: Path) -> None:
    make(here, "a", [0.25], label_smoothing=0.2)
    make(here, "b", [0.5, 0.75, 0.5])
    first, second = json.loads("\n".join(nmt_runs("--json", "--sort", "score")))
    assert (first["run"], first["state"], first["epochs"], first["planned_epochs"]) == ("b", "finished", 3, 3)
    assert first["best"] == {
        "weights": 2, "by": "accuracy", "score": 0.75, "validation_loss": 2.25, "validation_accuracy": 0.75,
    }  # fmt: skip
    assert second["differences"] == {"training.label_smoothing": 0.2}
    assert second["configuration"]["training.label_smoothing"] == 0.2
    assert {"folder", "held_by", "problems", "step", "training_seconds", "bytes", "last_trained"} < second.keys()
