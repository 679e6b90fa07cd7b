"""Option and steps that all figures share: the file, the printed path."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.runs.directory import Run

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Figure file, in the format of its suffix: .png, .svg, .pdf and others. Default: FIGURE.png, in plots/ of "
        "the run or, without a run or with several, in the current folder.",
    ),
]


@contextmanager
def drawing(name: str, output: Path | None, run: "Run | None" = None) -> Iterator["Figure"]:
    """Yield an empty figure; then write it, and print its path.

    Raises:
        NmtError: if the suffix names no format of a figure, or if it cannot be written.
    """
    from nmt.plotting import figures

    path = output or (run.plots_path if run else Path()) / f"{name}.png"
    figures.check_format(path)
    figure = figures.empty_figure()
    yield figure
    figures.save(figure, path)
    typer.echo(path)
