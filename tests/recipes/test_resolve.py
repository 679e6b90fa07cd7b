"""The plan that ``nmt train`` makes of its arguments, and what it prints and writes."""

import contextlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import outcome, run_nmt

from nmt.cluster.group import Group
from nmt.cluster.hosts import Hosts
from nmt.config.loading import load_config
from nmt.data.dataset import open_dataset
from nmt.errors import ConfigError, ConflictError, NmtError, on_command_line
from nmt.recipes import budget
from nmt.recipes.budget import Speed
from nmt.recipes.resolve import Request, resolve
from nmt.runs.directory import find_run
from nmt.training.plan import RunPlan, decided

DATASET = "english-german-both"
SMALL = ["model.d_model=16", "model.encoder_layers=1", "model.decoder_layers=1", "training.epochs=1"]
SILENT = ["training.decode_validation=0", "training.samples=0"]


@pytest.fixture
def here(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project with a dataset and the run "base", as the working directory; for tests that write nothing."""
    monkeypatch.chdir(trained_project)
    return trained_project


def as_options(settings: list[str]) -> list[str]:
    return [f"--set={setting}" for setting in settings]


def plan_of(*request: Any, **more: Any) -> RunPlan:
    return resolve(Request(*request, **more), lambda _: None).plan


def test_the_arguments_name_the_run(here: Path) -> None:
    assert (plan_of("base.yaml", "mine").run, plan_of("base.yaml", "mine").recipe) == ("mine", None)
    resumed = plan_of(run="base")
    assert resumed.resumes and resumed.recipe is None and resumed.config == find_run("base").config()
    chosen = plan_of(run="new")
    assert chosen.run == "new" and chosen.recipe and not chosen.resumes and chosen.dataset == DATASET
    assert plan_of().run == DATASET == plan_of(dataset=DATASET).run
    assert plan_of(overrides=[f"data.dataset={DATASET}"]).dataset == DATASET
    assert plan_of().config == chosen.config
    assert chosen.config.training.precision != "auto" != chosen.config.data.tokenizer
    assert chosen.config.data.dataset == DATASET


def test_a_run_with_the_name_of_the_dataset_goes_on(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(shutil.copytree(here, tmp_path / "project"))
    monkeypatch.chdir(project)
    shutil.copytree("checkpoints/base", f"checkpoints/{DATASET}")
    resolved = resolve(Request(overrides=["training.epochs=9"]))
    assert resolved.plan.recipe is None and resolved.chosen == []
    assert resolved.plan.config.training.epochs == 9
    assert resolved.plan.config.model == find_run("base").config().model


def test_minutes_are_for_new_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "measure_speed", lambda *_: Speed(1.0, 10, 2.0))
    file = resolve(Request("base.yaml", "new", minutes=1))
    assert file.plan.config.training.epochs == 5 and "training.epochs is 5" in file.chosen[0]
    recipe = plan_of(run="new", minutes=1)
    assert recipe.config.training.epochs == 5 and "1 minutes have room for 5 epochs" in str(recipe.recipe)
    existing = resolve(Request(run="base", minutes=1))
    assert existing.plan == plan_of(run="base") and existing.plan.config.training.epochs == 2
    chosen = [on_command_line([line]) for line in existing.chosen]
    assert chosen == ["Note: run base exists and keeps its 2 epochs; --minutes is for new runs."]
    for minutes in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="more than 0"):
            plan_of(minutes=minutes)


def test_a_run_that_another_process_has_changed_since_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made before the lock is taken."""
    monkeypatch.chdir(project)
    late, new = resolve(Request(run="base")), resolve(Request("base.yaml", "new"))
    run = find_run("base")
    run.write_config(resolve(Request(run="base", overrides=["training.samples=1"])).plan.config)
    shutil.copytree(run.folder, "checkpoints/new")
    before = outcome(run)
    for stale in (late, new):
        with pytest.raises(ConflictError, match=r"Another process has changed run .* since this process read it"):
            stale.trainer()
    assert before == outcome(run) == outcome(find_run("new"))


class TwoHosts(Group):
    """Group of two hosts that run in turn in this process: the chief, then the other with the chief's messages."""

    messages: ClassVar[list[bytes]] = []

    def __init__(self, hosts: Hosts, warn: Callable[[str], None]) -> None:
        super().__init__(None, warn)
        self.hosts, self.rank, self.count, self.is_chief = hosts, hosts.rank, 2, hosts.rank == 0

    def agree(self, facts: dict[str, str], environment: dict[str, str] | None = None) -> None:
        """Compare nothing: both hosts are this process."""

    def gather_bytes(self, content: bytes) -> list[bytes]:
        if self.is_chief:
            self.messages.append(content)
            return [content, b"null"]
        return [self.messages.pop(0), content]


def test_the_chief_plans_for_a_host_that_has_the_dataset_alone(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.cluster.group.Group", TwoHosts)
    addresses = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": %s}}'
    requests = [
        (Request("base.yaml", "new", overrides=["training.micro_batches=2"]), None),
        (Request("base.yaml", "new"), "There are 2 hosts, and training.micro_batches is 1"),
        (Request("ghost.yaml"), "There is no configuration 'ghost.yaml'"),
        (Request(minutes=5, overrides=["training.micro_batches=2"]), "minutes[= ]5 measures the speed of one machine"),
    ]
    (tmp_path / "data").symlink_to(here / "data")
    for request, failure in requests:
        plans = []
        for rank, folder in enumerate((here, tmp_path)):
            monkeypatch.chdir(folder)
            monkeypatch.setenv("TF_CONFIG", addresses % rank)
            with pytest.raises(NmtError, match=failure) if failure else contextlib.nullcontext():
                resolved = resolve(request)
                assert resolved.is_chief == (rank == 0)
                plans.append(resolved.plan.model_dump())
        assert not plans or plans[0] == plans[1]


@pytest.mark.slow
def test_the_run_keeps_the_recipe_that_it_explains(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    out = run_nmt("train", *as_options([*SMALL, *SILENT])).out
    first, second, third = out.splitlines()[:3]
    assert first.startswith(f"Recipe for dataset {DATASET} of ") and third.startswith("To change it: ")
    assert "number of pairs" in second and "Set by you: model.d_model, " in second
    run = find_run(DATASET)
    assert f"New run {DATASET}" in out and str(run.recipe_path) in out
    assert decided(load_config(run.recipe_path), open_dataset(DATASET)) == run.config()
    out = run_nmt("train", "--minutes", "3").out
    assert out.startswith(f"Note: run {DATASET} exists and keeps its 1 epoch")
    assert re.search(rf"^Run {DATASET} is finished: .* Its schedule has ended. To train longer, start", out, re.M)


@pytest.mark.slow
def test_a_dry_run_fits_a_recipe_into_minutes_and_writes_nothing(here: Path) -> None:
    before = sorted(here.rglob("*"))
    settings = as_options([*SMALL[:3], "training.batch_size=64"])
    out = run_nmt("train", "--dry-run", "--minutes", "0.5", *settings).out
    [epochs] = re.findall(r"^Recipe .*, (\d+) epochs", out, re.M)
    assert f"Ahead: {epochs} epochs of" in out
    assert "Budget: 0.5 minutes have room for" in out and out.endswith("A dry run: nothing was written.\n")
    assert sorted(here.rglob("*")) == before
