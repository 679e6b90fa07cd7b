"""Scores of runs on their test splits: by ``nmt evaluate``, or from a file that it wrote."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from nmt.errors import DataError, NmtError, NotFoundError
from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.progress import EvaluationProgress
from nmt.evaluation.result import EvaluationRecord
from nmt.evaluation.test_set import TEST_TEXTS
from nmt.reporting.facts import RunFacts
from nmt.storage.json_file import MAX_JSON


class ScoreReport(NamedTuple):
    """Results of evaluations, and what could not be scored."""

    records: list[EvaluationRecord]
    """Results; runs with the same test split share one."""
    problems: list[str]
    """Runs without scores, each with the reason in words."""


NO_SCORES = ScoreReport([], [])


def score_runs(runs: Sequence[RunFacts], progress: EvaluationProgress, warn: Callable[[str], None]) -> ScoreReport:
    """Translate the test split of each run with its settings of decoding, and score the translations.

    Runs with the same test split are compared: the first of them is the baseline. A run that cannot be scored, because
    its dataset is no longer in ``data/`` for example, does not stop the report.

    Args:
        runs: the runs.
        progress: observer of each evaluation.
        warn: called with each problem.
    """
    groups: dict[tuple[str, ...], list[RunFacts]] = {}
    for facts in runs:
        split = tuple(facts.manifest.files[text] for text in TEST_TEXTS)
        groups.setdefault(split, []).append(facts)
    records, problems = [], []
    for group in groups.values():
        try:
            records.append(evaluate([facts.name for facts in group], by_length=True, progress=progress).record)
        except NmtError as error:
            problems.append(f"{', '.join(facts.name for facts in group)}: {error}")
            warn(f"No scores of {problems[-1]}")
    return ScoreReport(records, problems)


def read_scores(path: Path, runs: Sequence[RunFacts]) -> ScoreReport:
    """Return the scores in a file that ``nmt evaluate --json`` wrote.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if it is damaged, or has another format.
        NmtError: if it scores none of the runs.
    """
    if not path.is_file():
        raise NotFoundError(
            f"There is no file {path} of scores. Scores of a report are what nmt evaluate --json prints. Write it: nmt "
            f"evaluate --run {runs[0].name} --json > {path}"
        )
    with path.open("rb") as file:
        content = file.read(MAX_JSON + 1)
    try:
        record = EvaluationRecord.model_validate(json.loads(content))
    except (ValueError, RecursionError) as error:
        problem = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc']))[:100]}: {first['msg'][:200]}"
        raise DataError(
            f"{path} is not what nmt evaluate --json prints: {problem}. Write it again: nmt evaluate --run "
            f"{runs[0].name} --json > FILE"
        ) from None
    scored, names = {system.run for system in record.systems}, {facts.name for facts in runs}
    if not scored & names:
        given = ", ".join(sorted(system.name for system in record.systems))
        raise NmtError(
            f"{path} scores {given}; the report is of {', '.join(sorted(names))}. Scores of a report are those of its "
            f"runs. Give another file, or add --run {next((run for run in scored if run), 'RUN')}."
        )
    return ScoreReport([record], [])
