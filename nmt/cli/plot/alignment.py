"""``nmt plot alignment``: attention of a translation to its source."""

from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import RunOption
from nmt.cli.plot.saving import OutputOption, ShowOption, finish, path_of
from nmt.errors import DataError, NotFoundError

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from nmt.runs.directory import Run


def alignment(
    sentence: Annotated[str, typer.Argument(help="Source sentence.", metavar="SENTENCE")],
    run: RunOption = None,
    layer: Annotated[
        int | None,
        typer.Option("--layer", min=1, metavar="N", help="Decoder layer, from 1. Default: the last layer."),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(
            "--head",
            min=1,
            metavar="N",
            help="Attention head, from 1. Default: the mean over the heads of the layer.",
        ),
    ] = None,
    output: OutputOption = None,
    show: ShowOption = False,
) -> None:
    """Draw the attention of a translation to its sentence.

    The run translates the sentence as nmt translate does. The figure is a matrix: the attention of each token of the
    translation to each token of the sentence. Prints the path of the figure.

    Examples:
        nmt plot alignment "im thirsty"
        nmt plot alignment --layer 1 --head 2 "im thirsty"
    """
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    path = path_of("alignment", output, chosen)
    finish(_draw_alignment(chosen, sentence, layer, head), path, show=show)


def _draw_alignment(run: "Run", sentence: str, layer: int | None, head: int | None) -> "Figure":
    """Translate a sentence and draw the attention of the translation to it.

    Raises:
        DataError: for a sentence without words, and for a model without attention.
        NotFoundError: for a layer or head that the model does not have.
    """
    from nmt.api import load
    from nmt.cli.commands.translate import warn
    from nmt.plotting.alignment import draw_alignment
    from nmt.plotting.figures import empty_figure

    translator = load(run).translator
    if not translator.source.encode(sentence):
        raise DataError(
            f"Sentence {sentence[:60]!r} has no words after normalization. An alignment needs a word at least. Give "
            "another sentence."
        )
    name = repr(sentence[:60])
    [found] = translator.translate_n_best([sentence], [name])
    [attention] = translator.attention([sentence], found)
    weights, part = _choose(attention.weights, layer, head, run.name)
    figure = empty_figure()
    draw_alignment(
        figure, translator.source.pieces(attention.source), translator.target.pieces(attention.target), weights,
        f"Run {run.name}\n{part}",
    )  # fmt: skip
    warn(found, [name])
    return figure


def _choose(weights: "np.ndarray", layer: int | None, head: int | None, run: str) -> "tuple[np.ndarray, str]":
    """Return the attention that the options name, [T, S], and its name.

    Args:
        weights: attention of all layers and heads, [layers, heads, T, S].
        layer: number from 1; None for the last layer.
        head: number from 1; None for the mean over the heads.
        run: name of the run, for messages.

    Raises:
        NotFoundError: for a layer or head that is not there.
    """
    from nmt.runs.epoch_ranges import in_ranges

    layers, heads = weights.shape[:2]
    for option, number, count in (("layer", layer, layers), ("head", head, heads)):
        if number is not None and number > count:
            raise NotFoundError(
                f"The attention of run {run!r} has no {option} {number}. Its {option}s: "
                f"{in_ranges([*range(1, count + 1)])}. Give one of these, or leave --{option} out."
            )
    number = layer or layers
    of_layer, name = weights[number - 1], f"Attention of layer {number} of {layers}"
    if head is not None:
        return of_layer[head - 1], f"{name}, head {head} of {heads}"
    return of_layer.mean(axis=0), f"{name}, mean of {heads} heads" if heads > 1 else name
