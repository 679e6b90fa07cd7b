"""``nmt tune`` with real trials on a small corpus."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import nmt
from made_up_trials import Clock, Silent

from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.data.dataset import open_dataset
from nmt.errors import ConflictError
from nmt.runs.directory import Run
from nmt.training.interrupts import StopRequested
from nmt.tuning.best import write_best
from nmt.tuning.record import TuningFolder, TuningRecord, read_record
from nmt.tuning.runner import Measured, Outcome, TrialFailedError, TrialPlan, Watch
from nmt.tuning.session import Request, Tuning, open_tuning
from nmt.tuning.trials import TrainedTrials
from nmt.tuning.tuner import Tuner

MINUTES = 1.0


class Steady(TrainedTrials):
    """Trials that are trained, on a clock that their steps move: the machine's speed does not matter."""

    def __init__(self, folder: TuningFolder, clock: Clock, stop_at: int | None = None) -> None:
        """Ask to stop after N steps in all, if N is given."""
        super().__init__(folder.folder, open_dataset("english-german-both"), 30)
        self.clock, self.stop_at, self.steps = clock, stop_at, 0

    def measure(self, config: Config, watch: Watch, *, translate: bool = False) -> Measured:
        self.clock.now += 1
        found = super().measure(config, watch, translate=translate)
        return Measured(found.speed.model_copy(update={"step_seconds": 1.0}), 1.0)

    def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
        def moving(step: int) -> None:
            self.clock.now += 1
            self.steps += 1
            watch(step)
            if self.steps == self.stop_at:
                raise StopRequested(2)

        return super().run(plan, moving)._replace(step_seconds=1.0)


def outcome_of(record: TuningRecord) -> object:
    return record.candidates, record.verdict, [
        [(trial.candidate, trial.steps, trial.bleu, trial.chrf) for trial in rung.trials] for rung in record.rungs
    ]  # fmt: skip


def new_tuning(name: str) -> Tuning:
    settings = ["training.schedule=linear", "training.peak_learning_rate=0.003", "training.average_last=1"]
    return open_tuning(Request(name, MINUTES, "base.yaml", settings, "english-german-both"))


@pytest.mark.slow
def test_trials_that_are_stopped_and_resumed_end_in_the_same_scores(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    tests = list((project / "data" / "english-german-both").glob("test.*"))
    assert len(tests) >= 4
    for path in tests:  # nothing of the test split is seen
        path.unlink()
    records = []
    for name, stops in (("whole", []), ("stopped", [13, 30])):
        tuning, clock = new_tuning(name), Clock()
        with tuning.held():
            for stop in [*stops, None]:
                runner = Steady(tuning.folder, clock, stop)
                tuner = Tuner(tuning.folder, tuning.folder.read(), runner, Silent(), lambda: None, clock)
                with pytest.raises(StopRequested) if stop else contextlib.nullcontext():
                    tuner.tune()
            record = tuning.folder.read()
        assert record.verdict
        write_best(tuning.folder, record, record.verdict)
        records.append(record)
        for trial in record.rungs[-1].trials:
            run = Run(tuning.folder.trial_path(len(record.rungs) - 1, trial.candidate))
            assert run.step_weights == [f"step-{trial.steps}"] and not run.state_steps
    whole, stopped = records
    assert outcome_of(stopped) == outcome_of(whole)
    for path in (project / "checkpoints" / "whole" / "trials").glob("*/translations.txt"):
        other = project / "checkpoints" / "stopped" / path.relative_to(project / "checkpoints" / "whole")
        assert other.read_text() == path.read_text()
    assert load_config(tuning.folder.best_path).data.dataset == "english-german-both"

    shown = nmt("tune", "--name", "stopped", cwd=project).stdout
    assert "Nothing to do" in shown and "better than the recipe" in shown.lower()
    values = json.loads(nmt("tune", "--name", "stopped", "--json", cwd=project).stdout)
    assert values["verdict"]["candidate"] == whole.verdict.candidate


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(project: Path) -> None:
    command = [sys.executable, "-c", "from nmt.cli.app import main; main()", "tune", "--config", "base.yaml"]
    process = subprocess.Popen([*command, "--name", "tuned"], cwd=project, text=True, stderr=subprocess.PIPE)
    folder, deadline = project / "checkpoints" / "tuned", time.monotonic() + 250
    while not list(folder.glob("trials/*/state/step-*")):
        assert process.poll() is None and time.monotonic() < deadline, "no trial has begun"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 128 + signal.SIGINT
    assert "Saved. Go on with the same command, or: nmt tune --name tuned" in errors
    record = read_record(folder / "tuning.json")
    assert record.verdict is None and record.spent > 0 and record.rungs[0].trials[0].steps


def test_a_new_tuning_starts_from_the_recipe_and_writes_nothing_yet(
    trained_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained_project)
    before = sorted(Path().rglob("*"))
    tuning = open_tuning(Request())
    assert tuning.folder.name == "tune-english-german-both" and tuning.is_new and len(tuning.reasons) >= 4
    assert tuning.record.minutes == 60 and tuning.record.sentences == 30
    changed = open_tuning(Request(overrides=["model.dropout=0.25"]))
    assert changed.record.config.model.model_dump()["dropout"] == 0.25
    assert sorted(Path().rglob("*")) == before


def test_a_candidate_that_memory_does_not_hold_fails_alone(
    trained_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: object) -> None:
        raise MemoryError

    monkeypatch.chdir(trained_project)
    tuning = open_tuning(Request(name="short", config="base.yaml"))
    trials = TrainedTrials(tuning.folder.folder, open_dataset("english-german-both"), 5)
    config = tuning.record.config
    monkeypatch.setattr("nmt.training.state.TrainState.step", short)
    with pytest.raises(TrialFailedError, match="out of memory"):
        trials.run(TrialPlan(Path("checkpoints/short/trials/0"), config, 2), lambda step: None)


def test_one_process_tunes_at_a_time_and_a_tuning_without_a_plan_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    tuning = open_tuning(Request(name="held", config="base.yaml"))
    with pytest.raises(ConflictError, match=f"Tuning 'held' is in use by process {os.getpid()}"), tuning.held():
        assert tuning.folder.record_path.exists()
        with open_tuning(Request(name="held")).held():
            pass
    assert not tuning.folder.folder.exists()
