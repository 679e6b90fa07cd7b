"""The plan of the run that a command asks for: its name, its dataset, its configuration, which may be a recipe."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, find_dataset
from nmt.data.manifest import read_manifest
from nmt.errors import ConfigError, counted
from nmt.extras import require
from nmt.recipes.recipe import Facts, Recipe, compose
from nmt.runs.directory import find_run, run_exists

if TYPE_CHECKING:  # what loads TensorFlow
    from nmt.cluster.hosts import Hosts
    from nmt.training.plan import RunPlan
    from nmt.training.trainer import Trainer


class Request(NamedTuple):
    """What is asked for: a new run, or one that is to go on."""

    config: str | Path | None = None
    """Configuration file; None: that of an existing run, or a recipe."""
    run: str | None = None
    """Name of the run; None: that of the configuration file, or of the dataset."""
    dataset: str | None = None
    """Name of the dataset; None: that of the configuration or of the existing run, else the one prepared last."""
    overrides: Sequence[str] = ()
    """Settings ``section.key=value``."""
    minutes: float | None = None
    """Time of training that a new run is fitted into. An existing run keeps its length."""
    allow_changes: bool = False
    """Whether a run may go on with other settings and data than it was started with."""


class Resolved(NamedTuple):
    """A plan, and what the command that asked for it says besides; stored nowhere."""

    plan: "RunPlan"
    """The run, with everything decided."""
    hosts: "Hosts | None"
    """The hosts that train it; None: this process alone."""
    chosen: list[str]
    """What was chosen for a new run, and why."""
    notes: list[str]
    """Settings that are not in force, and changes that were allowed."""

    @property
    def is_chief(self) -> bool:
        """Whether this process writes to disk and to the terminal."""
        return self.hosts is None or self.hosts.rank == 0

    def trainer(self, report: Callable[[str], None] = print) -> "Trainer":
        """Return the trainer of the run, whose validations translate; ``report`` as of ``Trainer``."""
        from nmt.evaluation.validation_decoder import ValidationDecoder  # noqa: PLC0415 - it loads TensorFlow
        from nmt.training.trainer import Trainer  # noqa: PLC0415

        return Trainer(self.plan, ValidationDecoder, hosts=self.hosts, report=report)


class _Choice(NamedTuple):
    run: str
    config: Config
    dataset: Dataset
    recipe: Recipe | None = None


def resolve(request: Request, report: Callable[[str], None] = print) -> Resolved:
    """Return the plan of the run that is asked for; nothing is written.

    With a configuration file the run has its name. An existing run, or else the run with the name of the dataset, goes
    on with the configuration that it was started with. A new run has the recipe for its dataset.

    Args:
        request: what is asked for.
        report: is called before the speed of this machine is measured, which takes a while.

    Raises:
        NotFoundError: if the configuration, the run or the dataset does not exist.
        ConfigError: if the configuration or an override breaks the schema, or contradicts ``minutes`` or the hosts.
        ConflictError: if a run is to go on with other settings or data and that is not allowed.
    """
    minutes, overrides = request.minutes, list(request.overrides)
    if minutes is not None:
        _check_minutes(minutes, overrides)
    choice, chosen = _choose(request, overrides), list[str]()
    is_new = not run_exists(choice.run)
    if minutes is not None and not is_new:
        epochs = find_run(choice.run).config().training.epochs
        choice = _choose(request, [*overrides, f"training.epochs={epochs}"])
        chosen = [f"Note: run {choice.run} exists and keeps its {counted(epochs, 'epoch')}; --minutes is for new runs."]
    if choice.config.training.tensorboard:
        require("tensorboard", "tensorboard")

    from nmt.cluster.hosts import find_hosts  # noqa: PLC0415 - it loads TensorFlow, as does all that follows
    from nmt.training.plan import check_changes, make_plan  # noqa: PLC0415

    hosts = find_hosts()
    _check_hosts(len(hosts.addresses) if hosts else 1, choice.config, minutes if is_new else None)
    if minutes is not None and is_new:
        from nmt.recipes.budget import fit  # noqa: PLC0415

        report("Measuring the speed of this machine, for --minutes ...")
        recipe, epochs, line = fit(choice.config, choice.recipe, choice.dataset, minutes)
        if recipe:
            choice = choice._replace(config=recipe.config, recipe=recipe)
        else:
            choice, chosen = _choose(request, [*overrides, f"training.epochs={epochs}"]), [line]
    plan = make_plan(choice.run, choice.config, choice.dataset, choice.recipe.yaml if choice.recipe else None)
    resolved = Resolved(plan, hosts, [*_told(choice), *chosen], _notes(choice))
    if plan.resumes and resolved.is_chief:
        changes = check_changes(plan, choice.dataset, allow_changes=request.allow_changes)
        resolved.notes.extend(f"Changed, as allowed: {change}" for change in changes)
    return resolved


def _choose(request: Request, overrides: list[str]) -> _Choice:
    run, dataset = request.run, request.dataset
    if request.config is not None:
        path = find_config(str(request.config))
        config = _with_model_of_start(load_config(path, overrides))
        run = run or path.stem
        return _Choice(run, config, _dataset(run, dataset or config.data.dataset))
    if run is None or not run_exists(run):
        named = read_overrides(overrides).get("data.dataset")
        found = find_dataset(dataset or (named if isinstance(named, str) else None))
        if run is not None or not run_exists(found.name):
            recipe = compose(Facts.of(found), overrides)
            return _Choice(run or found.name, recipe.config, found, recipe)
        run, dataset = found.name, found.name
    return _Choice(run, load_config(find_run(run).config_path, overrides), _dataset(run, dataset))


def _with_model_of_start(config: Config) -> Config:
    """Return a configuration that names no model, or its dropout alone, with the model of the run it starts from."""
    given = {key: getattr(config.model, key) for key in config.model.model_fields_set}
    start = config.training.start_from
    if not start or not all(key.endswith("dropout") for key in given):
        return config
    model = find_run(start.partition(":")[0]).config().model
    return config.model_copy(update={"model": model.model_copy(update=given)})


def _dataset(run: str, name: str | None) -> Dataset:
    """Return the dataset of a name; None: that of the run if it exists, else the one prepared last."""
    if name is None and run_exists(run):
        name = read_manifest(find_run(run).dataset_path).settings.dataset
    return find_dataset(name)


def _check_minutes(minutes: float, overrides: list[str]) -> None:
    if not 0 < minutes < float("inf"):
        raise ConfigError(f"--minutes is {minutes:g}. It is the time of training, more than 0. Change the value.")
    if "training.epochs" in read_overrides(overrides):
        raise ConfigError(
            f"--minutes {minutes:g} chooses the number of epochs; received it with --set training.epochs. Leave out "
            "one of the two."
        )


def _check_hosts(count: int, config: Config, minutes: float | None) -> None:
    if count > 1 and minutes is not None:
        raise ConfigError(
            f"--minutes {minutes:g} measures the speed of one machine; received it with {counted(count, 'host')}. "
            "Leave it out, and give the number of epochs: --set training.epochs=N"
        )
    if count > config.training.micro_batches:
        raise ConfigError(
            f"There are {counted(count, 'host')}, and training.micro_batches is {config.training.micro_batches}. A "
            "step is shared by its micro-batches, so it needs one for each host. Start fewer, or another run with "
            f"--set training.micro_batches={count}, whose batches may be smaller by that factor."
        )


def _told(choice: _Choice) -> list[str]:
    if choice.recipe is None:
        return []
    return [
        *choice.recipe.lines,
        f"To change it: --set section.key=VALUE; or edit checkpoints/{choice.run}/recipe.yaml, and give it with "
        "--config and a new --run. --minutes M fits it into M minutes.",
    ]


def _notes(choice: _Choice) -> list[str]:
    """Return the settings that are not in force, in words."""
    notes = [f"Note: training.{key} is {text}." for key, text in choice.config.training.not_followed.items()]
    prepared = choice.dataset.manifest.settings
    different = [
        f"{key} {getattr(prepared, key)!r} there, {value!r} here"
        for key, value in choice.config.data
        if key in choice.config.data.model_fields_set
        if key != "dataset" and value not in ("auto", {}, [], getattr(prepared, key))
    ]
    if different:
        notes.append(
            f"Note: dataset {choice.dataset.name} was prepared with other settings than this configuration's "
            f"({'; '.join(different)}); what it was prepared with counts."
        )
    return notes
