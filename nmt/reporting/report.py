"""Report of runs, from its checks to its file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nmt.errors import DataError, NmtError
from nmt.evaluation.evaluate import Progress, evaluate
from nmt.evaluation.result import EvaluationRecord
from nmt.evaluation.test_set import TEST_TEXTS
from nmt.reporting.charts import attention_figure
from nmt.reporting.facts import RunFacts
from nmt.reporting.page import AttentionMap, output_page, run_page
from nmt.runs.directory import Run
from nmt.runs.metrics import SampleMetrics
from nmt.text.translator import Translator

DEFAULT_SENTENCES = 3


def default_path(runs: Sequence[Run]) -> Path:
    """Return the file of a report unless another is given: in the folder of the first run."""
    return runs[0].folder / ("report.html" if len(runs) == 1 else "comparison.html")


def write_report(
    runs: Sequence[Run],
    path: Path,
    *,
    scored: bool = True,
    attention: bool = True,
    sentences: Sequence[str] = (),
    progress: Progress = lambda task, done, sentences: None,
    warn: Callable[[str], None] = lambda problem: None,
) -> None:
    """Write the report of a run, or of several compared, as a page of HTML that fetches nothing.

    Without scores and without attention, no TensorFlow is loaded.

    Args:
        runs: the runs, the first is the baseline of comparisons.
        path: file to write.
        scored: whether to translate and score the test split.
        attention: whether to show attention.
        sentences: raw sentences for attention; none for the first sample sentences of each run.
        progress: as of ``evaluate``.
        warn: called with what could not be computed.

    Raises:
        NmtError: for another suffix than .html, and if a file of a run is damaged.
        ConflictError: if the file exists and is no report, or has changed meanwhile.
    """
    page = output_page(path)
    facts = [RunFacts(run) for run in runs]
    trained = [fact for fact in facts if scored and fact.run.saved_weights]
    records, problems = score_runs(trained, progress, warn)
    maps, notes = draw_attention(runs, sentences, warn) if attention else ([], [])
    machine = {}
    if records or maps:
        from nmt.runtime import environment  # noqa: PLC0415 - it loads TensorFlow, which has computed by now

        machine = environment()
    page.write(run_page(facts, records, problems, maps, notes, machine).encode())


def score_runs(
    runs: Sequence[RunFacts], progress: Progress, warn: Callable[[str], None]
) -> tuple[list[EvaluationRecord], list[str]]:
    """Translate the test split of each run with its settings of decoding, and score the translations.

    Runs with the same test split are compared: the first of them is the baseline. A run that cannot be scored, because
    its dataset is no longer in ``data/`` for example, does not stop the report.

    Args:
        runs: the runs.
        progress: as of ``evaluate``.
        warn: called with each problem.

    Returns:
        Results, of which runs with the same test split share one; runs without scores, each with the reason.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for facts in runs:
        groups.setdefault(tuple(facts.manifest.files[text] for text in TEST_TEXTS), []).append(facts.name)
    records: list[EvaluationRecord] = []
    problems: list[str] = []
    for names in groups.values():
        try:
            records.append(evaluate(names, by_length=True, progress=progress).record)
        except NmtError as error:
            problems.append(f"{', '.join(names)}: {error}")
            warn(f"No scores of {problems[-1]}")
    return records, problems


class SentenceError(DataError):
    """Sentence that a run cannot translate."""


def draw_attention(
    runs: Sequence[Run], sentences: Sequence[str], warn: Callable[[str], None]
) -> tuple[list[AttentionMap], list[str]]:
    """Translate sentences with each run, and return its attention; a run without weights does not stop the report.

    Args:
        runs: the runs.
        sentences: raw sentences; none for the first sample sentences of each run.
        warn: called with each problem.

    Returns:
        Maps of the first sentence by all runs, then of the second ...; runs without maps, each with the reason.

    Raises:
        SentenceError: for a sentence without words.
    """
    maps: list[AttentionMap] = []
    notes: list[str] = []
    for run in runs:
        samples = [record for record in run.metrics() if isinstance(record, SampleMetrics)][-1:]
        texts = [*sentences] or [sample.source for last in samples for sample in last.samples[:DEFAULT_SENTENCES]]
        if not texts:
            notes.append(f"{run.name} has no sample sentences.")
            continue
        try:
            maps += _maps(run, texts)
        except SentenceError:
            raise
        except NmtError as error:
            notes.append(f"{run.name}: {error}")
            warn(f"No attention of {notes[-1]}")
    order = [*dict.fromkeys(found.sentence for found in maps)]
    return sorted(maps, key=lambda found: order.index(found.sentence)), notes


def _maps(run: Run, texts: list[str]) -> Iterator[AttentionMap]:
    translator = Translator.open(run)
    for text in texts:
        if not translator.source.encode(text):
            raise SentenceError(
                f"Sentence {text[:60]!r} has no words after the normalization of run {run.name}. A map of attention "
                "needs a word at least. Give another sentence."
            )
    translations = translator.translate_details(texts, names=[repr(text[:60]) for text in texts])
    attentions = translator.attention(texts, translations)
    for text, translation, attention in zip(texts, translations, attentions, strict=True):
        source, target = translator.source.pieces(attention.source), translator.target.pieces(attention.target)
        figure = attention_figure(attention.weights[-1].mean(axis=0), source, target)
        yield AttentionMap(run.name, text, translation.text, figure)
