"""From a request to the plan of a run: its name, its dataset, and its configuration, which may be a recipe.

With several hosts the chief makes the plan and sends it to the others, which need the dataset alone.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, find_dataset, open_dataset
from nmt.errors import ConfigError, NmtError, counted
from nmt.extras import require
from nmt.message import Argument, Message, Settings
from nmt.recipes.recipe import Facts, Recipe, compose
from nmt.runs.directory import StoredRun, find_run, run_exists
from nmt.version import version

if TYPE_CHECKING:  # these load TensorFlow
    from nmt.cluster.group import Group
    from nmt.cluster.hosts import Hosts
    from nmt.training.plan import RunPlan
    from nmt.training.trainer import Trainer

HOST_VARIABLES = ("TF_CONFIG", "SLURM_STEP_NUM_TASKS")
"""Environment variables of which at least one is set where several hosts train together."""


class Request(NamedTuple):
    """Arguments of a command that trains: a new run, or an existing run to resume."""

    config: str | Path | None = None
    """Configuration file; None: the configuration of an existing run, or a recipe."""
    run: str | None = None
    """Name of the run; None: the name of the configuration file, or of the dataset."""
    dataset: str | None = None
    """Name of the dataset; None: as in the configuration or the existing run, else the dataset prepared last."""
    overrides: Sequence[str] = ()
    """Settings ``section.key=value``."""
    minutes: float | None = None
    """Training time in minutes that a new run is fitted into. An existing run keeps its length."""
    allow_changes: bool = False
    """Whether a run may resume with other settings and data than it was started with."""

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments given, by name. They must be equal on all hosts."""
        given = {name: str(value) for name, value in self._asdict().items() if value and name != "overrides"}
        return given | {key: str(value) for key, value in read_overrides(self.overrides).items()}


class Resolved(NamedTuple):
    """The plan for a request, and what the command prints about it; stored nowhere."""

    plan: "RunPlan"
    """The plan of the run, with everything decided."""
    chosen: Sequence[str | Message] = ()
    """Lines about what was chosen for a new run, and why."""
    notes: Sequence[str] = ()
    """Lines about settings that are not in force, and about changes that were allowed."""
    group: "Group | None" = None
    """The hosts that train it; None: this process alone."""

    @property
    def is_chief(self) -> bool:
        """Whether this process writes to disk and to the terminal."""
        return self.group is None or self.group.is_chief

    def trainer(self, report: Callable[[str], None] = print) -> "Trainer":
        """Return the trainer of the run, whose validations translate; ``report`` is as for ``Trainer``."""
        from nmt.evaluation.validation_decoder import ValidationDecoder  # noqa: PLC0415 - it loads TensorFlow
        from nmt.training.trainer import Trainer  # noqa: PLC0415

        return Trainer(self.plan, ValidationDecoder, group=self.group, report=report)


class _Choice(NamedTuple):
    run: str
    config: Config
    dataset: Dataset
    recipe: Recipe | None = None
    stored: StoredRun | None = None
    """The run that resumes; None: a new run."""


def resolve(request: Request, report: Callable[[str], None] = print, warn: Callable[[str], None] = print) -> Resolved:
    """Return the plan for a request; nothing is written.

    The run has the name of the configuration file. Without a file, the run that is named, or else a run with the name
    of the dataset, resumes with the configuration that it was started with. A new run gets the recipe for its dataset.

    Args:
        request: the arguments of the command.
        report: is called before the speed of this machine is measured, which takes a while.
        warn: is called with messages about other hosts.

    Raises:
        NotFoundError: if the configuration, the run or the dataset does not exist.
        ConfigError: if the configuration or an override breaks the schema, or contradicts ``minutes`` or the hosts.
        ConflictError: if a run would resume with other settings or data and that is not allowed, or if hosts differ.
        NmtError: if a host does not come, or if the chief cannot make the plan; then all hosts raise its message.
    """
    if request.minutes is not None:
        _check_minutes(request.minutes, request.overrides)
    hosts = None
    if any(os.environ.get(variable) for variable in HOST_VARIABLES):
        from nmt.cluster.hosts import find_hosts  # noqa: PLC0415 - it loads TensorFlow

        hosts = find_hosts()
    return _plan(request, report) if hosts is None else _plan_of_chief(hosts, request, report, warn)


def _plan_of_chief(
    hosts: "Hosts", request: Request, report: Callable[[str], None], warn: Callable[[str], None]
) -> Resolved:
    """Join the hosts, and return on all of them the plan that the chief makes."""
    from nmt import runtime  # noqa: PLC0415 - it loads TensorFlow
    from nmt.cluster.group import Group  # noqa: PLC0415
    from nmt.training.plan import RunPlan  # noqa: PLC0415

    environment = runtime.environment()
    facts = {"nmt": version(), **{name: environment[name] for name in ("tensorflow", "keras")}, **request.arguments}
    group = Group(hosts, warn)
    with group.exchanging():
        group.agree(facts, environment)
        resolved, failure = None, None
        if group.is_chief:
            try:
                resolved = _plan(request, report, group.count)
            except NmtError as error:
                failure = error
        message = group.broadcast_bytes(failure.on_command_line().encode() if failure else b"").decode()
        if message:
            raise failure or NmtError(message)
        own_plan = resolved.plan.model_dump_json() if resolved else ""
        plan = RunPlan.model_validate_json(group.broadcast_bytes(own_plan.encode()))
        group.agree({f"dataset {plan.dataset}": _fingerprint(plan.dataset)})
    return (resolved or Resolved(plan))._replace(group=group)


def _fingerprint(dataset: str) -> str:
    try:
        return open_dataset(dataset).manifest.fingerprint
    except NmtError:
        return "missing or damaged"


def _plan(request: Request, report: Callable[[str], None], hosts: int = 1) -> Resolved:
    """Return the plan that this process makes for a number of hosts."""
    minutes, overrides = request.minutes, list(request.overrides)
    choice, chosen = _choose(request, overrides), list[str | Message]()
    stored = choice.stored
    is_new = stored is None
    if minutes is not None and stored:
        epochs = stored.config.training.epochs
        choice = _choose(request, [*overrides, f"training.epochs={epochs}"])
        kept = f"Note: run {choice.run} exists and keeps its {counted(epochs, 'epoch')}; "
        chosen = [Message(kept, Argument("minutes"), " is for new runs.")]
    if choice.config.training.tensorboard:
        require("tensorboard", "tensorboard")
    _check_hosts(hosts, choice.config, minutes if is_new else None)

    from nmt.training.plan import check_changes, make_plan  # noqa: PLC0415 - it loads TensorFlow, as does the budget

    if minutes is not None and is_new:
        from nmt.recipes.budget import fit  # noqa: PLC0415

        report("Measuring the speed of this machine, to fit training into the time ...")
        recipe, epochs, line = fit(choice.config, choice.recipe, choice.dataset, minutes)
        if recipe:
            choice = choice._replace(config=recipe.config, recipe=recipe)
        else:
            choice, chosen = _choose(request, [*overrides, f"training.epochs={epochs}"]), [line]
    recipe_file = choice.recipe.yaml if choice.recipe else None
    plan = make_plan(choice.run, choice.config, choice.dataset, recipe_file, stored)
    notes = _notes(choice)
    if stored:
        changes = check_changes(plan, choice.dataset, stored, allow_changes=request.allow_changes)
        notes += [f"Changed, as allowed: {change}" for change in changes]
    return Resolved(plan, [*_recipe_lines(choice), *chosen], notes)


def _choose(request: Request, overrides: list[str]) -> _Choice:
    """Return run, configuration and dataset of a request with other overrides."""
    run, dataset = request.run, request.dataset
    if request.config is not None:
        path = find_config(str(request.config))
        config = _with_model_of_start(load_config(path, overrides))
        run = run or path.stem
        stored = _stored(run)
        return _Choice(run, config, _dataset(stored, dataset or config.data.dataset), stored=stored)
    if run is None or not run_exists(run):
        named = read_overrides(overrides).get("data.dataset")
        prepared = find_dataset(dataset or (named if isinstance(named, str) else None))
        if run is not None or not run_exists(prepared.name):
            recipe = compose(Facts.of(prepared), overrides)
            return _Choice(run or prepared.name, recipe.config, prepared, recipe)
        run, dataset = prepared.name, prepared.name
    stored = find_run(run).open()
    config = load_config(stored.run.config_path, overrides) if overrides else stored.config
    return _Choice(run, config, _dataset(stored, dataset), stored=stored)


def _stored(run: str) -> StoredRun | None:
    return find_run(run).open() if run_exists(run) else None


def _with_model_of_start(config: Config) -> Config:
    """Return a configuration with the model of ``training.start_from`` if it sets no model keys but dropout rates."""
    given = {key: getattr(config.model, key) for key in config.model.model_fields_set}
    start = config.training.start_from
    if not start or not all(key.endswith("dropout") for key in given):
        return config
    model = find_run(start.partition(":")[0]).config().model
    return config.model_copy(update={"model": model.model_copy(update=given)})


def _dataset(stored: StoredRun | None, name: str | None) -> Dataset:
    """Return a dataset by name; None: the dataset of the run that resumes, else the dataset prepared last."""
    if name is None and stored:
        name = stored.manifest.settings.dataset
    return find_dataset(name)


def _check_minutes(minutes: float, overrides: Sequence[str]) -> None:
    if not 0 < minutes < float("inf"):
        raise ConfigError(
            Argument("minutes"), f" is {minutes:g}. It is the time of training, more than 0. Change the value."
        )
    if "training.epochs" in read_overrides(overrides):
        raise ConfigError(
            Argument("minutes", minutes),
            " chooses the number of epochs; received it with training.epochs. Leave out one of the two.",
        )


def _check_hosts(count: int, config: Config, minutes: float | None) -> None:
    if count > 1 and minutes is not None:
        raise ConfigError(
            Argument("minutes", minutes),
            f" measures the speed of one machine; received it with {counted(count, 'host')}. Leave it out, and give "
            "the number of epochs: ",
            Settings({"training.epochs": "N"}),
        )
    if count > config.training.micro_batches:
        raise ConfigError(
            f"There are {counted(count, 'host')}, and training.micro_batches is {config.training.micro_batches}. A "
            "step is shared by its micro-batches, so it needs one for each host. Start fewer, or another run with ",
            Settings({"training.micro_batches": count}),
            ", whose batches may be smaller by that factor.",
        )


def _recipe_lines(choice: _Choice) -> list[str | Message]:
    if choice.recipe is None:
        return []
    return [
        *choice.recipe.lines,
        Message(
            "To change it: ",
            Settings({"section.key": "VALUE"}),
            f"; or edit checkpoints/{choice.run}/recipe.yaml, and give it with ",
            Argument("config"),
            " and a new ",
            Argument("run"),
            ". ",
            Argument("minutes", "M"),
            " fits it into M minutes.",
        ),
    ]


def _notes(choice: _Choice) -> list[str]:
    """Return a line for each setting that is not in force."""
    notes = [f"Note: training.{key} is {text}." for key, text in choice.config.training.not_followed.items()]
    prepared, data = choice.dataset.manifest.settings, choice.config.data
    different = []
    for key, value in data:
        actual = getattr(prepared, key)
        is_given = key in data.model_fields_set and key != "dataset"
        if is_given and value not in ("auto", {}, [], actual):
            different.append(f"{key} {actual!r} there, {value!r} here")
    if different:
        notes.append(
            f"Note: section data of this configuration differs from the settings of dataset {choice.dataset.name} "
            f"({'; '.join(different)}). The dataset's settings are used."
        )
    return notes
