"""``nmt train``: training of a run, new or resumed, from its estimate to its last line."""

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import (
    DatasetOption,
    HostsOption,
    IndexOption,
    NoConfigOption,
    SetOption,
    StallOption,
    ThreadsOption,
    WaitOption,
    WorkersOption,
)
from nmt.cli.usage import SIGNAL
from nmt.cluster.options import MEETING_SECONDS, STALL_SECONDS, TeamOptions
from nmt.errors import NmtError

if TYPE_CHECKING:
    from nmt.cluster.team import Team
    from nmt.config.schema import Config
    from nmt.data.dataset import Dataset
    from nmt.recipes.selection import Selection
    from nmt.runs.directory import Run
    from nmt.training.console import Console
    from nmt.training.listeners import Listener
    from nmt.training.session import TrainingSession

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
    workers: WorkersOption = None,
    hosts: HostsOption = None,
    index: IndexOption = None,
    threads: ThreadsOption = None,
    wait: WaitOption = MEETING_SECONDS,
    stall: StallOption = STALL_SECONDS,
) -> None:
    """Train a model, or resume a run.

    Without --config, a new run gets a recipe: model size, dropout, batches, learning rate and epochs by what the
    dataset is, printed in two lines and stored as recipe.yaml in the run.

    The same command resumes a run that was interrupted. --set training.epochs=N lengthens a finished run, unless its
    learning rate ends with it, as in a recipe. Ctrl-C saves after the current step and stops.

    With training.micro_batches=K up to K workers share a step, on this machine (--workers) or on several. The result
    does not depend on their number.

    Examples:
        nmt train
        nmt train --minutes 30
        nmt train --config base.yaml
        nmt train --config base.yaml --run wide --set model.d_ff=2048
        nmt train --run base --set training.epochs=30
        nmt train --run notices --dataset notices --from letters
        nmt train --run base --tensorboard
        nmt train --run shared --set training.micro_batches=2 --workers 2
    """  # fmt: skip
    from nmt.cluster.start import is_shared, started
    from nmt.recipes.selection import fit, select

    all_overrides = [*(overrides or []), *([f"training.start_from={start_from}"] if start_from else [])]
    options = TeamOptions(workers, hosts, index)
    shared = minutes is not None and is_shared(options)
    selection = select(config, run, dataset, all_overrides, minutes=minutes, shared=shared)
    with started(options, selection.config.training.micro_batches) as place:
        from nmt import runtime
        from nmt.cluster.team import Team

        runtime.use(threads, place.layout.local_rank if place.layout else None)
        team = Team(place.layout, wait, stall, _say_aside, place.check)
        if selection.minutes is not None:
            _say("Measuring the speed of this machine, for --minutes ...")
            selection = fit(selection)
        if team.is_chief:
            for line in selection.lines:
                _say(line)
        if tensorboard:
            selection = _with_tensorboard(selection)
        run_training(
            selection.name, selection.config, selection.dataset, allow_changes=allow_changes, dry_run=dry_run,
            team=team, recipe=selection.recipe_text,
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
    team: "Team | None" = None,
    recipe: str | None = None,
) -> "Run":
    """Train the run of that name, new or not, to its end, and print what a person wants to know on the way.

    ``recipe`` is the file of the recipe that a new run keeps, if ``config`` is one.
    """
    from nmt.cli.endings import nothing_to_do
    from nmt.evaluation.validation_decoder import ValidationDecoder
    from nmt.extras import require
    from nmt.training.session import TrainingSession

    is_chief = team is None or team.is_chief
    if is_chief and config.training.tensorboard:
        require("tensorboard", "tensorboard")
    say = _say if is_chief else _say_nothing
    with TrainingSession(name, config, dataset_name, hold=not dry_run, team=team, recipe=recipe) as session:
        _note_settings_not_in_force(config, session.dataset, say)
        changes = session.open(ValidationDecoder, allow_changes=allow_changes)
        for damage in session.trainer.damaged:
            typer.echo(f"Passed over: {damage}", err=True)
        if session.trainer.is_finished:
            say(nothing_to_do(session.trainer))
            if session.team.is_chief and not dry_run and config.training.tensorboard:
                _record_finished(session.run, say)
            return session.run
        for change in changes:
            say(f"Changed, as allowed: {change}")
        _train(session, say, dry_run=dry_run)
    return session.run


def _say(text: str) -> None:
    typer.echo(text)


def _say_nothing(text: str) -> None:
    """Leave the terminal to worker 0."""


def _say_aside(text: str) -> None:
    typer.echo(text, err=True)


def _record_finished(run: "Run", say: Callable[[str], None]) -> None:
    """Record a run that is trained already."""
    from nmt.tracking.tensorboard import TensorBoard

    listener = TensorBoard(run, _say_aside)
    listener.on_start()
    listener.close()
    say(f"Recorded for TensorBoard. To watch: {VIEWER}")


def _train(session: "TrainingSession", say: Callable[[str], None], *, dry_run: bool) -> None:
    """Estimate and train; a dry run stops after the estimate."""
    from nmt import runtime
    from nmt.cli import endings
    from nmt.cluster.workers import WorkerLostError, check_together
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
    shared = f", {trainer.workers.count} workers" if trainer.workers.count > 1 else ""
    say(f"{parameters:,} parameters, {pairs:,} training pairs, {runtime.device()}{shared}, {trainer.state.precision}")
    console = Console(config.training.epochs, config.training.log_every) if session.team.is_chief else None
    notice = "Stopping after this step, with a save. Ctrl-C again stops at once, without."
    with GracefulShutdown(notice) as shutdown:
        try:
            with trainer.workers.exchanging():
                if not trainer.is_trained:
                    trainer.check = check_together(trainer.workers, shutdown.check, StopRequested)
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
        except WorkerLostError as error:
            raise NmtError(f"{error}. {endings.after_loss(trainer)}") from None
        finally:
            if console:
                console.close()
    if console:
        say(endings.finished(trainer))


def _listeners(session: "TrainingSession", console: "Console | None") -> "list[Listener]":
    """Return the observers of training: none but on worker 0, which has the console."""
    if console is None:
        return []
    if not session.config.training.tensorboard:
        return [console]
    from nmt.tracking.tensorboard import TensorBoard

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
