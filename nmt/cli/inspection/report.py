"""``nmt report``: HTML report of runs."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from nmt.errors import NmtError


def report(
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="Run in checkpoints/. Default: the run trained last. Repeat to compare; the first is the baseline.",
        ),
    ] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Option(help="Show the attention of this sentence. Repeatable. Default: the first sample sentences."),
    ] = None,
    no_scores: Annotated[bool, typer.Option("--no-scores", help="Leave out scores on the test split.")] = False,
    no_attention: Annotated[bool, typer.Option("--no-attention", help="Leave out attention maps.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write. Default: report.html in the run's folder; for several runs, comparison.html in the "
            "first run's folder. An earlier report is replaced.",
        ),
    ] = None,
) -> None:
    """Write an HTML report of a run, or a comparison of several runs.

    The report is one file without external resources: curves, scores, samples by epoch, attention, configuration, data,
    machine and versions. Scores are computed as in nmt evaluate, with the run's decoding settings. Several runs are
    compared with the first run.

    The command prints the path of the report. Without scores and attention, it takes only a moment.

    Examples:
        nmt report
        nmt report --run base --run wide --output compared.html
        nmt report --run base --sentence "im thirsty"
        nmt report --run base --no-scores --no-attention
    """
    if no_attention and sentence:
        raise NmtError(
            f"--sentence {sentence[0][:60]!r} has no effect with --no-attention: it chooses a sentence for attention "
            "maps. Leave one of them out."
        )
    from nmt.runs.directory import find_run

    runs = [find_run(name) for name in dict.fromkeys(run)] if run else [find_run(None)]
    from nmt.cli.bars import Bar
    from nmt.reporting.report import default_path, write_report

    path = output or default_path(runs)
    with contextlib.closing(Bar("sentences")) as bar:
        write_report(
            runs, path, scored=not no_scores, attention=not no_attention, sentences=sentence or (), progress=bar.show,
            warn=lambda problem: typer.echo(f"nmt: {problem}", err=True),
        )  # fmt: skip
    typer.echo(path)
