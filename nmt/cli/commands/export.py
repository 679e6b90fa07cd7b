"""``nmt export``: conversion of a run to the format of another program."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import EpochOption, RunOption
from nmt.errors import counted

RARE = "Model card and proof"


def export(
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="ctranslate2, argos, saved-model, huggingface or bergamot.")
    ],
    run: RunOption = None,
    epoch: EpochOption = None,
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Number format of ctranslate2 or argos: float32, int8, int8_float32, int16, float16, bfloat16 ... "
            "Default: float32; for argos int8.",
        ),
    ] = None,
    vocabulary_map: Annotated[
        bool,
        typer.Option(
            "--vocabulary-map",
            help="For ctranslate2: choose only among target tokens that were aligned with the sentence's in training.",
        ),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="For bergamot: add a page that translates in the browser."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder to write. Default: checkpoints/RUN/exports/FORMAT."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing export.")] = False,
    licence: Annotated[str | None, typer.Option(help="Licence of the model.", rich_help_panel=RARE)] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="XX-YY",
            help="Source and target, such as en-de; of several pairs, the one to export. Default: the dataset's.",
            rich_help_panel=RARE,
        ),
    ] = None,
    allow_different: Annotated[
        int,
        typer.Option(
            min=0, help="Accept N validation sentences whose translation in float32 differs.", rich_help_panel=RARE
        ),
    ] = 0,
    tolerance: Annotated[
        float,
        typer.Option(min=0, metavar="BLEU", help="Accept this loss of BLEU from quantization.", rich_help_panel=RARE),
    ] = 0.5,
) -> None:
    """Export a run to another program, and check that the translations are the same.

    The exported model translates the validation sentences greedily. In float32 every translation must equal the run's;
    a quantized model may lose a little BLEU. An export that differs is not written. Its README.md is a model card.

    Examples:
        nmt export --to ctranslate2
        nmt export --run base --to ctranslate2 --quantization int8
        nmt export --run base --to argos --licence "CC BY 4.0"
        nmt export --run base --to saved-model --output served/base
        nmt export --run student --to bergamot --demo
    """
    from nmt.export.export import export_run, find_exporter

    exporter = find_exporter(to, quantization, with_map=vocabulary_map, with_demo=demo)

    from nmt.data.languages import language_pair
    from nmt.export.verification import OURS, Tolerance
    from nmt.runs.directory import find_run

    exported = export_run(
        find_run(run),
        exporter,
        epoch=epoch,
        output=output,
        overwrite=overwrite,
        licence=licence,
        languages=None if languages is None else language_pair(languages),
        tolerance=Tolerance(allow_different, tolerance),
        report=lambda step: typer.echo(f"nmt: {step}", err=True),
    )
    comparison = exported.comparison
    equal = comparison.sentences - comparison.different
    typer.echo(f"Equal to nmt: {equal:,} of {counted(comparison.sentences, 'sentence')}")
    for pair, scores in comparison.scores.items():
        bleu = {name: system["BLEU"].score for name, system in scores.systems.items()}
        split = f"validation split, {pair}" if len(comparison.scores) > 1 else "validation split"
        typer.echo(f"BLEU on the {split}: nmt {bleu[OURS]:.2f}, {exporter.consumer} {bleu[exporter.consumer]:.2f}")
    typer.echo(f"Written to {exported.folder} ({exported.bytes / 1e6:,.1f} MB)")
