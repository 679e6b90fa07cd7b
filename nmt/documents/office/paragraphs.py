"""Paragraphs of office documents, cut into texts at their line breaks and tabs.

A format, such as Word's, reads the content of a paragraph as parts (``Story.parts``) and writes texts and pieces again.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from nmt.documents.blocks import Block, Item

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def has_letters(text: str) -> bool:
    """Return whether a text has words."""
    return any(map(str.isalpha, text))


class Part(NamedTuple):
    """Part of a paragraph."""

    kind: Literal["text", "piece", "break", "group"]
    """Text, a piece that is copied, a piece that ends a text, or parts within a link or the like."""
    value: Any
    """The text, the element of a piece, or the element or ``Signs`` around a group."""
    format: Any = None
    """Format of a text or piece, which the document format defines."""
    parts: "Sequence[Part]" = ()
    """Parts of a group."""

    @property
    def is_blank(self) -> bool:
        """Whether the part has no text to translate."""
        return self.kind == "piece" or (self.kind == "text" and not self.value.strip())


class Signs(NamedTuple):
    """Pieces before and after a group that no element encloses, such as the result of a field."""

    before: Sequence[Part]
    after: Sequence[Part]


class Story(ABC):
    """The paragraphs of a part of a document, such as its body."""

    PROPERTIES: frozenset[str] = frozenset()
    """Tags of the children of a paragraph or link that are no content."""

    def __init__(self, paragraphs: Iterable[Any]) -> None:
        """Read the paragraphs, given as elements. A paragraph may be in a piece of another."""
        self.left = Counter[str]()
        """Number of things with text that stay as they are, by name."""
        self._paragraphs: list[Paragraph] = []
        for element in paragraphs:
            self._paragraphs.append(Paragraph(element, self.parts(element), self))
        self.texts = [text for paragraph in self._paragraphs for text in paragraph.texts]

    def write(self, texts: Sequence[str]) -> bool:
        """Replace the texts. Return whether this changes a paragraph."""
        start, is_changed = 0, False
        for paragraph in self._paragraphs:
            end = start + len(paragraph.texts)
            is_changed |= paragraph.write(texts[start:end])
            start = end
        return is_changed

    @abstractmethod
    def parts(self, element: Any) -> list[Part]:
        """Return the parts of a paragraph or link."""

    @abstractmethod
    def format_key(self, format_: Any) -> str:
        """Return a text that is equal for formats that look the same."""

    @abstractmethod
    def append(self, parent: Any, format_: Any, content: Any) -> None:
        """Append a text or an element to a paragraph or link."""

    def content_of(self, element: Any) -> Any:
        """Return the element that has the content of a link or the like."""
        return element

    def group(self, element: Any) -> Part:
        """Return a link or the like as a part. With a line break in it, it has texts of its own."""
        content = self.content_of(element)
        parts = self.parts(content)
        if any(part.kind == "break" for part in parts):
            self._paragraphs.append(Paragraph(content, parts, self))
            return Part("break", element)
        has_text = any(part.kind in ("text", "group") for part in parts)
        return Part("group", element, parts=parts) if has_text else Part("piece", element)

    def empty(self, element: Any) -> None:
        """Remove the content of a paragraph or link."""
        element.text = None
        for child in [*element]:
            if child.tag not in self.PROPERTIES:
                element.remove(child)


class _Level(NamedTuple):
    """Place in a paragraph at which content is written."""

    element: Any
    format: Any


class Paragraph:
    """A paragraph, or a link that has texts of its own."""

    def __init__(self, element: Any, parts: Sequence[Part], story: Story) -> None:
        """Cut the parts of an element into texts."""
        self._element, self._story = element, story
        self._content: list[_Text | Part] = []
        """Texts, and the breaks between them."""
        start = 0
        for end, part in enumerate([*parts, Part("break", None)]):
            if part.kind == "break":
                self._content += [_Text(parts[start:end], story), part]
                start = end + 1
        del self._content[-1]
        self._texts = [text for text in self._content if isinstance(text, _Text) and text.block.text]
        self.texts = [text.block.text for text in self._texts]
        """The texts with marks."""

    def write(self, translations: Sequence[str]) -> bool:
        """Replace the texts by their translations. Return whether this changes the paragraph."""
        if [*translations] == self.texts:
            return False
        new = dict(zip(map(id, self._texts), translations, strict=True))
        self._story.empty(self._element)
        for content in self._content:
            if isinstance(content, Part):
                self._story.append(self._element, content.format, content.value)
            else:
                self._write_items(content.format, content.items(new.get(id(content), "")))
        return True

    def _write_items(self, format_: Any, items: Iterable[Item]) -> None:
        levels = [_Level(self._element, format_)]
        for item in items:
            if item.kind == "text":
                self._story.append(*levels[-1], _NOT_IN_XML.sub("", item.value))
            elif item.kind == "piece":
                self._story.append(levels[-1].element, item.value.format, item.value.value)
            elif item.kind == "open":
                levels.append(self._opened(levels[-1].element, *item.value))
            else:
                levels.pop()
                if item.value is not None and isinstance(item.value.value, Signs):
                    self._append_all(levels[-1].element, item.value.value.after)

    def _opened(self, parent: Any, group: Part | None, format_: Any) -> _Level:
        """Write the beginning of a group or of text in another format."""
        if group is None:
            return _Level(parent, format_)
        if isinstance(group.value, Signs):
            self._append_all(parent, group.value.before)
            return _Level(parent, format_)
        self._story.append(parent, None, group.value)
        content = self._story.content_of(group.value)
        self._story.empty(content)
        return _Level(content, format_)

    def _append_all(self, parent: Any, parts: Iterable[Part]) -> None:
        for part in parts:
            self._story.append(parent, part.format, part.value)


class _Text:
    """A text between two breaks. Pieces and spaces around it are not part of its block."""

    def __init__(self, parts: Sequence[Part], story: Story) -> None:
        self._before, self._after = list[Item](), list[Item]()
        low, high = 0, len(parts)
        while low < high:
            first, last = parts[low], parts[high - 1]
            if first.is_blank:
                self._before.append(Item("piece", first))
                low += 1
            elif last.is_blank:
                self._after.append(Item("piece", last))
                high -= 1
            elif first.kind == "group" and low == high - 1:
                self._before.append(Item("open", (first, None)))
                self._after.append(Item("close", first))
                parts = first.parts
                low, high = 0, len(parts)
            else:
                break
        self._after.reverse()
        self.format, items = _items(parts[low:high], story)
        self.block = Block(items)

    def items(self, translation: str) -> Iterator[Item]:
        """Yield everything between the breaks, with a translation of the text of the block."""
        yield from self._before
        # The format of the text applies within the groups around it too.
        yield Item("open", (None, self.format))
        yield from self.block.read(translation)
        yield Item("close", None)
        yield from self._after


def _items(parts: Sequence[Part], story: Story) -> tuple[Any, list[Item]]:
    """Return the format of most of the text of parts, and the parts as items of a block.

    Text in this usual format has no tags; text in other formats is between tags.
    """
    keys = [story.format_key(part.format) if part.kind == "text" else "" for part in parts]
    formats, lengths = dict[str, Any](), Counter[str]()
    for key, part in zip(keys, parts, strict=True):
        if part.kind == "text":
            formats.setdefault(key, part.format)
            lengths[key] += len(part.value)
    usual = max(lengths, key=lambda key: lengths[key], default="")
    items, current = list[Item](), usual
    for key, part in zip(keys, parts, strict=True):
        needed = usual if part.kind == "group" else key
        if part.is_blank:  # spaces and pieces take the format before them
            needed = current
        if needed != current:
            items += _change(current, needed, usual, formats)
            current = needed
        if part.kind == "group":
            inner_format, inner_items = _items(part.parts, story)
            items += [Item("open", (part, inner_format)), *inner_items, Item("close", part)]
        else:
            items.append(Item("text", part.value) if part.kind == "text" else Item("piece", part))
    return formats.get(usual), [*items, *_change(current, usual, usual, formats)]


def _change(current: str, needed: str, usual: str, formats: dict[str, Any]) -> list[Item]:
    """Return the tags between a text in the format ``current`` and a text in the format ``needed``."""
    tags = list[Item]()
    if current not in (usual, needed):
        tags.append(Item("close", None))
    if needed not in (usual, current):
        tags.append(Item("open", (None, formats[needed])))
    return tags
