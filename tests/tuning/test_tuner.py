"""Tuner: decisions of a whole tuning with trials that are made up, on a clock that they move."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from made_up_trials import Clock, Silent

from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.errors import NmtError
from nmt.training.interrupts import StopRequested
from nmt.tuning.best import best_config, best_text
from nmt.tuning.plan import Score
from nmt.tuning.record import Speed, TuningFolder, TuningRecord
from nmt.tuning.runner import Measured, Outcome, TrialFailedError, TrialPlan, Watch
from nmt.tuning.space import costs_as_base
from nmt.tuning.table import conclusion, json_of, table
from nmt.tuning.tuner import Tuner

SENTENCES = 60
BASE_TRAINING = {"schedule": "linear", "peak_learning_rate": 0.0015, "batch_type": "tokens", "epochs": 14}
Quality = Callable[[Config], float]


class Killed(BaseException):
    """The process is gone."""


class MadeUp:
    """Runner whose trials take time by the size of the model, and have a quality by the configuration.

    A trial keeps its steps over interruptions, as checkpoints do.
    """

    references: ClassVar = [f"w{n} x{n} y{n} z{n} v{n}" for n in range(SENTENCES)]

    def __init__(self, clock: Clock, quality: Quality, interrupt: Callable[[], None] = lambda: None) -> None:
        self.clock, self.quality, self.interrupt = clock, quality, interrupt
        self.done: dict[Path, int] = {}
        self.finished: list[Path] = []
        self.measured: list[Config] = []
        self.plans: dict[Path, TrialPlan] = {}
        self.texts: dict[Path, list[str]] = {}

    @staticmethod
    def step_seconds(config: Config) -> float:
        model = config.model.model_dump()
        return 0.1 * (model["d_model"] / 512) * (config.training.batch_size / 2048)

    def measure(self, config: Config, watch: Watch, *, translate: bool = False) -> Measured:
        self.clock.now += 5 + 5 * translate
        watch(0)
        self.interrupt()
        self.measured.append(config)
        return Measured(Speed(step_seconds=self.step_seconds(config), epoch_steps=200), 10.0)

    def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
        assert plan.folder not in self.finished, "a finished trial is repeated"
        assert self.plans.setdefault(plan.folder, plan) == plan, "a trial goes on as another"
        self.clock.now += 6
        share = max(1, plan.steps // 6)
        while self.done.get(plan.folder, 0) < plan.steps:
            step = min(plan.steps, self.done.get(plan.folder, 0) + share)
            self.clock.now += (step - self.done.get(plan.folder, 0)) * self.step_seconds(plan.config)
            self.done[plan.folder] = step
            self.interrupt()
            watch(step)
        quality = self.quality(plan.config)
        right = round(SENTENCES * quality)
        self.texts[plan.folder] = [
            line if number < right else "none of it is right" for number, line in enumerate(self.references)
        ]
        self.finished.append(plan.folder)
        return Outcome(Score(100 * quality, 50.0), self.texts[plan.folder], self.step_seconds(plan.config))

    def translations(self, folder: Path) -> list[str]:
        return self.texts[folder]

    def clear(self, folder: Path, *, keep_weights: bool) -> None:
        pass


def more_dropout_is_better(config: Config) -> float:
    """Dropout above 0.1 helps, a high rate hurts, and luck decides little things."""
    dropout, peak = config.model.model_dump()["dropout"], config.training.peak_learning_rate or 0
    return (
        0.3
        + 2 * (dropout - 0.1)
        + (0.0005 if config.model.model_dump()["norm"] == "pre" else 0)
        - 50 * abs(peak - 0.0015)
    )


def the_base_is_best(config: Config) -> float:
    changed = config.model != Config().model or config.training.peak_learning_rate != 0.0015
    return 0.5 if not changed and config.training.batch_size == 2048 else 0.4


def new_record(minutes: float = 60, **training: Any) -> TuningRecord:
    base = Config.model_validate({"training": {**BASE_TRAINING, **training}})
    return TuningRecord(
        dataset="letters", fingerprint="0", origin="the recipe", base=base.model_dump(mode="json"), minutes=minutes,
        sentences=SENTENCES,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningFolder:
    return folder_in(tmp_path, monkeypatch)


def folder_in(path: Path, patch: pytest.MonkeyPatch) -> TuningFolder:
    patch.chdir(path)
    # The clock makes every step a time to write, which a disk makes slow.
    patch.setattr("nmt.tuning.record.write_text", lambda path, text: path.write_text(text))
    (path / "checkpoints" / "tuned").mkdir(parents=True)
    return TuningFolder("tuned")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> TuningRecord:
    """The record of a tuning that has ended."""
    with pytest.MonkeyPatch.context() as patch:
        return tuned(
            folder_in(tmp_path_factory.mktemp("tuned"), patch), MadeUp(Clock(), more_dropout_is_better), new_record()
        ).record


def tuned(
    folder: TuningFolder, runner: MadeUp, record: TuningRecord, check: Callable[[], None] = lambda: None
) -> Tuner:
    tuner = Tuner(folder, record, runner, Silent(), check, runner.clock)
    tuner.tune()
    assert folder.read() == tuner.record
    return tuner


def decisions(record: TuningRecord) -> Any:
    return [
        [(trial.candidate, trial.bleu, trial.failure) for trial in rung.trials] for rung in record.rungs
    ], record.verdict


def test_the_better_candidate_is_found_within_the_budget(folder: TuningFolder) -> None:
    runner = MadeUp(Clock(), more_dropout_is_better)
    record = tuned(folder, runner, new_record()).record
    assert runner.clock.now - 1000 == pytest.approx(record.spent)
    assert 0.95 * 3600 < record.spent <= 3600
    verdict = record.verdict
    assert verdict and verdict.is_better and verdict.p_value is not None and verdict.p_value < 0.05
    assert best_config(record, verdict).model.model_dump()["dropout"] == 0.2
    for rung in record.rungs:
        assert rung.trials[0].candidate == 0, "the base is in every rung"
        seconds = {trial.steps * trial.step_seconds for trial in rung.trials if trial.steps and trial.step_seconds}
        assert max(seconds) - min(seconds) < 2, "equal time, whatever the speed"
    assert record.rungs[0].training_seconds < record.rungs[-1].training_seconds
    seeds = {(path.name.split("-")[1], plan.config.training.seed) for path, plan in runner.plans.items()}
    assert seeds == {("1", 1), ("2", 2), ("3", 3)}, "each rung has a seed of its own"
    count = len(runner.measured)
    assert tuned(folder, runner, folder.read()).record == record, "a tuning that is finished does nothing again"
    assert len(runner.measured) == count


def test_candidates_of_equal_cost_have_equal_steps_on_a_busy_machine(folder: TuningFolder) -> None:
    class Busy(MadeUp):
        def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
            found = super().run(plan, watch)
            return found._replace(step_seconds=(found.step_seconds or 0) * (1 + len(self.finished) % 3))

    runner = Busy(Clock(), more_dropout_is_better)
    record = tuned(folder, runner, new_record()).record
    for rung in record.rungs:
        alike = [
            trial for trial in rung.trials if costs_as_base(record.config, record.candidates[trial.candidate].changes)
        ]
        assert len(alike) > 1 and len({trial.steps for trial in alike}) == 1


def test_two_changes_that_help_are_tried_together(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        help_ = (config.model.model_dump()["dropout"] > 0.1) + (config.training.peak_learning_rate == 0.003)
        return 0.3 + 0.2 * help_

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    verdict = record.verdict
    assert verdict and verdict.is_better
    assert record.candidates[verdict.candidate].changes == {
        "model.dropout": 0.2, "training.peak_learning_rate": 0.003
    }  # fmt: skip
    assert [len(rung.trials) for rung in record.rungs] == [10, 4, 2], "in place of another, not besides"


def test_it_says_that_nothing_is_better(folder: TuningFolder) -> None:
    record = tuned(folder, MadeUp(Clock(), the_base_is_best), new_record()).record
    assert record.verdict and not record.verdict.is_better
    assert best_config(record, record.verdict) == record.config
    assert conclusion(record, record.verdict)[0].startswith("No candidate is better than the recipe. The best of them,")


def test_a_difference_that_may_be_chance_is_no_better(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        return 0.5 if config.model == Config().model else 0.5 + 1.01 / SENTENCES

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    verdict = record.verdict
    assert verdict and verdict.candidate and not verdict.is_better and verdict.p_value and verdict.p_value > 0.05


@pytest.mark.parametrize("seed", range(2))
def test_a_tuning_that_is_killed_or_interrupted_anywhere_ends_with_the_same_decisions(
    seed: int, folder: TuningFolder
) -> None:
    expected = decisions(tuned(folder, MadeUp(Clock(), more_dropout_is_better), new_record()).record)
    chance = random.Random(seed)

    def interrupt() -> None:
        if chance.random() < 0.15:
            raise chance.choice([Killed, StopRequested])(2)

    runner, record, interruptions = MadeUp(Clock(), more_dropout_is_better, interrupt), new_record(), 0
    folder.write(record)
    while True:
        try:
            found = tuned(folder, runner, folder.read())
            break
        except Killed:  # what was not written is lost
            interruptions += 1
        except StopRequested:
            interruptions += 1
            assert runner.clock.now - 1000 >= folder.read().spent
    assert interruptions > 3
    assert decisions(found.record) == expected
    assert len(runner.finished) == len(set(runner.finished))
    assert len(runner.measured) == len({config.model_dump_json() for config in runner.measured}), "measured once"
    assert found.record.spent <= 3600 + interruptions * 60


def test_candidates_that_fail_are_out_and_the_others_go_on(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        training = config.training
        if (training.optimizer, training.peak_learning_rate) == ("adam", 0.003) or training.batch_size == 4096:
            raise TrialFailedError("Training diverged: step 7, batch 7 of epoch 1; nothing has been saved.")
        return more_dropout_is_better(config)

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    failed = [trial for rung in record.rungs for trial in rung.trials if trial.failure]
    assert len(failed) == 2 and all(trial.bleu is None for trial in failed)
    assert record.verdict and record.verdict.is_better
    assert any("failed" in line and "Training diverged" in line for line in table(record, 160))


def test_a_recipe_that_fails_is_tried_again_and_loses(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        if the_base_is_best(config) == 0.5:
            raise TrialFailedError("out of memory")
        return more_dropout_is_better(config)

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    verdict = record.verdict
    assert verdict and verdict.is_better and verdict.p_value is None
    assert "which failed (out of memory)" in conclusion(record, verdict)[0]


def test_if_all_others_fail_the_recipe_is_what_remains(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        if the_base_is_best(config) != 0.5:
            raise TrialFailedError("out of memory")
        return 0.5

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    assert record.verdict and record.verdict.candidate == 0 and not record.verdict.is_better
    assert "none of them was trained" in conclusion(record, record.verdict)[0]


def test_if_all_fail_the_message_says_why(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        raise TrialFailedError("out of memory")

    with pytest.raises(NmtError, match="No trial of the last rung succeeded: out of memory"):
        tuned(folder, MadeUp(Clock(), quality), new_record())


def test_a_budget_without_room_for_two_trials_is_refused(folder: TuningFolder) -> None:
    with pytest.raises(NmtError, match=r"--minutes 0\.1 is too short.* Give --minutes 1 or more"):
        tuned(folder, MadeUp(Clock(), the_base_is_best), new_record(minutes=0.1))


def test_a_slower_machine_makes_the_later_rungs_no_shorter(folder: TuningFolder) -> None:
    class Slow(MadeUp):
        def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
            self.clock.now += 100
            return super().run(plan, watch)

    record = tuned(folder, Slow(Clock(), more_dropout_is_better), new_record()).record
    lengths = [rung.training_seconds for rung in record.rungs]
    assert lengths == sorted(lengths)


# --- what it leaves


def test_the_best_configuration_is_read_back(folder: TuningFolder) -> None:
    record = tuned(folder, MadeUp(Clock(), more_dropout_is_better), new_record(batch_size=64)).record
    assert record.verdict
    text = best_text(record, record.verdict)
    Path("best.yaml").write_text(text)
    read = load_config(Path("best.yaml"))
    assert read.data.dataset == "letters"
    assert read == best_config(record, record.verdict).model_copy(update={"data": read.data})
    assert "# the recipe has 0.1" in text


def test_a_smaller_model_that_is_better_trains_as_long_as_the_recipe(folder: TuningFolder) -> None:
    def quality(config: Config) -> float:
        return 0.8 if config.model.model_dump()["d_model"] < 512 else 0.3

    record = tuned(folder, MadeUp(Clock(), quality), new_record()).record
    assert record.verdict and record.verdict.is_better
    best = best_config(record, record.verdict)
    assert best.model.model_dump()["d_model"] == 384 and best.training.epochs == round(14 * 512 / 384)


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_the_table_names_every_candidate_and_fits(columns: int, record: TuningRecord) -> None:
    lines = table(record, columns)
    assert all(len(line) <= columns for line in lines)
    text = " ".join(" ".join(lines).split())
    for candidate in record.candidates:
        assert candidate.text in text
    assert sum("out after rung 1" in line for line in lines) == 6
    assert sum("better" in line for line in lines) == 1


def test_the_json_holds_what_the_table_shows(record: TuningRecord) -> None:
    values = json.loads(json.dumps(json_of(record, "best.yaml")))
    assert [len(candidate["trials"]) for candidate in values["candidates"][:2]] == [3, 3]
    assert values["verdict"]["is_better"] and values["spent_minutes"] <= 60
    assert {candidate["number"] for candidate in values["candidates"]} == set(range(len(record.candidates)))


def test_the_record_survives_its_file(folder: TuningFolder, record: TuningRecord) -> None:
    folder.write(record)
    assert folder.read() == record
    folder.record_path.write_text(folder.record_path.read_text()[:-40])
    with pytest.raises(NmtError, match=r"tuning.json is damaged: .* Restore a copy"):
        folder.read()
