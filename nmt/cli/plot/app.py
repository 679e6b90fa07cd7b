"""``nmt plot``: the list of figures by help section, and the command of each figure."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import RunOption
from nmt.cli.plot import lesson, runs
from nmt.cli.usage import HelpCommand, HelpGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.runs.directory import Run

Draw = Callable[..., "Run | None"]
"""Function from an empty figure and options that draws. It returns the run whose folder gets the file, or None."""

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File of the figure, in the format of its suffix, such as .svg. Default: FIGURE.png in plots/ of the run, "
        "or in this folder.",
    ),
]
# Figures whose only option is the run: the function of (figure, run) in nmt.plotting, and its content in words.
RUN_FIGURES = {
    "losses": ("curves.draw_losses", "training and validation loss by epoch"),
    "accuracy": ("curves.draw_accuracy", "training and validation accuracy by epoch"),
    "bleu": ("curves.draw_bleu", "BLEU and chrF of the validation translations by time"),
    "schedule": ("curves.draw_schedule", "the learning rate by step"),
    "speed": ("curves.draw_speed", "target tokens per second and the time per step"),
    "positions": ("trained.draw_positions", "the position embeddings of a run: sinusoidal, learned or rotary"),
}


def run_figure(name: str) -> Draw:
    """Return the function that draws a figure of ``RUN_FIGURES``. The code is imported when the function is called."""
    path, content = RUN_FIGURES[name]

    def draw(figure: "Figure", run: RunOption = None) -> "Run":
        from nmt.runs.directory import find_run

        chosen = find_run(run)
        module, function = path.split(".")
        getattr(import_module(f"nmt.plotting.{module}"), function)(figure, chosen)
        return chosen

    draw.__name__ = name
    draw.__doc__ = f"""Draw {content}.

    Examples:
        nmt plot {name}
        nmt plot {name} --run base --output {name}.svg
    """
    return draw


# Help sections with their figures, in the order of the help page. A figure has the name of its function.
SECTIONS: dict[str, list[Draw]] = {
    "Training of a run": [*map(run_figure, RUN_FIGURES), runs.compare],
    "Data, scores, attention, words": [runs.lengths, runs.by_length, runs.attention, lesson.words],
    "Lesson, without a run": [
        lesson.position_matrix, lesson.sinusoids, lesson.position_columns, lesson.binary_code,
        lesson.position_similarity, lesson.position_table, lesson.masks, lesson.embeddings,
    ],
}  # fmt: skip


def command(draw: Draw) -> Callable[..., None]:
    """Return the command of a figure, with the options of its function and --output. It prints the path of the file."""
    name = draw.__name__.replace("_", "-")

    def plot_figure(output: Path | None, **options: Any) -> None:
        from nmt.plotting import fonts, style

        chosen_file = style.output_figure(output) if output else None
        figure = style.empty_figure()
        run = draw(figure, **options)
        path = output or (run.plots_path if run else Path()) / f"{name}.png"
        style.save(figure, chosen_file or style.output_figure(path))
        missing = fonts.missing_characters(figure) if path.suffix.lower() != ".svg" else []
        if missing:
            typer.echo(f"nmt: {path}: {fonts.missing_note(missing)}", err=True)
        typer.echo(path)

    output_option = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=OutputOption)
    _, *options = inspect.signature(draw).parameters.values()
    plot_figure.__signature__ = inspect.Signature([*options, output_option])  # type: ignore[attr-defined]
    plot_figure.__name__, plot_figure.__doc__ = name, draw.__doc__
    return plot_figure


plot = typer.Typer(
    name="plot",
    cls=HelpGroup,
    subcommand_metavar="FIGURE [ARGUMENT]...",
    help="""Draw training curves, attention, embeddings and other figures.

    nmt prints the path of the figure. The suffix of --output names its format: .png, .svg or .pdf.

    Examples:
        nmt plot losses
        nmt plot bleu --run base --output bleu.svg
        nmt plot attention "im thirsty"
        nmt plot losses --help     options and examples of a figure
    """,
)
for _section, _figures in SECTIONS.items():
    for _figure in _figures:
        plot.command(cls=HelpCommand, rich_help_panel=_section)(command(_figure))
