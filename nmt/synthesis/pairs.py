"""Pairs from a block of lines: variants of the lines, their translations, the best of these, and what is dropped."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from nmt.config.training import VariantName
from nmt.data.cleaning import place_of
from nmt.data.encoding import median_ratio, relative_ratio
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile, Unreadable
from nmt.data.variants import VARIANTS, Languages
from nmt.teachers.choice import Choose
from nmt.teachers.teacher import Teacher

MAX_LENGTH_RATIO = 3.0  # ratio of the characters of both sides, relative to the corpus of the model
Block = list[tuple[int, str | Unreadable]]
"""Consecutive lines with their numbers, from 1."""


class Task(NamedTuple):
    """What is done with each block of lines."""

    teachers: Sequence[Teacher]
    choose: Choose | None
    """Choice among several candidates; None if a line has one."""
    file: TextFile
    forward: bool
    min_score: float | None
    filters: Callable[[int, Pair], str | None]
    """Function of a number and a pair that returns the filter that drops the pair, or None."""
    augment: Mapping[VariantName, float]
    languages: Languages
    """Codes of the languages of the lines and of their translations."""
    median: float | None
    """Median of target characters per source character in the training corpus; None if it is unknown."""


def pairs_of(task: Task, block: Block, first: int, journals: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the pair of each numbered line, or the reason why the line is dropped, with its place."""
    texts = ["" if isinstance(line, Unreadable) else line for _, line in block]
    texts = _varied(texts, task.augment, first, task.languages) if task.augment else texts
    found = [teacher.translate(texts, first, journal) for teacher, journal in zip(task.teachers, journals, strict=True)]
    candidates = [[*itertools.chain(*of_teachers)] for of_teachers in zip(*found, strict=True)]
    chosen = task.choose(texts, candidates) if task.choose else [of_line[0] for of_line in candidates]
    pairs = [Pair(text, candidate.text) for text, candidate in zip(texts, chosen, strict=True)]
    median = task.median or median_ratio(pairs) or 1.0
    for index, (number, line) in enumerate(block):
        text, written = pairs[index]
        candidate = chosen[index]
        pair = Pair(text, written) if task.forward else Pair(written, text)
        is_low = task.min_score is not None and candidate.score is not None and candidate.score < task.min_score
        reasons = {
            line.reason if isinstance(line, Unreadable) else "": isinstance(line, Unreadable),
            "empty line": not text.strip(),
            candidate.problem: bool(candidate.problem),
            "empty translation": not written.strip(),
            "translation equals the line": written == text,
            "length ratio": relative_ratio(pairs[index], median) > MAX_LENGTH_RATIO,
            "low score": is_low,
        }
        reason = next((reason for reason, applies in reasons.items() if applies), "")
        if not reason and (name := task.filters(index, pair)):
            reason = f"filter {name}"
        if reason:
            yield {"dropped": reason, "place": place_of([task.file], number, Pair(text, written) if text else None)}
        else:
            scored = {} if candidate.score is None else {"score": candidate.score}
            yield {"source": pair.source, "target": pair.target, **scored}


def _varied(texts: list[str], shares: Mapping[VariantName, float], first: int, languages: Languages) -> list[str]:
    """Return lines in which variants replace some; the number of a line decides.

    Args:
        texts: consecutive lines.
        shares: share of the lines that each variant replaces.
        first: number of the first line, from 0.
        languages: codes of source and target.
    """
    varied = list(texts)
    for index, text in enumerate(texts):
        dice = Random(f"line {first + index}")
        chosen, above = dice.random(), 0.0
        following = Pair(texts[(index + 1) % len(texts)], "")
        for name, share in shares.items() if text.strip() else ():
            if above <= chosen < above + share:
                varied[index] = VARIANTS[name](Pair(text, ""), following, dice, languages).source
            above += share
    return varied
