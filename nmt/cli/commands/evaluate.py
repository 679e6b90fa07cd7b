"""``nmt evaluate``: how good translations are, by the metrics the field publishes, several systems side by side."""

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    OUTPUT,
    RUN,
    BackendOption,
    BatchSizeOption,
    BeamOption,
    CoveragePenaltyOption,
    EpochOption,
    JsonOption,
    LengthPenaltyOption,
    PrecisionOption,
    option_name,
    refuse_idle_beam_options,
)
from nmt.errors import NmtError
from nmt.evaluation.progress import EvaluationProgress

if TYPE_CHECKING:
    from tqdm import tqdm

    from nmt.evaluation.overlap import TrainingOverlap
    from nmt.evaluation.result import System


FILES, SCORES = "Test set and translations", "Scores"  # help sections


def evaluate(
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN[:EPOCH]",
            help="Run in checkpoints/, such as base or base:best. Default: the run trained last. Repeat to compare.",
            rich_help_panel=RUN,
        ),
    ] = None,
    epoch: EpochOption = None,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option(
            "--hypothesis",
            metavar="FILE",
            help="Translations of any system, one a line. Repeat to compare.",
            rich_help_panel=FILES,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="FILE",
            help="Source sentences, one a line. Default: the test split of the run's dataset.",
            rich_help_panel=FILES,
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="FILE",
            help="Reference translations, one a line. Repeat for several references.",
            rich_help_panel=FILES,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="bleu, chrf, chrf++ or ter. Repeatable. Default: bleu, chrf and ter.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    tokenize: Annotated[
        str,
        typer.Option(
            "--tokenize",
            metavar="NAME",
            help="Tokenization of BLEU: 13a, intl, zh, char or none.",
            rich_help_panel=SCORES,
        ),
    ] = "13a",
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples",
            min=0,
            metavar="N",
            help="Bootstrap resamples for confidence intervals and p-values. 0 leaves both out.",
            rich_help_panel=SCORES,
        ),
    ] = 1000,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the translations of the run, one a line.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write a page of HTML with scores and all translations.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    examples: Annotated[
        int,
        typer.Option(
            "--examples",
            min=0,
            metavar="N",
            help="Show the N worst and the N best sentences.",
            rich_help_panel=OUTPUT,
        ),
    ] = 3,
    by_length: Annotated[
        bool,
        typer.Option(
            "--by-length",
            help="Score sentences by source length too: BLEU and chrF of up to six buckets.",
            rich_help_panel=SCORES,
        ),
    ] = False,
    as_json: JsonOption = False,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    batch_size: BatchSizeOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = None,
    export: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="NAME",
            help="Export to CTranslate2: its name in the first run, or a folder. Repeat to compare.",
            rich_help_panel=RUN,
        ),
    ] = None,
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
    from nmt.evaluation.text import terminal_report
    from nmt.storage.atomic import write_text

    runs, hypotheses = run or [], hypothesis or []
    decoding = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "batch_size": batch_size, "precision": precision,
    }  # fmt: skip
    _check_options([*runs, *(export or [])], hypotheses, output, epoch, decoding)
    if (backend == "ctranslate2" or export) and precision:
        raise NmtError(
            f"--precision {precision} is for TensorFlow; received it with "
            f"{'--export' if export else '--backend ctranslate2'}. An export has the number format that it was written "
            "in. Leave it out."
        )
    if report is not None:  # the only use of the library for templates
        from nmt.reporting.page import check_page, evaluation_page

        check_page(report)
    with contextlib.closing(TerminalProgress(output)) as progress:
        evaluation = run_evaluation(
            runs, hypotheses, source=source, references=reference or [], epoch=epoch, decoding=decoding,
            metrics=metric or [], tokenization=tokenize, resamples=resamples, examples=examples,
            by_length=by_length, progress=progress, backend=backend or "tensorflow", exports=export or [],
        )  # fmt: skip
    record = evaluation.record
    width = shutil.get_terminal_size().columns
    typer.echo(record.model_dump_json(indent=2) if as_json else terminal_report(record, width))
    if report is not None:
        write_text(report, evaluation_page(evaluation))


def _check_options(
    runs: list[str], hypotheses: list[str], output: Path | None, epoch: str | None, decoding: dict[str, Any]
) -> None:
    """Refuse options that contradict each other.

    Raises:
        NmtError: naming the first of them.
    """
    refuse_idle_beam_options(decoding)
    if output is not None and (hypotheses or len(runs) > 1):
        raise NmtError(
            f"--output was given with {', '.join([*runs, *hypotheses])}; it takes the translations of one run alone. "
            "Leave --output out."
        )
    options = ["--epoch"] * (epoch is not None) + [
        option_name(key) for key, value in decoding.items() if value is not None
    ]
    if options and hypotheses and not runs:
        raise NmtError(
            f"{options[0]} has no effect: only translations to score were given, so nothing is translated. Add --run, "
            f"or leave {options[0]} out."
        )


class TerminalProgress(EvaluationProgress):
    """Reports on standard error, with a bar, and writes the translations to a file."""

    def __init__(self, output: Path | None) -> None:
        """Take the file for the translations, None for none."""
        self.output = output
        self.bar: tqdm | None = None

    def compared_with_training(self, overlap: "TrainingOverlap", sentences: int) -> None:
        """Warn of sentences that were trained on."""
        if overlap.numbers:
            count = len(overlap.numbers)
            typer.echo(f"nmt: {count:,} of {sentences:,} source sentences were trained on", err=True)

    def translating(self, system: str, done: int, sentences: int) -> None:
        """Advance the bar."""
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=sentences, desc=system, unit=" sentences", disable=None, leave=False, file=sys.stderr)
        self.bar.update(done - self.bar.n)

    def translated(self, system: "System", translations: list[str]) -> None:
        """Report the speed and write the translations."""
        self.close()
        typer.echo(
            f"{system.name}: {len(translations):,} sentences translated in {system.seconds:.1f} s "
            f"({system.sentences_per_second:,.1f} a second)",
            err=True,
        )
        if self.output is not None:
            from nmt.storage.atomic import write_text

            write_text(self.output, "".join(f"{translation}\n" for translation in translations))

    def scoring(self) -> None:
        """Report that scoring begins."""
        typer.echo("Scoring ...", err=True)

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
