"""``nmt plot by-length``: scores by source length, of a saved evaluation or a new one."""

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import RUN
from nmt.cli.plot.saving import FileOption, ShowOption, finish, path_of
from nmt.errors import DataError, NmtError, NotFoundError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.evaluation.result import EvaluationRecord

MAX_BYTES = 64 * 2**20
AGAIN = "Make it with: nmt evaluate --by-length --json > scores.json"


def by_length(
    file: Annotated[
        Path | None, typer.Argument(help="Evaluation, saved by nmt evaluate --by-length --json.", metavar="[FILE]")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN[:EPOCH]",
            help="Run to evaluate on its test split. Default: the run trained last. Repeat to compare.",
            rich_help_panel=RUN,
        ),
    ] = None,
    output: FileOption = None,
    show: ShowOption = False,
) -> None:
    """Draw BLEU and chrF by source length.

    Without FILE the runs translate the test split of their dataset, as nmt evaluate does. With FILE nothing is
    translated. Prints the path of the figure.

    Examples:
        nmt plot by-length --run base --run wide
        nmt evaluate --run base --by-length --json > scores.json
        nmt plot by-length scores.json
    """
    path = path_of("by-length", output)
    if file is not None and run:
        raise NmtError(
            f"--run has no effect: {file} holds the scores, so nothing is translated. Leave out --run or the file."
        )
    if file is None:
        record, when = _evaluate(run or []), datetime.now()
    else:
        record, when = read_evaluation(file), datetime.fromtimestamp(file.stat().st_mtime)
    finish(figure_by_length(record, f"{when.date()}"), path, show=show)


def figure_by_length(record: "EvaluationRecord", when: str) -> "Figure":
    """Return the figure of the scores by source length, with the date that its title says."""
    from nmt.plotting.by_length import draw_by_length
    from nmt.plotting.figures import empty_figure

    test_set, buckets = record.test_set, [bucket.scores for bucket in record.by_length]
    name = f"test split of {test_set.dataset}" if test_set.dataset else test_set.source
    figure = empty_figure()
    draw_by_length(
        figure,
        f"{name} · {test_set.sentences:,} sentences · {when}",
        [bucket.lengths for bucket in record.by_length],
        [bucket.sentences for bucket in buckets],
        {
            metric: {
                system: [bucket.systems[system][metric].score for bucket in buckets] for system in buckets[0].systems
            }
            for metric in buckets[0].signatures
        },
    )
    return figure


def _evaluate(runs: list[str]) -> "EvaluationRecord":
    """Translate and score the test split."""
    from nmt.cli.commands.evaluate import TerminalProgress
    from nmt.evaluation.evaluate import evaluate

    with contextlib.closing(TerminalProgress(None)) as progress:
        return evaluate(runs, resamples=0, examples=0, metrics=["bleu"], by_length=True, progress=progress).record


def read_evaluation(path: Path) -> "EvaluationRecord":
    """Return the evaluation that ``nmt evaluate --json`` printed into a file.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is none, or has no scores by length.
    """
    from pydantic import ValidationError

    from nmt.evaluation.result import EvaluationRecord

    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}. {AGAIN}") from None
    try:
        if len(content) > MAX_BYTES:
            raise DataError(f"{path} is no evaluation: it has more than {MAX_BYTES:,} bytes. {AGAIN}")
        record = EvaluationRecord.model_validate_json(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))[:100]
        raise DataError(
            f"{path} is no evaluation: {place}{': ' if place else ''}{problem['msg'][:100]}. {AGAIN}"
        ) from None
    if not record.by_length:
        raise DataError(f"{path} has no scores by source length, for it was made without --by-length. {AGAIN}")
    return record
