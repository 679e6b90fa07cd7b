"""``nmt plot attention``: self-attention and cross-attention by layer and head."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nmt.cli.options import EpochOption, RunOption
from nmt.cli.plot.saving import OutputOption, ShowOption, finish, path_of
from nmt.errors import DataError, NotFoundError

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from nmt.decoding.translation import AttentionMaps
    from nmt.runs.directory import Run

KINDS = {
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
    "cross": "Cross-attention",
}
ALL = "all"
SEPARATOR = "\N{NO-BREAK SPACE}· "

SentenceArgument = Annotated[str, typer.Argument(help="Source sentence.", metavar="SENTENCE")]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TRANSLATION",
        help="Translation that the decoder reads, word by word. Default: the run's own translation.",
    ),
]


def attention(
    sentence: SentenceArgument,
    run: RunOption = None,
    epoch: EpochOption = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="encoder or decoder: self-attention of that side. cross: attention of the decoder to the source.",
        ),
    ] = "cross",
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="N", help="Layer, from 1, or all. Default: the last layer."),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option("--head", min=1, metavar="N", help="A head alone, from 1. Default: a sheet of all heads."),
    ] = None,
    target: TargetOption = None,
    output: OutputOption = None,
    show: ShowOption = False,
) -> None:
    """Draw the attention of a run on a sentence, by layer and head.

    The run translates the sentence as nmt translate does, or reads the translation of --target. A row of a matrix
    belongs to a token that attends, a column to a token attended to. In cross-attention a row bears the token that is
    written next, in self-attention the token that is read. A recurrent model has cross-attention alone.

    Prints the path of the figure.

    Examples:
        nmt plot attention "im thirsty"
        nmt plot attention --kind encoder --layer 1 --head 2 "im thirsty"
        nmt plot attention --kind decoder --layer all -o heads.pdf "im thirsty"
        nmt plot attention --target "ich habe durst" "im thirsty"
    """
    from nmt.runs.directory import find_run

    _check_kind(kind)
    number = _layer_number(layer)
    chosen = find_run(run)
    path = path_of("attention", output, chosen)
    finish(_draw_attention(chosen, attend(chosen, sentence, epoch, target), kind, number, head), path, show=show)


def _check_kind(kind: str) -> None:
    """Refuse a name that is no kind of attention.

    Raises:
        NotFoundError: suggests the nearest name.
    """
    from nmt.storage.names import did_you_mean

    if kind not in KINDS:
        raise NotFoundError(f"There is no attention {kind!r}{did_you_mean(kind, KINDS)}. Known: {', '.join(KINDS)}.")


def _layer_number(layer: str | None) -> int | str | None:
    """Return the value of --layer as a number from 1, ``ALL``, or None.

    Raises:
        DataError: for any other value.
    """
    if layer is None or layer == ALL:
        return layer
    if not (layer.isascii() and layer.isdecimal() and int(layer) > 0):
        raise DataError(f"--layer is the number of a layer, from 1, or {ALL}; received {layer!r}. Give such a value.")
    return int(layer)


class Attended(NamedTuple):
    """Attention of a run on a sentence and a translation, with the tokens of both."""

    maps: "AttentionMaps"
    source: list[str]
    """S tokens as the encoder reads them."""
    target: list[str]
    """T tokens as the decoder writes them."""
    read: list[str]
    """T tokens as the decoder reads them, from bos on."""
    details: str
    """What a title says of run, data, date, weights and translation."""


def attend(run: "Run", sentence: str, epoch: str | None, target: str | None) -> Attended:
    """Translate a sentence, unless its translation is given, and return the attention of the run on both.

    Raises:
        DataError: for a sentence or translation without words, or longer than the model reads.
        NotFoundError: if there are no such weights.
    """
    from nmt.cli.commands.translate import warn
    from nmt.decoding.translator import Translator
    from nmt.plotting.style import run_title
    from nmt.tokenizers.base import BOS

    translator = Translator.open(run, epoch)
    name = repr(sentence[:60])
    if not translator.encode([sentence], [name])[0]:
        raise DataError(
            f"Sentence {sentence[:60]!r} has no words after normalization. Attention needs a word at least. Give "
            "another sentence."
        )
    if target is None:
        [translation] = translator.find_best([sentence], names=[name])
    else:
        translation = translator.given_translation(target)
        unknown = {name: translator.source.unknown(sentence), repr(target[:60]): translator.target.unknown(target)}
        for text, words in unknown.items():
            if words:
                typer.echo(f"nmt: {text}: unknown to the model: {', '.join(words)}", err=True)
    maps = translator.attention_maps(sentence, translation)
    if target is None:
        warn([translation], [name])
    written = translator.target.pieces(translation.ids)
    begin = translator.target.pieces([BOS])
    of = translator.epoch if isinstance(translator.epoch, str) else f"epoch {translator.epoch}"
    # A line of the title breaks behind a dot.
    details = SEPARATOR.join([run_title(run).replace(" · ", SEPARATOR), f"weights: {of}"])
    if target is not None:
        details += f"{SEPARATOR}translation given"
    return Attended(maps, translator.source.pieces(maps.source), written, [*begin, *written[:-1]], details)


def choose_layer(weights: "np.ndarray", layer: int | None, head: int | None, run: str) -> int:
    """Return the number of a layer: ``layer``, or the last one.

    Args:
        weights: attention of all layers and heads, [layers, heads, rows, columns].
        layer: number from 1; None for the last layer.
        head: number from 1; None for all heads.
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
    return layer or layers


def _weights_of_kind(maps: "AttentionMaps", kind: str, run: "Run") -> "np.ndarray":
    """Return the attention of a kind, [layers, heads, rows, columns].

    Raises:
        DataError: if the model has none.
    """
    by_kind: dict[str, np.ndarray | None] = {"encoder": maps.encoder, "decoder": maps.decoder, "cross": maps.cross}
    weights = by_kind[kind]
    if weights is None:
        raise DataError(
            f"Run {run.name!r} has no self-attention: architecture {run.config().model.architecture!r} has attention "
            f"of the decoder to the source alone. Leave --kind {kind} out."
        )
    return weights


def _draw_attention(run: "Run", attended: Attended, kind: str, layer: int | str | None, head: int | None) -> "Figure":
    """Draw a head alone, or a sheet of heads."""
    from nmt.plotting.attention import Panel, Tokens, above_diagonal_blank, draw_matrix, draw_sheet
    from nmt.plotting.figures import empty_figure

    weights = _weights_of_kind(attended.maps, kind, run)
    layers, heads = weights.shape[:2]
    chosen = choose_layer(weights, layer if isinstance(layer, int) else None, head, run.name)
    if kind == "decoder":
        weights = above_diagonal_blank(weights)
    source = Tokens("source", attended.source)
    rows, columns = {
        "encoder": (source, source),
        "decoder": (Tokens("target, as read", attended.read),) * 2,
        "cross": (Tokens("target, as written", attended.target), source),
    }[kind]
    figure = empty_figure()
    shown_heads = range(1, heads + 1) if head is None else [head]
    if layer == ALL and layers * len(shown_heads) > 1:
        part = f"all {layers} layers" + (f", head {head} of {heads}" if head else "")
        panels = [
            Panel(f"layer {n}, head {h}", weights[n - 1, h - 1]) for n in range(1, layers + 1) for h in shown_heads
        ]
        across = len(shown_heads) if len(shown_heads) > 1 else None
        draw_sheet(figure, panels, rows, columns, f"{KINDS[kind]}, {part}", attended.details, across=across)
        return figure
    part = f"layer {chosen} of {layers}"
    if len(shown_heads) > 1:
        panels = [Panel(f"head {h}", weights[chosen - 1, h - 1]) for h in shown_heads]
        draw_sheet(figure, panels, rows, columns, f"{KINDS[kind]}, {part}", attended.details)
        return figure
    if heads > 1:
        part += f", head {head} of {heads}"
    draw_matrix(
        figure, weights[chosen - 1, shown_heads[0] - 1], rows, columns, f"{KINDS[kind]}, {part}", attended.details
    )
    return figure
