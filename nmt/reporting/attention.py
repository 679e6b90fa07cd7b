"""Attention of translations to their sources."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from nmt.errors import DataError, NmtError
from nmt.reporting.charts import attention_figure
from nmt.reporting.facts import RunFacts

DEFAULT_SENTENCES = 3


class AttentionMap(NamedTuple):
    """Attention of a translation to its source."""

    run: str
    sentence: str
    translation: str
    figure: Markup
    """Mean over the heads of the last layer."""


class AttentionReport(NamedTuple):
    """Maps of all runs, and what has none."""

    maps: list[AttentionMap]
    """Maps of the first sentence by all runs, then of the second ..."""
    notes: list[str]
    """Runs without maps, each with the reason in words."""


class SentenceError(DataError):
    """Sentence that a run cannot translate."""


def draw_attention(runs: Sequence[RunFacts], sentences: Sequence[str], warn: Callable[[str], None]) -> AttentionReport:
    """Translate sentences with each run, and return its attention; a run without weights does not stop the report.

    Args:
        runs: the runs.
        sentences: raw sentences; none for the first sample sentences of each run.
        warn: called with each problem.

    Raises:
        SentenceError: for a sentence without words.
    """
    maps: list[AttentionMap] = []
    notes: list[str] = []
    for facts in runs:
        samples = facts.run.samples()[-1:]
        texts = [*sentences] or [sample.source for last in samples for sample in last.samples[:DEFAULT_SENTENCES]]
        if not texts:
            notes.append(f"{facts.name} has no sample sentences. --sentence TEXT names others.")
            continue
        try:
            maps += _maps_of_run(facts, texts)
        except SentenceError:
            raise
        except NmtError as error:
            notes.append(f"{facts.name}: {error}")
            warn(f"No attention of {notes[-1]}")
    order = [*dict.fromkeys(found.sentence for found in maps)]
    return AttentionReport(sorted(maps, key=lambda found: order.index(found.sentence)), notes)


def _maps_of_run(facts: RunFacts, texts: list[str]) -> list[AttentionMap]:
    from nmt.decoding.translator import Translator  # noqa: PLC0415 - it loads TensorFlow

    translator = Translator.load(facts.run)
    for text in texts:
        if not translator.source.encode(text):
            raise SentenceError(
                f"Sentence {text[:60]!r} has no words after the normalization of run {facts.name}. A map of attention "
                "needs a word at least. Give another sentence."
            )
    translations = translator.translate(texts, [repr(text[:60]) for text in texts])
    return [
        AttentionMap(
            facts.name, text, translation.text,
            attention_figure(
                attention.weights[-1].mean(axis=0),
                translator.source.pieces(attention.source),
                translator.target.pieces(attention.target),
            ),
        )
        for text, translation, attention in zip(
            texts, translations, translator.attention(texts, translations), strict=True
        )
    ]  # fmt: skip
