"""``nmt average``: the mean of the weights of some epochs, to translate with."""

from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import NmtError, NotFoundError

if TYPE_CHECKING:
    from nmt.data.dataset import Dataset
    from nmt.runs.directory import Run


def average(
    run: Annotated[str | None, typer.Option("--run", help="A run in checkpoints/; by default the latest.")] = None,
    last: Annotated[int | None, typer.Option("--last", help="Average the last so many epochs.", metavar="N")] = None,
    epochs: Annotated[
        str | None, typer.Option("--epochs", help="Average these, such as 12-16,20.", metavar="EPOCHS")
    ] = None,
) -> None:
    """Average the weights of several epochs, as a run does at its end, and translate with the result from then on."""
    from nmt.runs.directory import find_run
    from nmt.storage.file_lock import locked

    if (last is None) == (epochs is None):
        received = "neither" if last is None else "both"
        raise NmtError(
            f"Which epochs to average is said by --last N or by --epochs 12-16,20; received {received}. Give one "
            "of them."
        )
    chosen = find_run(run)
    with locked(chosen.lock_path, f"Run {chosen.name!r}"):
        wanted = _wanted(chosen, last, epochs)
        _average(chosen, wanted)


def _wanted(run: "Run", last: int | None, epochs: str | None) -> list[int]:
    from nmt.runs.epoch_ranges import last_epochs, parse_epochs

    there, of = run.weights_epochs, f"run {run.name!r}"
    received = f"--last {last}" if epochs is None else f"--epochs {epochs}"
    few = f"An average is of two epochs or more; received {received}. Give more of them."
    if last is not None and last < 2:
        raise NmtError(few)
    wanted = parse_epochs(epochs, there, of) if epochs is not None else last_epochs(last or 0, there, of)
    if len(wanted) < 2:
        raise NmtError(few)
    return wanted


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
    """The dataset to validate on; without it there is an average, but no figures."""
    from nmt.data.dataset import open_dataset
    from nmt.data.manifest import read_manifest

    trained_on = read_manifest(run.dataset_path)
    try:
        dataset = open_dataset(str(trained_on.settings.dataset))
    except NotFoundError as error:
        typer.echo(f"Not validated, since the dataset of run {run.name} is not here: {error}", err=True)
        return None
    if dataset.manifest.fingerprint != trained_on.fingerprint:
        typer.echo(
            f"Not validated, since {dataset.folder} holds something else than when run {run.name} was trained on it.",
            err=True,
        )
        return None
    return dataset
