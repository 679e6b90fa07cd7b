"""``nmt train``: training of a run, new or resumed, from its estimate to its last line."""

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import (
    DatasetOption,
    NoConfigOption,
    SetOption,
)
from nmt.cli.usage import SIGNAL
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    from nmt.cluster.hosts import Hosts
    from nmt.config.schema import Config
    from nmt.data.dataset import Dataset
    from nmt.recipes.selection import Selection
    from nmt.runs.directory import Run
    from nmt.training.console import Console
    from nmt.training.listeners import Listener
    from nmt.training.resume import TrainingSession

VIEWER = "tensorboard --logdir checkpoints"


def train(
    config: NoConfigOption = None,
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="Name of the run. Training resumes if the run exists. Default: the name of the configuration file; "
            "without one that of the dataset."
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="RUN", help="Fine-tune: start from the weights of another run, RUN or RUN:EPOCH."
        ),
    ] = None,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Resume although the configuration or the dataset has changed."),
    ] = False,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            help="Write event files for TensorBoard, as training.tensorboard=true does; those of a finished run are "
            "written at once.",
        ),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Fit a new run into X minutes of training, by the measured speed of this machine: its epochs, and "
            "without --config the size of the model."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate time, memory and disk space, and write nothing.")
    ] = False,
) -> None:
    """Train a model, or resume a run.

    Without --config, a new run gets a recipe: model size, dropout, batches, learning rate and epochs by what the
    dataset is, printed in two lines and stored as recipe.yaml in the run.

    The same command resumes a run that was interrupted. --set training.epochs=N lengthens a finished run, unless its
    learning rate ends with it, as in a recipe. Ctrl-C saves after the current step and stops.

    With training.micro_batches=K up to K machines share a step, by TF_CONFIG or under srun. The result does not depend
    on their number.

    Examples:
        nmt train
        nmt train --minutes 30
        nmt train --config base.yaml
        nmt train --config base.yaml --run wide --set model.d_ff=2048
        nmt train --run base --set training.epochs=30
        nmt train --run notices --dataset notices --from letters
        nmt train --run base --tensorboard
    """  # fmt: skip
    from nmt.recipes.selection import fit, select

    all_overrides = [*(overrides or []), *([f"training.start_from={start_from}"] if start_from else [])]
    selection = select(config, run, dataset, all_overrides, minutes=minutes)

    from nmt.cluster.hosts import CHIEF, find_hosts

    hosts = find_hosts()
    if selection.minutes is not None:
        if hosts:
            raise ConfigError(
                f"--minutes {minutes:g} measures the speed of one machine; received it with {len(hosts.addresses)} "
                "hosts. Leave it out, and give the number of epochs: --set training.epochs=N"
            )
        _say("Measuring the speed of this machine, for --minutes ...")
        selection = fit(selection)
    if hosts is None or hosts.rank == CHIEF:
        for line in selection.lines:
            _say(line)
    if tensorboard:
        selection = _with_tensorboard(selection)
    run_training(
        selection.name, selection.config, selection.dataset, allow_changes=allow_changes, dry_run=dry_run, hosts=hosts,
        recipe=selection.recipe_text,
    )  # fmt: skip


def _with_tensorboard(selection: "Selection") -> "Selection":
    changed = selection.config.training.model_copy(update={"tensorboard": True})
    return selection._replace(config=selection.config.model_copy(update={"training": changed}))


def run_training(
    name: str,
    config: "Config",
    dataset_name: str | None,
    *,
    allow_changes: bool = False,
    dry_run: bool = False,
    hosts: "Hosts | None" = None,
    recipe: str | None = None,
) -> "Run":
    """Train the run of that name, new or not, to its end, and print what a person wants to know on the way.

    ``recipe`` is the file of the recipe that a new run keeps, if ``config`` is one.
    """
    from nmt.cli.endings import nothing_to_do
    from nmt.evaluation.validation_decoder import ValidationDecoder
    from nmt.extras import require
    from nmt.training.resume import TrainingSession

    with TrainingSession(name, config, dataset_name, hold=not dry_run, hosts=hosts, recipe=recipe) as session:
        if session.is_chief and config.training.tensorboard:
            require("tensorboard", "tensorboard")
        say = _say if session.is_chief else _say_nothing
        if hosts:
            say(_open_ports(hosts))
        _note_settings_not_in_force(config, session.dataset, say)
        changes = session.open(ValidationDecoder, allow_changes=allow_changes, report=_say_aside)
        for damage in session.trainer.damaged:
            typer.echo(f"Passed over: {damage}", err=True)
        if session.trainer.is_finished:
            say(nothing_to_do(session.trainer))
            if session.is_chief and not dry_run and config.training.tensorboard:
                _record_finished(session.run, say)
            return session.run
        for change in changes:
            say(f"Changed, as allowed: {change}")
        _train(session, say, dry_run=dry_run)
    return session.run


def _say(text: str) -> None:
    typer.echo(text)


def _say_nothing(text: str) -> None:
    """Leave the terminal to host 0."""


def _open_ports(hosts: "Hosts") -> str:
    return (
        f"Note: {', '.join(hosts.addresses)} listen at these ports on all their networks. TensorFlow's exchanges are "
        "neither encrypted nor authenticated: whoever reaches a port can read and change them. Use a private network "
        "or a firewall."
    )


def _say_aside(text: str) -> None:
    typer.echo(text, err=True)


def _record_finished(run: "Run", say: Callable[[str], None]) -> None:
    """Record a run that is trained already."""
    from nmt.training.tensorboard import TensorBoard

    listener = TensorBoard(run, _say_aside)
    listener.on_start()
    listener.close()
    say(f"Recorded for TensorBoard. To watch: {VIEWER}")


def _train(session: "TrainingSession", say: Callable[[str], None], *, dry_run: bool) -> None:
    """Estimate and train; a dry run stops after the estimate."""
    from nmt import runtime
    from nmt.cli import endings
    from nmt.cluster.group import HostLostError
    from nmt.training.console import Console
    from nmt.training.estimate import estimate, foreseen_shortage
    from nmt.training.interrupts import GracefulShutdown, StopRequested
    from nmt.training.resume import environment_differences

    run, config, trainer = session.run, session.config, session.trainer
    if step := trainer.state.position.step:
        say(
            f"Going on with run {run.name} after step {step:,}, in epoch {trainer.epoch + 1} of "
            f"{config.training.epochs}"
        )
    if differences := environment_differences(trainer.environment_before):
        say(
            f"Note: the environment of run {run.name} has changed: {'; '.join(differences)}. Its result may differ in "
            "the last bits from that of an uninterrupted run."
        )
    parameters, pairs = trainer.state.model.count_params(), trainer.pipeline.pairs
    shared = f", {trainer.group.count} hosts" if trainer.group.count > 1 else ""
    say(f"{parameters:,} parameters, {pairs:,} training pairs, {runtime.device()}{shared}, {trainer.state.precision}")
    console = Console(config.training.epochs) if session.is_chief else None
    notice = "Stopping after this step, with a save. Ctrl-C again stops at once, without."
    with GracefulShutdown(notice) as shutdown:
        try:
            with trainer.group.exchanging():
                if not trainer.is_trained:
                    trainer.check = trainer.group.together(shutdown.check, StopRequested)
                    if shortage := foreseen_shortage(trainer):
                        say(shortage)  # before a batch is computed, since the system may end the process there
                    say(estimate(trainer).text)
                if dry_run:
                    say("A dry run: nothing was written.")
                    return
                session.begin()
                _say_beginning(session, say)
                trainer.train(_listeners(session, console), shutdown.check)
        except StopRequested:
            if console:
                console.close()
                typer.echo(endings.stopped(trainer), err=True)
            raise typer.Exit(SIGNAL + (shutdown.requested or signal.SIGINT)) from None
        except HostLostError as error:
            raise NmtError(f"{error}. {endings.after_loss(trainer)}") from None
        finally:
            if console:
                console.close()
    if console:
        say(endings.finished(trainer))


def _listeners(session: "TrainingSession", console: "Console | None") -> "list[Listener]":
    """Return the observers of training: none but on host 0, which has the console."""
    if console is None:
        return []
    if not session.config.training.tensorboard:
        return [console]
    from nmt.training.tensorboard import TensorBoard

    return [console, TensorBoard(session.run, _say_aside)]


def _say_beginning(session: "TrainingSession", say: Callable[[str], None]) -> None:
    if not session.resumed:
        say(f"New run {session.run.name} in {session.run.folder}, on dataset {session.dataset.name}")
    if session.config.training.tensorboard:
        say(f"To watch: {VIEWER}")


def _note_settings_not_in_force(config: "Config", dataset: "Dataset", say: Callable[[str], None]) -> None:
    for key, text in config.training.not_followed.items():
        say(f"Note: training.{key} is {text}.")
    prepared = dataset.manifest.settings
    different = [
        f"{key} {getattr(prepared, key)!r} there, {value!r} here"
        for key, value in config.data.model_dump(exclude_unset=True).items()
        if key != "dataset" and value not in {"auto", getattr(prepared, key)}
    ]
    if different:
        say(
            f"Note: dataset {dataset.name} was prepared with other settings than this configuration's "
            f"({'; '.join(different)}); what it was prepared with counts."
        )
