"""Blocks: texts with inline markup, which become plain texts with a mark in place of each tag."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from nmt.errors import DataError
from nmt.tokenizers.marks import CLOSE, MARK, MOST_MARKS, OPEN, PAIRED, PIECE, move_space_out_of_tags
from nmt.tokenizers.scripts import HAN, KANA

SOFT_BREAK = "\x1f"
"""White space with a line break within a paragraph: a space, or nothing between Chinese or Japanese characters."""
_EAST_ASIAN = f"[{HAN}{KANA}\u3001-\u303f\uff01-\uff65]"
_NO_SPACE = re.compile(f"(?<={_EAST_ASIAN})({PAIRED.pattern}*+){SOFT_BREAK}({PAIRED.pattern}*+)(?={_EAST_ASIAN})")
_JOINT = re.compile(r"\s?[+/\\|&=<>~→＋／＆]\s?|[-–.:@_#*]")
"""Text between two pieces that belong together, as in Ctrl+C."""
_PARTS = re.compile(f"{MARK.pattern}|{MARK.pattern.replace('[', '[^')}+")


class Item(NamedTuple):
    """Part of a block: text, a tag or a piece."""

    kind: Literal["text", "open", "close", "piece"]
    """Text, an opening or closing tag, or a piece that is copied unchanged."""
    value: Any
    """The text, or the document format's own representation of a tag or piece."""


class Block:
    """Text with inline markup."""

    def __init__(self, items: Iterable[Item]) -> None:
        """Build the text from the parts in order. Tags must be closed and properly nested.

        Raises:
            DataError: if there are too many tags.
        """
        self._items: dict[str, list[Item]] = {}
        """Items that each mark stands for."""
        parts, opened = list[str](), list[int]()
        for item in items:
            if item.kind == "piece" and _ends_in_joint(parts):
                joint = Item("text", parts.pop().replace(SOFT_BREAK, " "))
                self._items[parts[-1]] += [joint, item]
                continue
            for part in _PARTS.findall(item.value) if item.kind == "text" else [""]:
                if item.kind == "text" and not MARK.match(part):
                    before = parts.pop() if parts and not MARK.match(parts[-1]) else ""
                    parts.append(before + part)
                    continue
                # A mark character of the document itself becomes a piece.
                marked = Item("text", part) if part else item
                number = opened.pop() if item.kind == "close" else len(self._items)
                first = PIECE if part else {"open": OPEN, "close": CLOSE, "piece": PIECE}[item.kind]
                if item.kind == "open":
                    opened.append(number)
                if number >= MOST_MARKS:
                    raise DataError(f"A paragraph has more than {MOST_MARKS:,} tags. Split it.")
                parts.append(chr(first + number))
                self._items[parts[-1]] = [marked]
        text = move_space_out_of_tags("".join(parts))
        self.text = _NO_SPACE.sub(r"\1\2", text).replace(SOFT_BREAK, " ")
        """The text with marks."""

    def items_of(self, mark: str) -> list[Item]:
        """Return the items that a mark of the text stands for: several if pieces are joined by a sign."""
        return self._items[mark]

    def read(self, translation: str) -> Iterator[Item]:
        """Yield the parts of a translation of the text.

        Every tag comes exactly once. If the translation lost or repeated a mark, all tags follow the text.
        """
        if sorted(MARK.findall(translation)) != sorted(self._items):
            translation = MARK.sub("", translation) + "".join(self._items)
        for part in _PARTS.findall(translation):
            yield from self._items.get(part) or [Item("text", part)]


def _ends_in_joint(parts: list[str]) -> bool:
    """Return whether a piece that follows these parts of a text belongs to the piece before."""
    return len(parts) > 1 and parts[-2][0] >= chr(PIECE) and bool(_JOINT.fullmatch(parts[-1]))
