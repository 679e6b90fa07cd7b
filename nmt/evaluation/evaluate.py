"""Evaluation of systems on a test set: translations, scores, significance tests, and overlap with training.

``nmt evaluate`` calls ``evaluate`` here; the command adds only options and printing.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from pydantic import JsonValue

from nmt.data.manifest import Direction
from nmt.decoding.sentence_translator import chosen_direction
from nmt.decoding.translation import Translation
from nmt.errors import NmtError
from nmt.evaluation.calibration import fit
from nmt.evaluation.metrics import check_metrics, tokenization_of
from nmt.evaluation.result import Evaluation, EvaluationRecord, EvaluationSetRecord, StressRow, System, pick_examples
from nmt.evaluation.scoring import (
    PairScores,
    check_bootstrap_memory,
    gaps,
    score_by_length,
    score_systems,
    sentence_scores,
)
from nmt.evaluation.stress import make_variants, score_variants, unchanging_variants
from nmt.evaluation.systems import RunSystem, check_distinct, find_systems, towards
from nmt.evaluation.test_set import (
    EvaluationSet,
    compare_with_training,
    find_and_read,
    read_test_files,
    read_test_split,
)
from nmt.interface import public
from nmt.message import Argument, Settings
from nmt.runs.calibration import Calibration
from nmt.runs.weights import choose_epoch
from nmt.storage.atomic import sha256
from nmt.storage.json_file import write_json
from nmt.storage.text import as_cell
from nmt.text.glossary import read_glossary
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.registry import load_tokenizer
from nmt.version import version

BATCHES_PER_CALL = 2  # between two progress reports; a single batch may have too few tokens to be worth compiling

Progress = Callable[[str, int, int], None]
"""Progress callback: (task, sentences done, number of sentences)."""


@public
def evaluate(
    runs: Sequence[str] = (),
    hypotheses: Sequence[str] = (),
    *,
    source: str | None = None,
    references: Sequence[str] = (),
    epoch: str | None = None,
    decoding: Mapping[str, JsonValue] | None = None,
    metrics: Sequence[str] = (),
    tokenization: str | None = None,
    lowercase: bool = False,
    resamples: int = 1000,
    examples: int = 3,
    by_length: bool = False,
    stress: bool = False,
    glossary: str | None = None,
    calibrate: bool = False,
    exports: Sequence[str] = (),
    teacher: str | None = None,
    progress: Progress = lambda task, done, sentences: None,
) -> Evaluation:
    """Translate a test set with runs, and score their translations and translations in files.

    Args:
        runs: runs in ``checkpoints/`` as RUN or RUN:EPOCH, or ensembles as RUN+RUN. The first is the baseline.
        hypotheses: files of translations, one per line, in the order of the test set. Without runs, hypotheses and
            exports, the run that trained last is scored.
        source: file of source sentences; None for the test split of the runs' dataset.
        references: files of reference translations of ``source``.
        epoch: weights of the runs without an epoch: a number, "best", "last" or "average"; None for their default.
        decoding: values for keys of the runs' section decoding, such as {"beam_size": 5}.
        metrics: names in ``nmt.evaluation.metrics.METRICS``; empty for bleu, chrf and ter.
        tokenization: tokenization of BLEU, one of ``nmt.evaluation.metrics.TOKENIZATIONS``; None: by the target
            language of the first run, or without a run by the script of the references.
        lowercase: compare texts in lower case, as ``sacrebleu -lc``. Scores then have the names "BLEU lc" and
            "chrF2 lc"; TER ignores case anyway.
        resamples: number of bootstrap resamples; 0 for scores alone.
        examples: number of worst and of best sentences of each system to pick.
        by_length: also compute BLEU and chrF for buckets of similar source length.
        stress: also score translations of the variants of the test set in ``nmt.evaluation.stress``.
        glossary: path of a glossary. Each system that translates is scored without and with its terms.
        calibrate: fit the confidence in the translations of a run, and store it with the run.
        exports: exports to score besides the runs: names in the first run, or folders. Without ``runs`` they are
            scored alone.
        teacher: run or ensemble that the first run, a student, has learned from. It becomes the baseline. Without
            ``exports``, the newest export of the student to Bergamot is scored too. The result has the gap between each
            system and the one before it.
        progress: progress callback; the task is the name of the run that translates, or "scoring".

    Raises:
        NmtError: for contradicting arguments, unknown metrics, more resamples than fit into memory, ``by_length``
            without sources, ``stress`` and ``glossary`` without runs and exports, and ``calibrate`` unless there is
            exactly one run.
        NotFoundError: if a run, its weights, its dataset or a file is missing.
        ConflictError: if runs have different test splits, or a dataset has changed since a run was trained on it.
        ConfigError: for a value that the section decoding does not allow.
        DataError: if a file is damaged, not UTF-8, or has a different number of lines than the test set.
    """
    metrics = check_metrics(metrics, tokenization)
    systems = find_systems(
        runs, exports, teacher=teacher, only_files=bool(hypotheses), epoch=epoch, decoding=decoding or {},
        glossary=glossary,
    )  # fmt: skip
    if calibrate:
        _check_alone([system for system in systems if system.glossary is None], hypotheses)
    check_distinct([*(system.name for system in systems), *hypotheses])
    if not systems:
        _refuse_without_run({"stress": stress, "glossary": glossary}, hypotheses)
    test_set = _find_test_set(systems, source, references)
    _refuse_several_pairs(test_set, {"stress": stress, "glossary": glossary})
    languages = _languages(systems, test_set)
    by_pair = partial(score_by_pair, test_set, metrics=metrics, tokenization=tokenization, lowercase=lowercase)
    tokenization = tokenization or tokenization_of(languages[1], test_set.references[0])
    if by_length:
        _check_sources(test_set)
    check_bootstrap_memory(resamples, len(test_set))
    hypothesis_lines = _read_hypotheses(hypotheses, test_set)
    overlap = compare_with_training(test_set.sources, [run for system in systems for run, _ in system.members])
    _check_weights(systems)

    described: list[System] = []
    translations: dict[str, list[str]] = {}
    stressed: dict[str, list[StressRow]] = {}
    variants = make_variants(test_set.sources or [], test_set.references, languages) if stress else {}
    variant_sources = [case.source for case in chain(*variants.values())]
    for system in systems:
        description, translated, of_variants = translate(system, test_set, progress, variant_sources)
        described.append(description)
        translations[system.name] = [as_cell(translation.text) for translation in translated]
        if stress:
            by_source = dict(zip(test_set.sources or [], translated, strict=True)) | of_variants
            stressed[system.name] = score_variants(variants, by_source, tokenization, lowercase=lowercase)
    described += [System(name=name, hypothesis=name) for name in hypotheses]
    translations |= hypothesis_lines

    progress("scoring", 0, len(test_set))
    lines = test_set.references
    score = partial(
        score_systems, references=lines, metrics=metrics, tokenization=tokenization, resamples=resamples,
        lowercase=lowercase,
    )  # fmt: skip
    unseen = sorted(set(range(len(test_set))) - {number - 1 for number in overlap.numbers})
    chrf = {name: sentence_scores(text, lines, lowercase=lowercase) for name, text in translations.items()}
    picked = {
        name: pick_examples(translated, test_set.sources, lines, chrf[name], examples)
        for name, translated in translations.items()
        if examples
    }
    record = EvaluationRecord(
        nmt=version(),
        test_set=_test_set_record(test_set),
        resamples=resamples,
        lowercase=lowercase,
        systems=described,
        scores=score(translations),
        overlap=overlap,
        without_overlap=score(translations, chosen=unseen) if overlap.numbers and unseen else None,
        examples=picked,
        by_pair=by_pair(translations),
        by_length=score_by_length(translations, test_set.sources or [], lines, tokenization, lowercase=lowercase)
        if by_length
        else [],
        stress=stressed,
        stress_left_out=unchanging_variants(variants),
        terms_kept=_terms_kept(systems, test_set, translations, glossary) if glossary else {},
        confidence=_calibrate(systems[0], test_set, progress) if calibrate else None,
        gaps=gaps(translations, score) if teacher else [],
    )
    return Evaluation(record, test_set.sources, lines, translations, chrf, languages)


def _languages(systems: Sequence[RunSystem], test_set: EvaluationSet) -> tuple[str, str]:
    """Return the languages that the first run translates between; "source" and "target" without a run."""
    if not systems:
        return "source", "target"
    if len(test_set.parts) == 1:
        return test_set.parts[0][0].languages
    manifest, decoding = systems[0].manifest, systems[0].decoding
    if test_set.parts:
        return manifest.languages["source"], manifest.languages["target"]
    return chosen_direction(manifest, decoding).languages


def _refuse_without_run(arguments: Mapping[str, Any], hypotheses: Sequence[str]) -> None:
    """Refuse arguments that need a run where only translations were given."""
    name = next((name for name, value in arguments.items() if value), None)
    if name is None:
        return
    argument = Argument(name, True if arguments[name] is True else None)
    raise NmtError(
        argument,
        f" cannot be computed: only translations were given ({', '.join(hypotheses)}). Sentences have to be translated "
        "for it. Give a run too, or leave ",
        argument,
        " out.",
    )


def _refuse_several_pairs(test_set: EvaluationSet, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that are for a single language pair with a test set of several."""
    name = next((name for name, value in arguments.items() if value), None)
    if name is None or len(test_set.parts) < 2:
        return
    first = test_set.parts[0][0]
    raise NmtError(
        Argument(name, arguments[name]),
        f" is for one language pair, and the test set has {len(test_set.parts)}. Choose one with ",
        Settings({"decoding.source_language": first.source, "decoding.target_language": first.target}),
        ".",
    )


def _check_sources(test_set: EvaluationSet) -> None:
    """Refuse scores by length of a test set without sources."""
    if test_set.sources is None:
        raise NmtError(
            "Scores by length cannot be computed, since the source sentences are unknown. Sentences are grouped by the "
            "number of words of their source. Add ",
            Argument("source", "FILE"),
            ", or leave ",
            Argument("by_length", True),
            " out.",
        )


def _read_hypotheses(names: Sequence[str], test_set: EvaluationSet) -> dict[str, list[str]]:
    """Return the lines of each file of translations, one for each sentence of the test set."""
    translations = {}
    for name in names:
        file, lines = find_and_read(name)
        test_set.check_translations(file, lines)
        translations[name] = lines
    return translations


def _check_weights(systems: Sequence[RunSystem]) -> None:
    """Refuse a missing epoch before the first run translates, which takes time."""
    for system in systems:
        if system.exported is None:
            for run, epoch in system.members:
                choose_epoch(run, epoch)


def _test_set_record(test_set: EvaluationSet) -> EvaluationSetRecord:
    source, references = test_set.source_file, test_set.reference_files
    files = [source, *references] if source else references
    return EvaluationSetRecord(
        dataset=test_set.dataset,
        source=str(source) if source else None,
        references=[str(file) for file in references],
        sentences=len(test_set),
        sha256={str(file): sha256(file.path) for file in files},
    )


def score_by_pair(
    test_set: EvaluationSet, translations: Mapping[str, list[str]], *, metrics: Sequence[str],
    tokenization: str | None, lowercase: bool,
) -> list[PairScores]:  # fmt: skip
    """Return the scores of each language pair of a test set of several."""
    pairs = []
    for direction, rows in test_set.parts if len(test_set.parts) > 1 else ():
        references = [lines[rows.start : rows.stop] for lines in test_set.references]
        texts = {name: lines[rows.start : rows.stop] for name, lines in translations.items()}
        words = tokenization or tokenization_of(direction.target, references[0])
        scores = score_systems(texts, references, metrics, words, lowercase=lowercase)
        pairs.append(PairScores(languages=direction.name, scores=scores))
    return pairs


def _terms_kept(
    systems: Sequence[RunSystem], test_set: EvaluationSet, translations: Mapping[str, Sequence[str]], glossary: str
) -> dict[str, float]:
    """Return the share of the glossary terms that the translations of each system use."""
    target = load_tokenizer((systems[0].exported or systems[0]).run.tokenizer_path("target"))
    terms = read_glossary(glossary, target, _languages(systems, test_set))
    sources = test_set.sources or []
    return {system.name: terms.share_kept(sources, translations[system.name]) for system in systems}


def _check_alone(systems: Sequence[RunSystem], hypotheses: Sequence[str]) -> None:
    if len(systems) != 1 or hypotheses or systems[0].exported or systems[0].partners:
        received = ", ".join([*(system.name for system in systems), *hypotheses])
        raise NmtError(
            Argument("calibrate", True),
            f" is for the translations of one run; received {received}. Name one run alone.",
        )
    if systems[0].manifest.is_multilingual:
        raise NmtError(
            Argument("calibrate", True),
            f" is for runs of one language pair, since a run keeps one calibration; {systems[0].name} has "
            "several. Leave it out.",
        )


def _calibrate(system: RunSystem, test_set: EvaluationSet, progress: Progress) -> Calibration:
    """Fit the confidence in the translations of a run, and store it."""
    progress(f"{system.name}, confidence", 0, len(test_set))
    calibration = fit(system.run, system.open(), test_set.sources or [], test_set.references)
    write_json(system.run.confidence_path, calibration.model_dump())
    return calibration


def _find_test_set(systems: list[RunSystem], source: str | None, references: Sequence[str]) -> EvaluationSet:
    if references and (source or not systems):
        return read_test_files(source, references)
    if source or references or not systems:
        received = "source" if source else "references" if references else "hypotheses"
        missing = Argument("source", "FILE") if references else Argument("references", ["FILE"])
        raise NmtError(
            "Received ",
            Argument(received),
            " alone. A test set is a file of sources with its file of references, or "
            "the test split of a run's dataset. Add ",
            missing,
            ".",
        )
    decoding = systems[0].decoding
    manifests = {system.name: system.manifest for system in systems}
    return read_test_split(manifests, decoding.source_language, decoding.target_language)


def translate(
    system: RunSystem, test_set: EvaluationSet, progress: Progress, variants: Sequence[str] = ()
) -> tuple[System, list[Translation], dict[str, Translation]]:
    """Translate the sources of a test set with a run.

    Args:
        system: the run.
        test_set: N sentences with their sources.
        progress: progress callback.
        variants: further sentences to translate, which do not affect the description; too long ones are skipped.

    Returns:
        A description of the system with its speed, the N translations, and the translation of each variant.

    Raises:
        NotFoundError: if the weights are missing.
        DataError: if the run is damaged, or a sentence is longer than the learned positions.
    """
    exported = system.exported
    parts: Sequence[tuple[Direction | None, range]] = test_set.parts or [(None, range(len(test_set)))]
    translator = system.open(parts[0][0])
    computed = {} if exported else {"precision": translator.engine.precision}
    batches = BATCHES_PER_CALL * ((os.cpu_count() or 1) if exported else 1)  # CTranslate2 runs a batch on each core
    started = time.perf_counter()
    sources = test_set.sources or []
    names = [f"{test_set.source_file}, line {number}" for number in range(1, len(sources) + 1)]
    glossary = translator.glossary(system.glossary) if system.glossary else None
    options = TextOptions(glossary=glossary)
    translations: list[Translation] = []
    for direction, rows in parts:
        if direction is not None and direction.languages != translator.languages:
            translator = translator.reconfigured(towards(system.decoding, direction))

        def report(done: int, _: int, before: int = rows.start) -> None:
            progress(system.name, before + done, len(sources))

        chosen = slice(rows.start, rows.stop)
        translations += _translate_all(translator, sources[chosen], names[chosen], report, batches, options)
    seconds = time.perf_counter() - started
    description = System(
        name=system.name,
        run=system.run.name,
        epoch=translator.epoch,
        dataset=system.manifest.settings.dataset,
        decoding=system.decoding.model_copy(update=computed),
        export=str(exported.folder) if exported else None,
        program=exported.program if exported else None,
        computed_in=translator.engine.precision if exported else None,
        seconds=seconds,
        sentences_per_second=len(translations) / seconds,
        with_unknown_words=sum(bool(translation.unknown) for translation in translations),
        cut_off=sum(not translation.finished for translation in translations),
    )
    known, of_variants = set(sources), {}
    new = list(dict.fromkeys(text for text in variants if text not in known))
    if new:
        report_variants = partial(progress, f"{system.name}, stress test")
        more = _translate_all(translator, new, [*map(repr, new)], report_variants, batches, options, skip_too_long=True)
        of_variants = dict(zip(new, more, strict=True))
    return description, translations, of_variants


def _translate_all(
    translator: Translator,
    texts: Sequence[str],
    names: Sequence[str],
    report: Callable[[int, int], None],
    batches: int,
    options: TextOptions,
    *,
    skip_too_long: bool = False,
) -> list[Translation]:
    """Translate texts, ``batches`` batches per call, sorted by length, so that batches have little padding."""
    lengths = [len(translator.source.encode(text)) for text in texts]
    empty = [index for index, length in enumerate(lengths) if not length]
    order = sorted((index for index, length in enumerate(lengths) if length), key=lambda index: lengths[index])
    size = batches * translator.config.decoding.batch_size
    translations: dict[int, Translation] = {}
    report(0, len(texts))
    for indices in [empty, *(order[start : start + size] for start in range(0, len(order), size))]:
        chosen, named = [texts[index] for index in indices], [names[index] for index in indices]
        translated = translator.find(chosen, options, names=named, skip_too_long=skip_too_long)
        translations |= {index: best for index, (best, *_) in zip(indices, translated, strict=True)}
        report(len(translations), len(texts))
    return [translations[index] for index in range(len(texts))]
