"""Report of runs, from its checks to its file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.errors import ConflictError, NmtError
from nmt.evaluation.progress import EvaluationProgress
from nmt.reporting.attention import NO_ATTENTION, draw_attention
from nmt.reporting.facts import read_facts
from nmt.reporting.page import GENERATOR, render
from nmt.reporting.scores import NO_SCORES, read_scores, score_runs
from nmt.runs.directory import Run
from nmt.storage.atomic import write_text

ONE, SEVERAL = "report.html", "comparison.html"
HEAD_BYTES = 4096  # of a report that tell what it is


def default_path(runs: Sequence[Run]) -> Path:
    """Return the file of a report unless another is given: in the folder of the first run."""
    return runs[0].folder / (ONE if len(runs) == 1 else SEVERAL)


def check_path(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that is no page, or that would replace another file than a report.

    Raises:
        NmtError: for another suffix than .html.
        ConflictError: if the file exists and is no report, unless ``overwrite``.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise NmtError(f"The report cannot be written to {str(path)!r}: it is a page of HTML. Give a name in .html")
    if path.is_dir() or (path.exists() and not overwrite and not _is_report(path)):
        raise ConflictError(
            f"{path} exists and is no report of nmt. A report replaces an earlier report alone. Choose another file "
            "with --output, or add --overwrite."
        )


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return f'<meta name="generator" content="{GENERATOR}'.encode() in file.read(HEAD_BYTES)


def write_report(
    runs: Sequence[Run],
    path: Path,
    *,
    scored: bool = True,
    scores_of: Path | None = None,
    attention: bool = True,
    sentences: Sequence[str] = (),
    overwrite: bool = False,
    progress: EvaluationProgress | None = None,
    warn: Callable[[str], None] = lambda problem: None,
) -> None:
    """Write the report of a run, or of several compared, as a page of HTML that fetches nothing.

    Without scores to compute and without attention, no TensorFlow is loaded.

    Args:
        runs: the runs, the first is the baseline of comparisons.
        path: file to write.
        scored: whether to translate and score the test split.
        scores_of: file that ``nmt evaluate --json`` wrote, whose scores are shown instead.
        attention: whether to show attention.
        sentences: raw sentences for attention; none for the first sample sentences of each run.
        overwrite: replace a file that is no report.
        progress: observer of the evaluation.
        warn: called with what could not be computed.

    Raises:
        NmtError: for a file or scores that do not fit, and if a file of a run is damaged.
    """
    check_path(path, overwrite=overwrite)
    facts = [read_facts(run) for run in runs]
    scores = NO_SCORES
    if scores_of is not None:
        scores = read_scores(scores_of, facts)
    elif scored:
        trained = [fact for fact in facts if fact.run.weights_epochs or fact.run.step_weights]
        scores = score_runs(trained, progress or EvaluationProgress(), warn) if trained else NO_SCORES
    maps = draw_attention(facts, sentences, warn) if attention else NO_ATTENTION
    machine = {}
    if (scores.records and scores_of is None) or maps.maps:
        from nmt.runtime import environment  # noqa: PLC0415 - it loads TensorFlow, which has computed by now

        machine = environment()
    write_text(path, render(facts, scores, maps, machine))
