"""An evaluation in words, which all reports share, and as text for the terminal."""

import textwrap
from collections.abc import Callable, Iterator, Sequence

from nmt.config.decoding import KEYS, SAMPLING
from nmt.evaluation.result import EvaluationRecord, Example, System
from nmt.evaluation.scoring import LengthBucket, Score, Scores

SIGNIFICANT = 0.05
EMPTY = "(empty)"
BY_LENGTH_HEADING = "Scores by source length (words, split at white space)"
IDLE = {name for name, key in KEYS.items() if key.searches == (SAMPLING,)}
"""Keys of decoding without effect here: nothing is sampled."""


# --- in words


def system_line(system: System) -> str:
    """Return in words where a system's translations come from."""
    if system.hypothesis is not None:
        return f"translations of {system.hypothesis}"
    parts = [
        f"run {system.run}",
        "average of several epochs" if system.epoch == "average" else f"epoch {system.epoch}",
    ]
    decoding = system.decoding
    if decoding is not None:
        search = decoding.search()
        used = [name for name, key in KEYS.items() if search in key.searches and "tensorflow" in key.names]
        named = [f"{name.replace('_', ' ')} {getattr(decoding, name):g}" for name in used if getattr(decoding, name)]
        parts += [f"{search} search", *named]
        precision = f"CTranslate2 {system.computed_in}" if system.export else decoding.precision
        parts += [precision, f"batches of {decoding.batch_size}"]
    if system.seconds is not None:
        parts.append(f"{system.seconds:,.1f} s ({system.sentences_per_second:,.0f} sentences/s)")
    if system.with_unknown_words:
        parts.append(f"{_count(system.with_unknown_words, 'sentence')} with unknown words")
    if system.cut_off:
        parts.append(f"{_count(system.cut_off, 'translation')} cut off at the length limit")
    return ", ".join(parts)


def set_line(record: EvaluationRecord) -> str:
    """Return in words what was scored against."""
    test_set = record.test_set
    dataset = f"the test split of dataset {test_set.dataset}: " if test_set.dataset else ""
    files = " -> ".join([*([test_set.source] if test_set.source else []), ", ".join(test_set.references)])
    count = len(test_set.references)
    references = f"{count} references each" if count > 1 else "one reference each"
    return f"Test set: {dataset}{files}; {_count(test_set.sentences, 'sentence')}, {references}"


def overlap_lines(record: EvaluationRecord) -> Iterator[str]:
    """Yield in words how many of the source sentences were trained on."""
    overlap, sentences = record.overlap, record.test_set.sentences
    if overlap.numbers:
        counts = [f"{count:,} in the training split of {dataset}" for dataset, count in overlap.checked.items()]
        yield (
            f"WARNING: {len(overlap.numbers):,} of {_count(sentences, 'source sentence')} "
            f"({len(overlap.numbers) / sentences:.1%}) were trained on ({', '.join(counts)}). These scores also "
            "measure memorization." + ("" if record.without_overlap else " Nothing is left to score without them.")
        )
    elif overlap.checked:
        yield f"No source sentence is in the training split of {', '.join(overlap.checked)}."
    for dataset, count in overlap.undecided.items():
        if count:
            yield (
                f"{_count(count, 'more source sentence')} may be in the training split of {dataset}: a sentence there "
                "differs at most in words that the model does not know."
            )
    for reason in overlap.unchecked:
        yield f"Not compared with training: {reason}"


def score_notes(record: EvaluationRecord) -> Iterator[str]:
    """Yield in words how the scores are to be read."""
    if record.resamples and record.test_set.sentences == 1:
        yield "A single sentence cannot be resampled: no intervals, no tests."
    elif record.resamples:
        yield (
            f"In brackets: mean of {record.resamples:,} bootstrap resamples ± half the width of their 95% confidence "
            "interval."
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


def metric_heading(metric: str) -> str:
    """Return the name of a metric with an arrow towards better scores."""
    return f"{metric} {'↓' if metric == 'TER' else '↑'}"


def without_overlap_heading(scores: Scores) -> str:
    """Return the heading of the scores on the sentences that were not trained on."""
    return f"Scores on the {_count(scores.sentences, 'sentence')} not trained on:"


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


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- for the terminal


def terminal_report(record: EvaluationRecord, width: int) -> str:
    """Return the evaluation as aligned text, wrapped at ``width`` characters; tables and signatures are not wrapped."""

    def wrap(text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)

    name_width = max(len(system.name) for system in record.systems)
    metric_width = max(map(len, record.scores.signatures))
    blocks = [
        wrap(set_line(record)),
        [
            line
            for system in record.systems
            for line in wrap(f"{system.name:<{name_width}}  {system_line(system)}", " " * (name_width + 2))
        ],
        [*_table(record.scores), *(line for note in score_notes(record) for line in wrap(note))],
        [f"{metric:<{metric_width}}  {signature}" for metric, signature in record.scores.signatures.items()],
        [line for text in overlap_lines(record) for line in wrap(text)],
    ]
    if record.without_overlap:
        blocks.append([without_overlap_heading(record.without_overlap), *_table(record.without_overlap)])
    if record.by_length:
        blocks.append([f"{BY_LENGTH_HEADING}:", *_aligned(list(length_rows(record.by_length)), labels=2)])
    for name, examples in record.examples.items():
        of_system = f" of {name}" if len(record.systems) > 1 else ""
        for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
            if chosen:
                lines = [line for example in chosen for line in _example_lines(example, wrap)]
                blocks.append([f"{title}{of_system} by sentence chrF", *lines])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _table(scores: Scores) -> list[str]:
    rows = [["", *(metric_heading(metric) for metric in scores.signatures)]]
    for name, by_metric in scores.systems.items():
        rows.append([name, *(score_text(by_metric[metric]) for metric in scores.signatures)])
        p_values = [p_value_text(by_metric[metric]) for metric in scores.signatures]
        if any(p_values):
            rows.append(["", *p_values])
    return _aligned(rows, labels=1)


def _aligned(rows: list[list[str]], labels: int) -> list[str]:
    """Return rows as lines of equal width: the first ``labels`` columns are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if column < labels else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _example_lines(example: Example, wrap: Callable[[str, str], list[str]]) -> Iterator[str]:
    labelled = [
        *([] if example.source is None else [("source", example.source)]),
        *(("reference", text) for text in example.references),
        ("translation", example.translation),
    ]
    for position, (label, text) in enumerate(labelled):
        head = f"  {example.number:>6}  {example.chrf:5.1f}" if position == 0 else ""
        yield from wrap(f"{head:<17}{label:<13}{text or EMPTY}", " " * 30)
