"""``nmt average``: mean of the weights of several epochs."""

from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import RunOption
from nmt.errors import ConflictError, NmtError, NotFoundError

if TYPE_CHECKING:
    from nmt.data.dataset import Dataset
    from nmt.runs.directory import Run

FEWEST = 2
"""Fewest epochs of an average."""


def average(
    run: RunOption = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", help="Average the weights of the last N epochs.")
    ] = None,
    epochs: Annotated[
        str | None,
        typer.Option("--epochs", metavar="EPOCHS", help="Average the weights of these epochs, such as 12-16,20."),
    ] = None,
) -> None:
    """Average the weights of several epochs.

    The average is validated on the run's dataset. nmt translate and nmt evaluate use it from then on.

    Examples:
        nmt average --last 5
        nmt average --run base --epochs 12-16,20
    """
    from nmt.runs.directory import find_run
    from nmt.storage.file_lock import locked

    if (last is None) == (epochs is None):
        received = "neither" if last is None else "both"
        raise NmtError(f"Epochs come from --last N or --epochs 12-16,20; received {received}. Give one of them.")
    chosen = find_run(run)
    with locked(chosen.lock_path, f"Run {chosen.name!r}"):
        _average(chosen, _epoch_numbers(chosen, last, epochs))


def _epoch_numbers(run: "Run", last: int | None, epochs: str | None) -> list[int]:
    """Return the epochs that the options name.

    Raises:
        NmtError: if there are fewer than two.
        NotFoundError: if the run has no weights of one of them.
    """
    from nmt.runs.epoch_ranges import last_epochs, parse_epochs

    kept, owner = run.weights_epochs, f"run {run.name!r}"
    received = f"--last {last}" if epochs is None else f"--epochs {epochs}"
    too_few = f"An average needs at least {FEWEST} epochs; received {received}. Give more epochs."
    if last is not None and last < FEWEST:
        raise NmtError(too_few)
    numbers = parse_epochs(epochs, kept, owner) if epochs is not None else last_epochs(last or 0, kept, owner)
    if len(numbers) < FEWEST:
        raise NmtError(too_few)
    return numbers


def _average(run: "Run", epochs: list[int]) -> None:
    dataset = _dataset(run)

    from nmt.evaluation.validation_decoder import ValidationDecoder
    from nmt.training.averaging import average as average_epochs
    from nmt.training.console import Console

    metrics = average_epochs(run, epochs, dataset, ValidationDecoder)
    settings = run.config().training
    Console(settings.epochs, settings.log_every).on_end(metrics)
    typer.echo(f"Written to {run.weights_path('average')}; nmt translate --run {run.name} uses it now.")


def _dataset(run: "Run") -> "Dataset | None":
    """Return the dataset of the run, for validation; None if it is missing or has changed."""
    from nmt.data.dataset import dataset_of_run
    from nmt.data.manifest import read_manifest

    try:
        return dataset_of_run(run.name, read_manifest(run.dataset_path))
    except (NotFoundError, ConflictError) as error:
        typer.echo(f"Not validated: {error}", err=True)
        return None
