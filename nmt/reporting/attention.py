"""Attention of translations to their sources."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from nmt.decoding.translator import Translator
from nmt.errors import DataError, NmtError
from nmt.reporting.charts import attention_figure
from nmt.runs.directory import Run

DEFAULT_SENTENCES = 3


class AttentionMap(NamedTuple):
    """Attention of a translation to its source, the mean over the heads of the last layer."""

    run: str
    sentence: str
    translation: str
    figure: Markup


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
        samples = run.samples()[-1:]
        texts = [*sentences] or [sample.source for last in samples for sample in last.samples[:DEFAULT_SENTENCES]]
        if not texts:
            notes.append(f"{run.name} has no sample sentences. --sentence TEXT names others.")
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
