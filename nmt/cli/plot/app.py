"""``nmt plot``: the figures by help section."""

from collections.abc import Callable

import typer

from nmt.cli.help import HelpCommand, HelpGroup
from nmt.cli.plot.alignment import alignment
from nmt.cli.plot.attention import attention
from nmt.cli.plot.by_length import by_length
from nmt.cli.plot.compare import compare
from nmt.cli.plot.embedding_figures import embeddings, words
from nmt.cli.plot.lengths import lengths
from nmt.cli.plot.lesson_figures import (
    binary_code,
    masks,
    position_columns,
    position_matrix,
    position_similarity,
    position_table,
    sinusoids,
)
from nmt.cli.plot.run_figures import run_figure
from nmt.plotting.registry import FIGURES

# Help sections, with their figures in the order of the page; underscores in names of functions become hyphens.
SECTIONS: dict[str, dict[str, Callable[..., None]]] = {
    "Training of a run": {name: run_figure(name) for name in FIGURES} | {"compare": compare},
    "Data and scores": {"lengths": lengths, "by-length": by_length},
    "Attention of a run": {"alignment": alignment, "attention": attention},
    "Lesson, without a run": {
        "position-matrix": position_matrix,
        "sinusoids": sinusoids,
        "position-columns": position_columns,
        "binary-code": binary_code,
        "position-similarity": position_similarity,
        "position-table": position_table,
        "masks": masks,
        "embeddings": embeddings,
    },
    "Words of a run": {"words": words},
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
        nmt plot alignment "im thirsty"
        nmt plot losses --help     options and examples of a figure
    """,
)
for _section, _figures in SECTIONS.items():
    for _name, _figure in _figures.items():
        plot.command(_name, cls=HelpCommand, rich_help_panel=_section)(_figure)
