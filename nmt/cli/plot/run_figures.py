"""``nmt plot NAME`` for the figures of ``nmt.plotting.registry``: a run alone is all they need."""

from collections.abc import Callable

from nmt.cli.options import RunOption
from nmt.cli.plot.saving import OutputOption, ShowOption, finish, path_of
from nmt.plotting.registry import FIGURES

HELP = """{summary}

Prints the path of the figure.

Examples:
    nmt plot {name}
    nmt plot {name} --run base --output {name}.svg
"""


def run_figure(name: str) -> Callable[..., None]:
    """Return the command that draws the figure of that name."""

    def command(run: RunOption = None, output: OutputOption = None, *, show: ShowOption = False) -> None:
        from nmt.plotting.figures import draw
        from nmt.runs.directory import find_run

        chosen = find_run(run)
        path = path_of(name, output, chosen)
        finish(draw(name, chosen), path, show=show)

    command.__doc__ = HELP.format(name=name, summary=FIGURES[name].summary)
    return command
