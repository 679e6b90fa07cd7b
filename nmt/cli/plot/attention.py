"""``nmt plot attention``: self-attention and cross-attention by layer and head."""

from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import EpochOption, RunOption
from nmt.cli.plot.drawing import OutputOption, drawing
from nmt.errors import DataError, NotFoundError

if TYPE_CHECKING:
    from nmt.decoding.translation import AttentionMaps
    from nmt.runs.directory import Run

KINDS = {
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
    "cross": "Cross-attention",
}
SOURCE, READ, WRITTEN = "source", "target, as read", "target, as written"
SIDES = {"encoder": (SOURCE, SOURCE), "decoder": (READ, READ), "cross": (WRITTEN, SOURCE)}
"""Tokens that attend, at the rows of a matrix, and tokens that are attended to, by kind of attention."""
ALL, MEAN = "all", "mean"
SEPARATOR = "\N{NO-BREAK SPACE}· "  # a line of the title breaks behind the dot


def attention(
    sentence: Annotated[str, typer.Argument(help="Source sentence.", metavar="SENTENCE")],
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
        str | None, typer.Option("--layer", metavar="N", help="Layer, from 1, or all. Default: the last layer.")
    ] = None,
    head: Annotated[
        str,
        typer.Option("--head", metavar="N", help="Head, from 1, or all, or mean: the mean over the heads of a layer."),
    ] = ALL,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="TRANSLATION",
            help="Translation that the decoder reads, word by word. Default: the run's own translation.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Draw the attention of a run on a sentence, by layer and head.

    The run translates the sentence as nmt translate does, or reads the translation of --target. A row of a matrix
    belongs to a token that attends, a column to a token attended to. In cross-attention a row bears the token that is
    written next, in self-attention the token that is read. A recurrent model has cross-attention alone.

    Examples:
        nmt plot attention "im thirsty"
        nmt plot attention --head mean "im thirsty"
        nmt plot attention --kind decoder --layer all -o heads.pdf "im thirsty"
        nmt plot attention --target "ich habe durst" "im thirsty"
    """
    from nmt.plotting.attention import Panel, Tokens, above_diagonal_blank, draw_attention
    from nmt.plotting.comparison import check_choice
    from nmt.runs.directory import find_run

    check_choice("--kind", kind, KINDS)
    chosen = find_run(run)
    with drawing("attention", output, chosen) as figure:
        maps, tokens, details = _attend(chosen, sentence, epoch, target)
        weights = getattr(maps, kind)  # [layers, heads, rows, columns]
        if weights is None:
            raise DataError(
                f"Run {chosen.name!r} has no self-attention: architecture {chosen.config().model.architecture!r} has "
                f"attention of the decoder to the source alone. Leave --kind {kind} out."
            )
        if kind == "decoder":
            weights = above_diagonal_blank(weights)
        count, heads = weights.shape[:2]
        layers = _numbers("layer", layer or str(count), count, chosen.name)
        part = f"all {count} layers" if len(layers) > 1 else f"layer {layers[0]} of {count}"
        if head == MEAN:
            weights, shown = weights.mean(axis=1, keepdims=True), [1]
            part += f", mean of {heads} heads" if heads > 1 else ""
        else:
            shown = _numbers("head", head, heads, chosen.name)
            part += f", head {shown[0]} of {heads}" if len(shown) < heads else ""
        # A caption says what differs between the matrices.
        panels = [
            Panel(
                ", ".join([f"layer {number}"] * (len(layers) > 1) + [f"head {one}"] * (len(shown) > 1)),
                weights[number - 1, one - 1],
            )
            for number in layers
            for one in shown
        ]
        rows, columns = (Tokens(side, tokens[side]) for side in SIDES[kind])
        across = len(shown) if len(layers) > 1 and len(shown) > 1 else None
        draw_attention(figure, panels, rows, columns, f"{KINDS[kind]}, {part}", details, across=across)


def _numbers(name: str, value: str, count: int, run: str) -> list[int]:
    """Return the layers or heads, of 1 .. ``count``, that an option chooses.

    Raises:
        NotFoundError: for a value that is neither a number of one of them nor ``ALL``.
    """
    from nmt.runs.metrics import in_ranges

    numbers = {str(number): [number] for number in range(1, count + 1)} | {ALL: [*range(1, count + 1)]}
    if value not in numbers:
        raise NotFoundError(
            f"The attention of run {run!r} has no {name} {value!r}. Its {name}s: {in_ranges(numbers[ALL])}. Give one "
            f"of these, or {ALL}{f', or {MEAN}' if name == 'head' else ''}."
        )
    return numbers[value]


def _attend(
    run: "Run", sentence: str, epoch: str | None, target: str | None
) -> "tuple[AttentionMaps, dict[str, list[str]], str]":
    """Translate a sentence, unless its translation is given, and return the attention of the run on both.

    Returns:
        Attention, tokens of each side of a matrix, and what a title says of run, data, date, weights and translation.

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
    of = translator.epoch if isinstance(translator.epoch, str) else f"epoch {translator.epoch}"
    details = SEPARATOR.join([run_title(run).replace(" · ", SEPARATOR), f"weights: {of}"])
    if target is None:
        [translation] = translator.translate_details([sentence], names=[name])
    else:
        translation = translator.given_translation(target)
        details += f"{SEPARATOR}translation given"
        unknown = {name: translator.source.unknown(sentence), repr(target[:60]): translator.target.unknown(target)}
        for text, words in unknown.items():
            if words:
                typer.echo(f"nmt: {text}: unknown to the model: {', '.join(words)}", err=True)
    maps = translator.attention_maps(sentence, translation)
    if target is None:
        warn([translation], [name])
    written = translator.target.pieces(translation.ids)
    read = [*translator.target.pieces([BOS]), *written[:-1]]
    return maps, {SOURCE: translator.source.pieces(maps.source), READ: read, WRITTEN: written}, details
