"""Text for terminals: fitted to columns, bars, sparklines, durations, sizes."""

import itertools
import unicodedata
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def columns_of(text: str) -> int:
    """Return the columns that text takes: two for a wide character, none for a combining one."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitted(text: str, columns: int, ellipsis: str = "…") -> str:
    """Return text of at most ``columns`` columns; what is cut off at the end is marked."""
    if columns_of(text) <= columns:
        return text
    room, kept = columns - len(ellipsis), ""
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept += character
    return kept + ellipsis if columns >= len(ellipsis) else ""


def joined(parts: Sequence[tuple[int, str]], columns: int, gap: str = "  ") -> str:
    """Return parts side by side, as many as fit; those with the largest numbers are left out first.

    Args:
        parts: rank, from 0, and text of each part, in the order of display. The part of rank 0 is cut if necessary.
        columns: available columns.
        gap: text between parts.
    """
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and columns_of(gap.join(text for _, text in kept)) > columns:
        kept.remove(max(kept))
    return fitted(gap.join(text for _, text in kept), columns)


def sparkline(values: Sequence[float], columns: int) -> str:
    """Return a curve of blocks, from the lowest value to the highest; neighbours share a column if they must."""
    if len(values) < 2 or columns < 2:
        return ""
    columns = min(columns, len(values))
    edges = [round(column * len(values) / columns) for column in range(columns + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    # Divided before it is multiplied: 1 / span overflows for a tiny span.
    return "".join(BARS[round((mean - low) / span * (len(BARS) - 1))] for mean in means)


def bar(share: float, columns: int, done: str = "━", left: str = "─") -> tuple[str, str]:
    """Return the two parts of a bar: what is done and what is left."""
    full = round(max(0.0, min(1.0, share)) * columns)
    return done * full, left * (columns - full)


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: 1:02:03, or 2:03 below an hour."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
