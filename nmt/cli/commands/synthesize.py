"""``nmt synthesize``: synthetic pairs from monolingual text and its translations."""

import contextlib
import time
from typing import Annotated

import typer

from nmt.cli.bars import Bar
from nmt.cli.options import (
    BatchSizeOption,
    BeamOption,
    DecodingOption,
    EpochOption,
    FromOption,
    OrdinaryTextOption,
    RunOption,
    TemperatureOption,
    ToOption,
    check_decoding,
    decoding_of,
)
from nmt.errors import NmtError, counted, on_command_line, printable


def synthesize(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text, one sentence per line; plain, gzipped or in a zip archive.")
    ],
    name: Annotated[str, typer.Option(help="Name of the file of pairs, data/NAME.jsonl.gz.")],
    run: RunOption = None,
    epoch: EpochOption = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(help="Other teacher: KIND:WHERE, or a YAML file. Repeatable."),
    ] = None,
    candidates: Annotated[int, typer.Option(metavar="N", help="Translations of a line by each teacher.")] = 1,
    choose: Annotated[
        str | None, typer.Option(help="Choice among them: agreement, score, confidence, or a run.")
    ] = None,
    forward: Annotated[
        bool, typer.Option("--forward", help="The lines become the sources of the pairs. Default: the targets.")
    ] = False,
    export: Annotated[
        str | None, typer.Option(help="Export to translate with, or none. Default: an int8 export.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw words by their probabilities.")] = False,
    min_score: Annotated[
        float | None, typer.Option(help="Drop pairs whose mean log-probability of tokens is lower.")
    ] = None,
    filters: Annotated[
        str | None, typer.Option(metavar="A,B", help="Drop pairs by these filters; none: by no filter.")
    ] = None,
    augment: Annotated[
        list[str] | None,
        typer.Option(metavar="A=X", help="With --forward: vary lines first, such as typos=0.1. Repeatable."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of pairs, or an unfinished job.")
    ] = False,
    to: ToOption = None,
    from_: FromOption = None,
    beam: BeamOption = None,
    temperature: TemperatureOption = None,
    ordinary_text: OrdinaryTextOption = None,
    batch_size: BatchSizeOption = None,
    set_: DecodingOption = None,
) -> None:
    """Translate monolingual text into pairs to train on, greedily by default.

    For back-translation, choose a run that translates from the target language.

    Examples:
        nmt synthesize mono.de.gz --run reversed --name bt
        nmt synthesize mono.en --teacher ctranslate2:nllb --from en --to de --forward --name taught
    """
    from nmt.synthesis.synthesize import synthesize as translate_text

    decoding = decoding_of(
        set_, source_language=from_, target_language=to, beam_size=beam, temperature=temperature,
        ordinary_text=ordinary_text, batch_size=batch_size,
    )  # fmt: skip
    check_decoding(decoding, sample=sample)
    shares = dict(map(_share, augment or []))
    started = time.perf_counter()
    filter_names = None if filters is None else [name for name in filters.split(",") if name != "none"]
    with contextlib.closing(Bar("lines")) as bar:
        synthesis = translate_text(
            file, name, run=run, epoch=epoch, teachers=teacher or [], candidates=candidates, choose=choose,
            forward=forward, sample=sample, decoding=decoding, export=export, min_score=min_score,
            filters=filter_names, augment=shares, overwrite=overwrite, progress=bar.show,
            note=lambda text: typer.echo(f"nmt: {on_command_line([text])}", err=True),
        )  # fmt: skip
    seconds = time.perf_counter() - started
    dropped = synthesis.dropped
    for reason, count in dropped.counts.items():
        typer.echo(f"Dropped: {count:,} x {reason}")
        for place in dropped.places[reason]:
            typer.echo(f"    {printable(place)}")
    pairs, lines = synthesis.lines - dropped.counts.total(), synthesis.lines
    typer.echo(f"{counted(pairs, 'pair')} of {counted(lines, 'line')} written to {synthesis.path} in {seconds:.1f} s")


def _share(argument: str) -> tuple[str, float]:
    """Return a variant and the share of lines that it replaces, given as NAME=SHARE."""
    name, _, share = argument.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise NmtError(f"--augment needs NAME=SHARE, such as typos=0.1; received {argument!r}. Give both.") from None
