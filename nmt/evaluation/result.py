"""The result of an evaluation as records, and as text and tables for reports.

Shapes: N sentences, R references per sentence.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sacrebleu
from pydantic import Field

from nmt.config.decoding import KEYS, SAMPLING
from nmt.config.record import Record
from nmt.config.schema import DecodingConfig
from nmt.errors import counted, printable
from nmt.evaluation.metrics import metric_heading
from nmt.evaluation.scoring import Gap, LengthBucket, PairScores, Score, Scores
from nmt.evaluation.test_set import TrainingOverlap
from nmt.runs.calibration import Calibration
from nmt.runs.metrics import weights_in_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SIGNIFICANT = 0.05
EMPTY = "(empty)"
ALL_TOGETHER = "All language pairs together:"
STRESS_HEADING = "Stress test"
STRESS_NOTE = (
    "% copied: translations with the inserted text exactly once; BLEU is computed without it. cut off: translations "
    "at the length limit. repeating: translations with words three times in a row."
)
STRESS_LEFT_OUT = "Left out, since they change hardly any of these sources: "
STRESS_WORST = "Worst sentence of each variant by sentence chrF"
IDLE = {name for name, key in KEYS.items() if key.searches == (SAMPLING,)}
"""Decoding keys that have no effect in an evaluation, which does not sample."""


class Example(Record):
    """A sentence with its references and a system's translation."""

    number: int
    """Line number of the sentence, counted from 1."""
    chrf: float
    """Sentence-level chrF, 0 to 100."""
    source: str | None
    """Source sentence; None if the sources are unknown."""
    references: list[str]
    """R reference translations."""
    translation: str
    """Translation of the system."""


class Examples(Record):
    """The sentences on which a system has the lowest and the highest chrF."""

    worst: list[Example]
    """Sentences with the lowest chrF, in rising order."""
    best: list[Example]
    """Sentences with the highest chrF, in falling order."""


class System(Record):
    """A system that is evaluated: a run, or a file of translations."""

    name: str
    """Name as the user gave it: RUN, RUN:EPOCH or FILE."""
    run: str | None = None
    """Name of the run; None for a file."""
    epoch: int | str | None = None
    """Weights: an epoch, "average", or a step such as "step-1500"; None for a file."""
    dataset: str | None = None
    """Dataset that the run was trained on."""
    decoding: DecodingConfig | None = None
    """Resolved decoding settings, without "auto"."""
    export: str | None = None
    """Folder of the export that translated; None for a run and a file."""
    program: str | None = None
    """Program that translated with the export, such as CTranslate2; None for a run and a file."""
    computed_in: str | None = None
    """Number format in which this program computed; None for a run and a file."""
    hypothesis: str | None = None
    """Path of the file; None for a run."""
    seconds: float | None = None
    """Time for translating N sentences in seconds, with compiling and without loading the model."""
    sentences_per_second: float | None = None
    """Number of sentences divided by ``seconds``."""
    with_unknown_words: int | None = None
    """Number of source sentences with words unknown to the model."""
    cut_off: int | None = None
    """Number of translations that reached the length limit."""


class EvaluationSetRecord(Record):
    """The files of a test set."""

    dataset: str | None
    """Dataset with this test split; None if files were given."""
    source: str | None
    """Path of the sources; None if they are unknown."""
    references: list[str]
    """Paths of the R references."""
    sentences: int
    """Number of sentences, N."""
    sha256: dict[str, str]
    """SHA-256 of each file on disk, by path."""


class StressRow(Record):
    """Result of the stress test for one variant of the test set."""

    variant: str
    """Name of the variant; "plain" for the unchanged sentences."""
    sentences: int
    """Number of sentences of the variant."""
    bleu: float | None = None
    """BLEU without the inserted texts; None without references."""
    share: float | None = None
    """BLEU in percent of the BLEU of the plain sentences; None without references, or if that is 0."""
    copied: float | None = None
    """Percentage of translations with the inserted text exactly once; None if the variant inserts no text."""
    cut_off: int
    """Number of translations that reached the length limit, or whose source is longer than the model reads."""
    repeating: int
    """Number of translations with up to four words three times in a row, unless the source repeats words too."""
    worst: Example | None = None
    """Sentence with the lowest chrF; None without references."""


class EvaluationRecord(Record):
    """The results of an evaluation, as ``nmt evaluate --json`` prints them."""

    format: Literal[1] = 1
    """Format number."""
    nmt: str
    """Version of nmt."""
    sacrebleu: str = sacrebleu.__version__
    """Version of sacrebleu."""
    test_set: EvaluationSetRecord
    """Files of the test set."""
    resamples: int
    """Number of bootstrap resamples; 0 for scores without intervals and tests."""
    lowercase: bool = False
    """Whether BLEU and chrF, also of single sentences, compare texts in lower case."""
    systems: list[System]
    """Systems in the given order; the first is the baseline."""
    scores: Scores
    """Scores on all N sentences."""
    overlap: TrainingOverlap
    """Sentences that were trained on."""
    without_overlap: Scores | None
    """Scores on the sentences that were not trained on; None if that is all or no sentences."""
    examples: dict[str, Examples]
    """Examples by system name; empty unless requested."""
    by_pair: list[PairScores] = Field(default_factory=list)
    """Scores of each language pair; empty for a test set of a single pair."""
    by_length: list[LengthBucket] = Field(default_factory=list)
    """Buckets of source length in rising order; empty unless requested."""
    stress: dict[str, list[StressRow]] = Field(default_factory=dict)
    """Variants of the test set, "plain" first, by name of the translating system; empty unless requested."""
    stress_left_out: list[str] = Field(default_factory=list)
    """Variants that change hardly any source of the test set, such as capitals in Chinese."""
    terms_kept: dict[str, float] = Field(default_factory=dict)
    """Share of the glossary terms that translations use, by name of the translating system."""
    confidence: Calibration | None = None
    """Calibrated confidence in the translations of the run; None unless requested."""
    gaps: list[Gap] = Field(default_factory=list)
    """Gap between each system and the one before it; empty unless a teacher is given."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation: its results, and the N sentences from which they are computed."""

    record: EvaluationRecord
    """Results, without the sentences."""
    sources: list[str] | None
    """N source sentences; None if they are unknown."""
    references: list[list[str]]
    """R lists of N references."""
    translations: dict[str, list[str]]
    """N translations, by system name."""
    chrf: dict[str, np.ndarray]
    """chrF of each sentence, float64 [N], by system name."""
    languages: tuple[str, str] = ("source", "target")
    """Codes of source and target; "source" and "target" if they are unknown."""


def pick_examples(
    translations: list[str], sources: list[str] | None, references: list[list[str]], chrf: np.ndarray, count: int
) -> Examples:
    """Return the ``count`` sentences with the lowest and with the highest chrF; no sentence is in both lists.

    Among equal scores, the sentence with the longest reference comes first, since it shows most.
    """
    lengths = [max(map(len, sentence_references)) for sentence_references in zip(*references, strict=True)]
    order = sorted(range(len(chrf)), key=lambda index: (chrf[index], -lengths[index]))
    worst = order[:count]
    best = sorted(order[len(worst) :], key=lambda index: (-chrf[index], -lengths[index]))[:count]

    def example(index: int) -> Example:
        return Example(
            number=index + 1,
            chrf=float(chrf[index]),
            source=None if sources is None else sources[index],
            references=[lines[index] for lines in references],
            translation=translations[index],
        )

    return Examples(worst=[example(index) for index in worst], best=[example(index) for index in best])


# --- text for all reports


def system_line(system: System) -> str:
    """Return a description of a system: its run, weights, decoding settings and speed."""
    if system.hypothesis is not None:
        return f"translations of {system.hypothesis}"
    weights = "average of several epochs" if system.epoch == "average" else weights_in_words(system.epoch or "")
    parts = [f"run {system.run}", weights]
    if decoding := system.decoding:
        search = decoding.search()
        used = [name for name, key in KEYS.items() if search in key.searches and "tensorflow" in key.names]
        named = [f"{name.replace('_', ' ')} {getattr(decoding, name):g}" for name in used if getattr(decoding, name)]
        precision = f"{system.program} {system.computed_in}" if system.export else decoding.precision
        parts += [f"{search} search", *named, precision, f"batches of {decoding.batch_size}"]
    if system.seconds is not None:
        parts.append(f"{system.seconds:,.1f} s ({system.sentences_per_second:,.0f} sentences/s)")
    if system.with_unknown_words:
        parts.append(f"{counted(system.with_unknown_words, 'sentence')} with unknown words")
    if system.cut_off:
        parts.append(f"{counted(system.cut_off, 'translation')} cut off at the length limit")
    return ", ".join(parts)


def set_line(record: EvaluationRecord) -> str:
    """Return a description of the test set."""
    test_set = record.test_set
    dataset = f"the test split of dataset {test_set.dataset}: " if test_set.dataset else ""
    files = " -> ".join([*([test_set.source] if test_set.source else []), ", ".join(test_set.references)])
    count = len(test_set.references)
    references = f"{count} references each" if count > 1 else "one reference each"
    return f"Test set: {dataset}{files}; {counted(test_set.sentences, 'sentence')}, {references}"


def overlap_lines(record: EvaluationRecord) -> Iterator[str]:
    """Yield lines about source sentences that were trained on."""
    overlap, sentences = record.overlap, record.test_set.sentences
    if overlap.numbers:
        counts = [f"{count:,} in the training split of {dataset}" for dataset, count in overlap.checked.items()]
        yield (
            f"WARNING: {len(overlap.numbers):,} of {counted(sentences, 'source sentence')} "
            f"({len(overlap.numbers) / sentences:.1%}) were trained on ({', '.join(counts)}). These scores also "
            "measure memorization." + ("" if record.without_overlap else " Nothing is left to score without them.")
        )
    elif overlap.checked:
        yield f"No source sentence is in the training split of {', '.join(overlap.checked)}."
    for reason in overlap.unchecked:
        yield f"Not compared with training: {reason}"


def score_notes(record: EvaluationRecord) -> Iterator[str]:
    """Yield notes that explain the scores."""
    if record.lowercase:
        yield "lc: texts are compared in lower case, also in the chrF of sentences. TER ignores case anyway."
    if record.resamples and record.test_set.sentences == 1:
        yield "A single sentence cannot be resampled: no intervals, no tests."
    elif record.resamples:
        yield (
            f"In brackets: mean of {counted(record.resamples, 'bootstrap resample')} ± half the width of their 95% "
            "confidence interval."
        )
    baseline, *compared = record.systems
    if compared and record.resamples and record.test_set.sentences > 1:
        correction = ", not corrected for several comparisons" if len(compared) > 1 else ""
        yield (
            f"p: p-value of the difference from {baseline.name}, two-sided, by paired bootstrap resampling of these "
            f"sentences (Koehn 2004){correction}; * below {SIGNIFICANT:g}. It does not cover the variation between "
            "trainings with different seeds."
        )


def score_text(score: Score) -> str:
    """Return a score and its confidence interval as text."""
    return f"{score.score:.1f}" + ("" if score.mean is None else f" ({score.mean:.1f} ± {score.ci:.1f})")


def p_value_text(p_value: float | None) -> str:
    """Return a p-value as text, with a star if it is below ``SIGNIFICANT``; an empty string without a test."""
    return "" if p_value is None else f"p {p_value:.3f}{'*' if p_value < SIGNIFICANT else ''}"


def gap_row(gap: Gap) -> list[str]:
    """Return the row of a gap in the table of gaps: the two systems, and the difference by each metric."""
    cells = [
        f"{metric_heading(metric).split()[0]} {difference:+.1f} {p_value_text(gap.p_values[metric])}".strip()
        for metric, difference in gap.differences.items()
    ]
    return [f"from {gap.baseline} to {gap.system}", *cells]


def without_overlap_heading(scores: Scores) -> str:
    """Return the heading for scores on the sentences that were not trained on."""
    return f"Scores on the {counted(scores.sentences, 'sentence')} not trained on:"


PAIR_HEADING = "Scores by language pair"


def pair_rows(pairs: Sequence[PairScores]) -> Iterator[list[str]]:
    """Yield the rows of the table of scores by language pair, beginning with the heading; the last has the means."""
    columns = [(system, metric) for system, scores in pairs[0].scores.systems.items() for metric in scores]
    has_several = len(pairs[0].scores.systems) > 1
    names = [f"{metric_heading(metric)}{f' {system}' if has_several else ''}" for system, metric in columns]
    yield ["", "sentences", *names]
    values = [[pair.scores.systems[system][metric].score for system, metric in columns] for pair in pairs]
    for pair, scores in zip(pairs, values, strict=True):
        yield [pair.languages, f"{pair.scores.sentences:,}", *(f"{score:.1f}" for score in scores)]
    means = [statistics.fmean(column) for column in zip(*values, strict=True)]
    yield ["mean", "", *(f"{mean:.1f}" for mean in means)]


def length_heading(buckets: Sequence[LengthBucket]) -> str:
    """Return the heading of the table of scores by length."""
    unit = "words, split at white space" if buckets[0].unit == "words" else "characters"
    return f"Scores by source length ({unit})"


def length_rows(buckets: Sequence[LengthBucket]) -> Iterator[list[str]]:
    """Yield the rows of the table of scores by length, with a column for each bucket.

    The first row is the heading: two empty cells, then the length range of each bucket. The second row has the numbers
    of sentences. Every further row has the scores of a system by a metric.
    """
    scores = [bucket.scores for bucket in buckets]
    yield ["", "", *(bucket.lengths for bucket in buckets)]
    yield ["sentences", "", *(f"{of_bucket.sentences:,}" for of_bucket in scores)]
    for metric in scores[0].signatures:
        for system in scores[0].systems:
            yield [
                metric_heading(metric), system, *(score_text(of_bucket.systems[system][metric]) for of_bucket in scores)
            ]  # fmt: skip


def stress_rows(rows: Sequence[StressRow], *, lowercase: bool) -> Iterator[list[str]]:
    """Yield the rows of the table of a stress test, beginning with the heading. Missing values are empty."""
    bleu = metric_heading("BLEU lc" if lowercase else "BLEU")
    yield ["variant", "sentences", bleu, "% of plain", "% copied", "cut off", "repeating"]
    for row in rows:
        values = ["" if value is None else f"{value:.1f}" for value in (row.bleu, row.share, row.copied)]
        yield [row.variant, f"{row.sentences:,}", *values, f"{row.cut_off:,}", f"{row.repeating:,}"]


# --- for the terminal


def print_evaluation(record: EvaluationRecord, console: "Console") -> None:
    """Print an evaluation as text and tables that fit the console; signatures are not wrapped.

    Args:
        record: the evaluation.
        console: console without markup, emoji and highlighting, so that names and sentences are printed literally.
    """
    systems = _table(*((system.name, system_line(system)) for system in record.systems))
    signatures = _table(*record.scores.signatures.items(), no_wrap=True)
    blocks: list[list[Any]] = [
        [set_line(record)],
        [systems],
        [*([ALL_TOGETHER] if record.by_pair else []), _score_table(record.scores), *score_notes(record)],
        ["Gaps:", _table(*map(gap_row, record.gaps), right=1)] if record.gaps else [],
        [signatures],
        [*overlap_lines(record)],
        [f"Terms kept by {name}: {share:.1%}" for name, share in record.terms_kept.items()],
        [record.confidence.in_words] if record.confidence else [],
    ]
    if without := record.without_overlap:
        blocks.append([without_overlap_heading(without), _score_table(without)])
    if record.by_pair:
        blocks.insert(2, [f"{PAIR_HEADING}:", _table(*pair_rows(record.by_pair), right=1)])
    if record.by_length:
        blocks.append([f"{length_heading(record.by_length)}:", _table(*length_rows(record.by_length), right=2)])
    for name, variants in record.stress.items():
        table = _table(*stress_rows(variants, lowercase=record.lowercase), right=1)
        blocks.append([f"{STRESS_HEADING} of {name}:", table, STRESS_NOTE])
        worst = [(row.variant, _example_rows(row.worst)) for row in variants if row.worst]
        shown = [(variant if cells[0] else "", *cells) for variant, rows in worst for cells in rows]
        blocks.append([f"{STRESS_WORST} of {name}", _table(*shown)])
    if record.stress_left_out:
        blocks.append([STRESS_LEFT_OUT + ", ".join(record.stress_left_out) + "."])
    for name, examples in record.examples.items():
        of_system = f" of {name}" if len(record.systems) > 1 else ""
        for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
            if chosen:
                rows = [row for example in chosen for row in _example_rows(example)]
                blocks.append([f"{title}{of_system} by sentence chrF", _table(*rows)])
    for number, block in enumerate(block for block in blocks if block):
        console.print(*([""] if number else []), *block, sep="\n", soft_wrap=block == [signatures])


def _table(*rows: Sequence[str], right: int | None = None, no_wrap: bool = False) -> "Table":
    """Return rows as a table without borders; columns from index ``right`` are right-aligned."""
    from rich.table import Table  # noqa: PLC0415 - only the terminal needs it

    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(len(rows[0])):
        at_right = right is not None and column >= right
        table.add_column(justify="right" if at_right else "left", no_wrap=no_wrap, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _score_table(scores: Scores) -> "Table":
    rows = [["", *map(metric_heading, scores.signatures)]]
    for name, by_metric in scores.systems.items():
        rows.append([name, *(score_text(by_metric[metric]) for metric in scores.signatures)])
        p_values = [p_value_text(by_metric[metric].p_value) for metric in scores.signatures]
        rows += [["", *p_values]] if any(p_values) else []
    return _table(*rows, right=1)


def _example_rows(example: Example) -> Iterator[tuple[str, str, str, str]]:
    texts = [*(("reference", text) for text in example.references), ("translation", example.translation)]
    if example.source is not None:
        texts.insert(0, ("source", example.source))
    heads = [(f"  {example.number:>6}", f"{example.chrf:5.1f}"), *[("", "")] * len(texts)]
    for head, (label, text) in zip(heads, texts, strict=False):
        yield (*head, label, printable(text) or EMPTY)
