"""A sentence pair, and the iterator over numbered pairs that every reader of a corpus file returns."""

from collections.abc import Iterator
from typing import NamedTuple

from nmt.data.sources.text_file import Unreadable


class Pair(NamedTuple):
    """A sentence and its translation, as they stand in the file."""

    source: str
    target: str


NumberedPairs = Iterator[tuple[int, Pair | Unreadable]]
"""Iterator over (number of the line, row or unit, counted from 1; its content)."""


def blank_line(file: object, number: int) -> Unreadable:
    """Return the item for a line without any character but white space, which is dropped."""
    return Unreadable("blank line", f"{file}, line {number} is blank. Remove the line", is_dropped=True)
