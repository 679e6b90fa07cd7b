"""``nmt train``: a run begun, or gone on with, from the look ahead to the last word."""

import contextlib
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import CONFIGURATION, RUN, DatasetOption, SetOption
from nmt.cli.usage import SIGNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from nmt.config.schema import Config
    from nmt.data.dataset import Dataset
    from nmt.runs.directory import Run
    from nmt.training.trainer import Trainer

BASE = "base.yaml"


def train(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="YAML file. A bare name is also looked for in configs/ and among the configurations of nmt. Default: "
            f"the configuration of --run if that run exists, else {BASE}.",
            rich_help_panel=CONFIGURATION,
        ),
    ] = None,
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="NAME",
            help="Name of the run. Training resumes if the run exists. Default: the name of the configuration file.",
            rich_help_panel=RUN,
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Fine-tune: start from the weights of another run, RUN or RUN:EPOCH.",
            rich_help_panel=RUN,
        ),
    ] = None,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Resume although the configuration or the dataset has changed.",
            rich_help_panel=RUN,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Estimate time, memory and disk space, and write nothing.", rich_help_panel=RUN),
    ] = False,
) -> None:
    """Train a model, or resume a run.

    The same command resumes a run that was interrupted. --set training.epochs=N lengthens a finished run. Ctrl-C saves
    after the current step and stops.

    Examples:
        nmt train --config base.yaml
        nmt train --config base.yaml --run wide --set model.d_ff=2048
        nmt train --run base --set training.epochs=30
        nmt train --run notices --dataset notices --from letters
    """  # fmt: skip
    from nmt.config.loading import find_config, load_config
    from nmt.runs.directory import find_run, run_exists

    all_overrides = [*(overrides or []), *([f"training.start_from={start_from}"] if start_from else [])]
    path = find_run(run).config_path if config is None and run and run_exists(run) else find_config(config or BASE)
    settings = load_config(path, all_overrides)
    name = run or path.stem
    run_training(name, settings, dataset or settings.data.dataset, allow_changes=allow_changes, dry_run=dry_run)


def run_training(
    name: str, config: "Config", dataset_name: str | None, *, allow_changes: bool = False, dry_run: bool = False
) -> "Run":
    """Train the run of that name, new or not, to its end, telling on the way what a person wants to know."""
    from nmt.data.dataset import find_dataset
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import RUNS, Run, find_run, run_exists
    from nmt.storage.atomic import refuse_existing
    from nmt.storage.names import check_name

    going_on = run_exists(name)
    if going_on:
        run = find_run(name)
        dataset_name = dataset_name or read_manifest(run.dataset_path).settings.dataset
    else:
        run = Run(RUNS / check_name(name, "run"))
        refuse_existing(run.folder)
    dataset = find_dataset(dataset_name)
    _note_settings_not_in_force(config, dataset)

    from nmt.evaluation.validation_decoder import ValidationDecoder
    from nmt.storage.file_lock import locked
    from nmt.training.resume import check_changes, start_run, take_over_changes
    from nmt.training.trainer import Trainer

    with contextlib.ExitStack() as stack:
        changes: list[str] = []
        if going_on:
            if not dry_run:
                stack.enter_context(locked(run.lock_path, f"Run {run.name!r}"))
            changes = check_changes(run, config, dataset, allow_changes=allow_changes)

        def begin() -> None:
            """Write, now that all that can be refused has been looked at."""
            if going_on:
                take_over_changes(run, config, dataset)
                return
            start_run(name, config, dataset)
            stack.enter_context(locked(run.lock_path, f"Run {run.name!r}"))
            typer.echo(f"New run {run.name} in {run.folder}, on dataset {dataset.name}")

        trainer = Trainer(run, config, dataset, ValidationDecoder(config, dataset))
        for damage in trainer.damaged:
            typer.echo(f"Passed over: {damage}", err=True)
        if trainer.is_finished:
            typer.echo(_nothing_to_do(trainer))
            return run
        for change in changes:
            typer.echo(f"Changed, as allowed: {change}")
        _train(trainer, None if dry_run else begin)
    return run


def _train(trainer: "Trainer", begin: "Callable[[], None] | None") -> None:
    """Look ahead and train; ``begin`` makes the run ready to be written to, None: this is a dry run."""
    from nmt import runtime
    from nmt.training.console import TrainingProgress
    from nmt.training.estimate import forecast
    from nmt.training.interrupts import Departed, Departure

    run, config, learner = trainer.run, trainer.config, trainer.learner
    if trainer.step:
        typer.echo(
            f"Going on with run {run.name} after step {trainer.step:,}, in epoch {trainer.epoch + 1} of "
            f"{config.training.epochs}"
        )
    if differences := trainer.differences_of_machine:
        typer.echo(
            f"Note: run {run.name} goes on where not all is as it was: {'; '.join(differences)}. Its result may differ "
            "in the last bits from that of an uninterrupted run."
        )
    parameters, pairs = learner.model.count_params(), len(learner.train_split)
    typer.echo(f"{parameters:,} parameters, {pairs:,} training pairs, {runtime.device()}, {learner.precision}")
    progress = TrainingProgress(config.training.epochs, config.training.log_every)
    with Departure("Leaving after this step, saving first. Ctrl-C again leaves at once, without.") as departure:
        try:
            if not trainer.is_trained:
                trainer.check = departure.check
                typer.echo(forecast(trainer).text)
            if begin is None:
                typer.echo("A dry run: nothing was written.")
                return
            begin()
            trainer.train(progress, departure.check)
        except Departed:
            progress.close()
            typer.echo(_left(trainer), err=True)
            raise typer.Exit(SIGNAL + (departure.asked or signal.SIGINT)) from None
        finally:
            progress.close()
    typer.echo(_finished(trainer))


def _nothing_to_do(trainer: "Trainer") -> str:
    run, settings = trainer.run, trainer.config.training
    more = (
        f"training.patience={2 * (settings.patience or 1)}"
        if trainer.stopped_early
        else f"training.epochs={2 * trainer.epoch}"
    )
    return (
        f"Run {run.name} is finished: {trainer.epoch} epochs, best {run.best()}. Nothing to do. To train on: "
        f"--set {more}; to start afresh: --run ANOTHER-NAME"
    )


def _left(trainer: "Trainer") -> str:
    if not trainer.step:
        return "Left before the first step; the same command begins again."
    return f"Saved at step {trainer.step:,}. Go on with: nmt train --run {trainer.run.name}"


def _finished(trainer: "Trainer") -> str:
    run = trainer.run
    left_out = trainer.learner.train_step.trouble().skipped
    skipped = f" {left_out} steps were left out, whose loss or gradients were not finite." if left_out else ""
    average = run.average()
    early = (
        f"Stopped early, {trainer.config.training.patience} validations after the best"
        if trainer.stopped_early
        else "Finished"
    )
    translated_with = f"; nmt translate uses the average of {len(average.epochs)}" if average else ""
    return (
        f"{early}: best epoch {run.best()}{translated_with}.{skipped} Weights, metrics and configuration are in "
        f"{run.folder}"
    )


def _note_settings_not_in_force(config: "Config", dataset: "Dataset") -> None:
    prepared = dataset.manifest.settings
    different = [
        f"{key} {getattr(prepared, key)!r} there, {value!r} here"
        for key, value in config.data.model_dump(exclude_unset=True).items()
        if key != "dataset" and value not in {"auto", getattr(prepared, key)}
    ]
    if different:
        typer.echo(
            f"Note: dataset {dataset.name} was prepared with other settings than this configuration's "
            f"({'; '.join(different)}); what it was prepared with counts."
        )
