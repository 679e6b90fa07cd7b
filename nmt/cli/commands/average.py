"""``nmt average``: mean of the weights of several epochs."""

from typing import Annotated

import typer

from nmt.cli.options import RunOption
from nmt.errors import ConflictError, NmtError, NotFoundError


def average(
    run: RunOption = None,
    last: Annotated[int | None, typer.Option(min=2, help="Average the weights of the last N epochs.")] = None,
    epochs: Annotated[str | None, typer.Option(help="Average the weights of these epochs, such as 12-16,20.")] = None,
) -> None:
    """Average the weights of several epochs.

    The average is validated on the run's dataset. nmt translate and nmt evaluate use it from then on.

    Examples:
        nmt average --last 5
        nmt average --run base --epochs 12-16,20
    """
    from nmt.data.dataset import dataset_of_run
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run
    from nmt.runs.weights import last_epochs, parse_epochs
    from nmt.storage.file_lock import locked

    if (last is None) == (epochs is None):
        received = "neither" if last is None else "both"
        raise NmtError(f"Epochs come from --last N or --epochs 12-16,20; received {received}. Give one of them.")
    chosen = find_run(run)
    with locked(chosen.lock_path, f"Run {chosen.name!r}"):
        kept, owner = chosen.weights_epochs, f"run {chosen.name!r}"
        numbers = last_epochs(last or 0, kept, owner) if epochs is None else parse_epochs(epochs, kept, owner)
        if len(numbers) < 2:
            raise NmtError(f"An average needs at least 2 epochs; received --epochs {epochs}. Give more epochs.")
        try:
            dataset = dataset_of_run(chosen.name, read_manifest(chosen.dataset_path))
        except (NotFoundError, ConflictError) as error:
            typer.echo(f"Not validated: {error}", err=True)
            dataset = None

        from nmt.evaluation.validation_decoder import ValidationDecoder
        from nmt.training.console import Console
        from nmt.training.stopping import average as average_epochs

        metrics = average_epochs(chosen, numbers, dataset, ValidationDecoder)
        Console(chosen.config().training.epochs).on_end(metrics)
    typer.echo(f"Written to {chosen.weights_path('average')}; nmt translate --run {chosen.name} uses it now.")
