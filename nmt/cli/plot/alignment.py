"""``nmt plot alignment``: attention of a translation to its source."""

from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import EpochOption, RunOption
from nmt.cli.plot.attention import Attended, SentenceArgument, TargetOption, attend, choose_layer
from nmt.cli.plot.saving import OutputOption, ShowOption, finish, path_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.runs.directory import Run


def alignment(
    sentence: SentenceArgument,
    run: RunOption = None,
    epoch: EpochOption = None,
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
    target: TargetOption = None,
    output: OutputOption = None,
    show: ShowOption = False,
) -> None:
    """Draw the attention of a translation to its sentence.

    The run translates the sentence as nmt translate does, or reads the translation of --target. The figure is a
    matrix: the attention of each token of the translation to each token of the sentence. Prints the path of the figure.

    Examples:
        nmt plot alignment "im thirsty"
        nmt plot alignment --layer 1 --head 2 "im thirsty"
        nmt plot alignment --epoch 4 --target "ich habe durst" "im thirsty"
    """
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    path = path_of("alignment", output, chosen)
    finish(_draw_alignment(chosen, attend(chosen, sentence, epoch, target), layer, head), path, show=show)


def _draw_alignment(run: "Run", attended: Attended, layer: int | None, head: int | None) -> "Figure":
    """Draw the attention of a head, or the mean over the heads of a layer.

    Raises:
        NotFoundError: for a layer or head that the model does not have.
    """
    from nmt.plotting.alignment import draw_alignment
    from nmt.plotting.figures import empty_figure

    weights = attended.maps.cross
    number = choose_layer(weights, layer, head, run.name)
    layers, heads = weights.shape[:2]
    of_layer, part = weights[number - 1], f"Attention of layer {number} of {layers}"
    if head is not None:
        drawn, part = of_layer[head - 1], f"{part}, head {head} of {heads}"
    else:
        drawn, part = of_layer.mean(axis=0), f"{part}, mean of {heads} heads" if heads > 1 else part
    figure = empty_figure()
    draw_alignment(figure, attended.source, attended.target, drawn, part, attended.details)
    return figure
