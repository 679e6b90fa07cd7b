"""``nmt plot``: the figures by help section."""

from collections.abc import Callable

import typer


from nmt.cli.options import RunOption
from nmt.cli.plot import data, lesson
from nmt.cli.plot.attention import attention
from nmt.cli.plot.drawing import OutputOption, drawing
from nmt.cli.usage import HelpCommand, HelpGroup
from nmt.plotting.registry import FIGURES


def run_figure(name: str) -> Callable[..., None]:
    """Return the command of a figure that a run alone determines."""

    def command(run: RunOption = None, output: OutputOption = None) -> None:
        from nmt.runs.directory import find_run

        chosen = find_run(run)
        with drawing(name, output, chosen) as figure:
            FIGURES[name].load()(figure, chosen)

    command.__name__ = name
    command.__doc__ = f"""{FIGURES[name].summary}

    Examples:
        nmt plot {name}
        nmt plot {name} --run base --output {name}.svg
    """
    return command


# Help sections, with their figures in the order of the page; the names of figures are those of the functions.
SECTIONS: dict[str, list[Callable[..., None]]] = {
    "Training of a run": [*map(run_figure, FIGURES), data.compare],
    "Data and scores": [data.lengths, data.by_length],
    "Attention of a run": [attention],
    "Lesson, without a run": [
        lesson.position_matrix, lesson.sinusoids, lesson.position_columns, lesson.binary_code,
        lesson.position_similarity, lesson.position_table, lesson.masks, lesson.embeddings,
    ],
    "Words of a run": [lesson.words],
}  # fmt: skip

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
    for _figure in _figures:
        plot.command(cls=HelpCommand, rich_help_panel=_section)(_figure)
