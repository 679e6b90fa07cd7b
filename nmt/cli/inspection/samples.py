"""``nmt samples``: translations of the sample sentences at each validation."""

import typer

from nmt.cli.options import RunOption
from nmt.errors import NotFoundError


def samples(run: RunOption = None) -> None:
    """Show how translations of sample sentences changed in training.

    The sentences are the first of the validation split. The setting training.samples is their number.

    Examples:
        nmt samples
        nmt samples --run base
    """
    from nmt.reporting.facts import sample_stages
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    sentences = sample_stages(chosen.metrics())
    if not sentences:
        raise NotFoundError(
            f"Run {chosen.name!r} has no sample translations. Training makes them at each validation if "
            "training.samples is not 0. Train another run with --set training.samples=3"
        )
    for (number, source, reference), stages in sentences.items():
        width = max(len(stage.when) for stage in stages)
        typer.echo(f"{number}. {source}\n   reference: {reference}")
        for stage in stages:
            typer.echo(f"   {stage.when:{width}}  ->  {stage.translation}")
