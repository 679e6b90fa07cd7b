"""``nmt plot``: the figures by help section."""

from collections.abc import Callable

import typer

from nmt.cli.help import HelpCommand, HelpGroup
from nmt.cli.options import RunOption
from nmt.cli.plot import data, lesson
from nmt.cli.plot.attention import attention
from nmt.cli.plot.drawing import OutputOption, ShowOption, drawing
from nmt.plotting.registry import FIGURES


def run_figure(name: str) -> Callable[..., None]:
    """Return the command of a figure that a run alone determines."""

    def command(run: RunOption = None, output: OutputOption = None, show: ShowOption = False) -> None:
        from nmt.runs.directory import find_run

        chosen = find_run(run)
        with drawing(name, output, show, chosen) as figure:
            FIGURES[name].load()(figure, chosen)

    command.__doc__ = f"""{FIGURES[name].summary}

    Examples:
        nmt plot {name}
        nmt plot {name} --run base --output {name}.svg
    """
    return command


# Help sections, with their figures in the order of the page; underscores in names of functions become hyphens.
SECTIONS: dict[str, dict[str, Callable[..., None]]] = {
    "Training of a run": {name: run_figure(name) for name in FIGURES} | {"compare": data.compare},
    "Data and scores": {"lengths": data.lengths, "by-length": data.by_length},
    "Attention of a run": {"attention": attention},
    "Lesson, without a run": {
        "position-matrix": lesson.position_matrix,
        "sinusoids": lesson.sinusoids,
        "position-columns": lesson.position_columns,
        "binary-code": lesson.binary_code,
        "position-similarity": lesson.position_similarity,
        "position-table": lesson.position_table,
        "masks": lesson.masks,
        "embeddings": lesson.embeddings,
    },
    "Words of a run": {"words": lesson.words},
}

plot = typer.Typer(
    name="plot",
    cls=HelpGroup,
    subcommand_metavar="FIGURE [ARGUMENT]...",
    help="""Draw the curves of a run, its attention, and what its model computes.

    Prints the path of the figure. The suffix of --output names its format: .png, .svg, .pdf and others.

    Examples:
        nmt plot losses
        nmt plot bleu --run base --output bleu.svg
        nmt plot attention "im thirsty"
        nmt plot losses --help     options and examples of a figure
    """,
)
for _section, _figures in SECTIONS.items():
    for _name, _figure in _figures.items():
        plot.command(_name, cls=HelpCommand, rich_help_panel=_section)(_figure)
