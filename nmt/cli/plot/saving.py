"""Options and last steps that all figures share: the file, the window, the printed path."""

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
        help="Figure file, in the format of its suffix: .png, .svg, .pdf and others. Default: FIGURE.png in plots/ of "
        "the run.",
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Figure file, in the format of its suffix: .png, .svg, .pdf and others. Default: FIGURE.png in the "
        "current folder.",
    ),
]
ShowOption = Annotated[bool, typer.Option("--show", help="Open the figure in a window too.")]


def path_of(name: str, output: Path | None, run: "Run | None" = None) -> Path:
    """Return the file of a figure: the option, or its default.

    Raises:
        NmtError: if the suffix names no format of a figure.
    """
    from nmt.plotting.figures import check_format

    default = Path(f"{name}.png") if run is None else run.plots_path / f"{name}.png"
    path = default if output is None else output
    check_format(path)
    return path


def finish(figure: "Figure", path: Path, *, show: bool) -> None:
    """Write a figure, open it in a window if asked to, and print its path.

    Raises:
        NmtError: if it cannot be written or shown.
    """
    from nmt.plotting import figures

    figures.save(figure, path)
    if show:
        figures.show(figure)
    typer.echo(path)
