"""``nmt evaluate``: scores of runs, exports and files of translations, side by side."""

import contextlib
import gzip
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.bars import Bar
from nmt.cli.options import (
    BatchSizeOption,
    BeamOption,
    DecodingOption,
    EpochOption,
    FromOption,
    JsonOption,
    OrdinaryTextOption,
    ToOption,
    check_decoding,
    decoding_of,
)
from nmt.errors import NmtError
from nmt.evaluation.metrics import METRICS, TOKENIZATIONS, USUAL_METRICS
from nmt.message import Argument, Settings


def _listed(names: Iterable[str], joint: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {joint} {last}"


def evaluate(
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="Run, or RUN:EPOCH. Default: the run trained last. Repeat to compare."),
    ] = None,
    epoch: EpochOption = None,
    export: Annotated[
        list[str] | None, typer.Option(help="Export: name in the first run, or folder. Repeatable.")
    ] = None,
    teacher: Annotated[
        str | None, typer.Option(metavar="RUN", help="Run that the first --run has learned from: shows the gap to it.")
    ] = None,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Translations of any system, one per line. Repeat to compare."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="FILE", help="Source sentences, one per line. Default: the run's test split.")
    ] = None,
    reference: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Reference translations, one per line. Repeatable.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help=f"{_listed(METRICS, 'or')}. Repeatable. Default: {_listed(USUAL_METRICS, 'and')}."),
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"BLEU by {_listed(TOKENIZATIONS, 'or')}. Default: by language."),
    ] = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF, like sacrebleu -lc; TER always does.")
    ] = False,
    resamples: Annotated[int, typer.Option(min=0, help="Resamples for intervals and p-values. 0: none.")] = 1000,
    by_length: Annotated[bool, typer.Option("--by-length", help="Also score sentences by source length.")] = False,
    stress: Annotated[bool, typer.Option("--stress", help="Also score variants with capitals, typos or URLs.")] = False,
    glossary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also score with these terms: share kept, change of scores.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Fit the confidence in translations, and store it in the run.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the translations of the run, one per line. FILE.gz: gzipped."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with scores and all translations.")] = None,
    as_json: JsonOption = False,
    to: ToOption = None,
    from_: FromOption = None,
    beam: BeamOption = None,
    ordinary_text: OrdinaryTextOption = None,
    batch_size: BatchSizeOption = None,
    set_: DecodingOption = None,
) -> None:
    """Score translations of a test set. Further systems are compared with the first by bootstrap.

    Examples:
        nmt evaluate --run base --run wide:best --report compared.html
    """
    from nmt.data.sources.text_file import TextFile
    from nmt.evaluation.evaluate import evaluate as run_evaluation
    from nmt.evaluation.result import print_evaluation
    from nmt.storage.outputs import OutputFile

    runs, hypotheses, exports = run or [], hypothesis or [], export or []
    decoding = decoding_of(
        set_, source_language=from_, target_language=to, beam_size=beam,
        ordinary_text=ordinary_text, batch_size=batch_size,
    )  # fmt: skip
    check_decoding(decoding)
    translated = [*runs, *exports]
    if output is not None and (hypotheses or len(translated) > 1):
        raise NmtError(
            f"--output was given with {', '.join([*translated, *hypotheses])}, but it holds the translations of only "
            "one run. Leave --output out."
        )
    if hypotheses and not translated and (epoch is not None or decoding):
        keys = Settings({f"decoding.{key}": value for key, value in decoding.items()})
        idle = Argument("epoch", epoch) if epoch is not None else keys
        raise NmtError(
            idle, " has no effect: only translations to score were given, so nothing is translated. Add --run, or "
            "leave ", idle, " out."
        )  # fmt: skip
    inputs = [Path(name) for name in [source, *(reference or []), *hypotheses, glossary] if name is not None]
    outputs = [path for path in (output, report) if path is not None]
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise NmtError(f"--output and --report are both {report}. They must be different files. Give two names.")
    translations_file = OutputFile(output, inputs=inputs) if output is not None else None
    if report is not None:  # only reports load the library for templates
        from nmt.reporting.page import evaluation_page, output_page

        page = output_page(report, inputs)
    with contextlib.closing(Bar("sentences")) as bar:
        evaluation = run_evaluation(
            runs, hypotheses, source=source, references=reference or [], epoch=epoch, decoding=decoding,
            metrics=metric or [], tokenization=tokenize, lowercase=lowercase, resamples=resamples,
            by_length=by_length, stress=stress, glossary=glossary, calibrate=calibrate, progress=bar.show,
            exports=exports, teacher=teacher,
        )  # fmt: skip
    if translations_file is not None:
        *_, translations = evaluation.translations.values()  # the last translations use the glossary, if there is one
        content = "".join(f"{translation}\n" for translation in translations).encode()
        is_gzipped = TextFile(translations_file.path).is_gzipped
        translations_file.write(gzip.compress(content, mtime=0) if is_gzipped else content)
    if report is not None:
        page.write(evaluation_page(evaluation).encode())
    if as_json:
        typer.echo(evaluation.record.model_dump_json(indent=2))
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else 120
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        print_evaluation(evaluation.record, console)
