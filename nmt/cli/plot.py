"""``nmt plot``: figures of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import RunOption

if TYPE_CHECKING:
    from nmt.runs.directory import Run


def plot(
    figure: Annotated[str, typer.Argument(help="losses, accuracy, bleu, schedule or positions.", metavar="FIGURE")],
    run: RunOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Figure file, in the format of its suffix. Default: FIGURE.png in plots/ of the run.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Open the figure in a window too.")] = False,
) -> None:
    """Draw the curves, learning rate or position embedding of a run.

    Prints the path of the figure.

    Examples:
        nmt plot losses
        nmt plot bleu --run base --output bleu.svg
    """
    from nmt.runs.directory import find_run

    typer.echo(draw_figure(figure, find_run(run), output, show=show))


def draw_figure(figure: str, run: "Run", output: Path | None = None, *, show: bool = False) -> Path:
    """Draw a figure of a run, save it and return its path."""
    from nmt.plotting import figures

    drawn = figures.draw(figure, run)
    path = output if output is not None else run.plots_path / f"{figure}.png"
    figures.save(drawn, path)
    if show:
        figures.show(drawn)
    return path
