"""Evaluation of systems side by side on a test set: translations, scores, tests of differences, overlap with training.

This is what ``nmt evaluate`` runs; the command adds only options and printing.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nmt.decoding.exported import CTRANSLATE2, check_backend
from nmt.errors import NmtError
from nmt.evaluation.overlap import TrainingOverlap, compare_with_training
from nmt.evaluation.progress import EvaluationProgress
from nmt.evaluation.result import (
    Evaluation,
    EvaluationRecord,
    EvaluationSetRecord,
    EvaluationTexts,
    System,
    pick_examples,
)
from nmt.evaluation.scoring import (
    DEFAULT_METRICS,
    DEFAULT_RESAMPLES,
    DEFAULT_TOKENIZATION,
    Scores,
    check_bootstrap_memory,
    check_metrics,
    score_by_length,
    score_subset,
    score_systems,
    sentence_scores,
)
from nmt.evaluation.systems import RunSystem, find_exported_system, find_run_system, translate
from nmt.evaluation.test_set import EvaluationSet, find_and_read, read_test_files, read_test_split
from nmt.runs.weights import choose_epoch
from nmt.storage.atomic import sha256
from nmt.version import version

DEFAULT_EXAMPLES = 3


def evaluate(
    runs: Sequence[str] = (),
    hypotheses: Sequence[str] = (),
    *,
    source: str | None = None,
    references: Sequence[str] = (),
    epoch: str | None = None,
    decoding: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = (),
    tokenization: str = DEFAULT_TOKENIZATION,
    resamples: int = DEFAULT_RESAMPLES,
    examples: int = DEFAULT_EXAMPLES,
    by_length: bool = False,
    backend: str = "tensorflow",
    exports: Sequence[str] = (),
    progress: EvaluationProgress | None = None,
) -> Evaluation:
    """Translate a test set with runs, and score their translations and those of files.

    Args:
        runs: runs in ``checkpoints/``, each as RUN or RUN:EPOCH. The first is the baseline.
        hypotheses: files of translations, one per line, in the order of the test set. If neither runs nor hypotheses
            are given, the run that trained last is scored.
        source: file of source sentences; None for the test split of the runs' dataset.
        references: files of reference translations of ``source``.
        epoch: weights of the runs that name no epoch: a number, "best", "last" or "average"; None for their default.
        decoding: values that replace keys of the runs' section decoding, such as {"beam_size": 5}.
        metrics: names in ``nmt.evaluation.scoring.METRICS``; empty for bleu, chrf and ter.
        tokenization: tokenization of BLEU, one of ``nmt.evaluation.scoring.TOKENIZATIONS``.
        resamples: number of bootstrap resamples; 0 for scores alone.
        examples: number of worst and of best sentences of each system to pick.
        by_length: score buckets of like source length too, with BLEU and chrF.
        backend: "tensorflow", or "ctranslate2": the export of each run that was written last translates.
        exports: exports to score besides the runs: names in the first run, or folders. Without ``runs`` they are
            scored alone.
        progress: observer.

    Raises:
        NmtError: for arguments that contradict each other, unknown metrics, more resamples than fit into memory, and
            ``by_length`` without sources.
        NotFoundError: if a run, its weights, its dataset or a file is missing.
        ConflictError: if runs have different test splits, or a dataset has changed since a run was trained on it.
        ConfigError: for a value that the section decoding does not allow.
        DataError: if a file is damaged, not UTF-8, or has another number of lines than the test set.
    """
    progress = progress or EvaluationProgress()
    metrics = check_metrics(metrics or DEFAULT_METRICS, tokenization)
    check_backend(backend)
    names: list[str | None] = [*runs] if runs or hypotheses or exports else [None]
    if backend == CTRANSLATE2:
        run_systems = [find_exported_system(name, epoch, None, decoding or {}) for name in names]
    else:
        run_systems = [find_run_system(name, epoch, decoding or {}) for name in names]
    for export in exports:
        name = runs[0] if runs and Path(export).name == export else None
        run_systems.append(find_exported_system(name, epoch, export, decoding or {}))
    _refuse_repeats([*(system.name for system in run_systems), *hypotheses])
    test_set = _find_test_set(run_systems, source, references)
    if by_length and test_set.sources is None:
        raise NmtError(
            "--by-length cannot be computed: the source sentences are unknown. Sentences are grouped by the number of "
            "words of their source. Add --source FILE, or leave --by-length out."
        )
    check_bootstrap_memory(resamples, len(test_set))
    hypothesis_lines = {name: _read_hypothesis(name, test_set) for name in hypotheses}
    overlap = compare_with_training(test_set.sources, [system.run for system in run_systems])
    progress.compared_with_training(overlap, len(test_set))
    for system in run_systems:  # a missing epoch is found before the first run translates, which takes time
        if system.exported is None:
            choose_epoch(system.run, system.epoch)

    systems, translations = [], dict[str, list[str]]()
    for system in run_systems:
        report = partial(progress.translating, system.name, sentences=len(test_set))
        description, lines = translate(system, test_set, report)
        progress.translated(description, lines)
        systems.append(description)
        translations[system.name] = lines
    systems += [System(name=name, hypothesis=name) for name in hypotheses]
    translations |= hypothesis_lines

    progress.scoring()
    chrf = {name: sentence_scores(lines, test_set.references) for name, lines in translations.items()}
    record = EvaluationRecord(
        nmt=version(),
        test_set=_record_of(test_set),
        resamples=resamples,
        systems=systems,
        scores=score_systems(translations, test_set.references, metrics, tokenization, resamples),
        overlap=overlap,
        without_overlap=_score_without(overlap, translations, test_set.references, metrics, tokenization, resamples),
        examples={
            name: pick_examples(lines, test_set.sources, test_set.references, chrf[name], examples)
            for name, lines in translations.items()
            if examples
        },
        by_length=(
            score_by_length(translations, test_set.sources or [], test_set.references, tokenization)
            if by_length
            else []
        ),
    )
    return Evaluation(record, EvaluationTexts(test_set.sources, test_set.references, translations, chrf))


def _refuse_repeats(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise NmtError(
                f"System {name!r} was given {names.count(name)} times. Each system is compared once. Leave out its "
                "repeats."
            )


def _find_test_set(systems: list[RunSystem], source: str | None, references: Sequence[str]) -> EvaluationSet:
    if references and (source or not systems):
        return read_test_files(source, references)
    if source or references or not systems:
        received = "--source" if source else "--reference" if references else "--hypothesis"
        raise NmtError(
            f"Received {received} alone. A test set is a --source FILE with its --reference FILE, or the test split of "
            f"a run's dataset. Add {'--source' if references else '--reference'} FILE."
        )
    return read_test_split({system.name: system.manifest for system in systems})


def _read_hypothesis(name: str, test_set: EvaluationSet) -> list[str]:
    file, lines = find_and_read(name)
    test_set.check_translations(file, lines)
    return lines


def _record_of(test_set: EvaluationSet) -> EvaluationSetRecord:
    files = [*([test_set.source_file] if test_set.source_file else []), *test_set.reference_files]
    return EvaluationSetRecord(
        dataset=test_set.dataset,
        source=str(test_set.source_file) if test_set.source_file else None,
        references=[str(file) for file in test_set.reference_files],
        sentences=len(test_set),
        sha256={str(file): sha256(file.path) for file in files},
    )


def _score_without(
    overlap: TrainingOverlap, translations: dict[str, list[str]], references: list[list[str]], metrics: list[str],
    tokenization: str, resamples: int,
) -> Scores | None:  # fmt: skip
    """Return the scores on the sentences that were not trained on, None if these are all or none."""
    unseen = sorted(set(range(len(references[0]))) - {number - 1 for number in overlap.numbers})
    if not overlap.numbers or not unseen:
        return None
    return score_subset(unseen, translations, references, metrics, tokenization, resamples)
