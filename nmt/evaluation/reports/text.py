"""An evaluation in words and as a table for the terminal."""

import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nmt.evaluation.scoring import Evaluation, Example, Score, Scores, System

SIGNIFICANT = 0.05
EMPTY = "(empty)"
SAMPLING = {"temperature", "top_k", "top_p", "seed"}  # of decoding: no translation here is drawn


class Texts(NamedTuple):
    """All N sentences of an evaluation."""

    sources: list[str] | None
    references: list[list[str]]
    """R lists of N."""
    translations: dict[str, list[str]]
    """N by system."""
    chrf: dict[str, np.ndarray]
    """Of each sentence, float64 [N], by system."""


# --- what is said, whatever the form


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
        beam = f"beam {decoding.beam_size}, length penalty {decoding.length_penalty:g}"
        beam += f", coverage penalty {decoding.coverage_penalty:g}" if decoding.coverage_penalty else ""
        parts += ["greedy search" if decoding.beam_size == 1 else beam]
        parts += [decoding.precision, f"batches of {decoding.batch_size}"]
    if system.seconds is not None:
        parts.append(f"{system.seconds:,.1f} s ({system.sentences_per_second:,.0f} sentences/s)")
    if system.with_unknown_words:
        parts.append(f"{_count(system.with_unknown_words, 'sentence')} with unknown words")
    if system.cut_off:
        parts.append(f"{_count(system.cut_off, 'translation')} cut off at the longest allowed length")
    return ", ".join(parts)


def set_line(evaluation: Evaluation) -> str:
    """Return in words what was scored against."""
    one = evaluation.test_set
    what = f"the test split of dataset {one.dataset}: " if one.dataset else ""
    files = " -> ".join([*([one.source] if one.source else []), ", ".join(one.references)])
    references = f"{len(one.references)} references each" if len(one.references) > 1 else "one reference each"
    return f"Test set: {what}{files}; {_count(one.sentences, 'sentence')}, {references}"


def overlap_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield in words how many of the sentences were trained on."""
    overlap, sentences = evaluation.overlap, evaluation.test_set.sentences
    if overlap.numbers:
        counts = ", ".join(f"{count:,} in that of {name}" for name, count in overlap.checked.items())
        yield (
            f"WARNING: {len(overlap.numbers):,} of {_count(sentences, 'source sentence')} "
            f"({len(overlap.numbers) / sentences:.1%}) were trained on ({counts}), so these scores also say what was "
            "learnt by heart." + ("" if evaluation.without_overlap else " Nothing is left to score without them.")
        )
    elif overlap.checked:
        yield f"No source sentence stands in the training split of {', '.join(overlap.checked)}."
    for name, count in overlap.undecided.items():
        if count:
            yield (
                f"{_count(count, 'more source sentence')} may: equal to one in the training split of {name} but for "
                "words that the model does not know."
            )
    for reason in overlap.unchecked:
        yield f"Not compared with training: {reason}"


def notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield in words how the figures are to be read."""
    if evaluation.resamples and evaluation.test_set.sentences == 1:
        yield "A single sentence cannot be resampled: no intervals, no tests."
    elif evaluation.resamples:
        yield (
            f"In brackets: mean of {evaluation.resamples:,} bootstrap resamples, and half the width of their 95% "
            "interval."
        )
    first, *others = evaluation.systems
    if others and evaluation.resamples and evaluation.test_set.sentences > 1:
        yield (
            f"p: of the difference from {first.name}, two-sided, paired bootstrap resampling of these sentences (Koehn "
            f"2004){', each comparison for itself' if len(others) > 1 else ''}; * below {SIGNIFICANT:g}. It says "
            "nothing of how much training with another seed would change."
        )


def settings_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield in words what it takes, beside the signatures, to get these scores again."""
    for system in evaluation.systems:
        if system.decoding is not None:
            settings = system.decoding.model_dump(exclude=SAMPLING).items()
            yield (
                f"{system.name}: run {system.run} at epoch {system.epoch}, trained on dataset {system.dataset}; "
                f"{', '.join(f'{key} {value}' for key, value in settings)}"
            )
    for file, digest in evaluation.test_set.sha256.items():
        yield f"{file}: SHA-256 {digest}"
    yield f"nmt {evaluation.nmt}, sacrebleu {evaluation.sacrebleu}"


def figures(score: Score) -> str:
    """Return a score with its confidence interval."""
    return f"{score.score:.1f}" + ("" if score.mean is None else f" ({score.mean:.1f} ± {score.ci:.1f})")


def p_value(score: Score) -> str:
    """Return p with a star if it is small; an empty string for the baseline."""
    if score.p_value is None:
        return ""
    return f"p {score.p_value:.3f}{'*' if score.p_value < SIGNIFICANT else ''}"


def direction(metric: str) -> str:
    """Return the name of a metric with an arrow to where it is better."""
    return f"{metric} {'↓' if metric == 'TER' else '↑'}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def without_line(scores: Scores) -> str:
    """Return in words what the scores without overlap are of."""
    return f"Of the {_count(scores.sentences, 'sentence')} not trained on"


# --- for the terminal


def describe(evaluation: Evaluation, width: int) -> str:
    """Return the evaluation as aligned text in lines of ``width`` where text can be broken."""

    def wrap(text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)

    names = max(len(system.name) for system in evaluation.systems)
    metrics = max(map(len, evaluation.scores.signatures))
    blocks = [
        wrap(set_line(evaluation)),
        [
            line
            for one in evaluation.systems
            for line in wrap(f"{one.name:<{names}}  {system_line(one)}", " " * (names + 2))
        ],
        [*_table(evaluation.scores), *(line for note in notes(evaluation) for line in wrap(note))],
        [f"{name:<{metrics}}  {signature}" for name, signature in evaluation.scores.signatures.items()],
        [line for text in overlap_lines(evaluation) for line in wrap(text)],
    ]
    if evaluation.without_overlap:
        scores = evaluation.without_overlap
        blocks.append([f"{without_line(scores)}:", *_table(scores)])
    for name, examples in evaluation.examples.items():
        of = f" of {name}" if len(evaluation.systems) > 1 else ""
        for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
            if chosen:
                lines = [line for example in chosen for line in _example(example, wrap)]
                blocks.append([f"{title}{of} by sentence chrF", *lines])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _table(scores: Scores) -> list[str]:
    rows = [["", *(direction(metric) for metric in scores.signatures)]]
    for name, by_metric in scores.systems.items():
        rows.append([name, *(figures(by_metric[metric]) for metric in scores.signatures)])
        tests = [p_value(by_metric[metric]) for metric in scores.signatures]
        if any(tests):
            rows.append(["", *tests])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _example(example: Example, wrap: Callable[[str, str], list[str]]) -> Iterator[str]:
    labelled = [
        *([] if example.source is None else [("source", example.source)]),
        *(("reference", text) for text in example.references),
        ("translation", example.translation),
    ]
    for place, (label, text) in enumerate(labelled):
        head = f"  {example.number:>6}  {example.chrf:5.1f}" if place == 0 else ""
        yield from wrap(f"{head:<17}{label:<13}{text or EMPTY}", " " * 30)
