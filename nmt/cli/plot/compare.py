"""``nmt plot compare``: a metric of several runs."""

from typing import Annotated

import typer

from nmt.cli.plot.saving import FileOption, ShowOption, finish, path_of


def compare(
    runs: Annotated[list[str], typer.Argument(help="Runs in checkpoints/.", metavar="RUN...")],
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="loss, accuracy, bleu or chrf of the validation; train-loss, train-accuracy or learning-rate.",
        ),
    ] = "loss",
    by: Annotated[str, typer.Option("--by", metavar="AXIS", help="steps, epochs, tokens or minutes.")] = "epochs",
    output: FileOption = None,
    show: ShowOption = False,
) -> None:
    """Draw a metric of several runs.

    Each run has a curve, with its best value beside its name. Where the datasets of the runs differ, the names say so.
    Prints the path of the figure.

    Examples:
        nmt plot compare base wide deep
        nmt plot compare base wide --metric accuracy --by minutes
        nmt plot compare base wide --metric train-loss --by tokens -o losses.pdf
    """
    from nmt.plotting.comparison import draw_comparison
    from nmt.plotting.figures import empty_figure
    from nmt.runs.directory import find_run

    path = path_of("compare", output)
    figure = empty_figure()
    draw_comparison(figure, [find_run(name) for name in dict.fromkeys(runs)], metric, by)
    finish(figure, path, show=show)
