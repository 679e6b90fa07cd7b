"""``nmt evaluate``: how good translations are, by the metrics the field publishes, several systems side by side."""

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    BatchSizeOption,
    BeamOption,
    CoveragePenaltyOption,
    EpochOption,
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


def evaluate(
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN[:EPOCH]",
            help="A run in checkpoints/, as base or base:best; by default the latest. Again for each to compare.",
        ),
    ] = None,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option("--hypothesis", metavar="FILE", help="Translations to score as they are, a sentence a line."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Sentences to translate; by default the run's own test split."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", metavar="FILE", help="Their translations; again for each of several references."),
    ] = None,
    epoch: EpochOption = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="bleu, chrf, chrf++ or ter; again for several. By default bleu, chrf and ter."),
    ] = None,
    tokenize: Annotated[str, typer.Option(help="Of BLEU: 13a, intl, zh, char or none.")] = "13a",
    resamples: Annotated[
        int, typer.Option(min=0, help="Of the bootstrap, for intervals and p-values; 0 leaves them out.")
    ] = 1000,
    examples: Annotated[int, typer.Option(min=0, help="So many of the worst and of the best sentences.")] = 3,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    batch_size: BatchSizeOption = None,
    precision: PrecisionOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Translations of the run, one a line.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="A page with scores and all translations: FILE.html or FILE.md.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Translate a test set and score it with BLEU, chrF and TER; test whether other systems differ from the first.

    Runs come first, then files of translations. Sentences that stand in training are found, and the scores given
    without them too. Files may be gzipped. What is not given here is as in the section decoding of a run's
    configuration.
    """
    from nmt.evaluation.evaluate import evaluate as run_evaluation
    from nmt.evaluation.reports.text import terminal_report
    from nmt.storage.atomic import write_text

    runs, hypotheses = run or [], hypothesis or []
    decoding = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "batch_size": batch_size, "precision": precision,
    }  # fmt: skip
    _check_options(runs, hypotheses, output, epoch, decoding)
    if report is not None:  # the only use of the library for templates
        from nmt.evaluation.reports.page import check_report_format, render_report

        check_report_format(report.suffix)
    with contextlib.closing(TerminalProgress(output)) as progress:
        evaluation = run_evaluation(
            runs, hypotheses, source=source, references=reference or [], epoch=epoch, decoding=decoding,
            metrics=metric or [], tokenization=tokenize, resamples=resamples, examples=examples,
            progress=progress,
        )  # fmt: skip
    record = evaluation.record
    width = shutil.get_terminal_size().columns
    typer.echo(record.model_dump_json(indent=2) if as_json else terminal_report(record, width))
    if report is not None:
        write_text(report, render_report(evaluation, report.suffix))


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
