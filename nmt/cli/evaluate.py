"""``nmt evaluate``: how good translations are, by the metrics the field publishes, several systems side by side."""

import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from nmt.cli.options import (
    OUTPUT,
    RUN,
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

if TYPE_CHECKING:
    from nmt.config.decoding import DecodingConfig
    from nmt.data.manifest import Manifest
    from nmt.decoding.translator import Translation, Translator
    from nmt.evaluation.reports.text import Texts
    from nmt.evaluation.scoring import Evaluation, OverlapReport, System
    from nmt.evaluation.test_set import EvaluationSet
    from nmt.runs.directory import Run

FILES, SCORES = "Test set and translations", "Scores"  # help sections
METRICS = ("bleu", "chrf", "ter")
_LINE_BREAK = re.compile(r"[\r\n]+")  # a model that falls back to bytes could write one
BATCHES_AT_A_TIME = 2  # between two steps of the bar; one alone may be so few tokens that it is not worth compiling


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
            help="Write a page with scores and all translations: FILE.html or FILE.md.",
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
    as_json: JsonOption = False,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    batch_size: BatchSizeOption = None,
    precision: PrecisionOption = None,
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
    """
    from nmt.evaluation.overlap import compare_with_training
    from nmt.evaluation.reports.page import check_format, write_report
    from nmt.evaluation.reports.text import describe
    from nmt.evaluation.scoring import check_resamples

    figures = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "batch_size": batch_size, "precision": precision,
    }  # fmt: skip
    metrics = _check_metrics([name.lower() for name in metric or METRICS], tokenize)
    if report is not None:
        check_format(report.suffix)
    plans = _plans(run, hypothesis, epoch, figures)
    if output is not None and [plan.run is None for plan in plans] != [False]:
        raise NmtError(f"--output takes the translations of one run; received {len(plans)} systems. Leave it out.")
    test_set = _test_set(plans, source, reference)
    check_resamples(resamples, len(test_set))
    given = _read_hypotheses(plans, test_set)
    overlap = compare_with_training(test_set.sources, [plan.run for plan in plans if plan.run is not None])
    if overlap.numbers:
        typer.echo(f"nmt: {len(overlap.numbers):,} of {len(test_set):,} source sentences were trained on", err=True)
    systems, translations = _translate(plans, test_set, given)
    if output is not None:
        from nmt.storage.atomic import write_text

        write_text(output, "".join(f"{text}\n" for text in translations[plans[0].name]))
    typer.echo("Scoring ...", err=True)
    evaluation, texts = _score(test_set, systems, translations, overlap, metrics, tokenize, resamples, examples)
    width = shutil.get_terminal_size().columns
    typer.echo(evaluation.model_dump_json(indent=2) if as_json else describe(evaluation, width))
    if report is not None:
        from nmt.storage.atomic import write_text

        write_text(report, write_report(evaluation, texts, report.suffix))


def _check_metrics(metrics: list[str], tokenize: str) -> list[str]:
    from nmt.evaluation.scoring import METRICS, TOKENIZATIONS
    from nmt.storage.names import did_you_mean

    for option, values, known in (("--metric", metrics, METRICS), ("--tokenize", [tokenize], TOKENIZATIONS)):
        for value in values:
            if value not in known:
                raise NmtError(
                    f"{option} is one of {', '.join(known)}; received {value!r}{did_you_mean(value, known)}."
                )
    if tokenize != "13a" and "bleu" not in metrics:
        raise NmtError(f"--tokenize is about BLEU; received it with --metric {', '.join(metrics)}. Leave it out.")
    return list(dict.fromkeys(metrics))


class Plan(NamedTuple):
    """A system to score: a run, or a file of translations."""

    name: str
    run: "Run | None" = None
    manifest: "Manifest | None" = None
    epoch: str | None = None
    decoding: "DecodingConfig | None" = None
    hypothesis: str | None = None


def _plans(
    runs: list[str] | None, hypotheses: list[str] | None, epoch: str | None, figures: dict[str, Any]
) -> list[Plan]:
    from nmt.config.loading import change_decoding
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run

    refuse_idle_beam_options(figures)
    plans = []
    wanted: list[str | None] = [None] if not runs and not hypotheses else [*(runs or [])]
    for said in wanted:
        name, _, own_epoch = (said or "").partition(":")
        found = find_run(name if said is not None else None)
        plans.append(
            Plan(
                said or found.name,
                found,
                read_manifest(found.dataset_path),
                own_epoch or epoch,
                change_decoding(found.config().decoding, figures),
            )
        )
    given = ["--epoch"] * (epoch is not None) + [
        option_name(key) for key, value in figures.items() if value is not None
    ]
    if given and not plans:
        raise NmtError(
            f"{given[0]} is about translating; received only translations to score. Add --run or leave it out."
        )
    plans += [Plan(name, hypothesis=name) for name in hypotheses or []]
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise NmtError(f"Each system is compared once; received {name!r} {names.count(name)} times. Leave one out.")
    return plans


def _test_set(plans: list[Plan], source: str | None, references: list[str] | None) -> "EvaluationSet":
    from nmt.evaluation.test_set import set_of_files, set_of_runs

    manifests = {plan.name: plan.manifest for plan in plans if plan.manifest is not None}
    if references and (source or not manifests):
        return set_of_files(source, references)
    if source or references or not manifests:
        received = "--source" if source else "--reference" if references else "--hypothesis"
        raise NmtError(
            f"A test set is --source FILE with its --reference FILE, or that of a run; received {received} alone. "
            f"Add {'--source' if references else '--reference'} FILE."
        )
    return set_of_runs(manifests)


def _read_hypotheses(plans: list[Plan], test_set: "EvaluationSet") -> dict[str, list[str]]:
    from nmt.evaluation.test_set import find_sentences

    found = {}
    for plan in plans:
        if plan.hypothesis is not None:
            file, found[plan.name] = find_sentences(plan.hypothesis)
            test_set.check(file, found[plan.name])
    return found


def _translate(
    plans: list[Plan], test_set: "EvaluationSet", given: dict[str, list[str]]
) -> "tuple[list[System], dict[str, list[str]]]":
    """Return what is known of each system, and its translations by its name."""
    from nmt.evaluation.scoring import System

    systems, translations = [], {}
    if any(plan.run for plan in plans):
        from nmt.runs.weights import choose_epoch

        for plan in plans:  # before the first takes its time
            if plan.run is not None:
                choose_epoch(plan.run, plan.epoch)
    for plan in plans:
        if plan.run is None:
            systems.append(System(name=plan.name, hypothesis=plan.hypothesis))
            translations[plan.name] = given[plan.name]
        else:
            system, translations[plan.name] = _run_system(plan, plan.run, test_set)
            systems.append(system)
    return systems, translations


def _run_system(plan: Plan, run: "Run", test_set: "EvaluationSet") -> "tuple[System, list[str]]":
    from nmt.decoding.translator import Translator
    from nmt.evaluation.scoring import System

    translator = Translator.load(run, plan.epoch, plan.decoding)
    started = time.perf_counter()
    found = _with_bar(translator, test_set, plan.name)
    seconds = time.perf_counter() - started
    rate = len(found) / seconds
    typer.echo(f"{plan.name}: {len(found):,} sentences translated in {seconds:.1f} s ({rate:,.1f} a second)", err=True)
    system = System(
        name=plan.name,
        run=run.name,
        epoch=translator.epoch,
        dataset=plan.manifest.settings.dataset if plan.manifest else None,
        decoding=translator.config.decoding.model_copy(update={"precision": translator.model.compute_dtype}),
        seconds=seconds,
        sentences_per_second=rate,
        with_unknown_words=sum(bool(one.unknown) for one in found),
        cut_off=sum(not one.is_whole for one in found),
    )
    return system, [_LINE_BREAK.sub(" ", one.text) for one in found]


def _with_bar(translator: "Translator", test_set: "EvaluationSet", name: str) -> "list[Translation]":
    """Translate all sentences, shortest first, which is the order that leaves batches with the least padding."""
    from tqdm import tqdm

    sources = test_set.sources or []
    lengths = [len(translator.source.encode(text)) for text in sources]
    empty = [place for place, length in enumerate(lengths) if not length]
    order = sorted((place for place, length in enumerate(lengths) if length), key=lambda place: lengths[place])
    size = BATCHES_AT_A_TIME * translator.config.decoding.batch_size
    found: dict[int, Translation] = {}
    with tqdm(total=len(sources), desc=name, unit=" sentences", disable=None, leave=False, file=sys.stderr) as bar:
        for places in [empty, *(order[start : start + size] for start in range(0, len(order), size))]:
            names = [f"{test_set.source_file}, line {place + 1}" for place in places]
            found |= zip(places, translator.translate([sources[place] for place in places], names), strict=True)
            bar.update(len(places))
    return [found[place] for place in range(len(sources))]


def _score(
    test_set: "EvaluationSet", systems: "list[System]", translations: dict[str, list[str]], overlap: "OverlapReport",
    metrics: list[str], tokenize: str, resamples: int, examples: int,
) -> "tuple[Evaluation, Texts]":  # fmt: skip
    from nmt.evaluation.reports.text import Texts
    from nmt.evaluation.scoring import Evaluation, SetReport, pick_examples, score, sentence_scores
    from nmt.storage.atomic import sha256

    left = sorted(set(range(len(test_set))) - {number - 1 for number in overlap.numbers})
    without = None
    if overlap.numbers and left:
        without = score(
            {name: [lines[place] for place in left] for name, lines in translations.items()},
            [[lines[place] for place in left] for lines in test_set.references],
            metrics, tokenize, resamples,
        )  # fmt: skip
    chrf = {name: sentence_scores(lines, test_set.references) for name, lines in translations.items()}
    files = [*([test_set.source_file] if test_set.source_file else []), *test_set.reference_files]
    evaluation = Evaluation(
        nmt=_version(),
        test_set=SetReport(
            dataset=test_set.dataset,
            source=str(test_set.source_file) if test_set.source_file else None,
            references=[str(file) for file in test_set.reference_files],
            sentences=len(test_set),
            sha256={str(file): sha256(file.path) for file in files},
        ),
        resamples=resamples,
        systems=systems,
        scores=score(translations, test_set.references, metrics, tokenize, resamples),
        overlap=overlap,
        without_overlap=without,
        examples={
            name: pick_examples(lines, test_set.sources, test_set.references, chrf[name], examples)
            for name, lines in translations.items()
            if examples
        },
    )
    return evaluation, Texts(test_set.sources, test_set.references, translations, chrf)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("nmt")
    except PackageNotFoundError:  # run from its folder, without being installed
        return "unknown"
