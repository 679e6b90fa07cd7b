"""Translations of the sample sentences over training, with the words that changed."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from nmt.reporting.facts import RunFacts
from nmt.runs.metrics import SampleMetrics


class Piece(NamedTuple):
    """Part of a translation, and its change since the translation before."""

    text: str
    change: Literal["kept", "added", "removed"]


class Stage(NamedTuple):
    """A translation, and how long it stayed."""

    when: str
    """Times of the translation, such as "epoch 3 to 5"."""
    translation: str
    pieces: list[Piece]


class SampleHistory(NamedTuple):
    """A sample sentence with its translations by each run."""

    source: str
    reference: str
    by_run: dict[str, list[Stage]]
    """Stages in order, by name of the run."""


def sample_histories(runs: Sequence[RunFacts]) -> list[SampleHistory]:
    """Return the sample sentences of all runs; runs with the same sentence share an entry."""
    found: dict[tuple[str, str], dict[str, list[Stage]]] = {}
    for facts in runs:
        ends = {record.step for record in facts.epochs}
        history: dict[tuple[str, str], list[tuple[str, str]]] = {}  # by source and reference: time, translation
        for record in facts.records:
            if isinstance(record, SampleMetrics):
                time = f"epoch {record.epoch}" if record.step in ends else f"step {record.step:,}"
                for sample in record.samples:
                    history.setdefault((sample.source, sample.reference), []).append((time, sample.translation))
        for sentence, translations in history.items():
            found.setdefault(sentence, {})[facts.name] = list(_stages(translations))
    return [SampleHistory(*sentence, by_run) for sentence, by_run in found.items()]


def _stages(translations: list[tuple[str, str]]) -> Iterator[Stage]:
    """Yield the translations, equal neighbours merged."""
    before: str | None = None
    for translation, group in groupby(translations, key=lambda entry: entry[1]):
        times = [time for time, _ in group]
        unit = times[0].partition(" ")[0]
        when = times[0] if len(times) == 1 else f"{times[0]} to {times[-1].removeprefix(f'{unit} ')}"
        yield Stage(when, translation, changes(before, translation))
        before = translation


def changes(before: str | None, after: str) -> list[Piece]:
    """Return the pieces of ``after``, those that differ from ``before`` marked; without ``before``, none is.

    The pieces are words. A text without spaces, Chinese for example, is compared by characters.
    """
    if before is None:
        return [Piece(after, "kept")] if after else []
    by_words = " " in before or " " in after
    old, new = (text.split(" ") if by_words else [*text] for text in (before, after))
    glue = " " if by_words else ""
    pieces = list[Piece]()
    for change, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        words = old[old_start:old_end] if change == "delete" else new[new_start:new_end]
        text = f"{glue if pieces else ''}{glue.join(words)}"
        pieces.append(Piece(text, "removed" if change == "delete" else "kept" if change == "equal" else "added"))
    return pieces
