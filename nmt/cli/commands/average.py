"""``nmt average``: the mean of the weights of several epochs or runs."""

from typing import Annotated

import typer

from nmt.errors import ConflictError, NmtError, NotFoundError


def average(
    run: Annotated[
        str | None, typer.Option(help="Run, or several as RUN+RUN:EPOCH. Default: the run trained last.")
    ] = None,
    last: Annotated[int | None, typer.Option(min=2, help="Average the weights of the last N epochs.")] = None,
    epochs: Annotated[str | None, typer.Option(help="Average the weights of these epochs, such as 12-16,20.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new run, if several runs are averaged.")] = None,
) -> None:
    """Average the weights of several epochs, or of several runs.

    The average is validated on the run's dataset. nmt translate and nmt evaluate use it from then on.
    Several runs must have started from the same weights (nmt train --from); otherwise their average is useless.

    Examples:
        nmt average --last 5
        nmt average --run base --epochs 12-16,20
        nmt average --run news+talks:12 --name both
    """
    from nmt.data.dataset import dataset_of_run
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run
    from nmt.runs.weights import choose_epoch, find_members, last_epochs, parse_epochs
    from nmt.storage.file_lock import locked

    several = "+" in (run or "")
    if several != (name is not None) or (several and (last or epochs)):
        received = " ".join(
            f"--{option} {value}" for option, value in
            (("run", run), ("name", name), ("last", last), ("epochs", epochs)) if value is not None
        )  # fmt: skip
        raise NmtError(
            "The average of several runs is a new run: it needs --name, and takes neither --last nor --epochs; "
            f"received {received}. Give --run RUN+RUN:EPOCH --name NAME, or leave --name out."
        )
    if not several and (last is None) == (epochs is None):
        received = "neither" if last is None else "both"
        raise NmtError(f"Choose epochs with --last N or --epochs 12-16,20; received {received}. Give one of them.")
    members = find_members(run, None) if several and run else [(find_run(run), None)]
    chosen, numbers = members[0][0], list[int]()
    with locked(chosen.lock_path, f"Run {chosen.name!r}"):
        available, owner = chosen.weights_epochs, f"run {chosen.name!r}"
        if not several:
            if epochs is None:
                numbers = last_epochs(last or 0, available, owner)
            else:
                numbers = parse_epochs(epochs, available, owner)
            if len(numbers) < 2:
                raise NmtError(f"An average needs at least 2 epochs; received --epochs {epochs}. Give more epochs.")
        try:
            dataset = dataset_of_run(chosen.name, read_manifest(chosen.dataset_path))
        except (NotFoundError, ConflictError) as error:
            typer.echo(f"Not validated: {error.on_command_line()}", err=True)
            dataset = None

        from nmt.evaluation.validation_decoder import ValidationDecoder
        from nmt.training import stopping
        from nmt.training.console import Console

        if several:
            weights = [(member, choose_epoch(member, epoch)) for member, epoch in members]
            metrics = stopping.average_runs(str(name), weights, dataset, ValidationDecoder)
        else:
            metrics = stopping.average(chosen, numbers, dataset, ValidationDecoder)
        Console(chosen.config().training.epochs).on_end(metrics)
    owner_run = find_run(name) if several else chosen
    typer.echo(
        f"Written to {owner_run.weights_path('average')}; nmt translate --run {owner_run.name} uses the average now."
    )
