"""Blocks: texts of a document with inline markup, as texts with marks."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from nmt.errors import DataError
from nmt.tokenizers.marks import CLOSE, MARK, MOST_MARKS, OPEN, PIECE, tidied

_PARTS = re.compile(f"{MARK.pattern}|{MARK.pattern.replace('[', '[^')}+")


class Item(NamedTuple):
    """Part of a block."""

    kind: Literal["text", "open", "close", "piece"]
    """Text, the beginning or the end of a tag, or a piece that is carried over as it is."""
    value: Any
    """Text, or what a document makes of a tag or a piece."""


class Block:
    """Text with inline markup."""

    def __init__(self, items: Iterable[Item]) -> None:
        """Take the parts in order; each tag is closed, and within those around it.

        Raises:
            DataError: if there are too many.
        """
        self._items: dict[str, Item] = {}
        parts, opened = list[str](), list[int]()
        for item in items:
            for part in _PARTS.findall(item.value) if item.kind == "text" else [""]:
                if item.kind == "text" and not MARK.match(part):
                    parts.append(part)
                    continue
                # A mark that the document has itself is a piece.
                kept = Item("text", part) if part else item
                number = opened.pop() if item.kind == "close" else len(self._items)
                first = PIECE if part else {"open": OPEN, "close": CLOSE, "piece": PIECE}[item.kind]
                if item.kind == "open":
                    opened.append(number)
                if number >= MOST_MARKS:
                    raise DataError(f"A paragraph has more than {MOST_MARKS:,} tags. Split it.")
                parts.append(chr(first + number))
                self._items[parts[-1]] = kept
        self.text = tidied("".join(parts))
        """The text with marks."""

    def read(self, translation: str) -> Iterator[Item]:
        """Yield the parts of a translation of the text; each tag comes once, also where the translation lacks marks."""
        if sorted(MARK.findall(translation)) != sorted(self._items):
            translation = MARK.sub("", translation) + "".join(self._items)
        for part in _PARTS.findall(translation):
            yield self._items[part] if MARK.match(part) else Item("text", part)
