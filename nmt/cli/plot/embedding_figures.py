"""``nmt plot embeddings`` and ``nmt plot words``: embeddings of phrases, maps of words."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import RUN, EpochOption, RunOption
from nmt.cli.plot.lesson_figures import BaseOption
from nmt.cli.plot.saving import OutputOption, ShowOption, finish, path_of


def embeddings(
    phrase: Annotated[str, typer.Argument(metavar="PHRASE", help="Words with white space between them.")],
    phrases: Annotated[
        list[str] | None, typer.Argument(metavar="[PHRASE]...", help="Further phrases, drawn beside the first.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            "--length", min=1, max=256, metavar="L", help="Rows of a phrase, with padding. Default: the longest phrase."
        ),
    ] = None,
    width: Annotated[
        int, typer.Option("--width", min=2, max=65_536, metavar="D", help="Dimensions of the fixed embeddings.")
    ] = 50,
    base: BaseOption = 10_000,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Run in checkpoints/ whose learned embeddings stand below.",
            rich_help_panel=RUN,
        ),
    ] = None,
    epoch: EpochOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Figure file, in the format of its suffix: .png, .svg, .pdf and others. Default: embeddings.png in "
            "plots/ of the run, without a run in the current folder.",
        ),
    ] = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw word plus position embeddings of phrases side by side.

    Fixed embeddings need no run: the vector of a token is the sinusoidal encoding of its id plus that of its position.
    With --run, the learned embeddings of its encoder stand below. Prints the path of the figure.

    Examples:
        nmt plot embeddings "I am a robot" "you too robot"
        nmt plot embeddings --width 6 --length 5 "I am a robot" "you too robot"
        nmt plot embeddings --run base "im thirsty" "i am hungry"
    """
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.encoding import number
    from nmt.plotting.lesson.phrases import draw_embeddings, fixed_embeddings

    given = [phrase, *(phrases or [])]
    rows = [("fixed", fixed_embeddings(given, length, width, base))]
    details = f"fixed: width {width:,} · base {number(base)}"
    chosen = None
    if run is not None:
        from nmt.plotting.lesson.learned_phrases import learned_embeddings
        from nmt.plotting.lesson.trained import read_weights, vocabulary
        from nmt.plotting.style import run_title
        from nmt.runs.directory import find_run

        chosen = find_run(run)
        weights = read_weights(chosen, epoch)
        rows.append(("learned", learned_embeddings(given, weights, vocabulary(weights, "source"))))
        details = f"{details} · learned: {run_title(chosen)} · {weights.epoch}"
    path = path_of("embeddings", output, chosen)
    figure = empty_figure()
    draw_embeddings(figure, rows, details)
    finish(figure, path, show=show)


def words(
    word: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Words, each with its neighbours. Default: the most frequent tokens."),
    ] = None,
    run: RunOption = None,
    epoch: EpochOption = None,
    side: Annotated[
        Literal["source", "target"], typer.Option("--side", metavar="SIDE", help="Vocabulary: source or target.")
    ] = "source",
    count: Annotated[
        int, typer.Option("--count", min=3, max=500, metavar="K", help="Tokens of the map without words.")
    ] = 150,
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=1, max=20, metavar="N", help="Nearest neighbours of each given word.")
    ] = 6,
    output: OutputOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw a two-dimensional map of word embeddings.

    Without words, the map shows the most frequent tokens. With words, it shows each with its nearest neighbours by
    cosine, and lists them. The axes are the principal components. A hyphen marks a subword within a word. Prints the
    path of the figure.

    Examples:
        nmt plot words
        nmt plot words --side target --count 300
        nmt plot words --neighbors 10 hungry thirsty
    """
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.trained import read_weights, vocabulary
    from nmt.plotting.lesson.word_map import draw_frequent, draw_given, find_words
    from nmt.plotting.style import run_title
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    path = path_of("words", output, chosen)
    weights = read_weights(chosen, epoch)
    known = vocabulary(weights, side)
    details = f"{run_title(chosen)} · {weights.epoch} · {side} side"
    figure = empty_figure()
    if word:
        draw_given(figure, known, find_words(known, word, side), neighbors, details)
    else:
        draw_frequent(figure, known, count, details)
    finish(figure, path, show=show)
