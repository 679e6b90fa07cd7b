"""``nmt evaluate``: how good translations are, by the metrics the field publishes, several systems side by side."""

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.cli.bars import Bar
from nmt.cli.options import BackendOption, EpochOption, JsonOption, check_decoding, decoding_options
from nmt.config.decoding import BEAM, GREEDY, option_of
from nmt.errors import NmtError
from nmt.evaluation.metrics import DEFAULT_TOKENIZATION, METRICS, TOKENIZATIONS, USUAL_METRICS


def _listed(names: Iterable[str], joint: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {joint} {last}"


@decoding_options(GREEDY, BEAM)
def evaluate(
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN[:EPOCH]",
            help="Run in checkpoints/, such as base or base:best. Default: the run trained last. Repeat to compare.",
        ),
    ] = None,
    epoch: EpochOption = None,
    export: Annotated[
        list[str] | None,
        typer.Option(help="Export to CTranslate2: its name in the first run, or a folder. Repeat to compare."),
    ] = None,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Translations of any system, one a line. Repeat to compare."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Source sentences, one a line. Default: the test split of the run's dataset."
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Reference translations, one a line. Repeat for several references."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help=f"{_listed(METRICS, 'or')}. Repeatable. Default: {_listed(USUAL_METRICS, 'and')}."),
    ] = None,
    tokenize: Annotated[
        str, typer.Option(help=f"Tokenization of BLEU: {_listed(TOKENIZATIONS, 'or')}.")
    ] = DEFAULT_TOKENIZATION,
    resamples: Annotated[
        int,
        typer.Option(min=0, help="Bootstrap resamples for confidence intervals and p-values. 0 leaves both out."),
    ] = 1000,
    by_length: Annotated[
        bool,
        typer.Option("--by-length", help="Score sentences by source length too: BLEU and chrF of up to six buckets."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the translations of the run, one a line.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page of HTML with scores and all translations.")] = None,
    as_json: JsonOption = False,
    backend: BackendOption = "tensorflow",
    **decoding: Any,
) -> None:
    """Score translations of a test set with BLEU, chrF and TER.

    Several systems are compared: the first is the baseline, and a paired bootstrap tests the differences from it. Runs
    come first, then files of translations. Test sentences that are in the training split are counted, and scores
    without them are given too. Files may be gzipped.

    Search options that are left out have the values of the run's configuration, section decoding.

    Examples:
        nmt evaluate --run base --report base.html
        nmt evaluate --run base --run wide --run wide:best
        nmt evaluate --source a.en --reference a.de --beam 5
        nmt evaluate --hypothesis theirs.de --reference a.de
        nmt evaluate --run base --run wide --by-length
        nmt evaluate --run base --export ctranslate2-int8
    """
    from nmt.evaluation.evaluate import evaluate as run_evaluation
    from nmt.evaluation.result import print_evaluation
    from nmt.storage.atomic import write_text

    runs, hypotheses, exports = run or [], hypothesis or [], export or []
    check_decoding(decoding)
    translated = [*runs, *exports]
    if output is not None and (hypotheses or len(translated) > 1):
        raise NmtError(
            f"--output was given with {', '.join([*translated, *hypotheses])}; it takes the translations of one run "
            "alone. Leave --output out."
        )
    idle = [option_of(key) for key, value in {"epoch": epoch, **decoding}.items() if value is not None]
    if idle and hypotheses and not translated:
        raise NmtError(
            f"{idle[0]} has no effect: only translations to score were given, so nothing is translated. Add --run, or "
            f"leave {idle[0]} out."
        )
    if report is not None:  # the only use of the library for templates
        from nmt.reporting.page import check_page, evaluation_page

        check_page(report)
    with contextlib.closing(Bar("sentences")) as bar:
        evaluation = run_evaluation(
            runs, hypotheses, source=source, references=reference or [], epoch=epoch, decoding=decoding,
            metrics=metric or [], tokenization=tokenize, resamples=resamples, by_length=by_length,
            progress=bar.show, backend=backend, exports=exports,
        )  # fmt: skip
    if output is not None:
        for translations in evaluation.translations.values():
            write_text(output, "".join(f"{translation}\n" for translation in translations))
    if report is not None:
        write_text(report, evaluation_page(evaluation))
    if as_json:
        typer.echo(evaluation.record.model_dump_json(indent=2))
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else 120
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        print_evaluation(evaluation.record, console)
