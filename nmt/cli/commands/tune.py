"""``nmt tune``: search for a better configuration within a budget of time."""

import json
import shutil
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import CONFIGURATION, RUN, DatasetOption, JsonOption, SetOption
from nmt.cli.usage import SIGNAL

if TYPE_CHECKING:
    from nmt.tuning.record import TuningFolder, TuningRecord
    from nmt.tuning.session import Tuning


def tune(
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", metavar="M", help="Budget of time, for all trials together. Default: 60.",
            rich_help_panel=RUN,
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="YAML file to start from. A bare name is also looked for in configs/ and among the configurations of "
            "nmt. Default: the recipe that nmt train chooses for the dataset.",
            rich_help_panel=CONFIGURATION,
        ),
    ] = None,
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the tuning, a folder in checkpoints/. It resumes if it exists. Default: tune-DATASET.",
            rich_help_panel=RUN,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Search for a better configuration.

    Successive halving: candidates that differ from the recipe in a few keys train for a short time; the best third of
    them train anew for a longer time, and so on, beside the recipe itself. BLEU of validation sentences decides; the
    test split is not read. At the end stand a table, and whether a candidate is significantly better than the recipe.

    Ctrl-C saves and stops. The same command goes on.

    Examples:
        nmt tune --minutes 60
        nmt tune --minutes 180 --config base.yaml --dataset letters --name tuned
    """
    from nmt.tuning.best import write_best
    from nmt.tuning.session import Request, open_tuning

    tuning = open_tuning(Request(name, minutes, config, overrides or [], dataset))
    if not as_json:
        for line in _opening(tuning):
            typer.echo(line)
    record = tuning.record
    if record.verdict is None or not tuning.folder.best_path.exists():
        with tuning.held() as held:
            record = held if held.verdict else _train(tuning, held)
            if record.verdict:
                write_best(tuning.folder, record, record.verdict)
    _print(tuning.folder, record, as_json=as_json)


def _opening(tuning: "Tuning") -> list[str]:
    """Return what a person wants to know before."""
    folder, record = tuning.folder, tuning.record
    if record.verdict:
        return [f"Tuning {folder.name} is finished. Nothing to do. To tune again: --name ANOTHER-NAME"]
    if tuning.is_new:
        return [*tuning.reasons, f"New tuning {folder.name} in {folder.folder}, on dataset {record.dataset}"]
    left = max(0.0, record.minutes - record.spent / 60)
    return [f"Going on with tuning {folder.name}: {left:.1f} of {record.minutes:g} minutes are left"]


def _train(tuning: "Tuning", record: "TuningRecord") -> "TuningRecord":
    """Run the trials that are left, and return the record with its verdict."""
    from nmt.training.interrupts import GracefulShutdown, StopRequested
    from nmt.tuning.console import TuningConsole
    from nmt.tuning.trials import TrainedTrials
    from nmt.tuning.tuner import Tuner

    folder = tuning.folder
    runner = TrainedTrials(folder.folder, tuning.dataset, record.sentences)
    console = TuningConsole()
    notice = "Stopping after this step, with a save. Ctrl-C again stops at once, without."
    try:
        with GracefulShutdown(notice, console.announce) as shutdown:
            tuner = Tuner(folder, record, runner, console, shutdown.check)
            try:
                tuner.tune()
            except StopRequested:
                console.close()
                typer.echo(_stopped(tuner.record, folder.name), err=True)
                raise typer.Exit(SIGNAL + (shutdown.requested or signal.SIGINT)) from None
    finally:
        console.close()
    return tuner.record


def _stopped(record: "TuningRecord", name: str) -> str:
    if not record.shape:
        return "Stopped before the first trial; the same command begins again."
    return f"Saved. Go on with the same command, or: nmt tune --name {name}"


def _print(folder: "TuningFolder", record: "TuningRecord", *, as_json: bool) -> None:
    """Print table, verdict and what to do next."""
    from nmt.tuning.table import conclusion, json_of, table

    if as_json:
        typer.echo(json.dumps(json_of(record, str(folder.best_path)), ensure_ascii=False, indent=2))
        return
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    for line in table(record, max(60, min(columns, 160))):
        typer.echo(line)
    if record.verdict is None:
        return
    for line in conclusion(record, record.verdict):
        typer.echo(line)
    holds = "it" if record.verdict.is_better else "the recipe"
    typer.echo(
        f"{folder.best_path} holds {holds}. Train with: nmt train --config {folder.best_path} --run {folder.name}-best"
    )
