"""The result of an evaluation: systems, scores, overlap with training, examples, every sentence; in words and tables.

N sentences, R references of each.
"""

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
from nmt.evaluation.scoring import LengthBucket, Score, Scores
from nmt.evaluation.test_set import TrainingOverlap
from nmt.runs.calibration import Calibration
from nmt.runs.metrics import weights_in_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SIGNIFICANT = 0.05
EMPTY = "(empty)"
BY_LENGTH_HEADING = "Scores by source length (words, split at white space)"
STRESS_HEADING = "Stress test"
STRESS_NOTE = (
    "% copied: translations with the inserted text exactly once; BLEU is without it. cut off: at the limit on their "
    "length. repeating: with words three times in a row."
)
STRESS_WORST = "Worst sentence of each variant by sentence chrF"
IDLE = {name for name, key in KEYS.items() if key.searches == (SAMPLING,)}
"""Keys of decoding without effect here: nothing is sampled."""


class Example(Record):
    """A sentence with its references and its translation by a system."""

    number: int
    """Line number of the sentence, from 1."""
    chrf: float
    """Sentence-level chrF, 0 to 100."""
    source: str | None
    """Source sentence; None if the sources are unknown."""
    references: list[str]
    """R references."""
    translation: str
    """Translation by the system."""


class Examples(Record):
    """The sentences with the lowest and with the highest chrF of a system."""

    worst: list[Example]
    """Sentences with the lowest chrF, in rising order."""
    best: list[Example]
    """Sentences with the highest chrF, in falling order."""


class System(Record):
    """A source of translations: a run, or a file."""

    name: str
    """Name as it was given: RUN, RUN:EPOCH or FILE."""
    run: str | None = None
    """Name of the run; None for a file."""
    epoch: int | str | None = None
    """Weights: a number, "average", or such as "step-1500"; None for a file."""
    dataset: str | None = None
    """Dataset that the run was trained on."""
    decoding: DecodingConfig | None = None
    """Settings of decoding as resolved, without "auto"."""
    export: str | None = None
    """Folder of the export that translated, by CTranslate2; None for a run and a file."""
    computed_in: str | None = None
    """Number format in which CTranslate2 computed; None for a run and a file."""
    hypothesis: str | None = None
    """Path of the file; None for a run."""
    seconds: float | None = None
    """Seconds of translating N sentences: compiling counts, loading the model does not."""
    sentences_per_second: float | None = None
    """Sentences by ``seconds``."""
    with_unknown_words: int | None = None
    """Number of source sentences with words that the model does not know."""
    cut_off: int | None = None
    """Number of translations that reached the limit on their length."""


class EvaluationSetRecord(Record):
    """The files of a test set."""

    dataset: str | None
    """Dataset whose test split it is; None for other files."""
    source: str | None
    """Path of the sources; None if they are unknown."""
    references: list[str]
    """Paths of the R references."""
    sentences: int
    """Number of sentences, N."""
    sha256: dict[str, str]
    """SHA-256 of each file, as on disk, by its path."""


class StressRow(Record):
    """Translations of a variant of the test set, with what ordinary text has."""

    variant: str
    """Name of the variant: "plain" for the sentences as they are."""
    sentences: int
    """Number of its sentences."""
    bleu: float | None = None
    """BLEU without the inserted texts; None without references."""
    share: float | None = None
    """BLEU in percent of that of the plain sentences; None without, or if that is 0."""
    copied: float | None = None
    """Percentage of translations with the inserted text exactly once; None for a variant that inserts none."""
    cut_off: int
    """Number of translations that reached the limit on their length, or whose source is longer than the model reads."""
    repeating: int
    """Number of translations in which up to four words come three times in a row, and not so in the source."""
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
    """Files that were scored against."""
    resamples: int
    """Number of bootstrap resamples; 0: scores alone."""
    lowercase: bool = False
    """Whether BLEU and chrF, that of sentences too, compare texts in lower case."""
    systems: list[System]
    """Systems in the order given; the first is the baseline."""
    scores: Scores
    """Scores on all N sentences."""
    overlap: TrainingOverlap
    """Sentences that were trained on."""
    without_overlap: Scores | None
    """Scores on the sentences that were not trained on; None if these are all N or none."""
    examples: dict[str, Examples]
    """Examples by name of the system; empty if none were asked for."""
    by_length: list[LengthBucket] = Field(default_factory=list)
    """Buckets of source length, in rising order; empty unless asked for."""
    stress: dict[str, list[StressRow]] = Field(default_factory=dict)
    """Variants of the test set, "plain" first, by name of each system that translates; empty unless asked for."""
    terms_kept: dict[str, float] = Field(default_factory=dict)
    """Share of the terms of a glossary that translations keep, by name of each system that translates."""
    confidence: Calibration | None = None
    """Confidence in the translations of the run; None unless it was fitted."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation: its results and the N sentences they are computed from."""

    record: EvaluationRecord
    """Results without the sentences."""
    sources: list[str] | None
    """N source sentences; None if they are unknown."""
    references: list[list[str]]
    """R lists of N references."""
    translations: dict[str, list[str]]
    """N translations by name of the system."""
    chrf: dict[str, np.ndarray]
    """chrF of each sentence, float64 [N], by name of the system."""


def pick_examples(
    translations: list[str], sources: list[str] | None, references: list[list[str]], chrf: np.ndarray, count: int
) -> Examples:
    """Return the ``count`` sentences with the lowest and with the highest chrF; no sentence is in both lists.

    Among equal scores the sentence with the longest reference comes first: it shows most.
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


# --- in words, for all reports


def system_line(system: System) -> str:
    """Return in words where a system's translations come from."""
    if system.hypothesis is not None:
        return f"translations of {system.hypothesis}"
    weights = "average of several epochs" if system.epoch == "average" else weights_in_words(system.epoch or "")
    parts = [f"run {system.run}", weights]
    if decoding := system.decoding:
        search = decoding.search()
        used = [name for name, key in KEYS.items() if search in key.searches and "tensorflow" in key.names]
        named = [f"{name.replace('_', ' ')} {getattr(decoding, name):g}" for name in used if getattr(decoding, name)]
        precision = f"CTranslate2 {system.computed_in}" if system.export else decoding.precision
        parts += [f"{search} search", *named, precision, f"batches of {decoding.batch_size}"]
    if system.seconds is not None:
        parts.append(f"{system.seconds:,.1f} s ({system.sentences_per_second:,.0f} sentences/s)")
    if system.with_unknown_words:
        parts.append(f"{counted(system.with_unknown_words, 'sentence')} with unknown words")
    if system.cut_off:
        parts.append(f"{counted(system.cut_off, 'translation')} cut off at the length limit")
    return ", ".join(parts)


def set_line(record: EvaluationRecord) -> str:
    """Return in words what was scored against."""
    test_set = record.test_set
    dataset = f"the test split of dataset {test_set.dataset}: " if test_set.dataset else ""
    files = " -> ".join([*([test_set.source] if test_set.source else []), ", ".join(test_set.references)])
    count = len(test_set.references)
    references = f"{count} references each" if count > 1 else "one reference each"
    return f"Test set: {dataset}{files}; {counted(test_set.sentences, 'sentence')}, {references}"


def overlap_lines(record: EvaluationRecord) -> Iterator[str]:
    """Yield in words how many of the source sentences were trained on."""
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
    """Yield in words how the scores are to be read."""
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
    """Return a score with its confidence interval."""
    return f"{score.score:.1f}" + ("" if score.mean is None else f" ({score.mean:.1f} ± {score.ci:.1f})")


def p_value_text(score: Score) -> str:
    """Return p, with a star if it is below ``SIGNIFICANT``; an empty string without a test."""
    if score.p_value is None:
        return ""
    return f"p {score.p_value:.3f}{'*' if score.p_value < SIGNIFICANT else ''}"


def without_overlap_heading(scores: Scores) -> str:
    """Return the heading of the scores on the sentences that were not trained on."""
    return f"Scores on the {counted(scores.sentences, 'sentence')} not trained on:"


def length_rows(buckets: Sequence[LengthBucket]) -> Iterator[list[str]]:
    """Yield the rows of the table of scores by length, a column for each bucket.

    The first row is the heading: two empty cells, then the range of lengths of each bucket. The second has the numbers
    of sentences. Each of the others has the scores of a system by a metric.
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
    """Yield the rows of the table of a stress test, the heading first; a value that does not apply is empty."""
    bleu = metric_heading("BLEU lc" if lowercase else "BLEU")
    yield ["variant", "sentences", bleu, "% of plain", "% copied", "cut off", "repeating"]
    for row in rows:
        values = ["" if value is None else f"{value:.1f}" for value in (row.bleu, row.share, row.copied)]
        yield [row.variant, f"{row.sentences:,}", *values, f"{row.cut_off:,}", f"{row.repeating:,}"]


# --- for the terminal


def print_evaluation(record: EvaluationRecord, console: "Console") -> None:
    """Print an evaluation as text and tables in the width of the console; signatures are not wrapped.

    Args:
        record: the evaluation.
        console: without markup, emoji and highlighting, so that names and sentences are printed as they are.
    """
    systems = _table(*((system.name, system_line(system)) for system in record.systems))
    signatures = _table(*record.scores.signatures.items(), no_wrap=True)
    blocks: list[list[Any]] = [
        [set_line(record)],
        [systems],
        [_score_table(record.scores), *score_notes(record)],
        [signatures],
        [*overlap_lines(record)],
        [f"Terms kept by {name}: {share:.1%}" for name, share in record.terms_kept.items()],
        [record.confidence.in_words] if record.confidence else [],
    ]
    if without := record.without_overlap:
        blocks.append([without_overlap_heading(without), _score_table(without)])
    if record.by_length:
        blocks.append([f"{BY_LENGTH_HEADING}:", _table(*length_rows(record.by_length), right=2)])
    for name, variants in record.stress.items():
        table = _table(*stress_rows(variants, lowercase=record.lowercase), right=1)
        blocks.append([f"{STRESS_HEADING} of {name}:", table, STRESS_NOTE])
        worst = [(row.variant, _example_rows(row.worst)) for row in variants if row.worst]
        shown = [(variant if cells[0] else "", *cells) for variant, rows in worst for cells in rows]
        blocks.append([f"{STRESS_WORST} of {name}", _table(*shown)])
    for name, examples in record.examples.items():
        of_system = f" of {name}" if len(record.systems) > 1 else ""
        for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
            if chosen:
                rows = [row for example in chosen for row in _example_rows(example)]
                blocks.append([f"{title}{of_system} by sentence chrF", _table(*rows)])
    for number, block in enumerate(block for block in blocks if block):
        console.print(*([""] if number else []), *block, sep="\n", soft_wrap=block == [signatures])


def _table(*rows: Sequence[str], right: int | None = None, no_wrap: bool = False) -> "Table":
    """Return rows as a table without lines; the columns from number ``right`` are aligned right."""
    from rich.table import Table  # noqa: PLC0415 - a page of HTML needs no terminal

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
        p_values = [p_value_text(by_metric[metric]) for metric in scores.signatures]
        rows += [["", *p_values]] if any(p_values) else []
    return _table(*rows, right=1)


def _example_rows(example: Example) -> Iterator[tuple[str, str, str, str]]:
    texts = [*(("reference", text) for text in example.references), ("translation", example.translation)]
    if example.source is not None:
        texts.insert(0, ("source", example.source))
    heads = [(f"  {example.number:>6}", f"{example.chrf:5.1f}"), *[("", "")] * len(texts)]
    for head, (label, text) in zip(heads, texts, strict=False):
        yield (*head, label, printable(text) or EMPTY)
