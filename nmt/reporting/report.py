"""Writing of run reports: scores, attention maps, and the HTML file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nmt.data.manifest import read_manifest
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
    """Return the default path of a report, in the folder of the first run."""
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
    """Write a report of a run, or of several compared runs, as an HTML page without external resources.

    Without scores and attention, TensorFlow is not loaded.

    Args:
        runs: the runs; the first is the baseline.
        path: output file.
        scored: whether to translate and score the test split.
        attention: whether to show attention maps.
        sentences: raw sentences for attention maps; empty for the first sample sentences of each run.
        progress: progress callback of ``evaluate``.
        warn: called with a message about each part that could not be computed.

    Raises:
        NmtError: if the suffix is not .html or .htm, or a file of a run is damaged.
        ConflictError: if the file exists and is not a report, or has changed meanwhile.
    """
    page = output_page(path)
    facts = [RunFacts(run) for run in runs]
    trained = [fact for fact in facts if scored and fact.run.saved_weights]
    records, problems = score_runs(trained, progress, warn)
    maps, notes = draw_attention(runs, sentences, warn) if attention else ([], [])
    machine = {}
    if records or maps:
        from nmt.runtime import environment  # noqa: PLC0415 - loads TensorFlow, which is loaded by now

        machine = environment()
    page.write(run_page(facts, records, problems, maps, notes, machine).encode())


def score_runs(
    runs: Sequence[RunFacts], progress: Progress, warn: Callable[[str], None]
) -> tuple[list[EvaluationRecord], list[str]]:
    """Translate the test split of each run with its decoding settings, and score the translations.

    Runs with the same test split are compared with the first of them. A run that cannot be scored, for example because
    its dataset is no longer in ``data/``, does not stop the report.

    Args:
        runs: the runs.
        progress: progress callback of ``evaluate``.
        warn: called with each problem.

    Returns:
        A result for each test split; names of the runs that could not be scored, with the reasons.
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
    """Error for a sentence that a run cannot translate."""


def draw_attention(
    runs: Sequence[Run], sentences: Sequence[str], warn: Callable[[str], None]
) -> tuple[list[AttentionMap], list[str]]:
    """Translate sentences with each run, and return attention maps. A run without weights does not stop the report.

    Args:
        runs: the runs.
        sentences: raw sentences; empty for the first sample sentences of each run.
        warn: called with each problem.

    Returns:
        Maps of the first sentence by all runs, then of the second and so on; names of runs without maps, with the
        reasons.

    Raises:
        SentenceError: for a sentence without words.
    """
    maps: list[AttentionMap] = []
    notes: list[str] = []
    for run in runs:
        if read_manifest(run.dataset_path).is_multilingual:
            notes.append(f"{run.name} translates between several language pairs. nmt plot attention --to shows one.")
            continue
        samples = [record for record in run.metrics() if isinstance(record, SampleMetrics)][-1:]
        texts = [*sentences] or [sample.source for last in samples for sample in last.samples[:DEFAULT_SENTENCES]]
        if not texts:
            notes.append(f"{run.name} has no sample sentences.")
            continue
        try:
            maps += _attention_maps(run, texts)
        except SentenceError:
            raise
        except NmtError as error:
            notes.append(f"{run.name}: {error}")
            warn(f"No attention of {notes[-1]}")
    order = [*dict.fromkeys(attention_map.sentence for attention_map in maps)]
    return sorted(maps, key=lambda attention_map: order.index(attention_map.sentence)), notes


def _attention_maps(run: Run, texts: list[str]) -> Iterator[AttentionMap]:
    translator = Translator.open(run)
    for text in texts:
        if not translator.source.encode(text):
            raise SentenceError(
                f"Sentence {text[:60]!r} has no words after the normalization of run {run.name}. An attention map "
                "needs at least one word. Give another sentence."
            )
    translations = translator.translate_details(texts, names=[repr(text[:60]) for text in texts])
    attentions = translator.attention(texts, translations)
    for text, translation, attention in zip(texts, translations, attentions, strict=True):
        source, target = translator.source.pieces(attention.source), translator.target.pieces(attention.target)
        figure = attention_figure(attention.weights[-1].mean(axis=0), source, target)
        yield AttentionMap(run.name, text, translation.text, figure)
